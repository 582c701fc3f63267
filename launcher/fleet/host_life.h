#pragma once

#include <array>
#include <string_view>

#include "base/transition.h"

namespace corro::launcher {

// The life of a host, as the launcher knows it.
//
//   waiting ─open→ connecting ─ready→ ready ─surveyed→ surveyed ─probed→ probed ⟲
//      │               │ │              │                 │               │
//      │               │ └─give_up──────┴─give_up, fail───┴───────────────┴─→ abandoned
//      └─fail──────────┴─fail─→ unreachable
//
// From each phase with a session `close` leads to closing, and from every phase `end` to gone.
//
// `waiting`: for its turn to log in.  `connecting`: its session was started, and its agent has not
// answered.  `surveyed`: what it has is known.  `probed`: it has said which hosts it reaches.
// `unreachable`: no agent of it can be had.  `abandoned`: its agent ends by itself what runs there,
// because it said so or because it was silent for too long.  `gone`: no process of ours is left.
enum class HostPhase {
  waiting,
  connecting,
  ready,
  surveyed,
  probed,
  unreachable,
  abandoned,
  closing,
  gone
};
enum class HostEvent { open, ready, surveyed, probed, fail, give_up, close, end };

constexpr std::string_view name_of(HostPhase phase) {
  return std::to_array<std::string_view>({"waiting", "connecting", "ready", "surveyed", "probed",
                                          "unreachable", "abandoned", "closing",
                                          "gone"})[static_cast<std::size_t>(phase)];
}

constexpr std::string_view name_of(HostEvent event) {
  return std::to_array<std::string_view>({"open", "ready", "surveyed", "probed", "fail", "give_up",
                                          "close", "end"})[static_cast<std::size_t>(event)];
}

inline constexpr auto kHostLife = [] {
  using P = HostPhase;
  using E = HostEvent;
  return std::to_array<Edge<P, E>>({
      {P::waiting, E::open, P::connecting},
      {P::waiting, E::fail, P::unreachable},
      {P::waiting, E::end, P::gone},
      {P::connecting, E::ready, P::ready},
      {P::connecting, E::fail, P::unreachable},
      {P::connecting, E::give_up, P::abandoned},
      {P::connecting, E::close, P::closing},
      {P::connecting, E::end, P::gone},
      {P::ready, E::surveyed, P::surveyed},
      {P::ready, E::fail, P::abandoned},
      {P::ready, E::give_up, P::abandoned},
      {P::ready, E::close, P::closing},
      {P::ready, E::end, P::gone},
      {P::surveyed, E::probed, P::probed},
      {P::surveyed, E::fail, P::abandoned},
      {P::surveyed, E::give_up, P::abandoned},
      {P::surveyed, E::close, P::closing},
      {P::surveyed, E::end, P::gone},
      {P::probed, E::probed, P::probed},
      {P::probed, E::fail, P::abandoned},
      {P::probed, E::give_up, P::abandoned},
      {P::probed, E::close, P::closing},
      {P::probed, E::end, P::gone},
      {P::unreachable, E::close, P::closing},
      {P::unreachable, E::end, P::gone},
      {P::abandoned, E::close, P::closing},
      {P::abandoned, E::end, P::gone},
      {P::closing, E::end, P::gone},
  });
}();

static_assert(next(kHostLife, HostPhase::probed, HostEvent::probed) == HostPhase::probed);
static_assert(!next(kHostLife, HostPhase::closing, HostEvent::ready));  // too late
static_assert(!next(kHostLife, HostPhase::gone, HostEvent::end));       // a host ends once

}  // namespace corro::launcher
