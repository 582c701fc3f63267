#include "launcher/agent/examiner.h"

#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "base/process.h"

namespace corro::launcher::agent {

namespace {

// A process that sleeps, and does not outlive its test.
class Sleeper {
 public:
  Sleeper() : pid_(*spawn({.argv = {"/bin/sleep", "60"}, .env = {}, .cwd = {}})) {}
  Sleeper(const Sleeper&) = delete;
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

}  // namespace

TEST_CASE("the examiner tells what each worker was doing, by its number, while the loop goes on") {
  const Sleeper one, other;
  Loop loop;
  Examiner examiner(loop);
  std::vector<std::uint32_t> workers;
  std::vector<pid_t> pids;
  bool went_on = false;
  loop.post([&] {
    examiner.examine({{4, one.pid()}, {9, other.pid()}},
                     [&](const auto& subjects, const std::vector<Evidence>& seen) {
                       CHECK(seen.size() == 2);
                       for (const Examiner::Subject& subject : subjects) {
                         workers.push_back(subject.worker);
                         pids.push_back(subject.pid);
                       }
                       loop.stop();
                     });
    loop.post([&] { went_on = workers.empty(); });
  });
  loop.run();
  CHECK(workers == std::vector<std::uint32_t>{4, 9});
  CHECK(pids == std::vector<pid_t>{one.pid(), other.pid()});
  CHECK(went_on);
}

TEST_CASE("a second examination is dropped while one is under way, and done afterwards") {
  const Sleeper one;
  Loop loop;
  Examiner examiner(loop);
  int first = 0, second = 0, third = 0;
  loop.post([&] {
    examiner.examine({{0, one.pid()}}, [&](const auto&, const auto&) {
      ++first;
      loop.post([&] {
        examiner.examine({{0, one.pid()}}, [&](const auto&, const auto&) {
          ++third;
          loop.stop();
        });
      });
    });
    examiner.examine({{0, one.pid()}}, [&](const auto&, const auto&) { ++second; });
  });
  loop.run();
  CHECK(first == 1);
  CHECK(second == 0);
  CHECK(third == 1);
}

TEST_CASE("where no worker runs the examiner has nothing to tell, and says so") {
  Loop loop;
  Examiner examiner(loop);
  loop.post([&] {
    examiner.examine({}, [&](const auto& subjects, const auto& seen) {
      CHECK(subjects.empty());
      CHECK(seen.empty());
      loop.stop();
    });
  });
  loop.run();
}

}  // namespace corro::launcher::agent
