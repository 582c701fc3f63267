#include "runtime/domain/exchange.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <list>
#include <optional>

#include "base/assert.h"
#include "base/codec.h"
#include "base/proof.h"
#include "base/socket.h"
#include "runtime/domain/packet.h"

namespace corro::runtime {

namespace {

using namespace std::chrono_literals;

constexpr std::string_view kPurpose = "domain";
constexpr std::string_view kNowhere = "none:";           // instead of an address; then the reason
constexpr std::size_t kCardsPerPacket = kPacketFds / 2;  // two descriptors each
constexpr std::size_t kMostStrangers = 64;
constexpr int kAcceptsPerTurn = 32;
constexpr auto kProofTime = 2s;    // a connection that has not proved itself by then is closed
constexpr auto kVerdictTime = 2s;  // after the deadline, for the first one's verdict to arrive
constexpr auto kRefusalTime = 2s;  // for all members to come and hear that one of them is unable
constexpr auto kPause = 5ms;

struct Hello {
  std::uint64_t generation = 0, group = 0;
  std::uint32_t index = 0, members = 0;
  std::int64_t pid = 0;
  std::uint64_t pid_namespace = 0;
  std::string unable;
  CORRO_FIELDS(generation, group, index, members, pid, pid_namespace, unable)
};

struct Card {
  std::int64_t pid = 0;
  std::uint64_t pid_namespace = 0;
  CORRO_FIELDS(pid, pid_namespace)
};

// What the first one sends begins with its kind.
enum class PacketKind : std::uint8_t { cards, verdict };
constexpr PacketKind last_of(PacketKind) {
  return PacketKind::verdict;
}

struct Cards {
  PacketKind kind = PacketKind::cards;
  std::uint32_t first = 0;
  std::vector<Card> cards;
  CORRO_FIELDS(kind, first, cards)
};

struct Ready {
  std::uint8_t ready = 1;
  CORRO_FIELDS(ready)
};

struct Verdict {
  PacketKind kind = PacketKind::verdict;
  bool together = false;
  std::string why_not;
  CORRO_FIELDS(kind, together, why_not)
};

// None: it is another kind of packet.
std::optional<Verdict> verdict_in(const Bytes& bytes) {
  const auto verdict = decode<Verdict>(bytes);
  if (!verdict || verdict->kind != PacketKind::verdict) return std::nullopt;
  return *verdict;
}

std::uint64_t own_pid_namespace() {
  struct stat about {};
  return ::stat("/proc/self/ns/pid", &about) == 0 ? about.st_ino : 0;
}

void pause(Deadline deadline) {
  const auto until = std::min(deadline.at, Clock::now() + kPause);
  (void)::poll(nullptr, 0, Deadline{until}.poll_timeout_ms());
}

Membership entry(const DomainSeat& seat, std::size_t k, const Card& card, std::uint64_t own_space) {
  Membership out;
  out.peer = seat.members[k];
  if (own_space != 0 && card.pid_namespace == own_space) out.pid = card.pid;
  return out;
}

// ---- the first member ---------------------------------------------------------------------------

// One that has connected.
struct Guest {
  Fd socket;
  Proof proof;
  TimePoint since;
  std::optional<Hello> hello;
  std::vector<Fd> fds;
  std::size_t told = 0;  // members whose cards it has been sent
  bool ready = false;
};

class First {
 public:
  First(const DomainSeat& seat, DomainOffer& offer, PacketListener listener, Deadline deadline)
      : seat_(seat), offer_(offer), listener_(std::move(listener)), deadline_(deadline) {
    present_.resize(seat.members.size(), nullptr);
  }

  Result<std::vector<Membership>> run() {
    auto met = meet();
    const Verdict verdict{PacketKind::verdict, static_cast<bool>(met),
                          met ? "" : met.error().text()};
    for (Guest& guest : guests_)
      if (guest.hello) (void)send_packet(guest.socket.get(), encode(verdict), {});
    if (!met) return met.error();
    return memberships();
  }

 private:
  std::size_t n() const { return present_.size(); }

  // A member that is unable ends it, but not before the others could come and hear why.
  Result<Unit> meet() {
    while (!all_ready()) {
      if (failure_ && (all_present() || Clock::now() >= refuse_at_)) return *failure_;
      if (deadline_.passed()) return failure_ ? *failure_ : Error(Errc::timed_out, missing());
      if (auto waited = wait(); !waited) return waited;
      if (auto accepted = accept_some(); !accepted) return accepted;
      for (auto it = guests_.begin(); it != guests_.end();)
        it = hear(*it) ? std::next(it) : drop(it);
      close_silent();
      if (!failure_ && all_present()) tell_cards();
    }
    return Unit{};
  }

  bool all_present() const {
    return std::all_of(present_.begin() + 1, present_.end(), [](Guest* g) { return g != nullptr; });
  }
  bool all_ready() const {
    return all_present() &&
           std::all_of(present_.begin() + 1, present_.end(), [](Guest* g) { return g->ready; });
  }

  std::string missing() const {
    for (std::size_t k = 1; k < n(); ++k)
      if (present_[k] == nullptr)
        return fmt::format("{} did not connect through this host", seat_.members[k].text());
    return "not all ranks of this host took the others' memory in time";
  }

  // A guest that waits for cards is looked at again soon, since the room for descriptors on their
  // way is nobody's event.
  Result<Unit> wait() {
    std::vector<pollfd> fds{{listener_.socket.get(), POLLIN, 0}};
    bool telling = false;
    for (const Guest& guest : guests_) {
      fds.push_back({guest.socket.get(), POLLIN, 0});
      telling |= !failure_ && all_present() && guest.hello && guest.told < n();
    }
    const auto until = std::min(deadline_.at, Clock::now() + (telling ? 1ms : 100ms));
    if (::poll(fds.data(), fds.size(), Deadline{until}.poll_timeout_ms()) < 0 && errno != EINTR)
      return Error::from_errno("waiting for ranks of this host");
    return Unit{};
  }

  // A bounded number at a time, so that those who are here are heard in between.
  Result<Unit> accept_some() {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      auto socket = accept_from(listener_.socket.get());
      // No descriptor is free: make room, and let the next turn try.
      if (!socket && !close_oldest_stranger()) return socket.error();
      if (!socket || !*socket) return Unit{};
      if (strangers() >= kMostStrangers + n()) close_oldest_stranger();
      guests_.push_back({std::move(*socket),
                         Proof(Proof::Role::server, seat_.key, kPurpose),
                         Clock::now(),
                         {},
                         {}});
    }
    return Unit{};
  }

  std::size_t strangers() const {
    return static_cast<std::size_t>(std::count_if(guests_.begin(), guests_.end(),
                                                  [](const Guest& g) { return !g.proof.done(); }));
  }
  bool close_oldest_stranger() {
    const auto oldest = std::find_if(guests_.begin(), guests_.end(),
                                     [](const Guest& g) { return !g.proof.done(); });
    if (oldest == guests_.end()) return false;
    guests_.erase(oldest);
    return true;
  }
  void close_silent() {
    const TimePoint latest = Clock::now() - kProofTime;
    guests_.remove_if([&](const Guest& g) { return !g.proof.done() && g.since < latest; });
  }

  std::list<Guest>::iterator drop(std::list<Guest>::iterator it) {
    for (Guest*& present : present_)
      if (present == &*it) present = nullptr;
    return guests_.erase(it);
  }

  // False: this connection is over.
  bool hear(Guest& guest) {
    for (;;) {
      if (!guest.proof.done()) {
        const auto proved = hear_proof(guest);
        if (!proved) return false;
        if (!*proved) return true;
        continue;
      }
      auto packet = receive_packet(guest.socket.get());
      if (!packet) return false;
      if (!*packet) return true;
      if (!guest.hello) {
        if (!take_hello(guest, **packet)) return false;
      } else {
        if (!decode<Ready>((*packet)->bytes) || guest.told < n()) return false;
        guest.ready = true;
      }
    }
  }

  // False: no more has come.
  Result<bool> hear_proof(Guest& guest) {
    Bytes arrived(guest.proof.awaited()), reply;
    const auto moved = read_some(guest.socket.get(), arrived);
    if (!moved) return moved.error();
    if (moved->again) return false;
    if (moved->bytes == 0) return Error(Errc::closed, "hung up");
    const auto fed = guest.proof.feed(ByteView(arrived).first(moved->bytes), reply);
    if (!fed) return fed.error();
    if (reply.empty()) return true;
    // Nothing has been sent on it before, so it takes this, or the other side does not listen.
    const auto sent = send_packet(guest.socket.get(), reply, {});
    if (!sent) return sent.error();
    if (!*sent) return Error(Errc::closed, "does not read");
    return true;
  }

  bool take_hello(Guest& guest, Packet& packet) {
    const auto hello = decode<Hello>(packet.bytes);
    if (!hello) return false;
    const bool ours = hello->generation == seat_.generation && hello->group == seat_.group &&
                      hello->members == n() && hello->index > 0 && hello->index < n();
    if (!ours) {
      const Verdict no{PacketKind::verdict, false,
                       "the other ranks mean another group or generation"};
      (void)send_packet(guest.socket.get(), encode(no), {});
      return false;
    }
    if (present_[hello->index] != nullptr) return false;  // the one that is here stays
    if (!hello->unable.empty()) {
      if (!failure_) {
        failure_ = Error(Errc::unsupported,
                         fmt::format("{}: {}", seat_.members[hello->index].text(), hello->unable));
        refuse_at_ = Clock::now() + kRefusalTime;
      }
      guest.hello = *hello;
      present_[hello->index] = &guest;
      return true;
    }
    if (packet.fds.size() != fds_per_member()) return false;
    guest.hello = *hello;
    guest.fds = std::move(packet.fds);
    present_[hello->index] = &guest;
    return true;
  }

  std::size_t fds_per_member() const { return offer_.doorbell ? 2 : 1; }

  void tell_cards() {
    for (std::size_t k = 1; k < n(); ++k) {
      Guest& guest = *present_[k];
      while (guest.told < n()) {
        const std::size_t end = std::min(n(), guest.told + kCardsPerPacket);
        Cards cards{PacketKind::cards, static_cast<std::uint32_t>(guest.told), {}};
        std::vector<int> fds;
        for (std::size_t i = guest.told; i < end; ++i) {
          cards.cards.push_back(card_of(i));
          if (i == 0) {
            fds.push_back(offer_.memory.get());
            if (offer_.doorbell) fds.push_back(offer_.doorbell.get());
          } else {
            for (const Fd& fd : present_[i]->fds) fds.push_back(fd.get());
          }
        }
        const auto sent = send_packet(guest.socket.get(), encode(cards), fds);
        if (!sent || !*sent) break;  // a broken connection is seen when it is read
        guest.told = end;
      }
    }
  }

  Card card_of(std::size_t k) const {
    if (k == 0) return {::getpid(), own_pid_namespace()};
    return {present_[k]->hello->pid, present_[k]->hello->pid_namespace};
  }

  std::vector<Membership> memberships() {
    std::vector<Membership> out;
    const std::uint64_t own_space = own_pid_namespace();
    for (std::size_t k = 0; k < n(); ++k) {
      Membership member = entry(seat_, k, card_of(k), own_space);
      if (k == 0) {
        member.memory = std::move(offer_.memory);
        member.doorbell = std::move(offer_.doorbell);
      } else {
        member.memory = std::move(present_[k]->fds[0]);
        if (present_[k]->fds.size() > 1) member.doorbell = std::move(present_[k]->fds[1]);
      }
      out.push_back(std::move(member));
    }
    return out;
  }

  const DomainSeat& seat_;
  DomainOffer& offer_;
  PacketListener listener_;
  Deadline deadline_;
  std::list<Guest> guests_;      // in the order of arrival; addresses stay
  std::vector<Guest*> present_;  // by index
  std::optional<Error> failure_;
  TimePoint refuse_at_;
};

// ---- the others ---------------------------------------------------------------------------------

Result<Packet> await_packet(int socket, Deadline deadline) {
  for (;;) {
    auto packet = receive_packet(socket);
    if (!packet) return packet.error();
    if (*packet) return std::move(**packet);
    if (auto ready = wait_for_any({{socket, true, false}}, deadline); !ready) return ready.error();
  }
}

Result<Unit> deliver_packet(int socket, ByteView bytes, std::span<const int> fds,
                            Deadline deadline) {
  for (;;) {
    const auto sent = send_packet(socket, bytes, fds);
    if (!sent) return sent.error();
    if (*sent) return Unit{};
    if (deadline.passed()) return Error(Errc::timed_out, "timed out");
    pause(deadline);
  }
}

class Other {
 public:
  Other(const DomainSeat& seat, DomainOffer& offer, Deadline deadline)
      : seat_(seat), offer_(offer), deadline_(deadline) {}

  // Dials again when the connection is cut: the first one may have taken us for a stranger.
  Result<std::vector<Membership>> run(const std::string& address) {
    if (address.starts_with(kNowhere))
      return Error(Errc::unsupported,
                   fmt::format("{}: {}", seat_.members[0].text(), address.substr(kNowhere.size())));
    const auto where = unix_address(address);
    if (!where) return where.error();
    for (;;) {
      auto socket = dial(*where);
      if (!socket) return socket.error();
      auto members = meet(socket->get());
      if (members || !may_dial_again(members.error()) || deadline_.passed()) return members;
      pause(deadline_);
    }
  }

 private:
  bool may_dial_again(const Error& error) const {
    return !decided_ && error.code() == Errc::closed;
  }

  Result<Fd> dial(const UnixAddress& where) {
    for (;;) {
      auto socket = make_packet_socket();
      if (!socket) return socket;
      if (::connect(socket->get(), where.get(), where.size) == 0) return socket;
      // No process listens: abstract names belong to a network namespace, and the first one's is
      // another, or it has given up.
      if (errno != EAGAIN && errno != EINTR)
        return Error::from_errno(
            fmt::format("connecting to {} through this host", seat_.members[0].text()));
      if (deadline_.passed()) return Error(Errc::timed_out, "timed out");
      pause(deadline_);
    }
  }

  Result<std::vector<Membership>> meet(int socket) {
    auto proved = prove(socket, Proof(Proof::Role::client, seat_.key, kPurpose), deadline_);
    if (!proved) return hung_up_or(proved.error());
    if (auto said = say_hello(socket); !said) return said.error();
    std::vector<Membership> members;
    while (members.size() < seat_.members.size()) {
      auto packet = await_packet(socket, last_moment());
      if (!packet) return packet.error();
      if (const auto no = verdict_in(packet->bytes)) return refused(*no);
      if (auto taken = take_cards(*packet, members); !taken) return taken.error();
    }
    if (auto sent = deliver_packet(socket, encode(Ready{}), {}, deadline_); !sent)
      return sent.error();
    auto packet = await_packet(socket, last_moment());
    if (!packet) return packet.error();
    const auto verdict = verdict_in(packet->bytes);
    if (!verdict) return Error(Errc::malformed, "expected the verdict of the first rank");
    if (!verdict->together) return refused(*verdict);
    auto& mine = members[static_cast<std::size_t>(seat_.index)];
    mine.memory = std::move(offer_.memory);
    mine.doorbell = std::move(offer_.doorbell);
    return members;
  }

  // Only the first one decides, so its verdict is waited for even past the deadline.
  Deadline last_moment() const { return {deadline_.at + kVerdictTime}; }

  // A connection that ends during the proof was cut to make room, or refused by a stranger's key.
  static Error hung_up_or(const Error& error) {
    if (error.code() == Errc::refused && error.text().find("hung up") != std::string::npos)
      return Error(Errc::closed, error.text());
    return error;
  }

  Error refused(const Verdict& verdict) {
    decided_ = true;
    return Error(Errc::unsupported, verdict.why_not);
  }

  Result<Unit> say_hello(int socket) {
    const Hello hello{seat_.generation,
                      seat_.group,
                      static_cast<std::uint32_t>(seat_.index),
                      static_cast<std::uint32_t>(seat_.members.size()),
                      ::getpid(),
                      own_pid_namespace(),
                      offer_.unable};
    std::vector<int> fds;
    if (offer_.unable.empty()) {
      fds.push_back(offer_.memory.get());
      if (offer_.doorbell) fds.push_back(offer_.doorbell.get());
    }
    return deliver_packet(socket, encode(hello), fds, deadline_);
  }

  Result<Unit> take_cards(Packet& packet, std::vector<Membership>& members) {
    const auto cards = decode<Cards>(packet.bytes);
    if (!cards) return cards.error();
    const std::size_t each = offer_.doorbell ? 2 : 1;
    if (cards->kind != PacketKind::cards || cards->first != members.size() ||
        cards->cards.empty() || cards->cards.size() > seat_.members.size() - members.size() ||
        packet.fds.size() != each * cards->cards.size())
      return Error(Errc::malformed, "the descriptors of other ranks do not fit together");
    const std::uint64_t own_space = own_pid_namespace();
    for (std::size_t i = 0; i < cards->cards.size(); ++i) {
      Membership member = entry(seat_, members.size(), cards->cards[i], own_space);
      member.memory = std::move(packet.fds[each * i]);
      if (each == 2) member.doorbell = std::move(packet.fds[each * i + 1]);
      members.push_back(std::move(member));
    }
    return Unit{};
  }

  const DomainSeat& seat_;
  DomainOffer& offer_;
  Deadline deadline_;
  bool decided_ = false;
};

}  // namespace

Result<std::vector<Membership>> exchange(const DomainSeat& seat, DomainOffer offer,
                                         const AddressBook& meeting, Deadline deadline) {
  CORRO_ASSERT(seat.index >= 0 && static_cast<std::size_t>(seat.index) < seat.members.size());
  if (seat.index > 0) {
    const auto address = meeting.find(deadline);
    if (!address) return address.error();
    return Other(seat, offer, deadline).run(*address);
  }
  if (!offer.unable.empty()) {
    // The others learn it from the address, since there is nothing to connect for.
    if (auto told = meeting.publish(std::string(kNowhere) + offer.unable); !told)
      return told.error();
    return Error(Errc::unsupported, offer.unable);
  }
  auto listener = listen_for_members();
  if (!listener) {
    if (auto told = meeting.publish(std::string(kNowhere) + listener.error().text()); !told)
      return told.error();
    return listener.error();
  }
  if (auto told = meeting.publish(listener->address); !told) return told.error();
  return First(seat, offer, std::move(*listener), deadline).run();
}

Result<Fd> make_doorbell() {
  Fd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd) return Error::from_errno("making a doorbell");
  return fd;
}

}  // namespace corro::runtime
