#pragma once

#include "runtime/transport/endpoint.h"
#include "runtime/transport/stream.h"

namespace corro::runtime {

// What a StreamEndpoint has to write: one message, and perhaps an abort after it.  A body is
// written from where it lies; the header's bytes are kept here and their memory used again.
class Outbox {
 public:
  void put(const Header&, std::string_view description, Body);
  void put_abort(const Failure&);
  void clear();
  bool empty() const { return written_ == head_.size() + body_.size() && abort_.empty(); }

  // Writes what goes now.  Whether anything did.
  Result<bool> push(Stream&);

 private:
  Bytes head_;
  Body body_;
  std::size_t written_ = 0;  // of both
  Bytes abort_;
};

}  // namespace corro::runtime
