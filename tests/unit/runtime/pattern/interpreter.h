#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/pattern/schedule.h"

// Runs the schedules of all ranks of a world on small vectors, with messages as queues, in a random
// order of events, and checks what schedule.h promises.
namespace corro::runtime::test {

using RankSet = std::uint64_t;  // of up to 64 ranks

constexpr RankSet just(int rank) {
  return RankSet{1} << rank;
}
constexpr RankSet all_of(int ranks) {
  return ranks == 64 ? ~RankSet{0} : just(ranks) - 1;
}

// An element knows its value and where it comes from.
struct Element {
  std::int64_t value = 0;
  std::uint64_t tree = 0;  // differs if the same values are reduced in another tree
  RankSet ranks = 0;       // whose elements are in it
  bool written = false, complete = false;
};

struct Memory {
  std::vector<Element> storage;
  std::size_t in_begin = 0, in_size = 0, out_begin = 0, out_size = 0;

  std::span<Element> in() { return {storage.data() + in_begin, in_size}; }
  std::span<Element> out() { return {storage.data() + out_begin, out_size}; }

  // `out` begins unwritten.
  static Memory apart(std::span<const Element> in, std::size_t out_size);
  // `in` lies at `at` in `out`, or `out` at `at` in `in`, whichever is the larger.
  static Memory in_place(std::span<const Element> in, std::size_t out_size, std::size_t at);
};

enum class Sending {
  buffered,    // done at once
  rendezvous,  // done when the receiver takes it
};

struct Outcome {
  std::string failure;                     // the first promise that was not kept; empty: none
  std::vector<std::size_t> elements_sent;  // by each rank
  std::vector<std::size_t> peers;          // how many ranks each one sent to
  int steps = 0;
  bool told_others = false;  // a rank that began sent to one that did not
};

class Interpreter {
 public:
  using Make = std::function<std::unique_ptr<Schedule>(int rank)>;

  // `memories` stays the caller's.
  Interpreter(int ranks, const Make&, std::vector<Memory>& memories, std::uint32_t seed);

  // All ranks, to the end.
  Outcome run(Sending);

  // Only these ranks begin; runs until they wait or are done.
  Outcome run_only(RankSet);

 private:
  struct Message {
    int step;
    RankSet news;
    std::vector<Element> elements;
  };
  struct Rank {
    std::unique_ptr<Schedule> schedule;
    std::vector<Element> scratch;
    int k = 0;
    Step step;
    bool sent = false, received = false;
    RankSet news = 0;           // ranks that this one knows to have begun
    RankSet news_at_start = 0;  // of the step: what a message of the step may carry
    RankSet sent_to = 0;
  };

  void run(RankSet, Sending);
  void begin(int rank);
  void copy_locally(int rank);
  void enter_step(int rank);
  bool advance(int rank, Sending);
  bool try_send(int rank, Sending);
  bool try_receive(int rank, Sending);
  void receive(int rank, Message);
  Message message_of(int rank);
  void combine(Act, const Element& operand, const Element& received, Element& result);
  std::span<Element> memory_of(int rank, const Slice&);
  void check_step(int rank);
  void check_end(RankSet);
  void expect(bool holds, int rank, const char* what);

  std::vector<Message>& queue(int from, int to);
  bool done(const Rank& r) const { return r.k == r.schedule->steps(); }

  // xorshift64*: good enough, and quick where tests are not optimised.
  unsigned random(unsigned below);

  int ranks_;
  std::vector<Memory>& memories_;
  std::vector<Rank> world_;
  std::vector<std::vector<Message>> queues_;
  std::uint64_t random_;
  RankSet begun_ = 0;
  Outcome outcome_;
};

}  // namespace corro::runtime::test
