// core_distance [seconds=1]: keeps all cores busy so long, then prints the round trip of a cache
// line between the first two, in ns (median of 9 bursts).  A hypervisor moves cores about: the
// distance changes, and it settles only while they are busy.
#include <atomic>
#include <thread>

#include "allreduce.h"
#include "pinning.h"

namespace {

constexpr int kBursts = 9, kTrips = 500;

struct alignas(64) Line {
  std::atomic<int> value{0};
};

Line question, answer;
std::atomic<bool> stop{false};

void reply() {
  corro::bench::pin_to(1);
  while (!stop.load(std::memory_order_relaxed)) {
    answer.value.store(question.value.load(std::memory_order_acquire), std::memory_order_release);
    corro::bench::relax();
  }
}

void spin_on(int core) {
  corro::bench::pin_to(core);
  while (!stop.load(std::memory_order_relaxed)) corro::bench::relax();
}

double burst_ns() {
  static int last = 0;
  const double began = corro::bench::now();
  for (int i = 0; i < kTrips; ++i) {
    question.value.store(++last, std::memory_order_release);
    while (answer.value.load(std::memory_order_acquire) != last) corro::bench::relax();
  }
  return (corro::bench::now() - began) / kTrips * 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  const corro::bench::Words words(argc, argv);
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (cores < 2) {
    std::puts("nan");
    return 0;
  }
  std::vector<std::thread> others;
  others.emplace_back(reply);
  for (int core = 2; core < cores; ++core) others.emplace_back(spin_on, core);
  corro::bench::pin_to(0);
  for (const double until = corro::bench::now() + words.real("seconds", 1);
       corro::bench::now() < until;)
    burst_ns();
  std::vector<double> bursts;
  for (int i = 0; i < kBursts; ++i) bursts.push_back(burst_ns());
  std::sort(bursts.begin(), bursts.end());
  std::printf("%.0f\n", bursts[kBursts / 2]);
  stop.store(true);
  for (auto& thread : others) thread.join();
}
