#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/backend/native/stages.h"
#include "runtime/backend/native/topology.h"
#include "runtime/domain/shared_domain.h"
#include "runtime/group/execution.h"
#include "runtime/group/member.h"
#include "runtime/pattern/choose.h"

namespace corro::runtime {

// What all members of a native group agree on.
struct NativeOptions {
  std::uint64_t generation = 0;
  std::uint64_t id = 0;  // of the group
  Costs costs;
  Overrides overrides;
};

// A group on our own transports: shared memory among members of one machine, messages between.
class NativeGroup final : public Group, private Running {
 public:
  // `domain` is null where this member shares its machine with no other of the group.
  NativeGroup(Roster, const Topology&, std::unique_ptr<Links>, std::unique_ptr<SharedDomain>,
              const NativeOptions&);

  int size() const override { return topology_.size(); }
  int self() const override { return topology_.self; }
  void start(const Operation&, const Buffers&, TimePoint now, Duration timeout) override;
  bool advance(TimePoint now) override;
  State state() const override;
  const std::optional<Failure>& failure() const override { return member_.failure(); }
  void hear(const rendezvous::Departure& departure) override { member_.hear(departure); }
  void hear(const Error& error) override { member_.hear(error); }
  void fail(const Failure& why, TimePoint now) override { member_.fail(why, now); }
  SpinPolicy spin() const override { return domain_running_ ? spin_ : SpinPolicy{}; }
  void sleep_begins() override;
  void sleep_ends() override;
  TimePoint wake(TimePoint now) const override { return member_.wake(now); }
  void add_interests(std::vector<Interest>&) const override;

 private:
  // Running: all stages, one after the other; once finished it stays so.
  Outcome<bool> advance() override;
  int awaited() const override;
  bool waits_in_memory() const override { return domain_running_; }
  std::string where() const override;
  Identity identity() const override { return {sequence_, digest(shape_)}; }
  std::string description() const override { return shape_.text(); }
  void abort(const Failure&) override;

  void prescale(Operation&, Buffers&);
  void prepare_adasum(Operation&, Buffers&);
  void finish();
  void finish_adasum();
  void finish_alone();
  void copy_in(Buffers&);
  void begin_stage();

  Topology topology_;
  Member member_;
  std::unique_ptr<Domain> domain_;
  SpinPolicy spin_;  // in the domain
  NativeOptions options_;
  std::uint64_t sequence_ = 0;

  Shape shape_;  // of the operation as it was asked for
  std::vector<Stage> stages_;
  std::size_t stage_ = 0;
  bool finished_ = true;
  std::optional<Execution> execution_;  // of a stage by messages
  bool domain_running_ = false;         // the stage is in shared memory
  bool moved_ = false;                  // since the last advance(now)
  Bytes piece_, scratch_, staged_;
  std::optional<MutPieces> adasum_out_;
};

}  // namespace corro::runtime
