#pragma once

#include <optional>

namespace corro {

// A life as a table: from this phase, on this event, to that phase.
template <class Phase, class Event>
struct Edge {
  Phase from;
  Event on;
  Phase to;
};

// None: the table has no edge for the event in this phase.
template <class Table, class Phase, class Event>
constexpr std::optional<Phase> next(const Table& table, Phase from, Event on) {
  for (const auto& edge : table)
    if (edge.from == from && edge.on == on) return edge.to;
  return std::nullopt;
}

}  // namespace corro
