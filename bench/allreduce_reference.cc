// allreduce_reference [np=2] [mode=staged|direct|cma] …: hand-written reductions between forked
// processes, as a bound to compare with.  Barriers spin, and nothing handles a failure.
//
//   staged   tensors are private; pieces go through shared memory: copy in, reduce, copy out
//   direct   tensors lie in shared memory; every rank reduces its part in place, without a copy
//   cma      tensors are private; every rank reads the others' with process_vm_readv
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "allreduce.h"
#include "pinning.h"

namespace {

constexpr int kMostRanks = 64;
constexpr std::size_t kPiece = (std::size_t{128} << 10) / sizeof(float);  // of a rank, in a step
constexpr std::size_t kOneBarrier = 2048;  // bytes up to which every rank reduces everything

struct Shared {
  struct alignas(64) Line {
    std::atomic<std::uint32_t> epoch{0};
  };
  Line arrived[kMostRanks];
  double value[kMostRanks];
  float* address[kMostRanks];
  pid_t pid[kMostRanks];
};

void* map_shared(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    std::exit(1);
  }
  return memory;
}

void add(float* __restrict to, const float* __restrict from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
}

class SharedGroup : public corro::bench::Group {
 public:
  explicit SharedGroup(int size) : size_(size), shared_(new (map_shared(sizeof(Shared))) Shared) {
    // With a core for each rank waiting costs nothing; otherwise the core is needed elsewhere.
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    spins_ = size <= cores ? 1 << 30 : 100;
  }

  // Every rank returns from here, the calling process as rank 0.
  void fork_ranks() {
    for (int rank = 1; rank < size_; ++rank) {
      const pid_t child = fork();
      if (child == 0) {
        rank_ = rank;
        children_.clear();
        break;
      }
      children_.push_back(child);
    }
    corro::bench::pin_to(rank_ % static_cast<int>(std::thread::hardware_concurrency()));
    shared_->pid[rank_] = getpid();
    barrier();
  }

  // 0 if all ranks that this one has forked ended well.
  int wait_for_children() const {
    int failed = 0;
    for (const pid_t child : children_) {
      int status = 0;
      waitpid(child, &status, 0);
      failed |= status != 0;
    }
    return failed;
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  // Each rank writes one line and reads those of the others.
  void barrier() override {
    ++epoch_;
    shared_->arrived[rank_].epoch.store(epoch_, std::memory_order_release);
    for (int peer = 0; peer < size_; ++peer)
      for (int spin = 0; !has_arrived(peer); ++spin)
        if (spin < spins_)
          corro::bench::relax();
        else
          sched_yield();
  }

  double max(double value) override {
    shared_->value[rank_] = value;
    barrier();
    const double result = *std::max_element(shared_->value, shared_->value + size_);
    barrier();
    return result;
  }

 protected:
  struct Part {
    std::size_t begin, count;
  };

  // Whole cache lines for each rank, what is left for the last.
  Part part_of(int rank, std::size_t count) const {
    const auto ranks = static_cast<std::size_t>(size_), index = static_cast<std::size_t>(rank);
    const std::size_t each = (count / ranks + 31) / 32 * 32, begin = std::min(count, each * index);
    return {begin, rank == size_ - 1 ? count - begin : std::min(count - begin, each)};
  }

  Shared& shared() { return *shared_; }

 private:
  bool has_arrived(int peer) const {
    const auto epoch = shared_->arrived[peer].epoch.load(std::memory_order_acquire);
    return static_cast<std::int32_t>(epoch - epoch_) >= 0;
  }

  int rank_ = 0;
  int size_;
  int spins_;
  std::uint32_t epoch_ = 0;
  Shared* shared_;
  std::vector<pid_t> children_;
};

class Staged final : public SharedGroup {
 public:
  explicit Staged(int size)
      : SharedGroup(size),
        slots_(static_cast<float*>(
            map_shared(2 * static_cast<std::size_t>(size) * kPiece * sizeof(float)))) {}

  void allreduce(float* data, std::size_t count) override {
    if (count * sizeof(float) <= kOneBarrier) return allreduce_small(data, count);
    for (std::size_t done = 0; done < count; done += kPiece)
      allreduce_piece(data + done, std::min(kPiece, count - done));
  }

 private:
  // Two sets of slots in turn: a rank that is one step ahead writes where no rank reads.
  float* slot(int rank) const {
    const auto ranks = static_cast<std::size_t>(size());
    return slots_ + (turn_ * ranks + static_cast<std::size_t>(rank)) * kPiece;
  }

  void allreduce_small(float* data, std::size_t count) {
    std::memcpy(slot(rank()), data, count * sizeof(float));
    barrier();
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank()) add(data, slot(peer), count);
    turn_ ^= 1;
  }

  void allreduce_piece(float* data, std::size_t count) {
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank()) copy(slot(rank()), data, part_of(peer, count));
    barrier();
    const Part mine = part_of(rank(), count);
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank()) add(data + mine.begin, slot(peer) + mine.begin, mine.count);
    copy(slot(rank()), data, mine);
    barrier();
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank()) copy(data, slot(peer), part_of(peer, count));
    turn_ ^= 1;
  }

  static void copy(float* to, const float* from, Part part) {
    std::memcpy(to + part.begin, from + part.begin, part.count * sizeof(float));
  }

  float* slots_;
  std::size_t turn_ = 0;
};

class Direct final : public SharedGroup {
 public:
  Direct(int size, std::size_t most_bytes)
      : SharedGroup(size),
        each_((most_bytes / kAlign + 1) * kAlign),
        area_(static_cast<char*>(map_shared(each_ * static_cast<std::size_t>(size)))) {}

  void* allocate(std::size_t) override { return tensor(rank()); }
  void release(void*) override {}

  void allreduce(float*, std::size_t count) override {
    const Part mine = part_of(rank(), count);
    float* tensors[kMostRanks];
    for (int peer = 0; peer < size(); ++peer) tensors[peer] = tensor(peer) + mine.begin;
    barrier();
    if (size() == 2)
      reduce<2>(tensors, mine.count);
    else if (size() == 4)
      reduce<4>(tensors, mine.count);
    else
      reduce<0>(tensors, mine.count);
    barrier();
  }

 private:
  static constexpr std::size_t kAlign = std::size_t{2} << 20;

  float* tensor(int rank) const {
    return reinterpret_cast<float*>(area_ + each_ * static_cast<std::size_t>(rank));
  }

  // A vector of eight, at any address of a float.
  typedef float Vector __attribute__((vector_size(32), aligned(4), may_alias));

  // Every element is read once and written once; the sums stay in registers.
  template <int kRanks>
  void reduce(float* const* tensors, std::size_t count) const {
    constexpr std::size_t kBlock = sizeof(Vector) / sizeof(float);
    const int ranks = kRanks ? kRanks : size();
    std::size_t i = 0;
    for (; i + kBlock <= count; i += kBlock) {
      Vector sum = *reinterpret_cast<const Vector*>(tensors[0] + i);
      for (int peer = 1; peer < ranks; ++peer)
        sum += *reinterpret_cast<const Vector*>(tensors[peer] + i);
      for (int peer = 0; peer < ranks; ++peer) *reinterpret_cast<Vector*>(tensors[peer] + i) = sum;
    }
    for (; i < count; ++i) {
      float sum = 0;
      for (int peer = 0; peer < ranks; ++peer) sum += tensors[peer][i];
      for (int peer = 0; peer < ranks; ++peer) tensors[peer][i] = sum;
    }
  }

  std::size_t each_;
  char* area_;
};

class CrossMemory final : public SharedGroup {
 public:
  explicit CrossMemory(int size) : SharedGroup(size), scratch_(kStep) {}

  void prepare(float* data, std::size_t) override {
    shared().address[rank()] = data;
    barrier();
  }

  void allreduce(float* data, std::size_t count) override {
    barrier();
    const Part mine = part_of(rank(), count);
    for (std::size_t done = 0; done < mine.count; done += kStep) {
      const std::size_t step = std::min(kStep, mine.count - done), begin = mine.begin + done;
      for (int peer = 0; peer < size(); ++peer)
        if (peer != rank()) {
          read_from(peer, scratch_.data(), begin, step);
          add(data + begin, scratch_.data(), step);
        }
    }
    barrier();
    for (int distance = 1; distance < size(); ++distance) {
      const int peer = (rank() + distance) % size();
      const Part part = part_of(peer, count);
      read_from(peer, data + part.begin, part.begin, part.count);
    }
    barrier();
  }

 private:
  static constexpr std::size_t kStep = 32768;  // elements, so that what was read is still in cache

  void read_from(int peer, float* to, std::size_t begin, std::size_t count) {
    for (std::size_t done = 0; done < count * sizeof(float);) {
      const std::size_t left = count * sizeof(float) - done;
      iovec here{reinterpret_cast<char*>(to) + done, left};
      iovec there{reinterpret_cast<char*>(shared().address[peer] + begin) + done, left};
      const ssize_t got = process_vm_readv(shared().pid[peer], &here, 1, &there, 1, 0);
      if (got <= 0) {
        std::perror("process_vm_readv");
        _exit(1);
      }
      done += static_cast<std::size_t>(got);
    }
  }

  std::vector<float> scratch_;
};

int run(SharedGroup& group, const corro::bench::Words& words) {
  group.fork_ranks();
  corro::bench::Measurement(words).run(group);
  return group.wait_for_children();
}

}  // namespace

int main(int argc, char** argv) {
  const corro::bench::Words words(argc, argv);
  const int np = words.number("np", 2);
  const std::string mode = words.text("mode", "staged");
  const auto sizes = words.sizes();
  if (np < 1 || np > kMostRanks || sizes.empty()) return 2;
  if (mode == "staged") {
    Staged group(np);
    return run(group, words);
  }
  if (mode == "direct") {
    Direct group(np, *std::max_element(sizes.begin(), sizes.end()));
    return run(group, words);
  }
  CrossMemory group(np);
  return run(group, words);
}
