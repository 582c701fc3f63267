#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "runtime/domain/arena.h"
#include "runtime/domain/exchange.h"
#include "runtime/domain/segment.h"
#include "runtime/domain/shared_domain.h"
#include "tests/contract/domain_cases.h"

namespace corro::runtime {

// The members of a domain as threads of this process, on one mapping of each segment: this is
// what the thread sanitizer can see.
class ThreadTeam {
 public:
  struct Options {
    std::size_t slot_bytes = 4096, whole_bytes = 1024, direct_bytes = 2048;
    std::size_t arena_bytes = 0;
  };

  ThreadTeam(int ranks, Options options) {
    const Layout layout = layout_for(ranks, options.slot_bytes);
    const Tuning tuning{layout.slot_bytes, options.whole_bytes, options.direct_bytes};
    std::vector<std::shared_ptr<Segment>> segments;
    std::vector<MemberView> views;
    std::vector<MutByteView> arena_views;
    for (int r = 0; r < ranks; ++r) {
      auto segment = Segment::create(layout, own_cpu_claim());
      REQUIRE(segment);
      segments.push_back(std::make_shared<Segment>(std::move(*segment)));
      auto doorbell = make_doorbell();
      REQUIRE(doorbell);
      MemberView view;
      view.peer = {r, "here"};
      view.memory = segments.back()->data();
      view.layout = layout;
      view.cpus = segments.back()->control().header.cpus;
      view.doorbell = doorbell->get();
      view.owner = segments.back();
      views.push_back(view);
      doorbells.push_back(std::move(*doorbell));
      if (options.arena_bytes == 0) continue;
      auto arena = Arena::create(options.arena_bytes);
      REQUIRE(arena);
      arenas.push_back(*arena);
      arena_views.push_back((*arena)->view());
    }
    for (int r = 0; r < ranks; ++r) {
      ArenaViews mine;
      if (!arenas.empty()) mine = {arenas[static_cast<std::size_t>(r)], arena_views, nullptr};
      domains.push_back(std::make_unique<SharedDomain>(r, segments[static_cast<std::size_t>(r)],
                                                       views, mine, tuning));
    }
  }

  // Calls fn(domain, rank) in a thread for each rank.  Catch's checks are for one thread only.
  template <class Fn>
  void run(Fn fn) {
    std::vector<std::thread> threads;
    for (auto& domain : domains)
      threads.emplace_back([&fn, &domain] { fn(*domain, domain->index()); });
    for (auto& thread : threads) thread.join();
  }

  std::vector<Fd> doorbells;
  std::vector<std::shared_ptr<Arena>> arenas;
  std::vector<std::unique_ptr<SharedDomain>> domains;
};

}  // namespace corro::runtime
