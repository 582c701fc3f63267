#pragma once

#include <cstdint>
#include <optional>

#include "base/codec.h"
#include "base/fd.h"
#include "base/proof.h"
#include "base/socket.h"
#include "base/time.h"

namespace corro::runtime {

// What each side of a new connection says once it has proved that it belongs to the job.
struct Hello {
  std::uint64_t generation = 0;
  std::uint64_t session = 0;  // digest of the offers of all ranks: one meeting, one number
  std::uint64_t group = 0;
  std::int32_t from = 0, to = 0;  // ranks of the job
  CORRO_FIELDS(generation, session, group, from, to)
  bool operator==(const Hello&) const = default;
};

// A connection on its way to becoming a link: the proof of the job's key, then a hello each way.
// The dialler speaks first, so the listener's answer fits the group that the dialler names.
// It never waits, so that a silent connection holds up nothing.
class Handshake {
 public:
  // Of the dialler.
  Handshake(Fd socket, const Key&, const Hello& mine);
  // Of the listener, which answers any hello with its own generation and session.
  Handshake(Fd socket, const Key&, std::uint64_t generation, std::uint64_t session, int self);

  // Reads and writes what it can.  An error: no link can come of this connection.
  Result<Unit> progress();

  bool proved() const { return proof_.done(); }
  const std::optional<Hello>& theirs() const { return theirs_; }
  bool done() const { return theirs_ && outgoing_.empty(); }

  Interest interest() const { return {socket_.get(), !theirs_, !outgoing_.empty()}; }
  Fd take_socket() { return std::move(socket_); }

 private:
  Result<bool> read();
  Result<Unit> write();
  Result<Unit> feed(ByteView);

  Fd socket_;
  bool dials_;
  Proof proof_;
  Hello mine_;
  Bytes outgoing_;
  Bytes hello_;  // theirs, as far as it has come
  std::optional<Hello> theirs_;
};

}  // namespace corro::runtime
