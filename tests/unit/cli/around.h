#pragma once

#include <map>
#include <string>

#include "cli/parse.h"

namespace corro::cli {

// A world with these variables and files, in which every host has one GPU.
struct Around {
  std::map<std::string, std::string> variables, files, scripts;

  operator Surroundings() const {
    const auto look_up = [](const std::map<std::string, std::string>& in, const std::string& name) {
      const auto found = in.find(name);
      return found == in.end() ? std::optional<std::string>() : found->second;
    };
    const auto read = [look_up](const std::map<std::string, std::string>& in) {
      return [in, look_up](const std::string& path) -> Result<std::string> {
        if (auto text = look_up(in, path)) return *text;
        return Error(Errc::not_found, "reading " + path + ": No such file or directory");
      };
    };
    return {[in = variables, look_up](const std::string& name) { return look_up(in, name); },
            read(files), read(scripts), [](const launcher::HostSpec&) { return 1; },
            [](const launcher::HostSpec& host) { return host.name == "localhost"; }};
  }
};

}  // namespace corro::cli
