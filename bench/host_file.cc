// host_file [LINES]: how long it takes to read a host file of 100,000 lines, and to plan a worker
// for each of its slots.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "launcher/plan/plan.h"

using namespace corro;
using namespace corro::launcher;

namespace {

constexpr int kRuns = 15;
constexpr int kSlotsPerHost = 8;

class Times {
 public:
  template <class Work>
  auto measure(Work work) {
    const auto start = std::chrono::steady_clock::now();
    auto result = work();
    runs_.push_back(std::chrono::steady_clock::now() - start);
    return result;
  }
  void print(const char* what) {
    std::sort(runs_.begin(), runs_.end());
    std::printf("%-12s best %6.1f ms, median %6.1f ms\n", what, runs_.front().count(),
                runs_[runs_.size() / 2].count());
  }

 private:
  std::vector<std::chrono::duration<double, std::milli>> runs_;
};

}  // namespace

int main(int argc, char** argv) {
  const int lines = argc > 1 ? std::atoi(argv[1]) : 100'000;
  std::string text;
  for (int i = 0; i < lines; ++i)
    text += fmt::format("node{:06}.cluster.example slots={}\n", i, kSlotsPerHost);

  Times parse, plan, both;
  for (int run = 0; run < kRuns; ++run) {
    const bool ok = both.measure([&] {
      const auto list = parse.measure([&] { return parse_host_file({"hosts.txt", text}); });
      if (!list) return std::fprintf(stderr, "%s\n", list.error().text().c_str()), false;
      return bool(plan.measure([&] { return make_plan(list->hosts, lines * kSlotsPerHost, 0); }));
    });
    if (!ok) return 1;
  }
  parse.print("parse");
  plan.print("plan");
  both.print("and free");
}
