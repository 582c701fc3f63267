#include "runtime/transport/wiring.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <set>

#include "runtime/transport/introduction.h"
#include "runtime/transport/stream_endpoint.h"

namespace corro::runtime {

using rendezvous::StoreClient;

using namespace std::chrono_literals;

namespace {

// How long a broken connection waits for the launcher's word on the worker at its other end,
// which comes within milliseconds if there is one.
constexpr auto kWordOfDeath = 1s;

// Strangers that have not said who they are.  A neighbour does so in a few round trips; when
// there are more, the one that has been silent for longest goes.
constexpr std::size_t kStrangers = 64;

// What a rank says of itself in the store.
struct Card {
  std::string address, host;
  CORRO_FIELDS(address, host)
};

std::optional<Failure> death(const StoreClient& store) {
  const auto& first = store.culprit();
  if (!first) return std::nullopt;
  return Failure(Errc::peer_lost, first->rank, first->text());
}

// A connection that fails is a symptom; the death behind it, if any, is about to be told.
Failure explained(const Failure& symptom, StoreClient& store) {
  const auto patience = Deadline::in(kWordOfDeath);
  while (!death(store) && wait_for_any({{store.notice_fd(), true, false}}, patience))
    if (!store.read_news()) break;
  return death(store).value_or(symptom);
}

class Wiring {
 public:
  Wiring(const Seat& seat, std::span<const int> neighbours, StoreClient& store, Deadline deadline)
      : seat_(seat),
        missing_(neighbours.begin(), neighbours.end()),
        store_(store),
        deadline_(deadline) {}

  Outcome<Links> run();

 private:
  struct Pending {
    Introduction introduction;
    int dialled;  // the rank, or -1 for one that came to us
  };

  Result<Unit> meet();
  Outcome<Unit> dial(int rank);
  Outcome<Unit> wait();
  Outcome<Unit> accept();
  Outcome<Unit> progress();
  Outcome<bool> settle(Pending&);
  std::optional<std::string> unwanted(const Pending&) const;
  void link(Pending&);
  bool awaits_calls() const { return !missing_.empty() && *missing_.begin() < seat_.self.rank; }
  Failure nobody_came(const Error&) const;

  const Seat& seat_;
  std::set<int> missing_;  // neighbours without a link
  StoreClient& store_;
  Deadline deadline_;
  Fd listener_;
  std::map<int, Card> cards_;  // of the neighbours
  std::list<Pending> pending_;
  std::string last_refusal_;
  Links links_;
};

Outcome<Links> Wiring::run() {
  if (auto met = meet(); !met) return death(store_).value_or(met.error());
  // From here every neighbour is listening.
  for (auto rank = missing_.upper_bound(seat_.self.rank); rank != missing_.end(); ++rank)
    if (auto dialled = dial(*rank); !dialled) return explained(dialled.error(), store_);

  while (!missing_.empty()) {
    if (const auto told = death(store_)) return *told;
    if (auto ready = wait(); !ready) return ready.error();
    if (auto accepted = accept(); !accepted) return accepted.error();
    if (auto moved = progress(); !moved) return explained(moved.error(), store_);
  }
  return std::move(links_);
}

Result<Unit> Wiring::meet() {
  auto listener = listen_on({seat_.ip, 0}, seat_.ports);
  if (!listener) return std::move(listener.error()).during("waiting for neighbours");
  listener_ = std::move(*listener);
  const auto address = local_address(listener_.get());
  if (!address) return address.error();

  auto all = store_.gather(fmt::format("links/{}", seat_.generation), seat_.self.rank, seat_.size,
                           encode(Card{address->text(), seat_.self.host}), deadline_);
  if (!all) return std::move(all.error()).during("meeting the other workers");
  for (const int rank : missing_) {
    auto card = decode<Card>(all->at(static_cast<std::size_t>(rank)));
    if (!card) return std::move(card.error()).during(fmt::format("reading rank {}'s card", rank));
    cards_.emplace(rank, std::move(*card));
  }
  return Unit{};
}

Outcome<Unit> Wiring::dial(int rank) {
  const Card& card = cards_.at(rank);
  const auto blame = [&](const Error& why) {
    return Failure(why.code(), rank, why.text()).during("reaching " + Peer{rank, card.host}.text());
  };
  const auto address = Address::parse(card.address);
  if (!address) return blame(address.error());
  auto socket = connect_to(*address, deadline_);
  if (!socket) return blame(socket.error());
  pending_.push_back({Introduction(std::move(*socket), Proof::Role::client, seat_.key,
                                   Hello{seat_.generation, seat_.self.rank}),
                      rank});
  return Unit{};
}

Outcome<Unit> Wiring::wait() {
  std::vector<Interest> interests = {{store_.notice_fd(), true, false}};
  if (awaits_calls()) interests.push_back({listener_.get(), true, false});
  for (const Pending& p : pending_) interests.push_back(p.introduction.interest());
  if (auto ready = wait_for_any(interests, deadline_); !ready) return nobody_came(ready.error());

  // Who has left in good order is the communicator's to judge, so the news stays in the store's
  // client.
  const auto news = store_.read_news();
  if (!news) return death(store_).value_or(news.error());
  return Unit{};
}

Outcome<Unit> Wiring::accept() {
  while (awaits_calls()) {
    auto socket = accept_from(listener_.get());
    if (!socket) return Failure(socket.error());
    if (!*socket) break;
    pending_.push_back({Introduction(std::move(*socket), Proof::Role::server, seat_.key,
                                     Hello{seat_.generation, seat_.self.rank}),
                        -1});
    const auto stranger = [](const Pending& p) { return p.dialled < 0; };
    if (std::count_if(pending_.begin(), pending_.end(), stranger) > std::ptrdiff_t{kStrangers})
      pending_.erase(std::find_if(pending_.begin(), pending_.end(), stranger));
  }
  return Unit{};
}

Outcome<Unit> Wiring::progress() {
  for (auto p = pending_.begin(); p != pending_.end();) {
    const auto settled = settle(*p);
    if (!settled) return settled.error();
    p = *settled ? pending_.erase(p) : std::next(p);
  }
  return Unit{};
}

// Whether there is no more to do for this one, linked or turned away.
Outcome<bool> Wiring::settle(Pending& pending) {
  auto moved = pending.introduction.progress();
  std::optional<std::string> refusal;
  if (!moved)
    refusal = moved.error().text();
  else if (pending.introduction.theirs())
    refusal = unwanted(pending);

  if (refusal && pending.dialled >= 0)
    return Failure(Errc::refused, pending.dialled, *refusal)
        .during("reaching " + Peer{pending.dialled, cards_.at(pending.dialled).host}.text());
  if (refusal) last_refusal_ = *refusal;
  if (!refusal && pending.introduction.done()) link(pending);
  return refusal || pending.introduction.done();
}

std::optional<std::string> Wiring::unwanted(const Pending& pending) const {
  const Hello& hello = *pending.introduction.theirs();
  if (hello.generation != seat_.generation)
    return fmt::format("rank {} is in generation {} of the job, this one in generation {}",
                       hello.rank, hello.generation, seat_.generation);
  const bool expected = pending.dialled >= 0
                            ? hello.rank == pending.dialled
                            : hello.rank < seat_.self.rank && missing_.contains(hello.rank);
  if (!expected) return fmt::format("rank {} answered who was not expected", hello.rank);
  return std::nullopt;
}

void Wiring::link(Pending& pending) {
  const int rank = pending.introduction.theirs()->rank;
  links_[rank] = std::make_unique<StreamEndpoint>(
      seat_.self, Peer{rank, cards_.at(rank).host},
      std::make_unique<SocketStream>(pending.introduction.take_socket()));
  missing_.erase(rank);
}

Failure Wiring::nobody_came(const Error& why) const {
  const int rank = *missing_.begin();
  std::string text = fmt::format("waiting for {} to connect: {}",
                                 Peer{rank, cards_.at(rank).host}.text(), why.text());
  if (!last_refusal_.empty()) text += "; another connection was refused: " + last_refusal_;
  return Failure(why.code(), rank, text);
}

}  // namespace

Outcome<Links> wire(const Seat& seat, std::span<const int> neighbours, StoreClient& store,
                    Deadline deadline) {
  return Wiring(seat, neighbours, store, deadline).run();
}

}  // namespace corro::runtime
