#include "runtime/transport/outbox.h"

#include <algorithm>

#include "base/assert.h"

namespace corro::runtime {

namespace {

// Code, rank and the length of the text take less; a cause that is longer is cut.
constexpr std::size_t kWordsLimit = kAbortLimit - 64;

}  // namespace

void Outbox::put(const Header& header, ByteView body) {
  CORRO_ASSERT(empty() && header.bytes == body.size());
  head_.clear();
  header.fields(codec::Writer(head_));
  body_ = body;
  written_ = 0;
}

void Outbox::put_last_words(const Failure& why) {
  const Failure words(why.code, why.rank, why.text.substr(0, kWordsLimit));
  const Bytes body = encode(words);
  Header header;
  header.kind = Header::Kind::abort;
  header.bytes = body.size();
  last_words_ = encode(header);
  append(last_words_, body);
}

void Outbox::clear() {
  head_.clear();
  body_ = {};
  written_ = 0;
  last_words_.clear();
}

Result<bool> Outbox::push(Stream& stream) {
  if (empty()) return false;
  if (written_ == head_.size() + body_.size()) {
    head_ = std::exchange(last_words_, {});
    body_ = {};
    written_ = 0;
  }
  const std::size_t of_head = std::min(written_, head_.size());
  const auto moved =
      stream.write(ByteView(head_).subspan(of_head), body_.subspan(written_ - of_head));
  if (!moved) return moved.error();
  written_ += moved->bytes;
  return moved->bytes > 0;
}

}  // namespace corro::runtime
