#include "runtime/transport/stream_endpoint.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace corro::runtime {

StreamEndpoint::StreamEndpoint(Peer self, Peer peer, std::unique_ptr<Stream> stream)
    : self_(std::move(self)), peer_(std::move(peer)), stream_(std::move(stream)) {}

void StreamEndpoint::expect(const Header& header) {
  CORRO_ASSERT(received());
  expected_ = header;
  if (arrived_ && arrived_->kind == Header::Kind::data) match();
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
    outbox_.put_last_words(why);
}

std::optional<Failure> StreamEndpoint::last_words() {
  while (!failure_ && !ended_)
    if (!(arrived_ && arrived_->kind == Header::Kind::data ? pass_over() : listen())) break;
  return failure_ && failure_->code != Errc::closed ? failure_ : std::nullopt;
}

// Some of a body that nobody will take.  Whether anything moved.
bool StreamEndpoint::pass_over() {
  if (!expected_) {
    expected_ = arrived_;
    left_ = arrived_->bytes;
  }
  std::array<std::uint8_t, 4096> nowhere;
  const std::size_t n = read(MutByteView(nowhere).first(std::min(left_, nowhere.size())));
  left_ -= n;
  if (left_ > 0) return n > 0;
  finish_receiving();
  return true;
}

// A body that nobody takes is not waited for: it would be ready for ever.
Interest StreamEndpoint::interest() const {
  const bool read = !ended_ && !failure_ && (!arrived_ || (expected_ && left_ > 0));
  const bool write = !ended_ && !failure_ && !sent();
  return {read || write ? stream_->fd() : -1, read, write};
}

bool StreamEndpoint::listen() {
  if (arrived_ && arrived_->kind == Header::Kind::data) return false;
  auto& size = arrived_ ? words_size_ : raw_size_;
  const MutByteView whole = arrived_ ? MutByteView(words_) : MutByteView(raw_);
  const std::size_t n = read(whole.subspan(size));
  size += n;
  if (n > 0 && size == whole.size()) arrived_ ? on_words() : on_header();
  return n > 0;
}

bool StreamEndpoint::push() {
  if (failure_ || ended_) return false;
  const auto moved = outbox_.push(*stream_);
  if (moved) return *moved;
  // The peer may have said why before it went, and that is still to be read.
  while (!failure_ && listen()) continue;
  end(&moved.error());
  return false;
}

std::size_t StreamEndpoint::read(MutByteView into) {
  if (failure_ || ended_ || into.empty()) return 0;
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
  if (!header || (header->kind == Header::Kind::abort && header->bytes > kAbortLimit)) {
    failure_ = Failure(Errc::malformed, peer_.rank, peer_.text() + " sent what is not a message");
    return;
  }
  arrived_ = *header;
  if (arrived_->kind == Header::Kind::abort)
    words_.resize(arrived_->bytes);
  else if (expected_)
    match();
}

void StreamEndpoint::on_words() {
  const auto told = decode<Failure>(words_);
  failure_ =
      told ? *told : Failure(Errc::malformed, peer_.rank, peer_.text() + " sent a malformed abort");
}

void StreamEndpoint::match() {
  if (const auto wrong = mismatch(*expected_, self_, *arrived_, peer_)) {
    failure_ = Failure(Errc::invalid_input, -1, *wrong);
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

// An end of stream matters only to who still wants something of the peer.
std::optional<Failure> StreamEndpoint::trouble() {
  if (!failure_ && ended_ && (expected_ || !sent()))
    failure_ = Failure(Errc::closed, peer_.rank, *ended_);
  return failure_;
}

}  // namespace corro::runtime
