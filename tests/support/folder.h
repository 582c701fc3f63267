#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace corro::test {

// A folder for one test, gone with it.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() / "corro-XXXXXX") {  // as mkdtemp wants it
    if (!::mkdtemp(path_.data())) throw std::runtime_error("no folder for a test");
  }
  Folder(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }

  // A file of this name below it, with the folders that it needs.
  void put(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path_ + "/" + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

 private:
  std::string path_;
};

}  // namespace corro::test
