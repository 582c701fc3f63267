#include "base/loop.h"

#include <fcntl.h>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <unordered_map>

#include "base/assert.h"

namespace corro {

using Descriptor = asio::posix::stream_descriptor;

struct Loop::Impl {
  // A descriptor may be in epoll once only, so two watches of one descriptor share it.  Outlives
  // the context, whose end may destroy functions that own watches.
  std::unordered_map<int, std::weak_ptr<Descriptor>> descriptors;
  asio::io_context context{1};

  std::shared_ptr<Descriptor> descriptor(int fd) {
    const auto known = descriptors.find(fd);
    if (known != descriptors.end()) return known->second.lock();

    // The caller owns the descriptor, so it is released and not closed, and it is forgotten at
    // once: the next one to be opened may have the same number.
    std::shared_ptr<Descriptor> fresh(new Descriptor(context), [this, fd](Descriptor* d) {
      d->release();
      delete d;
      descriptors.erase(fd);
    });
    assign(*fresh, fd);
    descriptors[fd] = fresh;
    return fresh;
  }

  // Asio makes what it waits for non-blocking, for everyone who has it open: that might be the
  // user's terminal.  Here it is only asked when something is ready, so the old mode is put back.
  static void assign(Descriptor& descriptor, int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    asio::error_code error;
    descriptor.assign(fd, error);
    if (!error) descriptor.non_blocking(true, error);
    CORRO_ASSERT(!error && ::fcntl(fd, F_SETFL, flags) == 0);
  }
};

struct Loop::Watch::State : std::enable_shared_from_this<State> {
  std::shared_ptr<Descriptor> descriptor;
  Descriptor::wait_type type;
  Fn fn;
  bool alive = true;

  void arm() {
    descriptor->async_wait(type, [self = shared_from_this()](const asio::error_code& error) {
      // What epoll does not take is always ready.
      if (!self->alive || (error && error != asio::error::operation_not_supported)) return;
      self->fn();
      if (self->alive) self->arm();
    });
  }
};

Loop::Watch::Watch(std::shared_ptr<State> state) : state_(std::move(state)) {}
Loop::Watch::Watch(Watch&&) noexcept = default;

Loop::Watch& Loop::Watch::operator=(Watch&& other) noexcept {
  Watch old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

// The callback keeps its state alive while it runs, but lets go of the descriptor here: the
// caller may close it right after.
Loop::Watch::~Watch() {
  if (!state_) return;
  state_->alive = false;
  state_->descriptor.reset();
}

struct Loop::Timer::State {
  asio::steady_timer timer;
  Fn fn;
  bool alive = true;
};

Loop::Timer::Timer(std::shared_ptr<State> state) : state_(std::move(state)) {}
Loop::Timer::Timer(Timer&&) noexcept = default;

Loop::Timer& Loop::Timer::operator=(Timer&& other) noexcept {
  Timer old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

Loop::Timer::~Timer() {
  if (!state_) return;
  state_->alive = false;
  state_->timer.cancel();
}

Loop::Loop() : impl_(std::make_unique<Impl>()) {}
Loop::~Loop() = default;

Loop::Watch Loop::watch(int fd, Ready ready, Fn fn) {
  auto state = std::make_shared<Watch::State>();
  state->descriptor = impl_->descriptor(fd);
  state->type = ready == Ready::read ? Descriptor::wait_read : Descriptor::wait_write;
  state->fn = std::move(fn);
  state->arm();
  return Watch(std::move(state));
}

Loop::Timer Loop::at(TimePoint when, Fn fn) {
  auto state = std::make_shared<Timer::State>(
      Timer::State{asio::steady_timer(impl_->context, when), std::move(fn)});
  state->timer.async_wait([state](const asio::error_code& error) {
    if (state->alive && !error) state->fn();
  });
  return Timer(std::move(state));
}

void Loop::post(Fn fn) {
  asio::post(impl_->context, std::move(fn));
}

void Loop::run() {
  const auto keep = asio::make_work_guard(impl_->context);
  impl_->context.run();
  impl_->context.restart();
}

void Loop::stop() {
  impl_->context.stop();
}

}  // namespace corro
