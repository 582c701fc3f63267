#include <fmt/format.h>
#include <glob.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/crypto.h"
#include "base/text.h"
#include "launcher/pipe/back_off.h"
#include "launcher/pipe/dial.h"
#include "launcher/pipe/proxy.h"
#include "launcher/pipe/ssh_config.h"
#include "launcher/pipe/ssh_destination.h"
#include "launcher/pipe/ssh_session.h"
#include "launcher/pipe/way.h"

namespace corro::launcher {

using namespace std::chrono_literals;

namespace {

// A lease of the agent's is 5 s; somewhat later we know as well that the link is cut.
constexpr auto kSilence = 6s;
constexpr auto kLoginPatience = 30s;
// What a login shell replaces itself with; see rsh_command.h.  All known shells understand it.
constexpr const char* kShell = "exec sh";

// The session and what carries its bytes outlive the channel.
class OwningWire final : public Wire {
 public:
  OwningWire(std::optional<Proxy> proxy, std::unique_ptr<SshSession> session,
             std::unique_ptr<Wire> channel)
      : proxy_(std::move(proxy)), session_(std::move(session)), channel_(std::move(channel)) {}

  Result<Moved> read_some(MutByteView into) override { return channel_->read_some(into); }
  Result<Moved> write_some(ByteView bytes) override { return channel_->write_some(bytes); }
  void end_writing() override { channel_->end_writing(); }
  std::vector<Interest> interests(bool reading, bool writing) const override {
    return channel_->interests(reading, writing);
  }
  std::string take_asides() override { return channel_->take_asides(); }
  std::optional<int> exit_code(Deadline d) override { return channel_->exit_code(d); }

 private:
  std::optional<Proxy> proxy_;
  std::unique_ptr<SshSession> session_;
  std::unique_ptr<Wire> channel_;
};

// One attempt, as a story.
class Attempt {
 public:
  Attempt(const Target& target, const Destination& to, Deadline connecting)
      : target_(target), to_(to), connecting_(connecting), began_(Clock::now()) {}

  ReachResult<Way> run() {
    if (auto done = connect(); !done) return done.error();
    if (auto done = shake_hands(); !done) return done.error();
    if (auto done = check_host_key(); !done) return done.error();
    reached_.connect_us = lap();
    if (auto done = log_in(); !done) return done.error();
    reached_.login_us = lap();
    auto channel = open_channel();
    if (!channel) return channel.error();
    return Way{
        std::make_unique<OwningWire>(std::move(proxy_), std::move(session_), std::move(*channel)),
        reached_, name(), to_.ssh_command()};
  }

  // By whom does not matter here: somebody was there.
  bool was_connected() const { return was_connected_; }
  // A key was, and is not shown again and again, whatever became of the connection then.
  bool was_refused() const { return was_refused_; }

  // Nobody could be asked for its address.
  bool was_not_answered() const { return was_not_answered_; }

 private:
  ReachResult<Unit> connect() {
    const auto argv = to_.proxy_command(target_.self);
    if (!argv.empty()) return connect_by(argv);
    const auto addresses = resolve(to_.name, to_.port, to_.address_family, connecting_);
    if (!addresses) {
      was_not_answered_ = addresses.error().code() == Errc::timed_out;
      return unresolved(addresses.error());
    }
    reached_.resolve_us = lap();
    reached_.address = addresses->front().ip;  // to be named, if none of them answers
    auto dialled = dial(*addresses, kSilence, connecting_);
    if (!dialled) return unreachable(dialled.error().text());
    socket_ = std::move(dialled->socket);
    was_connected_ = true;
    reached_.address = dialled->address.ip;
    return Unit{};
  }

  ReachResult<Unit> connect_by(const std::vector<std::string>& argv) {
    auto proxy = Proxy::start(argv);
    if (!proxy) return unreachable(proxy.error().text());
    proxy_.emplace(std::move(*proxy));
    socket_ = proxy_->take_socket();
    return Unit{};
  }

  ReachResult<Unit> shake_hands() {
    known_.emplace(to_.known_names(), to_.known_hosts_files());
    auto session = SshSession::shake_hands(std::move(socket_), to_.name, to_.user,
                                           known_->algorithms(), connecting_);
    if (session) {
      session_ = std::move(*session);
      return Unit{};
    }
    if (auto verdict = proxy_ ? proxy_->verdict() : std::nullopt) return by_proxy(*verdict);
    return unreachable(session.error().text());
  }

  ReachResult<Unit> check_host_key() {
    const auto key = session_->host_key();
    if (!key) return unreachable(key.error().text());
    reached_.host_key = key->fingerprint;
    const auto acquaintance = known_->judge(*key);
    if (acquaintance == Acquaintance::known) return Unit{};
    if (acquaintance == Acquaintance::unknown && to_.policy == HostKeyPolicy::accept_new)
      return get_to_know(*key);
    return to_.stranger(acquaintance, *key, name());
  }

  ReachResult<Unit> get_to_know(const HostKey& key) {
    const std::string name_there = to_.known_names().front();
    const auto kept = remember(key, to_.hides_names ? hidden_name(name_there) : name_there,
                               to_.user_known_hosts.front());
    if (kept) return Unit{};
    return agent::Unreached{agent::Barrier::host_key_unknown,
                            fmt::format("{}: its key {} cannot be remembered: {}", name(),
                                        key.fingerprint, kept.error().text()),
                            "ls -ld ~/.ssh"};
  }

  ReachResult<Unit> log_in() {
    const auto attempt = session_->log_in(to_.credentials, Deadline::in(kLoginPatience));
    if (attempt.admitted) return Unit{};
    was_refused_ = attempt.refused;
    return to_.not_admitted(attempt, name());
  }

  ReachResult<std::unique_ptr<Wire>> open_channel() {
    const auto deadline = Deadline::in(kLoginPatience);
    const auto end = to_.forward_to;
    auto channel = end ? session_->forward(end->first, end->second, deadline)
                       : session_->run(kShell, deadline);
    if (channel) return std::move(*channel);
    const bool lost = channel.error().code() == Errc::peer_lost;
    return agent::Unreached{lost  ? agent::Barrier::lost
                            : end ? agent::Barrier::unreachable
                                  : agent::Barrier::shell,
                            fmt::format("{}: {}", name(), channel.error().text()),
                            to_.ssh_command() + " true"};
  }

  std::string name() const { return to_.described(reached_.address); }

  std::uint32_t lap() {
    const auto took = microseconds_since(began_);
    began_ = Clock::now();
    return took;
  }

  agent::Unreached unresolved(const Error& error) const {
    return {agent::Barrier::name, fmt::format("{}: {}{}", name(), error.text(), to_.caution()),
            "getent hosts " + to_.name};
  }

  agent::Unreached unreachable(const std::string& why) const {
    return {agent::Barrier::unreachable, fmt::format("{}: {}{}", name(), why, to_.caution()),
            to_.ssh_command("-v ") + " true"};
  }

  agent::Unreached by_proxy(agent::Unreached verdict) const {
    verdict.why = fmt::format("{}, on the way there: {}", name(), verdict.why);
    if (verdict.fix.empty()) verdict.fix = to_.ssh_command("-v ") + " true";
    return verdict;
  }

  const Target& target_;
  const Destination& to_;
  Deadline connecting_;
  TimePoint began_;
  agent::Reached reached_;
  std::optional<Proxy> proxy_;
  Fd socket_;
  bool was_refused_ = false;
  bool was_connected_ = false, was_not_answered_ = false;
  std::optional<KnownHosts> known_;
  std::unique_ptr<SshSession> session_;
};

std::string own_name() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry ? entry->pw_name : std::to_string(::geteuid());
}

std::string own_home() {
  if (const char* home = std::getenv("HOME"); home && *home) return home;
  const passwd* entry = ::getpwuid(::geteuid());
  return entry ? entry->pw_dir : "/";
}

std::optional<std::string> content_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::vector<std::string> files_like(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> out;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    out.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return out;
}

SshSurroundings own_surroundings() {
  return {own_home(), own_name(), content_of, files_like,
          [](const std::string& name) -> std::optional<std::string> {
            const char* value = std::getenv(name.c_str());
            return value ? std::optional<std::string>(value) : std::nullopt;
          }};
}

std::uint64_t random_seed() {
  return load_little<std::uint64_t>(random_nonce().data());
}

// False if there is no time for that, or nobody waits for the result.
bool rest(Duration pause, Deadline deadline) {
  if (Clock::now() + pause >= deadline.at) return false;
  const auto rested = await({}, Deadline::in(pause));
  return !rested && rested.error().code() == Errc::timed_out;
}

}  // namespace

ReachResult<Way> ssh_way(const Target& target) {
  prepare_openssl();
  const auto around = own_surroundings();
  const Destination to = destination_of(
      target, read_ssh_config(target.host, target.user, target.port, around), around);
  const auto deadline = Deadline::in(to.connect_timeout);
  const auto seed = random_seed();
  for (int attempt = 1;; ++attempt) {
    Attempt one(target, to, deadline);
    auto way = one.run();
    if (way) {
      way->reached.attempts = static_cast<std::uint32_t>(attempt);
      return way;
    }
    const bool worth_another =
        !one.was_refused() &&
        (way.error().kind == agent::Barrier::unreachable || one.was_not_answered());
    const int most = one.was_connected()      ? kAttemptsIfTurnedAway
                     : one.was_not_answered() ? kAttemptsIfNameless
                                              : kAttempts;
    if (!worth_another || attempt >= most || !rest(back_off(attempt, seed), deadline)) {
      if (attempt > 1) way.error().why += fmt::format(" (tried {} times)", attempt);
      return way;
    }
  }
}

}  // namespace corro::launcher
