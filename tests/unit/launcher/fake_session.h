#pragma once

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/assert.h"
#include "launcher/fleet/fleet.h"
#include "launcher/session/session.h"

namespace corro::launcher {

// The name of a message to an agent: "hello", "survey", …
inline std::string name_of(const agent::Down& message) {
  static constexpr const char* kNames[] = {"hello",   "start",   "signal", "lease",  "ack",
                                           "close",   "input",   "hold",   "resume", "survey",
                                           "examine", "inspect", "probe"};
  static_assert(std::size(kNames) == std::variant_size_v<agent::Down>);
  return kNames[message.index()];
}

// Sessions without processes, and time that passes by hand.  A test makes a host's agent say
// things, and reads what was sent to it.
class FakeHosts {
 public:
  struct Line {
    Session::Events events;
    std::vector<agent::Down> sent;
    bool terminated = false, flushed = false, ended = false;
  };

  Fleet::Now now() {
    return [this] { return now_; };
  }
  Fleet::Open open() {
    return [this](const std::string& host,
                  Session::Events events) -> Result<std::unique_ptr<Session>> {
      opened.push_back(host);
      if (cannot_start.contains(host)) return Error(Errc::io, cannot_start.at(host));
      lines_[host] = {std::move(events)};
      return std::unique_ptr<Session>(new Fake(lines_[host]));
    };
  }

  // Calls owner.tick() whenever it wants to be woken, until the time is over.
  template <class Owner>
  void pass(Duration d, Owner& owner) {
    const TimePoint end = now_ + d;
    while (owner.wake() <= end) {
      now_ = std::max(now_, owner.wake());
      owner.tick();
    }
    now_ = end;
  }

  bool has(const std::string& host) const { return lines_.contains(host); }
  Line& line(const std::string& host) { return lines_.at(host); }
  void say(const std::string& host, const agent::Up& up) {
    CORRO_ASSERT(!line(host).ended);
    line(host).events.on_message(up, 1);
  }
  void end(const std::string& host, const std::string& why = "it closed the connection") {
    if (std::exchange(line(host).ended, true)) return;
    line(host).events.on_end(why);
  }

  // The names of all messages to a host since this was last asked, leases left out.
  std::vector<std::string> sent(const std::string& host) {
    std::vector<std::string> out;
    for (const agent::Down& message : std::exchange(line(host).sent, {}))
      if (!std::holds_alternative<agent::Lease>(message)) out.push_back(name_of(message));
    return out;
  }
  int leases(const std::string& host) {
    int n = 0;
    for (const agent::Down& message : line(host).sent)
      n += std::holds_alternative<agent::Lease>(message);
    return n;
  }

  std::vector<std::string> opened;                  // in this order
  std::map<std::string, std::string> cannot_start;  // host and why

 private:
  class Fake : public Session {
   public:
    explicit Fake(Line& line) : line_(line) {}
    void send(const agent::Down& message) override {
      if (!line_.ended) line_.sent.push_back(message);
    }
    void flush() override { line_.flushed = true; }
    void terminate() override { line_.terminated = true; }

   private:
    Line& line_;
  };

  TimePoint now_ = TimePoint(std::chrono::hours(1));
  std::map<std::string, Line> lines_;
};

}  // namespace corro::launcher
