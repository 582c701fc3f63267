#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "runtime/domain/domain.h"
#include "runtime/domain/layout.h"
#include "runtime/domain/rounds.h"
#include "runtime/domain/segment.h"
#include "runtime/domain/waiting.h"
#include "runtime/op/kernels.h"

namespace corro::runtime {

class Arena;

// A member as a SharedDomain sees it: where its memory is in this process.  The pointers stay
// valid while `owner` lives.
struct MemberView {
  Peer peer;
  const std::uint8_t* memory = nullptr;  // its segment
  Layout layout;
  CpuClaim cpus;
  int doorbell = -1;  // an eventfd; not owned
  std::shared_ptr<const void> owner;
};

// Memory of arenas (arena.h), for buffers that are used where they are.
struct ArenaViews {
  std::shared_ptr<Arena> mine;
  std::vector<MutByteView> members;  // one for each member, in the order of the domain
  std::shared_ptr<const void> owner;
};

// Collectives in shared memory.  layout.h says which memory is written and read when, and
// rounds.h which bytes.
class SharedDomain final : public Domain {
 public:
  // Maps the members' segments and closes their descriptors; the doorbells stay open.
  // members[index] is this process's own entry: its peer and doorbell count.
  static Result<std::unique_ptr<SharedDomain>> open(int index, Segment mine,
                                                    std::vector<Membership> members,
                                                    ArenaViews arenas = {});

  // For members that are threads of one process and share the mappings.
  SharedDomain(int index, std::shared_ptr<Segment> mine, std::vector<MemberView> members,
               ArenaViews arenas = {}, std::optional<Tuning> tuning = {});

  ~SharedDomain() override;

  int index() const override { return me_; }
  int size() const override { return static_cast<int>(members_.size()); }
  void start(const Operation&, const Buffers&, const Shape* asked = nullptr) override;
  void abort(const Failure&) override;
  Outcome<Progress> advance() override;
  const Peer& awaited() const override {
    return members_[next_ < members_.size() ? next_ : 0].peer;
  }
  void sleep_begins() override;
  void sleep_ends() override;
  int doorbell() const override { return members_[index_].doorbell; }

  // How its members should wait: the same on all of them.
  const SpinPolicy& spin() const { return spin_; }
  const Tuning& tuning() const { return tuning_; }

 private:
  struct Member : MemberView {
    const Control* control = nullptr;
    const std::uint8_t* input[2] = {};
    const std::uint8_t* result[2] = {};
  };

  // What a member says of its buffers in the first round of an operation that could use them
  // where they are: offsets in its arena.
  struct Offer {
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    std::uint64_t in = kNone, out = kNone;
    std::uint64_t sees_arenas = 0;  // 1: it has mapped all members'
  };
  enum class Mode : std::uint8_t { staged, asking, direct };

  unsigned parity() const { return static_cast<unsigned>(round_ & 1); }
  std::uint8_t* my_input() const { return my_input_[parity()]; }
  Post& my_post() const { return control_->posts[parity()]; }
  const std::uint8_t* staged_by(const Member&) const;
  bool is_me(std::size_t k) const { return k == index_; }
  const Shape& shape() const { return operation_->shape; }

  void adopt(const Shape&, const Shape& asked, std::uint64_t digest);
  std::optional<Failure> abandoned(bool closed) const;
  void give_up(const Failure&, std::uint32_t how);
  bool may_be_direct() const;
  Offer offer() const;
  bool usable(std::size_t member) const;

  void begin_round();
  void publish();
  void ring();
  bool all_arrived();
  bool arrived(std::size_t member) const;

  bool learn_from_first_round();
  bool same_operation();
  bool same_counts();
  void settle_direct();
  bool fail(std::size_t a, std::string a_does, std::size_t b, std::string b_does);

  void stage();
  void stage_reduction();
  void stage_pairs();
  void stage_in(std::uint8_t* to, Range bytes) const;

  void consume();
  void consume_reduction();
  void consume_gathered();
  void consume_broadcast();
  void consume_pairs();
  void copy_results();
  void use_direct();
  void reduce_direct();

  // Reduces `bytes` of the tensor from sources_ (which point to the first of them) to `out_at` of
  // `out`; the own part comes from `in`, if it is not scaled.  Copies what it has made to `also`.
  void reduce_range(Range bytes, std::size_t out_at, std::uint8_t* also);
  void copy_out(std::size_t at, const std::uint8_t* from, std::size_t bytes) const;
  void copy_own(Range in_bytes, std::size_t out_at) const;
  std::uint8_t* in_arena(std::size_t member, std::uint64_t offset) const;

  int me_;
  std::size_t index_;
  std::shared_ptr<Segment> mine_;
  std::vector<Member> members_;
  ArenaViews arenas_;
  std::size_t cache_bytes_;
  Control* control_;
  std::uint8_t* my_input_[2];
  std::uint8_t* my_result_[2];
  Tuning tuning_;
  SpinPolicy spin_;
  PairSlots pairs_;

  // The plan of the last shape, which the next operation usually has as well.
  std::uint64_t digest_ = 0;
  bool planned_ = false;
  Plan plan_;
  Finish finish_;
  bool scales_ = false;
  bool streams_ = false, streams_out_ = false;  // past the caches: stream.h

  const Operation* operation_ = nullptr;
  const Buffers* buffers_ = nullptr;
  bool active_ = false, first_ = false, sleeping_ = false;
  bool ring_due_ = false;  // posted, but sleepers have not been looked for
  Mode mode_ = Mode::staged;
  std::uint64_t round_ = 0;      // of the domain's life
  std::uint64_t chunk_ = 0;      // of this operation
  std::uint64_t rounds_ = 0;     // of this operation, once known
  std::size_t next_ = 0;         // the first member not seen in this round
  std::uint32_t announced_ = 0;  // what bell.awaited holds
  std::vector<const std::uint8_t*> sources_, run_sources_;
  std::vector<Offer> offers_;
  std::optional<Failure> failure_;
};

}  // namespace corro::runtime
