#include "launcher/agent/inspecting.h"

#include <fmt/format.h>

#include <chrono>

namespace corro::launcher::agent {

namespace {

using namespace std::chrono_literals;

constexpr auto kToTell = 300ms;  // more than the looks have: to say which of them did not end

std::int64_t wall_clock_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

Inspection nothing_but(std::string trouble) {
  Inspection out;
  out.troubles = {{Trouble::About::all, std::move(trouble)}};
  return out;
}

}  // namespace

Inspecting::Inspecting(Loop& loop, const Inspect& inspect,
                       std::function<void(const Inspected&)> answer)
    : answer_(std::move(answer)), asked_us_(wall_clock_us()) {
  const auto patience = std::chrono::milliseconds(inspect.patience_ms);
  auto errand = Errand::send([&] {
    return encode(
        launcher::inspect({inspect.cwd, inspect.argv, inspect.env, {}}, Deadline::in(patience)));
  });
  if (!errand) {
    end_ = loop.at(loop.now(),
                   [this, why = errand.error().text()] { this->answer(nothing_but(why)); });
    return;
  }
  errand_.emplace(std::move(*errand));
  watch_ = loop.watch(errand_->fd(), corro::Ready::read, [this] { look(); });
  end_ = loop.at(loop.now() + patience + kToTell, [this, patience] {
    this->answer(nothing_but(
        fmt::format("the inspection did not end within {} s", patience.count() / 1000.0)));
  });
}

void Inspecting::look() {
  if (!errand_->advance()) return;
  const auto seen = decode<Inspection>(errand_->take());
  answer(seen ? *seen : nothing_but("the process that inspected the host ended early"));
}

void Inspecting::answer(Inspection seen) {
  watch_ = {};
  end_ = {};
  errand_.reset();
  answer_({std::move(seen), asked_us_, wall_clock_us()});
}

}  // namespace corro::launcher::agent
