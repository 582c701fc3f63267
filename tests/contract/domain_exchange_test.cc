#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "base/socket.h"
#include "tests/contract/domain_team.h"
#include "tests/support/print_error.h"

using namespace corro;
using namespace corro::runtime;
using namespace std::chrono_literals;

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Where ranks of one process learn the first one's address.
class Board {
 public:
  AddressBook meeting() {
    AddressBook out;
    out.publish = [this](const std::string& address) -> Result<Unit> {
      const std::lock_guard lock(mutex_);
      address_ = address;
      changed_.notify_all();
      return Unit{};
    };
    out.find = [this](Deadline deadline) -> Result<std::string> {
      std::unique_lock lock(mutex_);
      if (!changed_.wait_until(lock, deadline.at, [&] { return address_.has_value(); }))
        return Error(Errc::timed_out, "nothing was published");
      return *address_;
    };
    return out;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> address_;
};

const Key kKey = Key::random();

DomainSeat seat_of(int index, int members) {
  DomainSeat seat;
  for (int r = 0; r < members; ++r) seat.members.push_back({r, "here"});
  seat.index = index;
  seat.generation = 3;
  seat.group = 1;
  seat.key = kKey;
  return seat;
}

// A memory whose content says whose it is.
DomainOffer offer_of(int index) {
  auto memory = make_memory("test", 4096, Filled::yes);
  auto doorbell = make_doorbell();
  if (memory) (void)!::pwrite(memory->get(), &index, sizeof index, 0);
  return {std::move(*memory), std::move(*doorbell), ""};
}

int owner_of(const Membership& member) {
  int index = -1;
  (void)!::pread(member.memory.get(), &index, sizeof index, 0);
  return index;
}

using Outcomes = std::vector<std::optional<Result<std::vector<Membership>>>>;

template <class Change>
Outcomes run_exchange(int members, Duration patience, Change change) {
  Board board;
  Outcomes outcomes(static_cast<std::size_t>(members));
  std::vector<std::thread> threads;
  for (int r = 0; r < members; ++r)
    threads.emplace_back([&, r] {
      DomainSeat seat = seat_of(r, members);
      DomainOffer offer = offer_of(r);
      AddressBook meeting = board.meeting();
      if (!change(r, seat, offer, meeting)) return;
      outcomes[static_cast<std::size_t>(r)].emplace(
          exchange(seat, std::move(offer), meeting, Deadline::in(patience)));
    });
  for (auto& thread : threads) thread.join();
  return outcomes;
}

bool unchanged(int, DomainSeat&, DomainOffer&, AddressBook&) {
  return true;
}

std::size_t open_descriptors() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++n;
  return n - 1;
}

int connect_raw(const std::string& address) {
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  const std::string name = address.substr(std::strlen("unix:@"));
  std::memcpy(where.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::connect(fd, reinterpret_cast<sockaddr*>(&where), size) != 0) {
    ::close(fd);
    return -1;
  }
  return fd;
}

}  // namespace

TEST_CASE("members hand each other their memory and doorbells, and keep no other descriptor") {
  for (const int members : {1, 2, 5, 18}) {
    const std::size_t before = open_descriptors();
    {
      const auto outcomes = run_exchange(members, 20s, unchanged);
      for (const auto& outcome : outcomes) {
        REQUIRE(outcome);
        if (!*outcome) FAIL(outcome->error().text());
        REQUIRE((*outcome)->size() == static_cast<std::size_t>(members));
        for (int k = 0; k < members; ++k) {
          const Membership& member = (**outcome)[static_cast<std::size_t>(k)];
          CHECK(owner_of(member) == k);
          CHECK(member.peer.rank == k);
          CHECK(member.doorbell);
          CHECK(member.pid == ::getpid());
        }
      }
      CHECK(open_descriptors() == before + static_cast<std::size_t>(2 * members * members));
    }
    CHECK(open_descriptors() == before);
  }
}

TEST_CASE("a member that cannot share memory tells the others, who need not wait for it") {
  for (const int unable : {0, 2}) {
    const auto began = Clock::now();
    const auto outcomes =
        run_exchange(3, 20s, [&](int r, DomainSeat&, DomainOffer& offer, AddressBook&) {
          if (r == unable) offer = {Fd(), Fd(), "memfd is denied"};
          return true;
        });
    // One that still connects when the others give up learns that they did, and not why.
    int told = 0;
    for (const auto& outcome : outcomes) {
      REQUIRE(outcome);
      REQUIRE(!*outcome);
      if (outcome->error().text().find("memfd is denied") != std::string::npos) ++told;
    }
    CHECK(told >= 1);
    CHECK(Clock::now() - began < 5s);
  }
}

TEST_CASE("a member that never comes is named at the deadline, and the others hear of it") {
  const auto outcomes =
      run_exchange(3, 300ms, [](int r, DomainSeat&, DomainOffer&, AddressBook&) { return r != 2; });
  for (const std::size_t r : {0U, 1U}) {
    REQUIRE(outcomes[r]);
    REQUIRE(!*outcomes[r]);
    CHECK(outcomes[r]->error().text().find("rank 2") != std::string::npos);
  }
}

TEST_CASE("a member of another generation or group is refused, with the reason") {
  const auto outcomes =
      run_exchange(2, 300ms, [](int r, DomainSeat& seat, DomainOffer&, AddressBook&) {
        if (r == 1) seat.generation = 2;
        return true;
      });
  REQUIRE(!*outcomes[1]);
  CHECK(outcomes[1]->error().text().find("generation") != std::string::npos);
  REQUIRE(!*outcomes[0]);
}

TEST_CASE("a process without the key gets nowhere") {
  const auto outcomes =
      run_exchange(2, 300ms, [](int r, DomainSeat& seat, DomainOffer&, AddressBook&) {
        if (r == 1) seat.key = Key::random();
        return true;
      });
  REQUIRE(!*outcomes[1]);
  CHECK(outcomes[1]->error().code() == Errc::refused);
  REQUIRE(!*outcomes[0]);
  CHECK(outcomes[0]->error().code() == Errc::timed_out);
}

TEST_CASE("an address that no process listens on is an error at once") {
  const auto began = Clock::now();
  const auto outcomes =
      run_exchange(2, 5s, [](int r, DomainSeat&, DomainOffer&, AddressBook& meeting) {
        meeting.find = [](Deadline) -> Result<std::string> { return std::string("unix:@nowhere"); };
        return r == 1;
      });
  REQUIRE(!*outcomes[1]);
  CHECK(Clock::now() - began < 2s);
}

TEST_CASE("strangers that connect, are silent, talk nonsense or hang up break nothing") {
  std::atomic<bool> over{false};
  std::vector<std::thread> strangers;
  std::mutex mutex;
  std::vector<int> silent;
  const auto outcomes =
      run_exchange(4, 20s, [&](int r, DomainSeat&, DomainOffer&, AddressBook& meeting) {
        if (r == 0) {
          const auto publish = meeting.publish;
          meeting.publish = [&, publish](const std::string& address) -> Result<Unit> {
            // Before any member has come: more than the first one keeps, and all of them silent.
            for (int i = 0; i < 100; ++i) {
              const std::lock_guard lock(mutex);
              silent.push_back(connect_raw(address));
            }
            for (int s = 0; s < 2; ++s)
              strangers.emplace_back([&over, address, s] {
                const std::string words(s == 0 ? 41 : 5000, 'x');
                while (!over.load()) {
                  const int fd = connect_raw(address);
                  if (fd < 0) return;
                  (void)!::send(fd, words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
                  if (s == 1) std::this_thread::sleep_for(1ms);
                  ::close(fd);
                }
              });
            return publish(address);
          };
        } else {
          std::this_thread::sleep_for(50ms * r);
        }
        return true;
      });
  over = true;
  for (auto& stranger : strangers) stranger.join();
  for (const int fd : silent) ::close(fd);
  for (const auto& outcome : outcomes) {
    REQUIRE(outcome);
    if (!*outcome) FAIL_CHECK(outcome->error().text());
  }
}

TEST_CASE("memory that could shrink, or is laid out otherwise, is not mapped") {
  Fd loose(::memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(loose.get(), 1 << 20) == 0);
  CHECK(!PeerSegment::map(loose.get()));
  auto wrong = make_memory("wrong", 1 << 20, Filled::yes);
  REQUIRE(wrong);
  CHECK(!PeerSegment::map(wrong->get()));
  CHECK(::ftruncate(wrong->get(), 4096) != 0);
  auto small = make_memory("small", 64, Filled::yes);
  REQUIRE(small);
  CHECK(!PeerSegment::map(small->get()));
  auto good = Segment::create(layout_for(2, 4096), own_cpu_claim());
  REQUIRE(good);
  CHECK(PeerSegment::map(good->memory()));
}

// The thread sanitizer's run time does not survive a fork with threads.
#ifndef __SANITIZE_THREAD__

namespace {

// What forked ranks have in common before they meet.
struct Page {
  std::atomic<std::uint32_t> published[2];
  char address[2][128];
  std::atomic<std::uint32_t> arrived, failed;
  char wrong[512];
};

class Family {
 public:
  explicit Family(int ranks) : ranks_(ranks) {
    page_ = static_cast<Page*>(
        ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
  ~Family() { ::munmap(page_, sizeof(Page)); }

  Page& page() { return *page_; }

  // body(domain, arena) runs in a forked process for each rank; its text is what went wrong.
  template <class Body>
  void start(Body body) {
    for (int r = 0; r < ranks_; ++r) {
      const pid_t pid = ::fork();
      REQUIRE(pid >= 0);
      if (pid == 0) {
        const rlimit few{1024, 1024};
        ::setrlimit(RLIMIT_NOFILE, &few);
        const std::string wrong = live(r, body);
        if (!wrong.empty() && page_->failed.fetch_add(1) == 0)
          std::strncpy(page_->wrong, wrong.c_str(), sizeof page_->wrong - 1);
        std::_Exit(wrong.empty() ? 0 : 1);
      }
      pids.push_back(pid);
    }
  }

  // How many did not end well.
  std::size_t failures() {
    const auto statuses = wait();
    return static_cast<std::size_t>(
        std::count_if(statuses.begin(), statuses.end(), [](int status) { return status != 0; }));
  }

  // Exit statuses, once all are over.
  std::vector<int> wait() {
    std::vector<int> out;
    for (const pid_t pid : pids) {
      int status = 0;
      ::waitpid(pid, &status, 0);
      out.push_back(status);
    }
    return out;
  }

  std::vector<pid_t> pids;

 private:
  Result<std::vector<Membership>> meet(int rank, std::size_t which, DomainOffer offer) {
    DomainSeat seat = seat_of(rank, ranks_);
    seat.group = which;
    AddressBook meeting;
    meeting.publish = [&](const std::string& address) -> Result<Unit> {
      std::strncpy(page_->address[which], address.c_str(), sizeof page_->address[which] - 1);
      page_->published[which] = 1;
      return Unit{};
    };
    meeting.find = [&](Deadline) -> Result<std::string> {
      while (page_->published[which] == 0) ::usleep(500);
      return std::string(page_->address[which]);
    };
    return exchange(seat, std::move(offer), meeting, Deadline::in(30s));
  }

  template <class Body>
  std::string live(int rank, Body& body) {
    // Arenas first: their descriptors are closed before those of the segments come.
    auto arena = Arena::create(64 << 20);
    if (!arena) return arena.error().text();
    auto others = meet(rank, 1, {Fd(::dup((*arena)->memory())), Fd(), ""});
    if (!others) return others.error().text();
    auto arenas = Arenas::open(*arena, static_cast<std::size_t>(rank), std::move(*others));
    if (!arenas) return arenas.error().text();
    auto segment = Segment::create(layout_for(ranks_, 8192), own_cpu_claim());
    if (!segment) return segment.error().text();
    auto doorbell = make_doorbell();
    auto members = meet(rank, 0, {segment->take_memory(), std::move(*doorbell), ""});
    if (!members) return members.error().text();
    auto domain = SharedDomain::open(rank, std::move(*segment), std::move(*members),
                                     {*arena, (*arenas)->views(), *arenas});
    if (!domain) return domain.error().text();
    return body(**domain, **arena);
  }

  int ranks_;
  Page* page_;
};

Operation floats(std::uint64_t count) {
  Operation out;
  out.shape.kind = Kind::allreduce;
  out.shape.type = DataType::f32;
  out.shape.count = count;
  return out;
}

Buffers in_place(float* data, std::size_t count) {
  auto* bytes = reinterpret_cast<std::uint8_t*>(data);
  return {Pieces(std::span<const std::uint8_t>(bytes, count * 4)),
          MutPieces(std::span<std::uint8_t>(bytes, count * 4))};
}

}  // namespace

TEST_CASE("processes that meet over the socket get the same results as threads") {
  for (const int ranks : {1, 2, 3, 7}) {
    Family family(ranks);
    family.start([&](SharedDomain& domain, Arena&) -> std::string {
      const Tuning& tuning = domain.tuning();
      auto cases = domain_cases(ranks, tuning.slot_bytes, tuning.whole_bytes, 11);
      for (const DomainCase& test : cases) {
        const auto outcome = run_case(domain, domain.spin(), test, Deadline::in(60s));
        if (!outcome.wrong.empty()) return outcome.wrong;
      }
      return "";
    });
    CHECK(family.failures() == 0);
    CHECK(std::string(family.page().wrong) == "");
  }
}

TEST_CASE("processes reduce buffers of their arenas where they are") {
  const int ranks = 3;
  Family family(ranks);
  family.start([&](SharedDomain& domain, Arena& arena) -> std::string {
    const std::size_t count = 100'001;
    auto* data = static_cast<float*>(arena.allocate(count * 4));
    for (std::size_t i = 0; i < count; ++i)
      data[i] = static_cast<float>(i % 1000 + static_cast<std::size_t>(domain.index()));
    const Operation what = floats(count);
    const Buffers buffers = in_place(data, count);
    domain.start(what, buffers);
    const auto driven = drive(domain, domain.spin(), Deadline::in(30s));
    if (!driven) return driven.error().text;
    for (std::size_t i = 0; i < count; ++i)
      if (data[i] != static_cast<float>(3 * (i % 1000) + 3)) return "element " + std::to_string(i);
    return "";
  });
  CHECK(family.failures() == 0);
  CHECK(std::string(family.page().wrong) == "");
}

TEST_CASE("a member that is killed while all are at work leaves the others able to stop") {
  for (int round = 0; round < 6; ++round) {
    const int ranks = 3;
    Family family(ranks);
    family.start([&](SharedDomain& domain, Arena&) -> std::string {
      std::vector<float> data(20'000, 1.0F);
      const Operation what = floats(data.size());
      const Buffers buffers = in_place(data.data(), data.size());
      for (;;) {
        domain.start(what, buffers);
        const auto driven = drive(domain, domain.spin(), Deadline::in(1s));
        family.page().arrived.fetch_add(1);
        if (driven) continue;
        // The first of the two to give up closes, and the other hears of that.
        const bool missed = driven.error().rank == 1 && driven.error().code == Errc::timed_out;
        return missed || driven.error().code == Errc::closed ? "" : driven.error().text;
      }
    });
    while (family.page().arrived < 100) ::usleep(200);
    ::usleep(static_cast<unsigned>(round) * 137);
    ::kill(family.pids[1], SIGKILL);
    const auto statuses = family.wait();
    CHECK(statuses[0] == 0);
    CHECK(WIFSIGNALED(statuses[1]));
    CHECK(statuses[2] == 0);
    CHECK(std::string(family.page().wrong) == "");
  }
}

TEST_CASE("256 ranks share memory with 1,024 descriptors each") {
  const int ranks = kSanitized ? 80 : 256;
  Family family(ranks);
  family.start([&](SharedDomain& domain, Arena&) -> std::string {
    float one = 1;
    const Operation what = floats(1);
    const Buffers buffers = in_place(&one, 1);
    domain.start(what, buffers);
    const auto driven = drive(domain, domain.spin(), Deadline::in(60s));
    if (!driven) return driven.error().text;
    if (one != static_cast<float>(ranks)) return "a wrong sum";
    // Doorbells stay, memory does not.
    const std::size_t open = open_descriptors();
    return open <= static_cast<std::size_t>(ranks) + 16 ? "" : std::to_string(open) + " are open";
  });
  CHECK(family.failures() == 0);
  CHECK(std::string(family.page().wrong) == "");
}

TEST_CASE("a forked child cannot touch the segments or the arena of its parent") {
  auto arena = Arena::create(4 << 20);
  REQUIRE(arena);
  auto segment = Segment::create(layout_for(2, 4096), own_cpu_claim());
  REQUIRE(segment);
  auto* data = static_cast<std::uint8_t*>((*arena)->allocate(100));
  data[0] = 1;
  for (std::uint8_t* at : {data, segment->data()}) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::signal(SIGSEGV, SIG_DFL);
      *const_cast<volatile std::uint8_t*>(at) = 2;
      std::_Exit(0);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    CHECK(!(WIFEXITED(status) && WEXITSTATUS(status) == 0));
  }
  CHECK(data[0] == 1);
}

#endif
