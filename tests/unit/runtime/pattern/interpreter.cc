#include "tests/unit/runtime/pattern/interpreter.h"

#include <fmt/format.h>
#include <bit>
#include <functional>

namespace corro::runtime::test {

namespace {

bool overlap(std::span<const Element> a, std::span<const Element> b) {
  const std::less<const Element*> before;
  return !a.empty() && !b.empty() && before(a.data(), b.data() + b.size()) &&
         before(b.data(), a.data() + a.size());
}

bool same(std::span<const Element> a, std::span<const Element> b) {
  return a.data() == b.data() && a.size() == b.size();
}

bool all_written(std::span<const Element> elements) {
  for (const Element& element : elements)
    if (!element.written) return false;
  return true;
}

// Commutative, but not associative: two trees give two results.
std::uint64_t combine_trees(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t sum = a + b;
  return sum * (sum ^ 0x9e3779b97f4a7c15U) + std::rotl(a ^ b, 23);
}

}  // namespace

Memory Memory::apart(std::span<const Element> in, std::size_t out_size) {
  Memory memory{.storage = {in.begin(), in.end()},
                .in_size = in.size(),
                .out_begin = in.size(),
                .out_size = out_size};
  memory.storage.resize(in.size() + out_size);
  return memory;
}

Memory Memory::in_place(std::span<const Element> in, std::size_t out_size, std::size_t at) {
  Memory memory{.in_size = in.size(), .out_size = out_size};
  memory.storage.resize(std::max(in.size(), out_size));
  (in.size() > out_size ? memory.out_begin : memory.in_begin) = at;
  std::copy(in.begin(), in.end(), memory.in().begin());
  return memory;
}

Interpreter::Interpreter(int ranks, const Make& make, std::vector<Memory>& memories,
                         std::uint32_t seed)
    : ranks_(ranks),
      memories_(memories),
      world_(static_cast<std::size_t>(ranks)),
      queues_(static_cast<std::size_t>(ranks * ranks)),
      random_(seed * 0x9e3779b97f4a7c15U + 1) {
  for (int rank = 0; rank < ranks; ++rank) {
    Rank& r = world_[rank];
    r.schedule = make(rank);
    r.scratch.resize(r.schedule->scratch());
    r.news = just(rank);
  }
}

Outcome Interpreter::run(Sending sending) {
  run(all_of(ranks_), sending);
  check_end(all_of(ranks_));
  return outcome_;
}

Outcome Interpreter::run_only(RankSet which) {
  run(which, Sending::buffered);
  return outcome_;
}

void Interpreter::run(RankSet which, Sending sending) {
  begun_ = which;
  for (int rank = 0; rank < ranks_; ++rank)
    if (which & just(rank)) begin(rank);
  // A pass leaves out some ranks at random; only a pass over all of them without progress ends it.
  for (bool full = false;;) {
    bool moved = false;
    const RankSet now = full ? which : which & (random(1U << 31) * RankSet{0x9e3779b97f4a7c15U});
    const int first = static_cast<int>(random(static_cast<unsigned>(ranks_)));
    for (int i = 0; i < ranks_ && outcome_.failure.empty(); ++i) {
      const int rank = (first + i) % ranks_;
      if (now & just(rank)) moved |= advance(rank, sending);
    }
    if (!outcome_.failure.empty() || (full && !moved)) return;
    full = !moved;
  }
}

void Interpreter::begin(int rank) {
  expect(world_[rank].schedule->steps() == world_[0].schedule->steps(), rank,
         "has another number of steps than rank 0");
  copy_locally(rank);
  enter_step(rank);
}

void Interpreter::copy_locally(int rank) {
  const LocalCopy copy = world_[rank].schedule->local_copy();
  if (copy.empty()) return;
  const auto from = memory_of(rank, copy.from), to = memory_of(rank, copy.to);
  expect(from.size() == to.size(), rank, "copies to another size");
  expect(copy.from.buffer == Buffer::in && copy.to.buffer != Buffer::in, rank, "copies backwards");
  expect(same(from, to) || !overlap(from, to), rank, "copies to an overlapping slice");
  for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i) to[i] = from[i];
}

void Interpreter::enter_step(int rank) {
  Rank& r = world_[rank];
  if (done(r)) return;
  r.step = r.schedule->step(r.k);
  r.sent = r.step.to == kNobody;
  r.received = r.step.from == kNobody;
  r.news_at_start = r.news;
  check_step(rank);
}

void Interpreter::check_step(int rank) {
  const Step& step = world_[rank].step;
  const auto is_peer = [&](int peer) {
    return peer == kNobody || (peer >= 0 && peer < ranks_ && peer != rank);
  };
  expect(is_peer(step.to) && is_peer(step.from), rank, "names no other rank");
  expect(step.to != kNobody || step.send.range.empty(), rank, "sends to nobody");
  expect(step.from != kNobody || step.recv.range.empty(), rank, "receives from nobody");
  expect(step.recv.range.empty() || step.recv.buffer != Buffer::in, rank, "writes to `in`");
  expect(step.act == Act::copy || step.operand.range.size() == step.recv.range.size(), rank,
         "has an operand of another size");
  const auto send = memory_of(rank, step.send), recv = memory_of(rank, step.recv);
  expect(!overlap(send, recv), rank, "receives into what it sends");
  if (step.act == Act::copy) return;
  const auto operand = memory_of(rank, step.operand);
  expect(same(operand, recv) || !overlap(operand, recv), rank, "has an overlapping operand");
  expect(all_written(operand), rank, "has an unwritten operand");
}

bool Interpreter::advance(int rank, Sending sending) {
  Rank& r = world_[rank];
  bool moved = false;
  for (bool more = true; more && !done(r) && outcome_.failure.empty();) {
    const bool receive_first = random(2) == 0;
    more = receive_first ? try_receive(rank, sending) || try_send(rank, sending)
                         : try_send(rank, sending) || try_receive(rank, sending);
    while (!done(r) && r.sent && r.received) {
      ++r.k;
      enter_step(rank);
      more = true;
    }
    moved |= more;
    more = more && random(4) != 0;
  }
  return moved;
}

bool Interpreter::try_send(int rank, Sending sending) {
  Rank& r = world_[rank];
  if (r.sent || sending == Sending::rendezvous) return false;
  queue(rank, r.step.to).push_back(message_of(rank));
  return true;
}

Interpreter::Message Interpreter::message_of(int rank) {
  Rank& r = world_[rank];
  const auto send = memory_of(rank, r.step.send);
  expect(all_written(send), rank, "sends what nothing was written to");
  r.sent = true;
  r.sent_to |= just(r.step.to);
  if (outcome_.elements_sent.empty()) outcome_.elements_sent.resize(world_.size());
  outcome_.elements_sent[rank] += send.size();
  outcome_.told_others |= (begun_ & just(r.step.to)) == 0;
  return {r.k, r.news_at_start, {send.begin(), send.end()}};
}

bool Interpreter::try_receive(int rank, Sending sending) {
  Rank& r = world_[rank];
  if (r.received) return false;
  if (sending == Sending::rendezvous) {
    Rank& sender = world_[r.step.from];
    if (done(sender) || sender.k != r.k || sender.sent || sender.step.to != rank) return false;
    receive(rank, message_of(r.step.from));
    return true;
  }
  auto& messages = queue(r.step.from, rank);
  if (messages.empty()) return false;
  Message message = std::move(messages.front());
  messages.erase(messages.begin());
  receive(rank, std::move(message));
  return true;
}

void Interpreter::receive(int rank, Message message) {
  Rank& r = world_[rank];
  const auto recv = memory_of(rank, r.step.recv), operand = memory_of(rank, r.step.operand);
  expect(message.step == r.k, rank, "receives a message of another step");
  expect(message.elements.size() == recv.size(), rank, "receives another number of elements");
  if (!outcome_.failure.empty()) return;
  for (std::size_t i = 0; i < recv.size(); ++i)
    combine(r.step.act, r.step.act == Act::copy ? recv[i] : operand[i], message.elements[i],
            recv[i]);
  r.news |= message.news;
  r.received = true;
}

void Interpreter::combine(Act act, const Element& operand, const Element& received,
                          Element& result) {
  if (act == Act::copy) {
    result = received;
    return;
  }
  const RankSet both = operand.ranks | received.ranks;
  expect((operand.ranks & received.ranks) == 0, 0, "or another adds a rank's part twice");
  expect(!operand.complete && !received.complete, 0, "or another reduces a complete element");
  expect(act == Act::reduce || both == all_of(ranks_), 0, "or another completes too early");
  expect(act == Act::complete || both != all_of(ranks_), 0, "or another does not complete");
  result = {.value = operand.value + received.value,
            .tree = combine_trees(operand.tree, received.tree),
            .ranks = both,
            .written = true,
            .complete = act == Act::complete};
}

void Interpreter::check_end(RankSet which) {
  outcome_.steps = world_[0].schedule->steps();
  outcome_.elements_sent.resize(world_.size());
  for (int rank = 0; rank < ranks_ && outcome_.failure.empty(); ++rank) {
    const Rank& r = world_[rank];
    outcome_.peers.push_back(static_cast<std::size_t>(std::popcount(r.sent_to)));
    expect(done(r), rank, "waits for ever");
    expect((r.news & which) == which, rank, "finished without news of every rank");
  }
  for (const auto& messages : queues_) expect(messages.empty(), 0, "or another was sent too much");
}

std::span<Element> Interpreter::memory_of(int rank, const Slice& slice) {
  if (slice.range.begin == 0 && slice.range.end == 0) return {};
  Rank& r = world_[rank];
  Memory& memory = memories_[rank];
  const std::span<Element> whole = slice.buffer == Buffer::in    ? memory.in()
                                   : slice.buffer == Buffer::out ? memory.out()
                                                                 : std::span<Element>(r.scratch);
  const bool inside = slice.range.begin <= slice.range.end && slice.range.end <= whole.size();
  expect(inside, rank, "leaves its buffer");
  return inside ? whole.subspan(slice.range.begin, slice.range.size()) : std::span<Element>();
}

void Interpreter::expect(bool holds, int rank, const char* what) {
  if (holds || !outcome_.failure.empty()) return;
  outcome_.failure =
      fmt::format("{} ranks: rank {} at step {} {}", ranks_, rank, world_[rank].k, what);
}

unsigned Interpreter::random(unsigned below) {
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  return static_cast<unsigned>((random_ * 0x2545f4914f6cdd1dU) >> 33) % below;
}

std::vector<Interpreter::Message>& Interpreter::queue(int from, int to) {
  return queues_[static_cast<std::size_t>(from * ranks_ + to)];
}

}  // namespace corro::runtime::test
