#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

// The hand-over of layout.h as a model that is searched through: a member that posts, and one that
// waits for the post and may go to sleep.  Each has a store buffer; stores leave it one by one at
// any later moment, and loads see the own buffer first.  Where stores need not keep their order
// (ARM64, and non-temporal stores on x86), any of them may leave first, unless a release store
// says otherwise.  Neither x86, on which the tests run, nor the thread sanitizer shows these.
namespace {

enum Place : std::uint8_t { data, sequence, bell, kPlaces };

struct Protocol {
  bool poster_fence = true, sleeper_fence = true;  // the full fences on both sides
  bool release = true;                             // the post's store comes after the data's
  bool stores_keep_order = false;
  bool looks_again = true;  // the sleeper, after it has announced itself
};

struct Store {
  Place place;
  std::uint8_t value;
  bool release;
  auto operator<=>(const Store&) const = default;
};

struct Core {
  int next = 0;  // the step that it does next
  std::vector<Store> buffer;
  auto operator<=>(const Core&) const = default;
};

struct State {
  std::array<std::uint8_t, kPlaces> memory{};
  Core poster, waiter;
  std::uint8_t rung = 0;
  auto operator<=>(const State&) const = default;
};

constexpr int kOver = 100, kAsleep = 50;

std::uint8_t load(const State& state, const Core& core, Place place) {
  for (auto it = core.buffer.rbegin(); it != core.buffer.rend(); ++it)
    if (it->place == place) return it->value;
  return state.memory[place];
}

// What went wrong in some order of events; empty: nothing ever does.
class Search {
 public:
  explicit Search(Protocol protocol) : protocol_(protocol) {}

  std::string run() {
    visit(State{});
    return wrong_;
  }
  std::size_t states() const { return seen_.size(); }

 private:
  void visit(const State& state) {
    if (!wrong_.empty() || !seen_.insert(state).second) return;
    bool moved = false;
    for (Core State::*which : {&State::poster, &State::waiter}) {
      drain(state, which, moved);
      step(state, which, moved);
    }
    if (!moved && state.waiter.next != kOver) wrong_ = "the waiter sleeps for ever";
  }

  void drain(const State& state, Core State::*which, bool& moved) {
    const auto& buffer = (state.*which).buffer;
    for (std::size_t i = 0; i < buffer.size(); ++i) {
      // The first always may; a later one only where order does not matter, it is no release, and
      // nothing before it goes to the same place.
      bool may = i == 0 || (!protocol_.stores_keep_order && !buffer[i].release);
      for (std::size_t j = 0; j < i; ++j) may &= buffer[j].place != buffer[i].place;
      if (!may) continue;
      State after = state;
      after.memory[buffer[i].place] = buffer[i].value;
      auto& left = (after.*which).buffer;
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
      moved = true;
      visit(after);
    }
  }

  void step(const State& state, Core State::*which, bool& moved) {
    State after = state;
    const bool went = which == &State::poster ? post(after) : wait(after);
    if (!went) return;
    moved = true;
    visit(after);
  }

  // A full fence is passed when the buffer is empty.
  static bool passes(bool fence, const Core& core) { return !fence || core.buffer.empty(); }

  // begin_round(), publish(), ring()
  bool post(State& state) {
    Core& me = state.poster;
    switch (me.next) {
      case 0:
        me.buffer.push_back({data, 1, false});
        break;
      case 1:
        me.buffer.push_back({sequence, 1, protocol_.release});
        break;
      case 2:
        if (!passes(protocol_.poster_fence, me)) return false;
        break;
      case 3:
        me.next = load(state, me, bell) == 1 ? 4 : kOver;
        return true;
      case 4:
        state.rung = 1;
        me.next = kOver;
        return true;
      default:
        return false;
    }
    ++me.next;
    return true;
  }

  // all_arrived() awake, sleep_begins(), all_arrived() asleep, poll, sleep_ends()
  bool wait(State& state) {
    Core& me = state.waiter;
    switch (me.next) {
      case 0:
        if (load(state, me, sequence) == 1) return arrive(state);
        break;
      case 1:
        me.buffer.push_back({bell, 1, false});
        break;
      case 2:
        if (!passes(protocol_.sleeper_fence, me)) return false;
        if (!protocol_.looks_again) {
          me.next = kAsleep;
          return true;
        }
        break;
      case 3:
        if (load(state, me, sequence) == 1) return arrive(state);
        me.next = kAsleep;
        return true;
      case kAsleep:
        if (state.rung == 0) return false;
        state.rung = 0;
        me.buffer.push_back({bell, 0, false});
        me.next = 4;
        return true;
      case 4:
        // Awake again, as at first, but with the post seen or still on its way.
        if (load(state, me, sequence) == 1) return arrive(state);
        return false;
      default:
        return false;
    }
    ++me.next;
    return true;
  }

  bool arrive(State& state) {
    if (load(state, state.waiter, data) != 1) wrong_ = "the waiter reads old data";
    state.waiter.next = kOver;
    return true;
  }

  Protocol protocol_;
  std::set<State> seen_;
  std::string wrong_;
};

}  // namespace

TEST_CASE("a post is seen with its data, and nobody sleeps through it, in every order of events") {
  for (const bool stores_keep_order : {true, false}) {
    Protocol protocol;
    protocol.stores_keep_order = stores_keep_order;
    Search search(protocol);
    CHECK(search.run() == "");
    CHECK(search.states() > 50);
  }
}

TEST_CASE("each rule of the hand-over is needed") {
  Protocol no_poster_fence, no_sleeper_fence, no_release, no_second_look;
  // The fences are needed even where stores keep their order, as they do on x86.
  no_poster_fence.poster_fence = false;
  no_poster_fence.stores_keep_order = true;
  CHECK(Search(no_poster_fence).run() == "the waiter sleeps for ever");
  no_sleeper_fence.sleeper_fence = false;
  no_sleeper_fence.stores_keep_order = true;
  CHECK(Search(no_sleeper_fence).run() == "the waiter sleeps for ever");
  no_second_look.looks_again = false;
  CHECK(Search(no_second_look).run() == "the waiter sleeps for ever");
  no_release.release = false;
  CHECK(Search(no_release).run() == "the waiter reads old data");
}
