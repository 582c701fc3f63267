#include "runtime/wiring/wiring.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/assert.h"
#include "runtime/transport/stream_endpoint.h"

namespace corro::runtime {

using namespace std::chrono_literals;
using rendezvous::StoreClient;

namespace {

// How long a broken connection waits for the launcher's word on the worker at its other end,
// which comes within milliseconds if there is one.
constexpr auto kWordOfDeath = 1s;

// Connections that have not proved the key.  When there are more, those that are older than
// kPatience are dropped; while there are none of these, no further connection is accepted: it
// waits in the kernel's queue.  A rank of the job proves itself in a few round trips.
constexpr std::size_t kVisitors = 256;
constexpr auto kPatience = 2s;
constexpr int kAcceptedAtOnce = 32;

constexpr auto kFirstPause = 5ms, kLongestPause = 500ms;
constexpr auto kGiveUpDialling = 30s;

std::uint64_t digest_of(const std::vector<Bytes>& values) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const Bytes& value : values)
    for (const std::uint8_t byte : value) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

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
  if (const auto told = death(store)) return *told;
  return symptom.code == Errc::closed ? Failure(Errc::peer_lost, symptom.rank, symptom.text)
                                      : symptom;
}

}  // namespace

std::string this_machine() {
  std::string boot(64, '\0');
  const Fd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  const auto n = file ? ::read(file.get(), boot.data(), boot.size()) : 0;
  boot.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  struct stat network {};
  (void)::stat("/proc/self/ns/net", &network);
  return fmt::format("{}{}", boot, network.st_ino);
}

Wiring::Wiring(const Seat& seat) : seat_(seat) {}

Outcome<std::unique_ptr<Wiring>> Wiring::meet(const Seat& seat, std::string machine,
                                              StoreClient& store, Deadline deadline) {
  std::unique_ptr<Wiring> wiring(new Wiring(seat));
  auto listener = listen_on({seat.ip, 0}, seat.ports);
  if (!listener) return Failure(listener.error()).during("waiting for other ranks");
  wiring->listener_ = std::move(*listener);
  const auto address = local_address(wiring->listener_.get());
  if (!address) return Failure(address.error());

  const auto nonce = load_little<std::uint64_t>(random_nonce().data());
  const Offer mine{address->text(), seat.self.host, std::move(machine), nonce};
  auto all = store.gather(fmt::format("offers/{}", seat.generation), seat.self.rank, seat.size,
                          encode(mine), deadline);
  if (!all) return death(store).value_or(all.error()).during("meeting the other workers");
  for (const Bytes& value : *all) {
    auto offer = decode<Offer>(value);
    if (!offer) return Failure(offer.error()).during("reading the offers of other ranks");
    wiring->offers_.push_back(std::move(*offer));
  }
  wiring->session_ = digest_of(*all);
  return wiring;
}

Outcome<Fd> Wiring::connection(std::uint64_t group, int rank) {
  const TimePoint now = Clock::now();
  const LinkId key{group, rank};
  if (rank > seat_.self.rank && !arrived_.contains(key) && !dials_.contains(key))
    dials_.emplace(key, Dial{.give_up = now + kGiveUpDialling, .next = now});
  progress(now);
  if (auto found = arrived_.extract(key)) return std::move(found.mapped());
  // A connection that is made and not answered is a rank that has other things to do.
  if (const auto dial = dials_.find(key);
      dial != dials_.end() && now >= dial->second.give_up && !dial->second.handshake) {
    const Failure failure(
        Errc::closed, rank,
        fmt::format("{} cannot be reached: {}", peer(rank).text(), dial->second.trouble));
    dials_.erase(dial);
    return failure;
  }
  return Fd();
}

std::vector<std::pair<int, Fd>> Wiring::arrived(std::uint64_t group) {
  std::vector<std::pair<int, Fd>> all;
  for (auto one = arrived_.begin(); one != arrived_.end();) {
    if (one->first.group == group) all.emplace_back(one->first.rank, std::move(one->second));
    one = one->first.group == group ? arrived_.erase(one) : std::next(one);
  }
  return all;
}

void Wiring::add_interests(std::vector<Interest>& all) const {
  if (visitors_.size() < kVisitors && Clock::now() >= accept_again_)
    all.push_back({listener_.get(), true, false});
  for (const Visitor& visitor : visitors_) all.push_back(visitor.handshake.interest());
  for (const auto& [key, dial] : dials_) {
    if (dial.handshake) all.push_back(dial.handshake->interest());
    if (dial.connecting) all.push_back({dial.connecting.get(), false, true});
  }
}

void Wiring::progress(TimePoint now) {
  accept(now);
  greet_visitors(now);
  for (auto& [key, one] : dials_) dial(key, one, now);
  std::erase_if(dials_, [this](const auto& entry) { return arrived_.contains(entry.first); });
}

void Wiring::accept(TimePoint now) {
  if (now < accept_again_) return;
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    if (visitors_.size() >= kVisitors) {
      const auto old = std::find_if(visitors_.begin(), visitors_.end(), [now](const Visitor& v) {
        return !v.handshake.proved() && now - v.since > kPatience;
      });
      if (old == visitors_.end()) return;
      visitors_.erase(old);
    }
    auto socket = accept_from(listener_.get());
    if (!socket) {
      // Out of descriptors, for instance.  The connection waits in the queue, and the listener is
      // not looked at for a while: it would be ready for ever.
      accept_again_ = now + kLinkLook;
      const auto stranger = std::find_if(visitors_.begin(), visitors_.end(),
                                         [](const Visitor& v) { return !v.handshake.proved(); });
      if (stranger != visitors_.end()) visitors_.erase(stranger);
      return;
    }
    if (!*socket) return;
    visitors_.push_back(
        {Handshake(std::move(*socket), seat_.key, seat_.generation, session_, seat_.self.rank),
         now});
  }
}

void Wiring::greet_visitors(TimePoint now) {
  for (auto v = visitors_.begin(); v != visitors_.end();) {
    const bool late = !v->handshake.proved() && now - v->since > 5 * kPatience;
    v = late || greet(*v) ? visitors_.erase(v) : std::next(v);
  }
}

// Whether there is no more to do for this one, linked or turned away.
bool Wiring::greet(Visitor& visitor) {
  if (!visitor.handshake.progress()) return true;
  const auto& hello = visitor.handshake.theirs();
  if (!hello) return false;
  if (unwanted(*hello, hello->from) || hello->from >= seat_.self.rank) return true;
  if (!visitor.handshake.done()) return false;
  arrived_.insert_or_assign(LinkId{hello->group, hello->from}, visitor.handshake.take_socket());
  return true;
}

std::optional<std::string> Wiring::unwanted(const Hello& hello, int from) const {
  if (hello.generation != seat_.generation)
    return fmt::format("rank {} is in generation {} of the job, this one in generation {}",
                       hello.from, hello.generation, seat_.generation);
  if (hello.session != session_) return fmt::format("rank {} is of another meeting", hello.from);
  if (hello.from != from || hello.to != seat_.self.rank || from < 0 || from >= seat_.size)
    return fmt::format("rank {} answered and was not expected", hello.from);
  return std::nullopt;
}

void Wiring::dial(const LinkId& key, Dial& dial, TimePoint now) {
  if (!dial.handshake && !dial.connecting) {
    if (now < dial.next) return;
    const auto address = Address::parse(offers_[static_cast<std::size_t>(key.rank)].address);
    auto socket = address ? begin_connecting(*address) : Result<Fd>(address.error());
    if (!socket) return dial_again(dial, now, socket.error().text());
    dial.connecting = std::move(*socket);
  }
  if (dial.connecting) {
    const auto error = outcome_of_connecting(dial.connecting.get());
    if (!error) return;
    Fd socket = std::move(dial.connecting);
    if (*error) return dial_again(dial, now, Error::from_errno("connecting", *error).text());
    dial.handshake.emplace(std::move(socket), seat_.key,
                           Hello{seat_.generation, session_, key.group, seat_.self.rank, key.rank});
  }
  if (auto moved = dial.handshake->progress(); !moved)
    return dial_again(dial, now, moved.error().text());
  if (!dial.handshake->done()) return;
  if (const auto why = unwanted(*dial.handshake->theirs(), key.rank))
    return dial_again(dial, now, *why);
  arrived_.insert_or_assign(key, dial.handshake->take_socket());
}

void Wiring::dial_again(Dial& dial, TimePoint now, const std::string& trouble) {
  dial.trouble = trouble;
  dial.handshake.reset();
  dial.connecting.reset();
  dial.pause = std::clamp<Duration>(2 * dial.pause, kFirstPause, kLongestPause);
  dial.next = now + dial.pause;
}

TcpLinks::TcpLinks(Wiring& wiring, std::uint64_t group, std::vector<int> ranks)
    : wiring_(wiring), group_(group), ranks_(std::move(ranks)) {}

Outcome<Endpoint*> TcpLinks::link(int index) {
  if (const auto found = links_.find(index); found != links_.end()) return found->second.get();
  const int rank = ranks_[static_cast<std::size_t>(index)];
  auto socket = wiring_.connection(group_, rank);
  if (!socket) return socket.error();
  making_ = !*socket;
  if (!making_) return add(rank, std::move(*socket));
  // Those that this step does not need may bring news as well.
  for (auto& [other, arrived] : wiring_.arrived(group_)) add(other, std::move(arrived));
  return nullptr;
}

Endpoint* TcpLinks::add(int rank, Fd socket) {
  const auto index = std::find(ranks_.begin(), ranks_.end(), rank) - ranks_.begin();
  auto& link = links_[static_cast<int>(index)];
  link = std::make_unique<StreamEndpoint>(wiring_.seat().self, wiring_.peer(rank),
                                          std::make_unique<SocketStream>(std::move(socket)));
  return link.get();
}

std::vector<Endpoint*> TcpLinks::open() const {
  std::vector<Endpoint*> all;
  for (const auto& [index, link] : links_) all.push_back(link.get());
  return all;
}

void TcpLinks::add_interests(std::vector<Interest>& all) const {
  if (making_) wiring_.add_interests(all);
}

Outcome<Unit> connect_ring(Links& links, Wiring& wiring, const std::vector<Peer>& roster, int self,
                           StoreClient& store, Deadline deadline) {
  const int size = static_cast<int>(roster.size());
  for (;;) {
    const Peer* missing = nullptr;
    for (const int index : {(self + 1) % size, (self + size - 1) % size}) {
      if (index == self) continue;
      const auto link = links.link(index);
      if (!link) return explained(link.error(), store);
      if (!*link && !missing) missing = &roster[static_cast<std::size_t>(index)];
    }
    if (!missing) return Unit{};
    if (const auto told = death(store)) return *told;
    if (deadline.passed())
      return Failure(Errc::timed_out, missing->rank,
                     fmt::format("waiting for {} to connect: timed out", missing->text()));
    std::vector<Interest> interests = {{store.notice_fd(), true, false}};
    wiring.add_interests(interests);
    (void)wait_for_any(interests, Deadline{std::min(deadline.at, Clock::now() + kLinkLook)});
    // A rank that exited with code 0 is the group's to judge, so the news stays in the client.
    if (const auto news = store.read_news(); !news) return death(store).value_or(news.error());
  }
}

}  // namespace corro::runtime
