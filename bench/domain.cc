// Shared memory alone: forks NP ranks, which meet as a job's do, and times allreduce (f32 sum, in
// place) in each.  One CSV line per size, in the format of ref_shm, the hand-written bound:
//   corro,MODE,np,bytes,k,samples,median_us,min_us,p25_us,p75_us,max_us,ok|WRONG
// Environment: NP, MODE=staged|direct, SIZES=4,1024,…, SAMPLES, TARGET (seconds for a
// sample), PIN=0, SLOT (bytes, other than the default).
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/domain/arena.h"
#include "runtime/domain/exchange.h"
#include "runtime/domain/shared_domain.h"

using namespace corro;
using namespace corro::runtime;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kHugePage = 2 << 20;

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

// What the forked ranks have in common before they meet.
struct Board {
  std::atomic<std::uint32_t> published[2];
  char address[2][128];
  double value[512];
};

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "{}\n", why);
  std::_Exit(1);
}

template <class T, class E>
T must(Result<T, E> result) {
  if (!result) {
    if constexpr (std::is_same_v<E, Failure>)
      give_up(result.error().text);
    else
      give_up(result.error().text());
  }
  return std::move(*result);
}

class Rank {
 public:
  Rank(int np, int me, Board& board, std::string mode)
      : np_(np), me_(me), board_(board), mode_(std::move(mode)) {
    ArenaViews views;
    if (mode_ == "direct") {
      auto arena = must(Arena::create(Arena::default_bytes(np)));
      auto arenas = must(Arenas::open(arena, static_cast<std::size_t>(me),
                                      meet(1, {Fd(::dup(arena->memory())), Fd()})));
      views = {arena, arenas->views(), arenas};
    }
    std::size_t slot = default_slot_bytes(np);
    slot = std::stoul(environment("SLOT", std::to_string(slot).c_str()));
    auto segment = must(Segment::create(layout_for(np, slot), own_cpu_claim()));
    auto members = meet(0, {segment.take_memory(), must(make_doorbell())});
    domain_ = must(SharedDomain::open(me, std::move(segment), std::move(members), views));
    arena_ = views.mine;
  }

  void run() {
    std::string sizes = environment("SIZES", "4,1024,16384,262144,4194304,67108864");
    for (std::size_t at = 0; at < sizes.size();) {
      const std::size_t end = std::min(sizes.find(',', at), sizes.size());
      measure(std::stoul(sizes.substr(at, end - at)));
      at = end + 1;
    }
  }

 private:
  std::vector<Membership> meet(std::size_t which, DomainOffer offer) {
    DomainSeat seat;
    for (int r = 0; r < np_; ++r) seat.members.push_back({r, "here"});
    seat.index = me_;
    seat.group = which;
    AddressBook meeting;
    meeting.publish = [&](const std::string& address) -> Result<Unit> {
      std::strncpy(board_.address[which], address.c_str(), sizeof board_.address[which] - 1);
      board_.published[which].store(1);
      return Unit{};
    };
    meeting.find = [&](Deadline) -> Result<std::string> {
      while (board_.published[which].load() == 0) ::usleep(200);
      return std::string(board_.address[which]);
    };
    return must(exchange(seat, std::move(offer), meeting, Deadline::in(30s)));
  }

  void finish() { (void)must(drive(*domain_, domain_->spin(), Deadline::in(60s))); }

  void barrier() {
    domain_->start(barrier_, {});
    finish();
  }

  void allreduce() {
    domain_->start(operation_, buffers_);
    finish();
  }

  double largest(double mine) {
    board_.value[me_] = mine;
    barrier();
    const double out = *std::max_element(board_.value, board_.value + np_);
    barrier();
    return out;
  }

  void measure(std::size_t bytes) {
    const std::size_t n = bytes / 4, room = (bytes / kHugePage + 2) * kHugePage;
    void* memory = mode_ == "direct" ? arena_->allocate(room)
                                     : ::mmap(nullptr, room, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto address = (reinterpret_cast<std::uintptr_t>(memory) + kHugePage - 1) / kHugePage;
    auto* data = reinterpret_cast<float*>(address * kHugePage);
    if (mode_ != "direct") ::madvise(data, room - kHugePage, MADV_NOHUGEPAGE);
    auto* raw = reinterpret_cast<std::uint8_t*>(data);
    operation_.shape.kind = Kind::allreduce;
    operation_.shape.type = DataType::f32;
    operation_.shape.count = n;
    buffers_ = {Pieces({raw, bytes}), MutPieces({raw, bytes})};

    for (std::size_t i = 0; i < n; ++i)
      data[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(me_) * 13) % 101);
    allreduce();
    double bad = 0;
    for (std::size_t i = 0; i < n; ++i) {
      float expected = 0;
      for (std::size_t r = 0; r < static_cast<std::size_t>(np_); ++r)
        expected += static_cast<float>((i * 7 + r * 13) % 101);
      bad += data[i] != expected;
    }
    bad = largest(bad);
    std::memset(data, 0, bytes);
    barrier();

    for (int i = 0; i < 2; ++i) allreduce();
    barrier();
    const int few = bytes <= 65536 ? 20 : 2;
    const double each = largest(timed(few));
    const double target = std::stod(environment("TARGET", "0.06"));
    const int k = static_cast<int>(std::clamp(target / each, 1.0, 20000.0));
    std::vector<double> times;
    for (int s = 0; s < std::stoi(environment("SAMPLES", "9")); ++s) {
      barrier();
      times.push_back(largest(timed(k)) * 1e6);
    }
    std::sort(times.begin(), times.end());
    const std::size_t m = times.size();
    if (me_ == 0)
      fmt::print("corro,{},{},{},{},{},{:.2f},{:.2f},{:.2f},{:.2f},{:.2f},{}\n", mode_, np_, bytes,
                 k, m, times[m / 2], times[0], times[m / 4], times[m * 3 / 4], times[m - 1],
                 bad == 0 ? "ok" : "WRONG");
    std::fflush(stdout);
    if (mode_ == "direct")
      arena_->release(memory);
    else
      ::munmap(memory, room);
  }

  double timed(int k) {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < k; ++i) allreduce();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() / k;
  }

  int np_, me_;
  Board& board_;
  std::string mode_;
  std::unique_ptr<SharedDomain> domain_;
  std::shared_ptr<Arena> arena_;
  Operation operation_, barrier_;
  Buffers buffers_;
};

}  // namespace

int main() {
  const int np = std::stoi(environment("NP", "2"));
  auto* board = static_cast<Board*>(
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::vector<pid_t> children;
  int me = 0;
  for (int r = 1; r < np && me == 0; ++r) {
    const pid_t pid = ::fork();
    if (pid == 0) me = r;
    children.push_back(pid);
  }
  {
    Rank rank(np, me, *board, environment("MODE", "staged"));
    if (environment("PIN", "1") == "1") {
      cpu_set_t cpus;
      CPU_ZERO(&cpus);
      CPU_SET(static_cast<unsigned>(me) % 2, &cpus);
      ::sched_setaffinity(0, sizeof cpus, &cpus);
    }
    rank.run();
  }
  if (me != 0) std::_Exit(0);
  int failed = 0;
  for (const pid_t pid : children) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    failed |= status;
  }
  return failed != 0;
}
