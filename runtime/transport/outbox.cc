#include "runtime/transport/outbox.h"

#include <algorithm>
#include <array>

#include "base/assert.h"

namespace corro::runtime {

namespace {

// Code, rank and the length of the text take less; a text that is longer is cut.
constexpr std::size_t kAbortTextLimit = kAbortLimit - 64;

}  // namespace

void Outbox::put(const Header& header, std::string_view description, Body body) {
  CORRO_ASSERT(empty() && header.bytes == body.size() &&
               header.description_bytes == description.size());
  head_.clear();
  header.fields(codec::Writer(head_));
  append(head_, view_of(description));
  body_ = body;
  written_ = 0;
}

void Outbox::put_abort(const Failure& why) {
  const Failure words(why.code, why.rank, why.text.substr(0, kAbortTextLimit));
  const Bytes body = encode(words);
  Header header;
  header.kind = Header::Kind::abort;
  header.bytes = body.size();
  abort_ = encode(header);
  append(abort_, body);
}

void Outbox::clear() {
  head_.clear();
  body_ = {};
  written_ = 0;
  abort_.clear();
}

Result<bool> Outbox::push(Stream& stream) {
  if (empty()) return false;
  if (written_ == head_.size() + body_.size()) {
    head_ = std::exchange(abort_, {});
    body_ = {};
    written_ = 0;
  }
  std::array<ByteView, kPiecesPerWrite> pieces;
  std::size_t n = 0;
  const std::size_t of_head = std::min(written_, head_.size());
  if (of_head < head_.size()) pieces[n++] = ByteView(head_).subspan(of_head);
  for (std::size_t next = body_.bytes.begin + (written_ - of_head);
       next < body_.bytes.end && n < pieces.size(); next += pieces[n++].size())
    pieces[n] = body_.pieces->at(next, body_.bytes.end - next);
  const auto moved = stream.write(std::span(pieces).first(n));
  if (!moved) return moved.error();
  written_ += moved->bytes;
  return moved->bytes > 0;
}

}  // namespace corro::runtime
