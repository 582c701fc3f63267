#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

// What every allreduce program here does in the same way, so that their figures compare.
//
// A sample is: barrier, k operations back to back, elapsed time / k, maximum over the ranks.  k is
// chosen so that a sample takes about `target` seconds; three samples are enough if they take much
// longer.  For each size, every element of one result is checked, and rank 0 prints one line:
//
//   bytes,k,samples,median,min,lower quartile,upper quartile,max,ok|WRONG,memory
//
// Times are in µs.  `memory` is the peak resident memory of a rank, in KiB, beyond its tensor and
// what it had before it joined the group (shared pages count in every rank that touches them).
namespace corro::bench {

// name=value words of the command line.  Not the environment: not every launcher carries it.
class Words {
 public:
  Words(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      const auto equals = word.find('=');
      if (equals == word.npos) {
        std::fprintf(stderr, "'%s': expected name=value\n", argv[i]);
        std::exit(2);
      }
      values_[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }

  std::string text(const std::string& name, const std::string& fallback) const {
    const auto found = values_.find(name);
    return found == values_.end() ? fallback : found->second;
  }

  int number(const std::string& name, int fallback) const {
    return std::stoi(text(name, std::to_string(fallback)));
  }

  double real(const std::string& name, double fallback) const {
    return std::stod(text(name, std::to_string(fallback)));
  }

  std::vector<std::size_t> sizes() const {
    std::stringstream list(text("sizes", "4,1024,16384,262144,4194304,67108864,268435456"));
    std::vector<std::size_t> result;
    for (std::string one; std::getline(list, one, ',');) result.push_back(std::stoull(one));
    return result;
  }

 private:
  std::map<std::string, std::string> values_;
};

inline double now() {
  using Seconds = std::chrono::duration<double>;
  return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Private anonymous memory, aligned to 2 MB, in small pages as a program has them by default.
class PrivateBuffer {
 public:
  explicit PrivateBuffer(std::size_t bytes) : mapped_((bytes / kAlign + 2) * kAlign) {
    raw_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw_ == MAP_FAILED) {
      std::perror("mmap");
      std::exit(1);
    }
    const auto address = reinterpret_cast<std::uintptr_t>(raw_);
    data_ = reinterpret_cast<void*>((address + kAlign - 1) / kAlign * kAlign);
    madvise(data_, mapped_ - kAlign, MADV_NOHUGEPAGE);
  }
  PrivateBuffer(const PrivateBuffer&) = delete;
  ~PrivateBuffer() { munmap(raw_, mapped_); }

  void* data() const { return data_; }

 private:
  static constexpr std::size_t kAlign = std::size_t{2} << 20;
  std::size_t mapped_;
  void* raw_;
  void* data_;
};

// The ranks of one job, connected by the implementation that is measured.
class Group {
 public:
  virtual ~Group() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void allreduce(float* data, std::size_t count) = 0;  // sum, in place
  virtual void barrier() = 0;
  virtual double max(double) = 0;

  // Tensors lie in private memory unless the implementation has memory of its own to offer.
  virtual void* allocate(std::size_t bytes) {
    private_.push_back(std::make_unique<PrivateBuffer>(bytes));
    return private_.back()->data();
  }
  virtual void release(void*) { private_.pop_back(); }

  // Called once for each tensor, for implementations that bind an operation to its buffer.
  virtual void prepare(float*, std::size_t) {}

 private:
  std::vector<std::unique_ptr<PrivateBuffer>> private_;
};

class Measurement {
 public:
  // Before the group is joined: what the process holds already is not counted.
  explicit Measurement(const Words& words)
      : sizes_(words.sizes()),
        samples_(words.number("samples", 5)),
        target_(words.real("target", 0.03)),
        held_before_(status("VmRSS:")) {}

  void run(Group& group) {
    for (const std::size_t bytes : sizes_) measure(group, bytes);
  }

 private:
  // Small whole numbers: the sum is exact in any order of addition.  The pattern repeats after a
  // prime number of elements, so a block that lands in the wrong place is noticed.
  static constexpr std::size_t kPeriod = 127;
  static constexpr std::size_t kMostRepeats = 20000;

  static float element(std::size_t i, int rank) {
    return static_cast<float>((i * 31 + static_cast<std::size_t>(rank) * 17) % kPeriod);
  }

  static bool is_sum(const float* data, std::size_t count, int ranks) {
    std::array<float, kPeriod> expected{};
    for (std::size_t i = 0; i < kPeriod; ++i)
      for (int rank = 0; rank < ranks; ++rank) expected[i] += element(i, rank);
    for (std::size_t i = 0, j = 0; i < count; ++i, j = j + 1 == kPeriod ? 0 : j + 1)
      if (data[i] != expected[j]) return false;
    return true;
  }

  // Seconds of `repeats` operations, on the slowest rank.
  static double timed(Group& group, float* data, std::size_t count, std::size_t repeats) {
    group.barrier();
    const double began = now();
    for (std::size_t i = 0; i < repeats; ++i) group.allreduce(data, count);
    return group.max(now() - began);
  }

  std::size_t choose_repeats(Group& group, float* data, std::size_t count) const {
    for (std::size_t repeats = 1;; repeats *= 4) {
      double took = timed(group, data, count, repeats);
      // The system may have interrupted it: a sample too short would follow.
      if (took * 4 >= target_ && took < target_ * 10)
        took = std::min(took, timed(group, data, count, repeats));
      if (took * 4 < target_ && repeats < kMostRepeats) continue;
      const double wanted = static_cast<double>(repeats) * target_ / took;
      return static_cast<std::size_t>(std::clamp(wanted, 1.0, double{kMostRepeats}));
    }
  }

  // A line of /proc/self/status, in KiB.
  static long status(const std::string& name) {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);)
      if (line.rfind(name, 0) == 0) return std::atol(line.c_str() + name.size());
    return 0;
  }

  static void reset_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

  void measure(Group& group, std::size_t bytes) const {
    const std::size_t count = bytes / sizeof(float);
    auto* data = static_cast<float*>(group.allocate(bytes));
    reset_peak();
    for (std::size_t i = 0; i < count; ++i) data[i] = element(i, group.rank());
    group.prepare(data, count);
    group.allreduce(data, count);
    const bool wrong = group.max(is_sum(data, count, group.size()) ? 0 : 1) > 0;

    std::memset(data, 0, bytes);  // zeros stay zeros, however often they are summed
    const std::size_t repeats = choose_repeats(group, data, count);
    std::vector<double> times;
    double spent = 0;  // the same on all ranks, so that all stop at the same sample
    for (int i = 0; i < samples_ && (i < 3 || spent < target_ * 20); ++i) {
      const double took = timed(group, data, count, repeats);
      times.push_back(took / static_cast<double>(repeats) * 1e6);
      spent += took;
    }
    const long extra = status("VmHWM:") - held_before_ - static_cast<long>(bytes / 1024);
    const auto memory = static_cast<long>(group.max(static_cast<double>(extra)));
    if (group.rank() == 0) print(bytes, repeats, std::move(times), wrong, memory);
    group.release(data);
  }

  static void print(std::size_t bytes, std::size_t repeats, std::vector<double> times, bool wrong,
                    long memory) {
    std::sort(times.begin(), times.end());
    const std::size_t n = times.size();
    std::printf("%zu,%zu,%zu,%.3f,%.3f,%.3f,%.3f,%.3f,%s,%ld\n", bytes, repeats, n, times[n / 2],
                times.front(), times[n / 4], times[n * 3 / 4], times.back(), wrong ? "WRONG" : "ok",
                std::max(memory, 0L));
    std::fflush(stdout);
  }

  std::vector<std::size_t> sizes_;
  int samples_;
  double target_;
  long held_before_;
};

}  // namespace corro::bench
