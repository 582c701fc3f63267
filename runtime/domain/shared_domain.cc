#include "runtime/domain/shared_domain.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/assert.h"
#include "runtime/domain/arena.h"
#include "runtime/domain/stream.h"

namespace corro::runtime {

namespace {

// From here on staging goes past the caches (stream.h).
constexpr std::size_t kStreamed = 2 << 10;

// The last-level cache; where it is not known, that of a common server.
std::size_t cache_bytes() {
  const long bytes = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : std::size_t{32} << 20;
}

// Orders all stores before it against all loads after it, in all threads that do the same.
void full_fence() {
#ifdef __SANITIZE_THREAD__
  // The sanitizer has no idea of fences.  It need not: no data depends on this one.  An operation
  // that reads and writes is one too on the machines that it runs on.
  static std::atomic<std::uint32_t> nothing{0};
  nothing.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

bool reduces(Kind kind) {
  return kind == Kind::allreduce || kind == Kind::reducescatter;
}

}  // namespace

Result<std::unique_ptr<SharedDomain>> SharedDomain::open(int index, Segment mine,
                                                         std::vector<Membership> members,
                                                         ArenaViews arenas) {
  struct Owned {
    std::vector<PeerSegment> segments;
    std::vector<Fd> doorbells;
  };
  auto owned = std::make_shared<Owned>();
  auto own = std::make_shared<Segment>(std::move(mine));
  own->take_memory().reset();
  std::vector<MemberView> views;
  for (std::size_t k = 0; k < members.size(); ++k) {
    MemberView view;
    view.peer = members[k].peer;
    view.doorbell = members[k].doorbell.get();
    view.owner = owned;
    if (k == static_cast<std::size_t>(index)) {
      view.memory = own->data();
      view.layout = own->layout();
      view.cpus = own->control().header.cpus;
    } else {
      auto segment = PeerSegment::map(members[k].memory.get());
      if (!segment)
        return std::move(segment.error())
            .during(fmt::format("sharing memory with {}", members[k].peer.text()));
      view.memory = segment->data();
      view.layout = segment->layout();
      view.cpus = segment->control().header.cpus;
      owned->segments.push_back(std::move(*segment));
    }
    owned->doorbells.push_back(std::move(members[k].doorbell));
    views.push_back(std::move(view));
  }
  return std::make_unique<SharedDomain>(index, std::move(own), std::move(views), std::move(arenas));
}

SharedDomain::SharedDomain(int index, std::shared_ptr<Segment> mine,
                           std::vector<MemberView> members, ArenaViews arenas,
                           std::optional<Tuning> tuning)
    : me_(index),
      index_(static_cast<std::size_t>(index)),
      mine_(std::move(mine)),
      arenas_(std::move(arenas)),
      cache_bytes_(cache_bytes()),
      control_(&mine_->control()),
      sources_(members.size()),
      run_sources_(members.size()),
      offers_(members.size()) {
  std::vector<CpuClaim> claims;
  std::size_t slot = mine_->layout().slot_bytes;
  for (MemberView& view : members) {
    claims.push_back(view.cpus);
    slot = std::min(slot, view.layout.slot_bytes);
    Member member{std::move(view)};
    member.control = reinterpret_cast<const Control*>(member.memory);
    for (const unsigned half : {0U, 1U}) {
      member.input[half] = member.memory + member.layout.input(half);
      member.result[half] = member.memory + member.layout.result(half);
    }
    members_.push_back(std::move(member));
  }
  for (const unsigned half : {0U, 1U}) {
    my_input_[half] = mine_->data() + mine_->layout().input(half);
    my_result_[half] = mine_->data() + mine_->layout().result(half);
  }
  const double processors = processors_of(claims);
  tuning_ = tuning ? *tuning : tuning_for(size(), processors, slot);
  CORRO_ASSERT(tuning_.slot_bytes <= slot && tuning_.whole_bytes <= slot);
  spin_ = spin_policy(size(), processors);
  pairs_ = PairSlots::of(size(), tuning_.slot_bytes);
}

// ---- the rounds ---------------------------------------------------------------------------------

void SharedDomain::start(const Operation& operation, const Buffers& buffers, const Shape* asked) {
  CORRO_ASSERT(!active_);
  if (failure_) return;
  operation_ = &operation;
  buffers_ = &buffers;
  std::uint64_t now = digest(operation.shape);
  if (asked && *asked != operation.shape) now = now * 0x9e3779b97f4a7c15 ^ digest(*asked);
  if (now != digest_ || !planned_) adopt(operation.shape, asked ? *asked : operation.shape, now);
  active_ = first_ = true;
  chunk_ = 0;
  rounds_ = plan_.rounds();
  mode_ = may_be_direct() ? Mode::asking : Mode::staged;
  begin_round();
}

void SharedDomain::adopt(const Shape& shape, const Shape& asked, std::uint64_t now) {
  digest_ = now;
  planned_ = true;
  plan_ = Plan(shape, size(), tuning_);
  streams_ = shape.kind == Kind::alltoall || (!plan_.in_post() && plan_.total() >= kStreamed);
  streams_out_ = plan_.total() >= 2 * cache_bytes_ / members_.size();
  scales_ = reduces(shape.kind) && shape.prescale != 1;
  finish_ = {shape.reduction, shape.type, size(), shape.postscale};
  control_->description.set(asked.text());
}

void SharedDomain::abort(const Failure& why) {
  give_up(why, 1);
}

SharedDomain::~SharedDomain() {
  const Peer& self = members_[index_].peer;
  give_up(Failure(Errc::closed, self.rank, self.text() + " closed its context"), 2);
}

void SharedDomain::give_up(const Failure& why, std::uint32_t how) {
  Abandoned& mine = control_->abandoned;
  if (mine.flag.load(std::memory_order_relaxed) != 0) return;
  mine.code = static_cast<std::uint32_t>(why.code);
  mine.rank = why.rank;
  mine.text.set(why.text);
  mine.flag.store(how, std::memory_order_release);  // releases the words
  const std::uint64_t one = 1;
  for (const Member& member : members_) (void)!::write(member.doorbell, &one, sizeof one);
}

// What a member has said when it gave up, if one has; `closed` ones count too.
std::optional<Failure> SharedDomain::abandoned(bool closed) const {
  for (std::size_t k = 0; k < members_.size(); ++k) {
    if (is_me(k)) continue;
    const Abandoned& theirs = members_[k].control->abandoned;
    const auto how = theirs.flag.load(std::memory_order_acquire);
    if (how == 0 || (how == 2 && !closed)) continue;
    const auto code = std::min(theirs.code, static_cast<std::uint32_t>(last_of(Errc{})));
    return Failure(static_cast<Errc>(code), theirs.rank, std::string(theirs.text.get()));
  }
  return std::nullopt;
}

Outcome<Domain::Progress> SharedDomain::advance() {
  if (failure_) return *failure_;
  bool moved = false;
  while (active_) {
    bool all = all_arrived();
    if (ring_due_) ring();
    if (!all || mode_ != Mode::staged) {
      // A member that has closed had seen all others' posts, which are therefore here by now.
      auto given_up = abandoned(!all);
      if (given_up && !all && (all = all_arrived()))
        given_up = mode_ == Mode::staged ? std::nullopt : abandoned(false);
      if (given_up) {
        active_ = false;
        failure_ = given_up;
        return *failure_;
      }
    }
    if (!all) return Progress{moved, false};
    moved = true;
    if (first_ && !learn_from_first_round()) {
      active_ = false;
      return *failure_;
    }
    first_ = false;
    consume();
    if (++chunk_ == rounds_)
      active_ = false;
    else
      begin_round();
  }
  return Progress{moved, true};
}

void SharedDomain::begin_round() {
  ++round_;
  next_ = 0;
  Post& post = my_post();
  if (first_) post.digest = digest_;
  if (mode_ == Mode::asking) {
    const Offer mine = offer();
    std::memcpy(post.data.data(), &mine, sizeof mine);
    if (mine.in == Offer::kNone) stage();
  } else if (mode_ == Mode::staged) {
    stage();
  }
  publish();
}

void SharedDomain::publish() {
  // Releases what was staged.  The fence that the doorbells need comes later, in ring(): here it
  // would wait until the stores have reached the other cores, which takes as long as all else
  // that a small operation does.
  if (streams_) stream_fence();
  my_post().sequence.store(round_, std::memory_order_release);
  ring_due_ = true;
}

void SharedDomain::ring() {
  ring_due_ = false;
  full_fence();  // between the store of the sequence and the loads of the bells: see Bell
  const auto mine = static_cast<std::uint32_t>(index_ + 1);
  for (const Member& member : members_) {
    // Relaxed: the fence orders it, and no data comes with it.
    if (member.control->bell.awaited.load(std::memory_order_relaxed) != mine) [[likely]]
      continue;
    const std::uint64_t one = 1;
    // Fails only when the counter is full: then the doorbell is readable anyway.
    (void)!::write(member.doorbell, &one, sizeof one);
  }
}

bool SharedDomain::arrived(std::size_t member) const {
  // Acquires what the member staged.
  return members_[member].control->posts[parity()].sequence.load(std::memory_order_acquire) >=
         round_;
}

bool SharedDomain::all_arrived() {
  for (; next_ < members_.size(); ++next_) {
    if (is_me(next_) || arrived(next_)) continue;
    if (!sleeping_) return false;
    const auto awaited = static_cast<std::uint32_t>(next_ + 1);
    if (announced_ == awaited) return false;
    // The member that rings must be the one that is awaited now; then look once more.
    announced_ = awaited;
    control_->bell.awaited.store(awaited, std::memory_order_relaxed);  // the fence orders it
    full_fence();  // between the store of the bell and the load of the sequence: see Bell
    if (!arrived(next_)) return false;
  }
  return true;
}

void SharedDomain::sleep_begins() {
  sleeping_ = true;
  announced_ = 0;
}

void SharedDomain::sleep_ends() {
  sleeping_ = false;
  // Relaxed: a member that still sees the old value rings once too often, which costs one look.
  control_->bell.awaited.store(0, std::memory_order_relaxed);
  std::uint64_t rings = 0;
  (void)!::read(doorbell(), &rings, sizeof rings);
}

// ---- what the first round tells -----------------------------------------------------------------

bool SharedDomain::learn_from_first_round() {
  if (!same_operation()) return false;
  if (shape().kind == Kind::alltoall) return same_counts();
  if (mode_ == Mode::asking) settle_direct();
  return true;
}

// Every member compares all others with the first one, so that all name the same two.
bool SharedDomain::same_operation() {
  const auto digest_of = [&](std::size_t k) { return members_[k].control->posts[parity()].digest; };
  const std::uint64_t expected = digest_of(0);
  for (std::size_t k = 1; k < members_.size(); ++k)
    if (digest_of(k) != expected) [[unlikely]]
      return fail(0, std::string(members_[0].control->description.get()), k,
                  std::string(members_[k].control->description.get()));
  return true;
}

bool SharedDomain::fail(std::size_t a, std::string a_does, std::size_t b, std::string b_does) {
  failure_ = mismatch(members_[a].peer, a_does, members_[b].peer, b_does);
  return false;
}

// Every member checks all pairs, so that all of them fail if two of them disagree.
bool SharedDomain::same_counts() {
  const std::size_t n = members_.size();
  const auto counts = [&](std::size_t k, std::size_t at) {
    std::uint64_t value;
    std::memcpy(&value, members_[k].input[parity()] + at * sizeof value, sizeof value);
    return value;
  };
  std::uint64_t longest = 0;
  for (std::size_t from = 0; from < n; ++from)
    for (std::size_t to = 0; to < n; ++to) {
      const std::uint64_t sends = counts(from, to), receives = counts(to, n + from);
      longest = std::max(longest, sends);
      if (sends != receives) [[unlikely]]
        return fail(from, fmt::format("alltoall(sends {} elements to rank {})", sends, to), to,
                    fmt::format("alltoall(receives {} elements from rank {})", receives, from));
    }
  rounds_ = pairs_.chunks(longest * plan_.unit());
  return true;
}

// ---- buffers that are used where they are -------------------------------------------------------

bool SharedDomain::may_be_direct() const {
  const Kind kind = shape().kind;
  return members_.size() > 1 && kind != Kind::barrier && kind != Kind::alltoall && !scales_ &&
         plan_.total() >= tuning_.direct_bytes && !plan_.in_post();
}

SharedDomain::Offer SharedDomain::offer() const {
  Offer mine;
  if (!arenas_.mine) return mine;
  mine.sees_arenas = 1;
  const auto offset_of = [&](const auto& pieces) -> std::uint64_t {
    if (pieces.size() == 0) return 0;
    if (!pieces.contiguous()) return Offer::kNone;
    const auto all = pieces.at(0, pieces.size());
    return arenas_.mine->offset_of(all.data(), all.size()).value_or(Offer::kNone);
  };
  if (shape().kind == Kind::broadcast && shape().root != me_) return mine;
  mine.in = offset_of(buffers_->in);
  if (shape().kind != Kind::allreduce) return mine;
  mine.out = offset_of(buffers_->out);
  if (mine.out == Offer::kNone) mine.in = Offer::kNone;
  return mine;
}

// Whether a member's offer can be taken, which all members judge alike.  A member that writes
// nonsense must not make the others crash.
bool SharedDomain::usable(std::size_t member) const {
  const Offer& offer = offers_[member];
  const std::size_t room = arenas_.mine ? arenas_.members[member].size() : 0;
  const std::size_t bytes =
      shape().kind == Kind::allgather ? plan_.part(static_cast<int>(member)).size() : plan_.total();
  const auto fits = [&](std::uint64_t at) { return at <= room && bytes <= room - at; };
  return fits(offer.in) && (shape().kind != Kind::allreduce || fits(offer.out));
}

std::uint8_t* SharedDomain::in_arena(std::size_t member, std::uint64_t offset) const {
  return arenas_.members[member].data() + offset;
}

// All members see the same offers, and so come to the same mode.  Where some could and others
// could not, those that could have staged nothing yet: all begin again.
void SharedDomain::settle_direct() {
  const auto root = static_cast<std::size_t>(shape().root);
  bool all = true, any = false;
  for (std::size_t k = 0; k < members_.size(); ++k) {
    std::memcpy(&offers_[k], members_[k].control->posts[parity()].data.data(), sizeof(Offer));
    all &= offers_[k].sees_arenas == 1;
    if (shape().kind == Kind::broadcast && k != root) continue;
    any |= offers_[k].in != Offer::kNone;
    all &= offers_[k].in != Offer::kNone && usable(k);
  }
  mode_ = all ? Mode::direct : Mode::staged;
  if (all) rounds_ = 2;  // in the second one nothing moves: all have read and written
  if (any && !all) chunk_ = ~std::uint64_t{0};
}

}  // namespace corro::runtime
