#include "launcher/supervise/life.h"

#include <catch2/catch.hpp>
#include <set>
#include <vector>

#include "launcher/fleet/host_life.h"

namespace corro::launcher {

namespace {

template <class Phase>
using Row = std::vector<std::optional<Phase>>;  // by event

// All phases that can be reached from one.
template <class Phase, class Table>
std::set<Phase> reached_from(Phase first, const Table& table) {
  std::set<Phase> seen = {first};
  for (std::size_t before = 0; before != seen.size();) {
    before = seen.size();
    for (const auto& edge : table)
      if (seen.contains(edge.from)) seen.insert(edge.to);
  }
  return seen;
}

template <class Table>
bool has_one_edge_for_each(const Table& table) {
  for (const auto& a : table)
    for (const auto& b : table)
      if (&a != &b && a.from == b.from && a.on == b.on) return false;
  return true;
}

constexpr auto none = std::nullopt;

}  // namespace

TEST_CASE("the life of a worker has these edges and no other") {
  using P = WorkerPhase;
  using E = WorkerEvent;
  const std::vector<E> events = {E::start,  E::started,     E::failed,
                                 E::exited, E::host_ending, E::host_lost};
  const std::vector<std::pair<P, Row<P>>> life = {
      // clang-format off
      //            start        started     failed     exited     host_ending host_lost
      {P::planned,  {P::starting, none,       none,      none,      P::lost,    P::lost}},
      {P::starting, {none,        P::running, P::exited, none,      P::ending,  P::lost}},
      {P::running,  {none,        none,       none,      P::exited, P::ending,  P::lost}},
      {P::exited,   {none,        none,       none,      none,      none,       none}},
      {P::ending,   {none,        none,       none,      none,      none,       P::lost}},
      {P::lost,     {none,        none,       none,      none,      none,       none}},
      // clang-format on
  };
  for (const auto& [phase, row] : life)
    for (std::size_t i = 0; i < events.size(); ++i) {
      CAPTURE(static_cast<int>(phase), static_cast<int>(events[i]));
      CHECK(next(kWorkerLife, phase, events[i]) == row[i]);
    }
  CHECK(reached_from(P::planned, kWorkerLife).size() == life.size());
  CHECK(has_one_edge_for_each(kWorkerLife));
}

TEST_CASE("the life of a job has these edges and no other") {
  using P = JobPhase;
  using E = JobEvent;
  const std::vector<E> events = {E::all_ready, E::failure,     E::interrupt,
                                 E::time_up,   E::all_settled, E::all_closed};
  const std::vector<std::pair<P, Row<P>>> life = {
      // clang-format off
      //               all_ready   failure        interrupt       time_up         all_settled all_closed
      {P::gathering,   {P::running, P::closing,    P::closing,     none,           none,       none}},
      {P::running,     {none,       P::last_words, P::terminating, none,           P::closing, none}},
      {P::last_words,  {none,       none,          P::terminating, P::terminating, P::closing, none}},
      {P::terminating, {none,       none,          P::killing,     P::killing,     P::closing, none}},
      {P::killing,     {none,       none,          none,           P::closing,     P::closing, none}},
      {P::closing,     {none,       none,          none,           none,           none,       P::finished}},
      {P::finished,    {none,       none,          none,           none,           none,       none}},
      // clang-format on
  };
  for (const auto& [phase, row] : life)
    for (std::size_t i = 0; i < events.size(); ++i) {
      CAPTURE(static_cast<int>(phase), static_cast<int>(events[i]));
      CHECK(next(kJobLife, phase, events[i]) == row[i]);
    }
  CHECK(reached_from(P::gathering, kJobLife).size() == life.size());
  CHECK(has_one_edge_for_each(kJobLife));
}

TEST_CASE("from every phase of a job there is a way to its end") {
  for (const auto& edge : kJobLife)
    CHECK(reached_from(edge.from, kJobLife).contains(JobPhase::finished));
}

TEST_CASE("the life of a host has these edges and no other") {
  using P = HostPhase;
  using E = HostEvent;
  const std::vector<E> events = {E::open, E::ready,   E::surveyed, E::probed,
                                 E::fail, E::give_up, E::close,    E::end};
  const std::vector<std::pair<P, Row<P>>> life = {
      // clang-format off
      //               open           ready     surveyed     probed     fail            give_up       close       end
      {P::waiting,     {P::connecting, none,     none,        none,      P::unreachable, none,         none,       P::gone}},
      {P::connecting,  {none,          P::ready, none,        none,      P::unreachable, P::abandoned, P::closing, P::gone}},
      {P::ready,       {none,          none,     P::surveyed, none,      P::abandoned,   P::abandoned, P::closing, P::gone}},
      {P::surveyed,    {none,          none,     none,        P::probed, P::abandoned,   P::abandoned, P::closing, P::gone}},
      {P::probed,      {none,          none,     none,        P::probed, P::abandoned,   P::abandoned, P::closing, P::gone}},
      {P::unreachable, {none,          none,     none,        none,      none,           none,         P::closing, P::gone}},
      {P::abandoned,   {none,          none,     none,        none,      none,           none,         P::closing, P::gone}},
      {P::closing,     {none,          none,     none,        none,      none,           none,         none,       P::gone}},
      {P::gone,        {none,          none,     none,        none,      none,           none,         none,       none}},
      // clang-format on
  };
  for (const auto& [phase, row] : life)
    for (std::size_t i = 0; i < events.size(); ++i) {
      CAPTURE(name_of(phase), name_of(events[i]));
      CHECK(next(kHostLife, phase, events[i]) == row[i]);
    }
  CHECK(reached_from(P::waiting, kHostLife).size() == life.size());
  CHECK(has_one_edge_for_each(kHostLife));
}

}  // namespace corro::launcher
