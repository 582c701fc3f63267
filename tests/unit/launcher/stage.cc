#include "stage.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "base/text.h"

namespace corro::launcher {

namespace {

struct InWords {
  std::string operator()(const order::Start& o) const { return fmt::format("start {}", o.rank); }
  std::string operator()(const order::Signal& o) const {
    return fmt::format("{} {}", signal_name(o.signo), o.rank);
  }
  std::string operator()(const order::Announce& o) const {
    return fmt::format("tell: {}", o.departure.text());
  }
  std::string operator()(const order::Examine& o) const { return "examine " + o.host; }
  std::string operator()(const order::Close& o) const { return "close " + o.host; }
  std::string operator()(const order::Terminate& o) const { return "terminate " + o.host; }
  std::string operator()(const order::Finish&) const { return "finish"; }
};

}  // namespace

Stage::Stage(std::string_view hosts, int np, Policy policy)
    : plan_(*make_plan(parse_hosts({"hosts", hosts}, nullptr)->hosts, np, 3)),
      supervisor_(plan_, policy, began_) {
  hear(heard::Arranged{});
}

void Stage::hear(const Event& event) {
  for (const Order& order : supervisor_.on(event, now_)) {
    const auto* examine = std::get_if<order::Examine>(&order);
    if (examine && hosts_see_at_once)
      hear(heard::Examined{examine->host});
    else
      ordered_.push_back(std::visit(InWords{}, order));
  }
}

// A clock that is looked at a little too early now and then, as real ones are.
void Stage::time_passes(Duration d) {
  const TimePoint until = now_ + d;
  while (supervisor_.wake() && *supervisor_.wake() <= until) {
    const TimePoint due = *supervisor_.wake();
    now_ = due - Duration(1);
    const auto before = ordered_.size();
    hear(heard::Tick{});
    CHECK(ordered_.size() == before);
    now_ = due;
    hear(heard::Tick{});
  }
  now_ = until;
}

void Stage::is_held_for(Duration d) {
  now_ += d;
  hear(heard::Held{d});
}

void Stage::rises() {
  for (const std::string& name : plan_.hosts()) host(name).is_ready();
  for (const Slot& slot : plan_.slots) worker(slot.rank).starts();
  REQUIRE(phase() == JobPhase::running);
  ordered_.clear();
}

void Stage::all_hosts_close() {
  for (const std::string& name : plan_.hosts()) host(name).closes();
}

Transcript Stage::told() {
  Transcript out;
  for (const std::string& line : ordered())
    if (line.starts_with("tell: ")) out.push_back(line.substr(6));
  return out;
}

Transcript sent(int signo, const std::vector<int>& ranks) {
  Transcript out;
  for (const int rank : ranks) out.push_back(fmt::format("{} {}", signal_name(signo), rank));
  return out;
}

}  // namespace corro::launcher
