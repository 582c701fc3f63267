#pragma once

#include <array>
#include <string_view>

namespace corro::launcher {

// The start of a job.  Driver::kStart has the step that each edge runs.
//
//   planned ─open→ surveying ─all_surveyed→ probing ─routes_known→ arranging ─arranged→ running
//                                              ⟲ routes_refuted
//
// `surveying`: sessions are opened, and each host says what it has.  `probing`: the hosts find out
// at which addresses they reach each other; if all are this machine that is known at once.
// `arranging`: the store is opened, and each worker gets its share of its host.  `running`: the
// supervisor has been told that workers can be started.
enum class StartPhase { planned, surveying, probing, arranging, running };
enum class StartEvent { open, all_surveyed, routes_refuted, routes_known, arranged };

constexpr std::string_view name_of(StartPhase phase) {
  return std::to_array<std::string_view>(
      {"planned", "surveying", "probing", "arranging", "running"})[static_cast<std::size_t>(phase)];
}

constexpr std::string_view name_of(StartEvent event) {
  return std::to_array<std::string_view>({"open", "all_surveyed", "routes_refuted", "routes_known",
                                          "arranged"})[static_cast<std::size_t>(event)];
}

}  // namespace corro::launcher
