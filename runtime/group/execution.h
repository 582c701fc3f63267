#pragma once

#include <string>

#include "base/bytes.h"
#include "runtime/group/running.h"
#include "runtime/op/kernels.h"
#include "runtime/op/op.h"
#include "runtime/pattern/schedule.h"
#include "runtime/transport/endpoint.h"

namespace corro::runtime {

// Everything that an operation on messages needs to know; plain values, and memory that is
// borrowed until it is done.
struct Task {
  std::unique_ptr<Schedule> schedule;
  DataType type = DataType::u8;
  Finish finish;  // of ranges that have every rank's part
  Buffers buffers;
  Tag tag;
  std::uint64_t digest = 0;
  std::string description;
};

// One operation on its way through a schedule.  It moves as far as the links allow now and never
// waits, so it runs the same over sockets and in the simulator.
//
// Elements to be reduced come into a small piece buffer and are reduced while the rest is still
// arriving: the buffer stays in the cache, whatever the size of the tensor.
//
// Made for one operation; what it borrows outlives it.
class Execution final : public Running {
 public:
  Execution(Task, Links&, Bytes& piece, Bytes& scratch);

  Outcome<bool> advance() override;

  // Whether the last advance() sent or received anything: then it may have read ahead what is for
  // others than its step, and no descriptor tells of that again.
  bool moved() const { return moved_; }

  int awaited() const override;
  std::string where() const override;
  std::string description() const override { return task_.description; }
  Identity identity() const override { return {task_.tag.sequence, task_.digest}; }

 private:
  void copy_locally(const LocalCopy&);
  Outcome<bool> begin();
  Outcome<bool> move();
  Outcome<std::size_t> copy_arrived();
  Outcome<std::size_t> reduce_arrived();
  void combine(std::size_t bytes);
  bool step_is_done() const;
  Range bytes_of(Range elements) const { return elements.scaled(element_); }
  const Pieces& readable(Buffer) const;
  const MutPieces& writable(Buffer) const;
  Header header_for(std::size_t bytes) const;

  Task task_;
  Links& links_;
  Bytes& piece_;
  std::size_t element_;  // bytes
  MutPieces scratch_;
  Pieces out_read_, scratch_read_;

  int at_ = 0;  // the step
  bool begun_ = false;
  Step step_;
  Endpoint* to_ = nullptr;       // where this step sends; null for nobody
  Endpoint* from_ = nullptr;     // where it receives from
  std::vector<bool> described_;  // by index: the operation was described to that peer
  std::size_t done_ = 0;         // bytes of this step that were received and used
  bool moved_ = false;
  std::size_t held_ = 0;  // bytes in the piece buffer that are not used yet
};

// Two pieces, the one that comes in and the one that it is combined with, fit a core's own cache.
inline constexpr std::size_t kPieceBytes = 128 * 1024;

}  // namespace corro::runtime
