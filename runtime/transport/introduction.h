#pragma once

#include <cstdint>
#include <optional>

#include "base/codec.h"
#include "base/fd.h"
#include "base/proof.h"
#include "base/socket.h"
#include "base/time.h"

namespace corro::runtime {

// Who is at the other end, once it has proved that it belongs to the job.
struct Hello {
  std::uint64_t generation = 0;
  std::int32_t rank = 0;
  CORRO_FIELDS(generation, rank)
  bool operator==(const Hello&) const = default;
};

// A connection on its way to becoming a link: the proof of the job's key, then a hello each way.
// It never waits, so that one who connects and is silent holds up nobody.
class Introduction {
 public:
  Introduction(Fd socket, Proof::Role, const Key&, const Hello& mine);

  // Reads and writes what it can.  An error: this is nobody to have a link with.
  Result<Unit> progress();

  // Who it is, when both sides have said all.
  const std::optional<Hello>& theirs() const { return theirs_; }
  bool done() const { return theirs_ && outgoing_.empty(); }

  Interest interest() const { return {socket_.get(), !theirs_, !outgoing_.empty()}; }
  Fd take_socket() { return std::move(socket_); }

 private:
  Result<bool> read();
  Result<Unit> write();
  Result<Unit> feed(ByteView);

  Fd socket_;
  Proof proof_;
  Hello mine_;
  Bytes outgoing_;
  Bytes hello_;  // theirs, as far as it has come
  std::optional<Hello> theirs_;
};

}  // namespace corro::runtime
