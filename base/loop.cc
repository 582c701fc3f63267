#include "base/loop.h"

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <unordered_map>

#include "base/assert.h"

namespace kolo {

using Descriptor = asio::posix::stream_descriptor;

struct Loop::Impl {
  asio::io_context context{1};

  // A descriptor may be in epoll once only, so two watches of one descriptor share it.
  std::unordered_map<int, std::weak_ptr<Descriptor>> descriptors;

  std::shared_ptr<Descriptor> descriptor(int fd) {
    auto& known = descriptors[fd];
    if (auto alive = known.lock()) return alive;
    // The caller owns the descriptor, so it is released and not closed.
    std::shared_ptr<Descriptor> fresh(new Descriptor(context, fd), [this, fd](Descriptor* d) {
      d->release();
      delete d;
      descriptors.erase(fd);
    });
    known = fresh;
    return fresh;
  }
};

struct Loop::Watch::State : std::enable_shared_from_this<State> {
  std::shared_ptr<Descriptor> descriptor;
  Descriptor::wait_type type;
  Fn fn;
  bool alive = true;

  void arm() {
    descriptor->async_wait(type, [self = shared_from_this()](const asio::error_code& error) {
      if (!self->alive || error) return;
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
}

void Loop::stop() {
  impl_->context.stop();
}

}  // namespace kolo
