#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "runtime/transport/stream.h"
#include "tests/support/sim_time.h"

namespace corro::runtime {

// How unkind the network is.
struct Weather {
  Duration delay = std::chrono::milliseconds(1);  // of a piece of bytes, at most
  std::size_t piece = 64 * 1024;                  // the most that is read or written at once
  std::size_t window = 256 * 1024;                // bytes that are under way or not yet read
  std::size_t duplicate_one_in = 0;               // pieces that come twice, which TCP rules out
};

// A connection in virtual time.  Bytes come in order, in pieces of any size, after any delay; a
// slow reader stops the writer.  `on_ready` is called for the side that may be able to move.
class SimConnection : public std::enable_shared_from_this<SimConnection> {
 public:
  using OnReady = std::function<void(int side)>;

  SimConnection(test::Timeline& time, test::Chance& chance, Weather weather, OnReady on_ready)
      : time_(time), chance_(chance), weather_(weather), on_ready_(std::move(on_ready)) {}

  Result<Moved> read(int side, MutByteView into) {
    Lane& lane = lanes_[1 - side];
    if (into.empty()) return Moved{};
    if (lane.arrived.empty()) {
      if (lane.reset) return Error(Errc::closed, "reading: Connection reset by peer");
      return lane.ended ? Moved{0, false} : Moved{0, true};
    }
    if (!lane.ended && chance_.one_in(8)) {
      come_a_moment_later(side);
      return Moved{0, true};
    }
    const std::size_t n = some_of(std::min(lane.arrived.size(), into.size()));
    const auto end = lane.arrived.begin() + static_cast<std::ptrdiff_t>(n);
    std::copy(lane.arrived.begin(), end, into.begin());
    lane.arrived.erase(lane.arrived.begin(), end);
    if (std::exchange(lane.writer_waits, false)) wake(1 - side);
    return Moved{n, false};
  }

  Result<Moved> write(int side, std::span<const ByteView> pieces) {
    Lane& lane = lanes_[side];
    if (lanes_[1 - side].ended) return Error(Errc::closed, "writing: Broken pipe");
    const std::size_t used = lane.arrived.size() + lane.under_way;
    const std::size_t room = weather_.window - std::min(weather_.window, used);
    if (room == 0) {
      lane.writer_waits = true;
      return Moved{0, true};
    }
    Bytes all;
    for (const ByteView piece : pieces)
      append(all, piece.first(std::min(piece.size(), room - std::min(room, all.size()))));
    all.resize(some_of(std::min(all.size(), room)));
    const std::size_t n = all.size();
    const bool twice = weather_.duplicate_one_in > 0 && chance_.one_in(weather_.duplicate_one_in);
    if (twice) carry(side, all);
    carry(side, std::move(all));
    return Moved{n, false};
  }

  // In good order: what was written arrives first.
  void close(int side) {
    if (std::exchange(lanes_[side].closed, true)) return;
    deliver(side, [](Lane& lane) { lane.ended = true; });
  }

  // As when a process is killed with bytes unread: some of what it wrote is lost.
  void reset(int side) {
    lanes_[side].closed = true;
    time_.after(chance_.within(weather_.delay), [self = shared_from_this(), side] {
      self->lanes_[side].ended = self->lanes_[side].reset = true;
      self->on_ready_(1 - side);
    });
  }

 private:
  // One direction, named after the side that writes.
  struct Lane {
    std::deque<std::uint8_t> arrived;
    std::size_t under_way = 0;
    TimePoint last;  // when the last piece will arrive
    bool writer_waits = false;
    bool closed = false, ended = false, reset = false;
  };

  // Mostly all there is; the rest of the time the cut may be anywhere.
  std::size_t some_of(std::size_t most) {
    const std::size_t piece = std::min(most, weather_.piece);
    return chance_.one_in(4) ? 1 + chance_.below(piece) : piece;
  }

  void carry(int side, Bytes piece) {
    lanes_[side].under_way += piece.size();
    deliver(side, [piece = std::move(piece)](Lane& lane) {
      lane.under_way -= piece.size();
      if (!lane.reset) lane.arrived.insert(lane.arrived.end(), piece.begin(), piece.end());
    });
  }

  template <class Fn>
  void deliver(int side, Fn fn) {
    Lane& lane = lanes_[side];
    lane.last = std::max(lane.last, time_.now() + chance_.within(weather_.delay));
    time_.at(lane.last, [self = shared_from_this(), side, fn = std::move(fn)] {
      fn(self->lanes_[side]);
      self->time_.note("arrived", self->lanes_[side].arrived.size());
      self->on_ready_(1 - side);
    });
  }

  // As if the bytes had come right after this read: who waits then is woken if they are still
  // unread, as by poll(2), and only then.
  void come_a_moment_later(int reader) {
    time_.after({}, [self = shared_from_this(), reader] {
      if (!self->lanes_[1 - reader].arrived.empty()) self->on_ready_(reader);
    });
  }

  void wake(int side) {
    time_.after({}, [self = shared_from_this(), side] { self->on_ready_(side); });
  }

  test::Timeline& time_;
  test::Chance& chance_;
  Weather weather_;
  OnReady on_ready_;
  std::array<Lane, 2> lanes_;
};

// One end of it.
class SimStream final : public Stream {
 public:
  SimStream(std::shared_ptr<SimConnection> connection, int side)
      : connection_(std::move(connection)), side_(side) {}
  ~SimStream() override { connection_->close(side_); }

  Result<Moved> read(MutByteView into) override { return connection_->read(side_, into); }
  Result<Moved> write(std::span<const ByteView> pieces) override {
    return connection_->write(side_, pieces);
  }
  int fd() const override { return -1; }

 private:
  std::shared_ptr<SimConnection> connection_;
  int side_;
};

}  // namespace corro::runtime
