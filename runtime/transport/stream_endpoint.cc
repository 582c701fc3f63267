#include "runtime/transport/stream_endpoint.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"

namespace corro::runtime {

StreamEndpoint::StreamEndpoint(Peer self, Peer peer, std::unique_ptr<Stream> stream)
    : self_(std::move(self)),
      peer_(std::move(peer)),
      stream_(std::move(stream)),
      ahead_(kReadAhead) {}

void StreamEndpoint::expect(const Expected& expected) {
  CORRO_ASSERT(received());
  expected_ = expected;
  if (arrived_ && arrived_->kind == Header::Kind::data && text_complete()) match();
}

std::optional<Endpoint::Early> StreamEndpoint::early() const {
  const bool waits =
      arrived_ && arrived_->kind == Header::Kind::data && text_complete() && !expected_;
  if (!waits || failure_) return std::nullopt;
  return Early{*arrived_, text_of(text_)};
}

Outcome<bool> StreamEndpoint::progress() {
  if (failure_) return *failure_;
  const bool heard = listen();
  const bool spoke = push();
  if (const auto why = trouble()) return *why;
  return heard || spoke;
}

Outcome<std::size_t> StreamEndpoint::take(MutByteView into) {
  const std::size_t n = read(into.first(std::min(left_, into.size())));
  left_ -= n;
  if (n > 0 && left_ == 0) finish_receiving();
  if (const auto why = trouble()) return *why;
  return n;
}

void StreamEndpoint::abort(const Failure& why) {
  expected_.reset();
  if (failure_ || ended_)
    outbox_.clear();
  else
    outbox_.put_abort(why);
}

std::optional<Failure> StreamEndpoint::last_words() {
  while (!failure_ && !(ended_ && used_ == filled_)) {
    const bool body = arrived_ && arrived_->kind == Header::Kind::data && text_complete();
    if (!(body ? discard() : listen())) break;
  }
  return failure_ && failure_->code != Errc::closed ? failure_ : std::nullopt;
}

// Reads some of a body that will not be used.  Whether anything moved.
bool StreamEndpoint::discard() {
  if (!expected_) {
    expected_ = Expected{*arrived_, {}};
    left_ = arrived_->bytes;
  }
  std::array<std::uint8_t, 4096> nowhere;
  const std::size_t n = read(MutByteView(nowhere).first(std::min(left_, nowhere.size())));
  left_ -= n;
  if (left_ > 0) return n > 0;
  finish_receiving();
  return true;
}

// A body that the owner does not take yet is not waited for: it would be ready for ever.
Interest StreamEndpoint::interest() const {
  const bool waiting_for_owner =
      arrived_ && arrived_->kind == Header::Kind::data && text_complete() && !(expected_ && left_);
  const bool read = !ended_ && !failure_ && !waiting_for_owner;
  const bool write = !ended_ && !failure_ && !sent();
  return {read || write ? stream_->fd() : -1, read, write};
}

bool StreamEndpoint::listen() {
  if (arrived_ && arrived_->kind == Header::Kind::data && text_complete()) return false;
  auto& size = arrived_ ? text_size_ : raw_size_;
  const MutByteView whole = arrived_ ? MutByteView(text_) : MutByteView(raw_);
  const std::size_t n = read(whole.subspan(size));
  size += n;
  if (n > 0 && size == whole.size()) arrived_ ? on_text() : on_header();
  return n > 0;
}

bool StreamEndpoint::push() {
  if (failure_ || ended_) return false;
  const auto moved = outbox_.push(*stream_);
  if (moved) return *moved;
  // The peer may have said why before its connection ended, and that is still to be read.
  while (!failure_ && listen()) continue;
  end(&moved.error());
  return false;
}

// Short reads come out of the read-ahead buffer; long ones bypass it once it is empty.
std::size_t StreamEndpoint::read(MutByteView into) {
  if (failure_ || into.empty()) return 0;
  if (used_ == filled_ && into.size() >= kReadAhead) return read_stream(into);
  if (used_ == filled_) {
    used_ = 0;
    filled_ = read_stream(ahead_);
  }
  const std::size_t n = std::min(into.size(), filled_ - used_);
  std::memcpy(into.data(), ahead_.data() + used_, n);
  used_ += n;
  return n;
}

std::size_t StreamEndpoint::read_stream(MutByteView into) {
  if (ended_) return 0;
  const auto moved = stream_->read(into);
  if (!moved)
    end(&moved.error());
  else if (moved->bytes == 0 && !moved->again)
    end(nullptr);
  return moved ? moved->bytes : 0;
}

void StreamEndpoint::on_header() {
  raw_size_ = 0;
  const auto header = decode<Header>(raw_);
  const bool abort = header && header->kind == Header::Kind::abort;
  if (!header || header->description_bytes > kDescriptionLimit ||
      (abort && (header->bytes > kAbortLimit || header->bytes == 0))) {
    failure_ = Failure(Errc::malformed, peer_.rank, peer_.text() + " sent what is not a message");
    return;
  }
  arrived_ = *header;
  text_.resize(abort ? header->bytes : header->description_bytes);
  text_size_ = 0;
  if (text_.empty() && expected_) match();
}

void StreamEndpoint::on_text() {
  if (arrived_->kind == Header::Kind::data) {
    if (expected_) match();
    return;
  }
  const auto told = decode<Failure>(text_);
  failure_ =
      told ? *told : Failure(Errc::malformed, peer_.rank, peer_.text() + " sent a malformed abort");
}

void StreamEndpoint::match() {
  if (auto wrong = mismatch(self_, *expected_, peer_, *arrived_, text_of(text_))) {
    failure_ = std::move(*wrong);
    return;
  }
  left_ = arrived_->bytes;
  if (left_ == 0) finish_receiving();
}

void StreamEndpoint::finish_receiving() {
  arrived_.reset();
  expected_.reset();
}

void StreamEndpoint::end(const Error* why) {
  if (ended_) return;
  ended_ = peer_.text() + " closed its connection" + (why ? " (" + why->text() + ")" : "");
}

// An end of stream matters only while something is still expected from the peer, or not yet sent,
// and after what had arrived before it was used.
std::optional<Failure> StreamEndpoint::trouble() {
  if (!failure_ && ended_ && used_ == filled_ && (expected_ || !sent()))
    failure_ = Failure(Errc::closed, peer_.rank, *ended_);
  return failure_;
}

}  // namespace corro::runtime
