// memory_limits [sizes=BYTES,…] [repeats=9]: what memory allows, on one core and on all of them.
//
//   copy      a = b
//   sum       a += b
//   exchange  a = b = a + b: an allreduce of two tensors, by a program that owns both
//
// One line for each: kernel,cores,bytes,median,min,max in GB/s of tensor (bytes · cores / time).
#include <atomic>
#include <thread>

#include "allreduce.h"
#include "pinning.h"

namespace {

using Kernel = void (*)(float* __restrict, float* __restrict, std::size_t);

void copy(float* __restrict a, float* __restrict b, std::size_t count) {
  std::memcpy(a, b, count * sizeof(float));
}

void sum(float* __restrict a, float* __restrict b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) a[i] += b[i];
}

void exchange(float* __restrict a, float* __restrict b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) a[i] = b[i] = a[i] + b[i];
}

class Barrier {
 public:
  explicit Barrier(int threads) : threads_(threads) {}

  void wait() {
    const int turn = turn_.load();
    if (arrived_.fetch_add(1) + 1 == threads_) {
      arrived_.store(0);
      turn_.store(turn + 1);
    } else {
      while (turn_.load() == turn) corro::bench::relax();
    }
  }

 private:
  const int threads_;
  std::atomic<int> arrived_{0}, turn_{0};
};

// GB/s, one for each repeat.
std::vector<double> rates(Kernel kernel, int cores, std::size_t bytes, int repeats) {
  const std::size_t loops = std::max<std::size_t>(1, (std::size_t{256} << 20) / bytes);
  Barrier barrier(cores);
  std::vector<double> seconds(static_cast<std::size_t>(repeats));
  std::vector<std::thread> threads;
  for (int core = 0; core < cores; ++core)
    threads.emplace_back([&, core] {
      corro::bench::pin_to(core);
      const corro::bench::PrivateBuffer a(bytes), b(bytes);
      std::memset(a.data(), 0, bytes);
      std::memset(b.data(), 0, bytes);
      kernel(static_cast<float*>(a.data()), static_cast<float*>(b.data()), bytes / sizeof(float));
      for (double& took : seconds) {
        barrier.wait();
        const double began = corro::bench::now();
        for (std::size_t i = 0; i < loops; ++i)
          kernel(static_cast<float*>(a.data()), static_cast<float*>(b.data()),
                 bytes / sizeof(float));
        barrier.wait();
        if (core == 0) took = corro::bench::now() - began;
      }
    });
  for (auto& thread : threads) thread.join();
  std::vector<double> result;
  for (const double took : seconds)
    result.push_back(static_cast<double>(bytes * loops) * cores / took / 1e9);
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const corro::bench::Words words(argc, argv);
  const int all = static_cast<int>(std::thread::hardware_concurrency());
  const std::vector<std::pair<const char*, Kernel>> kernels = {
      {"copy", copy}, {"sum", sum}, {"exchange", exchange}};
  for (const std::size_t bytes : words.sizes())
    for (const int cores : {1, all})
      for (const auto& [name, kernel] : kernels) {
        const auto r = rates(kernel, cores, bytes, words.number("repeats", 9));
        std::printf("%s,%d,%zu,%.3f,%.3f,%.3f\n", name, cores, bytes, r[r.size() / 2], r.front(),
                    r.back());
        std::fflush(stdout);
      }
}
