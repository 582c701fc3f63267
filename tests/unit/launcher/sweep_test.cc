#include "launcher/agent/sweep.h"

#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/process.h"
#include "tests/support/not_tested.h"

namespace corro::launcher {

namespace {

namespace fs = std::filesystem;

using namespace std::chrono_literals;

pid_t start_sleep() {
  return *spawn({.argv = {"/bin/sleep", "60"}, .env = {}, .cwd = {}});
}

// As if it stood in the kernel: whom a cgroup of version 1 has frozen, SIGKILL does not end.
class Freezer {
 public:
  Freezer() : folder_(fmt::format("/sys/fs/cgroup/freezer/corro-test-{}", ::getpid())) {
    std::error_code error;
    usable_ = fs::create_directory(folder_, error) && fs::exists(folder_ + "/freezer.state");
  }
  ~Freezer() { ::rmdir(folder_.c_str()); }

  bool usable() const { return usable_; }
  void freeze(pid_t pid) const {
    put("cgroup.procs", std::to_string(pid));
    put("freezer.state", "FROZEN");
    std::string state;
    while (state != "FROZEN") std::getline(std::ifstream(folder_ + "/freezer.state"), state);
  }
  void thaw() const { put("freezer.state", "THAWED"); }

 private:
  void put(const char* name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text << std::flush;
  }

  const std::string folder_;
  bool usable_ = false;
};

}  // namespace

TEST_CASE("all children are killed and reaped") {
  for (int i = 0; i < 3; ++i) start_sleep();
  CHECK(sweep(1s).empty());
  CHECK(children().empty());
}

TEST_CASE("one that stands in the kernel is left when all others are gone, and told") {
  const Freezer freezer;
  if (!freezer.usable()) {
    test::not_tested("nobody can be frozen here");
    return;
  }
  const pid_t stuck = start_sleep();
  freezer.freeze(stuck);
  start_sleep();
  CHECK(sweep(50ms) == std::vector<pid_t>{stuck});
  CHECK(children() == std::vector<pid_t>{stuck});
  freezer.thaw();
  CHECK(sweep(10s).empty());
}

TEST_CASE("a process is stuck if a thread stands in the kernel and no other goes on") {
  CHECK(is_stuck("D"));
  CHECK(is_stuck("ZD"));  // the first thread has ended
  CHECK(is_stuck("DDX"));
  for (const char* states : {"", "Z", "ZZ", "R", "DR", "SD", "ZS"}) CHECK_FALSE(is_stuck(states));
}

}  // namespace corro::launcher
