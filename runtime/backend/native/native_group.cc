#include "runtime/backend/native/native_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "runtime/backend/native/adasum.h"
#include "runtime/op/kernels.h"

namespace corro::runtime {

namespace {

// A schedule among some members of a group, in terms of the group.
class Among final : public Schedule {
 public:
  Among(std::unique_ptr<Schedule> inner, std::vector<int> members)
      : inner_(std::move(inner)), members_(std::move(members)) {}

  int steps() const override { return inner_->steps(); }
  Step step(int k) const override {
    Step step = inner_->step(k);
    step.to = in_group(step.to);
    step.from = in_group(step.from);
    return step;
  }
  LocalCopy local_copy() const override { return inner_->local_copy(); }
  std::size_t scratch() const override { return inner_->scratch(); }

 private:
  int in_group(int index) const {
    return index == kNobody ? kNobody : members_[static_cast<std::size_t>(index)];
  }

  std::unique_ptr<Schedule> inner_;
  std::vector<int> members_;
};

int index_of(const std::vector<int>& members, int member) {
  return static_cast<int>(std::find(members.begin(), members.end(), member) - members.begin());
}

bool overlap(const Buffers& buffers) {
  for (const auto& in : buffers.in.pieces())
    for (const auto& out : buffers.out.pieces())
      if (in.data() < out.data() + out.size() && out.data() < in.data() + in.size()) return true;
  return false;
}

bool reduces(Kind kind) {
  return kind == Kind::allreduce || kind == Kind::reducescatter;
}

}  // namespace

NativeGroup::NativeGroup(Roster roster, const Topology& topology, std::unique_ptr<Links> links,
                         std::unique_ptr<SharedDomain> domain, const NativeOptions& options)
    : topology_(topology),
      member_(std::move(roster), topology.self, std::move(links)),
      spin_(domain ? domain->spin() : SpinPolicy{}),
      options_(options) {
  domain_ = std::move(domain);
}

void NativeGroup::start(const Operation& op, const Buffers& buffers, TimePoint now,
                        Duration timeout) {
  if (state() == State::failed) return;
  shape_ = op.shape;
  ++sequence_;
  stage_ = 0;
  finished_ = false;
  const bool plain = op.shape.prescale == 1 && op.shape.reduction != Reduction::adasum &&
                     op.shape.kind != Kind::alltoall;
  if (plain && topology_.one_machine() && domain_) {
    // The common case on one machine: nothing is allocated.
    stages_.clear();
    domain_->start(op, buffers);
    domain_running_ = true;
  } else {
    Operation actual = op;
    Buffers where = buffers;
    if (op.shape.prescale != 1 && reduces(op.shape.kind)) prescale(actual, where);
    if (op.shape.kind == Kind::alltoall && overlap(where)) copy_in(where);
    if (op.shape.reduction == Reduction::adasum && reduces(op.shape.kind))
      prepare_adasum(actual, where);
    stages_ = stages_of(actual, where, topology_);
    begin_stage();
  }
  member_.start(*this, now, timeout);
}

// The inputs are scaled into the result's memory, or into memory of ours where that is smaller.
void NativeGroup::prescale(Operation& op, Buffers& buffers) {
  MutPieces scaled = buffers.out;
  if (buffers.out.size() != buffers.in.size()) {
    staged_.resize(buffers.in.size());
    scaled = MutPieces(MutByteView(staged_));
  }
  for (std::size_t done = 0; done < scaled.size();) {
    const auto target = scaled.at(done, scaled.size() - done);
    const auto source = buffers.in.at(done, target.size());
    scale(op.shape.type, target.first(source.size()), source, op.shape.prescale);
    done += source.size();
  }
  op.shape.prescale = 1;
  buffers.in = Pieces(std::vector<Pieces::Piece>(scaled.pieces().begin(), scaled.pieces().end()));
}

// No schedule can exchange in place.
void NativeGroup::copy_in(Buffers& buffers) {
  staged_.clear();
  for (const auto& piece : buffers.in.pieces()) append(staged_, piece);
  buffers.in = Pieces(ByteView(staged_));
}

// Every rank gets every input and combines them in the same order.
void NativeGroup::prepare_adasum(Operation& op, Buffers& buffers) {
  adasum_out_ = buffers.out;
  const auto ranks = static_cast<std::size_t>(size());
  scratch_.resize(ranks * buffers.in.size());
  op.shape.kind = Kind::allgather;
  op.shape.reduction = Reduction::sum;
  op.shape.parts.assign(ranks, op.shape.count);
  op.shape.count *= ranks;
  op.shape.postscale = 1;
  buffers.out = MutPieces(MutByteView(scratch_));
}

void NativeGroup::finish_adasum() {
  adasum(shape_.type, scratch_, size(), *adasum_out_);
  if (shape_.postscale != 1)
    for (const auto& piece : adasum_out_->pieces())
      scale(shape_.type, piece, piece, shape_.postscale);
  adasum_out_.reset();
}

void NativeGroup::begin_stage() {
  const Stage& stage = stages_[stage_];
  domain_running_ = stage.where == Stage::Where::domain;
  if (domain_running_) {
    CORRO_ASSERT(domain_);
    domain_->start(stage.op, stage.buffers, &shape_);
    return;
  }
  if (piece_.empty()) piece_.resize(kPieceBytes);
  const int self = index_of(stage.members, topology_.self);
  const int ranks = static_cast<int>(stage.members.size());
  const Shape& shape = stage.op.shape;
  Task task;
  task.schedule = std::make_unique<Among>(
      make_schedule(choose(shape, ranks, options_.costs, options_.overrides), stage.op, self, ranks,
                    options_.costs),
      stage.members);
  task.type = shape.type;
  task.finish = {shape.reduction, shape.type, stage.finish_ranks ? stage.finish_ranks : 1,
                 shape.postscale};
  task.buffers = stage.buffers;
  task.tag = {options_.generation, options_.id, sequence_, 0};
  task.digest = digest(shape_);
  task.description = shape_.text().substr(0, kDescriptionLimit);
  execution_.emplace(std::move(task), member_.links(), piece_, adasum_out_ ? staged_ : scratch_);
}

bool NativeGroup::advance(TimePoint now) {
  moved_ = false;
  const auto before = member_.phase();
  return member_.advance(now) != before || moved_;
}

NativeGroup::State NativeGroup::state() const {
  switch (member_.phase()) {
    case Member::Phase::idle:
      return State::idle;
    case Member::Phase::failed:
      return State::failed;
    default:
      return State::working;
  }
}

Outcome<bool> NativeGroup::advance() {
  while (!finished_) {
    if (domain_running_) {
      const auto progress = domain_->advance();
      if (!progress) return progress.error();
      moved_ |= progress->moved;
      if (!progress->done) return false;
      domain_running_ = false;
    } else {
      const auto done = execution_->advance();
      moved_ |= execution_->moved();
      if (!done || !*done) return done;
      execution_.reset();
    }
    moved_ = true;
    if (++stage_ < stages_.size())
      begin_stage();
    else
      finish();
  }
  return true;
}

void NativeGroup::finish() {
  finished_ = true;
  if (adasum_out_)
    finish_adasum();
  else if (size() == 1 && reduces(shape_.kind))
    finish_alone();
}

// A single rank has no step with which its tensor would be complete.
void NativeGroup::finish_alone() {
  const Finish rest{shape_.reduction, shape_.type, 1, shape_.postscale};
  if (shape_.type == DataType::boolean)
    for (const auto& piece : stages_.front().buffers.out.pieces())
      for (auto& byte : piece) byte = byte != 0;
  if (rest.nothing()) return;
  for (const auto& piece : stages_.front().buffers.out.pieces()) runtime::finish(rest, piece);
}

int NativeGroup::awaited() const {
  if (execution_) return execution_->awaited();
  for (int index = 0; index < size(); ++index)
    if (member_.roster()[static_cast<std::size_t>(index)] == domain_->awaited()) return index;
  return topology_.self;
}

std::string NativeGroup::where() const {
  return execution_ ? execution_->where() : "";
}

void NativeGroup::abort(const Failure& why) {
  if (domain_) domain_->abort(why);
}

void NativeGroup::sleep_begins() {
  if (domain_running_) domain_->sleep_begins();
}

void NativeGroup::sleep_ends() {
  if (domain_) domain_->sleep_ends();
}

void NativeGroup::add_interests(std::vector<Interest>& all) const {
  member_.add_interests(all);
  if (domain_running_) all.push_back({domain_->doorbell(), true, false});
}

}  // namespace corro::runtime
