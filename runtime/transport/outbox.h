#pragma once

#include "base/bytes.h"
#include "runtime/transport/failure.h"
#include "runtime/transport/message.h"
#include "runtime/transport/stream.h"

namespace corro::runtime {

// What a StreamEndpoint has to write: one message, and perhaps last words after it.  A body is
// written from where it lies; the header's bytes are kept here and their memory used again.
class Outbox {
 public:
  void put(const Header&, ByteView body);
  void put_last_words(const Failure&);
  void clear();
  bool empty() const { return written_ == head_.size() + body_.size() && last_words_.empty(); }

  // Writes what goes now.  Whether anything did.
  Result<bool> push(Stream&);

 private:
  Bytes head_;
  ByteView body_;
  std::size_t written_ = 0;  // of both
  Bytes last_words_;
};

}  // namespace corro::runtime
