#include "tests/sim/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/transport/stream_endpoint.h"

namespace corro::runtime {

using rendezvous::Departure;

using namespace std::chrono_literals;

namespace {

constexpr auto kTimeout = 60s;
constexpr auto kOverslept = 30s;     // no weather is that slow; only an alarm can have woken it
constexpr auto kSkew = 2ms;          // between the ranks' calls, at most
constexpr auto kNoticeDelay = 50ms;  // from a death to each survivor's hearing of it, at most

// A survivor that is told fails when the notice comes; others have to doubt first, to say their
// last words, and these have to go round.
constexpr auto kHearsay =
    100ms;  // a member that knows of one who left asks around before it believes
constexpr auto kToldSoon = kNoticeDelay + kHearsay + 10ms;
constexpr auto kFoundOut = 3s;

Peer peer(int rank) {
  return {rank, fmt::format("h{}", rank)};
}

}  // namespace

std::unique_ptr<Schedule> any_schedule(const Operation& op, int rank, int size) {
  const auto fitting = algorithms_for(op.shape.kind);
  return make_schedule(fitting[digest(op.shape) % fitting.size()], op, rank, size);
}

World::World(const Scenario& scenario)
    : scenario_(scenario), chance_(scenario.seed), ranks_(static_cast<std::size_t>(scenario.size)) {
  for (int i = 0; i < scenario.calls; ++i) calls_.push_back(Call::random(chance_, scenario.size));
  calls_.emplace_back();

  std::vector<std::unique_ptr<ReadyLinks>> links(ranks_.size());
  for (auto& one : links) one = std::make_unique<ReadyLinks>();
  for (int rank = 0; rank < scenario.size; ++rank)
    for (int other = rank + 1; other < scenario.size; ++other) connect(rank, other, links);
  Roster roster;
  for (int rank = 0; rank < scenario.size; ++rank) roster.push_back(peer(rank));
  for (int rank = 0; rank < scenario.size; ++rank) {
    ranks_[rank].member = std::make_unique<Member>(roster, rank, std::move(links[rank]));
    ranks_[rank].piece.resize(kPieceBytes);
    (void)store_.joined(static_cast<rendezvous::StoreCore::ClientId>(rank));
  }
}

// The members' streams say goodbye through us.
World::~World() {
  for (Rank& rank : ranks_) rank.member.reset();
}

void World::connect(int lower, int higher, std::vector<std::unique_ptr<ReadyLinks>>& links) {
  const std::array ends = {lower, higher};
  const auto connection = std::make_shared<SimConnection>(
      time_, chance_, scenario_.weather, [this, ends](int side) { advance_soon(ends[side]); });
  for (int side = 0; side < 2; ++side) {
    const int self = ends[side], other = ends[1 - side];
    links[self]->add(
        other, std::make_unique<StreamEndpoint>(peer(self), peer(other),
                                                std::make_unique<SimStream>(connection, side)));
    ranks_[self].sockets.emplace_back(connection, side);
  }
}

void World::play() {
  for (int rank = 0; rank < scenario_.size; ++rank) start_call(rank);
  for (const Death& death : scenario_.deaths)
    time_.after(death.when, [this, death] { kill(death); });
  time_.run();
  judge_end();
}

void World::start_call(int rank) {
  time_.after(chance_.within(kSkew), [this, rank] {
    Rank& r = ranks_[rank];
    if (r.fate != Fate::running) return;
    const Call& call = calls_[r.call];
    const Operation op = call.operation(rank);
    r.in = call.brought(rank);
    r.out = Bytes(call.bytes_out(rank));
    Task task;
    task.schedule = scenario_.schedule(op, rank, scenario_.size);
    task.type = op.shape.type;
    task.finish = {op.shape.reduction, op.shape.type, scenario_.size, 1};
    task.buffers.out = MutPieces(MutByteView(r.out));
    task.buffers.in = Pieces(ByteView(r.in));
    if (call.in_place() && op.shape.kind == Kind::allreduce) {
      r.out = r.in;
      task.buffers.out = MutPieces(MutByteView(r.out));
      task.buffers.in = Pieces(ByteView(r.out));
    }
    task.tag.sequence = r.call + 1;
    task.digest = runtime::digest(op.shape);
    task.description = op.shape.text();
    r.busy = true;
    r.started = time_.now();
    r.execution.emplace(std::move(task), r.member->links(), r.piece, r.scratch);
    r.member->start(*r.execution, time_.now(), kTimeout);
    advance(rank);
  });
}

void World::advance_soon(int rank) {
  if (std::exchange(ranks_[rank].planned, true)) return;
  time_.after({}, [this, rank] {
    ranks_[rank].planned = false;
    advance(rank);
  });
}

void World::advance(int rank) {
  Rank& r = ranks_[rank];
  if (!r.busy) return;
  const auto phase = r.member->advance(time_.now());
  time_.note("rank", static_cast<std::uint64_t>(rank) << 8 | static_cast<std::uint64_t>(phase));
  if (phase == Member::Phase::idle) return on_result(rank);
  if (phase == Member::Phase::failed) return on_failure(rank);
  const TimePoint wake = r.member->wake(time_.now());
  if (std::exchange(r.alarm, wake) != wake) time_.at(wake, [this, rank] { advance(rank); });
}

void World::on_result(int rank) {
  Rank& r = ranks_[rank];
  r.busy = false;
  if (const auto wrong = calls_[r.call].wrong(rank, r.out)) complain(*wrong);
  if (time_.now() - r.started > kOverslept)
    complain(fmt::format("rank {} was not woken in {}", rank, calls_[r.call].text()));
  ++r.call;
  if (r.call < calls_.size()) return start_call(rank);
  leave(rank, Fate::finished, "exited with code 0");
}

void World::on_failure(int rank) {
  ++failures_;
  const Failure& failure = *ranks_[rank].member->failure();
  if (!first_dead_)
    complain(fmt::format("rank {} failed, though nobody died: {}", rank, failure.text));
  else if (failure.code != Errc::peer_lost || failure.rank != *first_dead_ ||
           failure.text.find(peer(*first_dead_).text()) == std::string::npos)
    complain(fmt::format("rank {} blames {} where {} died first: {}", rank, failure.rank,
                         *first_dead_, failure.text));
  else if (time_.now() - died_ > (scenario_.launcher_tells ? Duration(kToldSoon) : kFoundOut))
    complain(fmt::format("rank {} learned of it too late: {}", rank, failure.text));
  leave(rank, Fate::failed, "exited with code 1");
}

void World::leave(int rank, Fate fate, const std::string& cause) {
  Rank& r = ranks_[rank];
  r.busy = false;
  r.fate = fate;
  ended_ = time_.now();
  r.member.reset();
  const auto manner = fate == Fate::finished ? Departure::Manner::left : Departure::Manner::died;
  announce({0, rank, peer(rank).host, cause, manner});
}

void World::kill(const Death& death) {
  if (ranks_[death.rank].fate != Fate::running) return;
  time_.note("death", static_cast<std::uint64_t>(death.rank));
  if (!first_dead_) {
    first_dead_ = death.rank;
    died_ = time_.now();
  }
  if (death.loses_bytes)
    for (const auto& [connection, side] : ranks_[death.rank].sockets) connection->reset(side);
  leave(death.rank, Fate::dead, "was killed by SIGKILL");
}

void World::announce(const Departure& departure) {
  if (!scenario_.launcher_tells) return;
  for (const auto& [client, reply] : store_.announce(departure)) {
    Rank& r = ranks_[client];
    r.told = std::max(r.told, time_.now() + chance_.within(kNoticeDelay));
    const auto notice = std::get<rendezvous::store::Notice>(reply);
    time_.at(r.told,
             [this, rank = static_cast<int>(client), notice] { deliver(rank, notice.departure); });
  }
}

void World::deliver(int rank, const Departure& departure) {
  if (!ranks_[rank].member) return;
  ranks_[rank].member->hear(departure);
  advance(rank);
}

void World::judge_end() {
  for (int rank = 0; rank < scenario_.size; ++rank) {
    const Rank& r = ranks_[rank];
    if (r.fate == Fate::running)
      complain(fmt::format("rank {} hangs in {}", rank, calls_[r.call].text()));
    // Nobody gets past the last barrier without those who never came to it.
    const bool absent = first_dead_ && ranks_[*first_dead_].call + 1 < calls_.size();
    if (r.fate == Fate::finished && absent)
      complain(fmt::format("rank {} went on without rank {}", rank, *first_dead_));
  }
}

void World::complain(const std::string& what) {
  if (!complaint_) complaint_ = what;
}

}  // namespace corro::runtime
