// How fast the kernels are, beside memcpy and a plain loop.  Bytes are those that are read and
// written: three streams for a sum of two, two for a copy.  The best of several rounds.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/op/kernel_table.h"
#include "runtime/op/kernels.h"

using namespace corro;
using namespace corro::runtime;

namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

// Touched, and in different places of their pages, so that stores and loads do not meet in the
// last 12 bits of their addresses.
class Buffer {
 public:
  Buffer(std::size_t bytes, std::size_t index)
      : memory_(std::aligned_alloc(4096, bytes + 32 * 4096)),
        offset_(index * (4096 + 192)),
        bytes_(bytes) {
    std::memset(memory_.get(), 0, bytes + 32 * 4096);
  }
  MutByteView view() { return {static_cast<std::uint8_t*>(memory_.get()) + offset_, bytes_}; }

 private:
  std::unique_ptr<void, Free> memory_;
  std::size_t offset_, bytes_;
};

// The best of some rounds, in GB/s.
double rate(std::size_t bytes, const std::function<void()>& fn) {
  using Clock = std::chrono::steady_clock;
  fn();
  const std::size_t calls =
      std::max<std::size_t>(1, (64u << 20) / std::max<std::size_t>(bytes, 4096));
  double best = 1e9;
  for (int round = 0; round < 21; ++round) {
    const auto begin = Clock::now();
    for (std::size_t i = 0; i < calls; ++i) fn();
    const std::chrono::duration<double> took = Clock::now() - begin;
    best = std::min(best, took.count() / static_cast<double>(calls));
  }
  return static_cast<double>(bytes) / best / 1e9;
}

// What a compiler makes of the obvious loop, for the CPUs that all users have.
__attribute__((optimize("O3"), noinline)) void plain_sum(float* __restrict into,
                                                         const float* __restrict a, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) into[i] += a[i];
}

float* floats(MutByteView view) {
  return reinterpret_cast<float*>(view.data());
}

void measure(std::size_t bytes) {
  std::vector<Buffer> buffers;
  std::vector<const std::uint8_t*> sources;
  for (std::size_t i = 0; i < 9; ++i) buffers.emplace_back(bytes, i);
  for (std::size_t i = 1; i < 9; ++i) sources.push_back(buffers[i].view().data());
  const MutByteView into = buffers[0].view(), a = buffers[1].view(), b = buffers[2].view();

  const auto line = [&](const std::string& what, std::size_t streams,
                        const std::function<void()>& fn) {
    fmt::print("{:>9}  {:<28} {:7.1f} GB/s\n", bytes, what, rate(streams * bytes, fn));
  };
  const std::size_t n = bytes / 4;
  line("memcpy", 2, [&] { std::memcpy(into.data(), a.data(), bytes); });
  line("copy", 2, [&] { copy(into, a); });
  line("streamed copy", 2, [&] { kernel_tables()[0]->stream(into.data(), a.data(), bytes); });
  line("f32 sum, plain -O3 loop", 3, [&] { plain_sum(floats(into), floats(a), n); });
  line("f32 sum, reduce in place", 3,
       [&] { reduce(Reduction::sum, DataType::f32, into, into, a); });
  line("f32 sum, reduce", 3, [&] { reduce(Reduction::sum, DataType::f32, into, a, b); });
  for (const std::size_t count : {2u, 4u, 8u})
    line(fmt::format("f32 sum, reduce_all of {}", count), count + 1,
         [&] { reduce_all(Reduction::sum, DataType::f32, into, std::span(sources).first(count)); });
  line("f32 min, reduce", 3, [&] { reduce(Reduction::min, DataType::f32, into, a, b); });
  line("bf16 sum, reduce", 3, [&] { reduce(Reduction::sum, DataType::bf16, into, a, b); });
  line("f16 sum, reduce", 3, [&] { reduce(Reduction::sum, DataType::f16, into, a, b); });
  line("f16 sum, reduce_all of 8", 9,
       [&] { reduce_all(Reduction::sum, DataType::f16, into, sources); });
  line("f32 average, finish", 2, [&] { finish({Reduction::average, DataType::f32, 8, 1}, into); });
  line("f32 dot", 2, [&] {
    if (dot(DataType::f32, a, b) == 1) std::abort();
  });
}

// Nanoseconds for the digest that ranks compare before each operation.
double digest_time() {
  constexpr std::uint64_t kCalls = 1000;
  Shape shape;
  shape.kind = Kind::allreduce;
  volatile std::uint64_t all = 0;
  return 1 / rate(kCalls, [&] {
           for (shape.count = 0; shape.count < kCalls; ++shape.count) all = digest(shape);
         });
}

}  // namespace

int main(int argc, char** argv) {
  fmt::print("{}, digest {:.1f} ns\n", kernel_target(), digest_time());
  if (argc > 1) {
    for (int i = 1; i < argc; ++i) measure(std::strtoull(argv[i], nullptr, 10));
    return 0;
  }
  for (const std::size_t bytes : {64ul, 65536ul, 1ul << 20, 64ul << 20}) measure(bytes);
}
