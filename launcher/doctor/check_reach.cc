#include <fmt/format.h>

#include <array>

#include "launcher/doctor/ledger.h"

namespace corro::launcher::doctor {

namespace {

using namespace std::chrono_literals;
using Where = Remedy::Where;

constexpr auto kSlowRoundTrip = 250ms;  // of a message, not of a packet: the agent has to be woken
constexpr auto kSkewDoubtful = 100ms;   // from here on lines of output seem to come in wrong order
constexpr auto kSkewBad = 10s;          // and from here on tickets and certificates are refused

struct BarrierText {
  Barrier::Kind kind;
  Class about;
  const char* what;
  Where where;
  const char* command;
};
constexpr BarrierText kBarriers[] = {
    {Barrier::Kind::name, Class::name, "nobody knows this name", Where::here,
     "echo 'ADDRESS %h' | sudo tee -a /etc/hosts"},
    {Barrier::Kind::unreachable, Class::reach, "it cannot be reached", Where::here,
     "ssh -v %h true"},
    {Barrier::Kind::host_key_unknown, Class::host_key, "its host key is not known", Where::here,
     "ssh-keyscan -H %h >> ~/.ssh/known_hosts"},
    {Barrier::Kind::host_key_changed, Class::host_key, "its host key has changed", Where::here,
     "ssh-keygen -R %h"},
    {Barrier::Kind::refused, Class::login, "it does not let us in", Where::here, "ssh-copy-id %h"},
    {Barrier::Kind::unsupported, Class::login, "it wants a login that the built-in ssh cannot do",
     Where::here, "horovodrun --rsh-agent ssh …"},
    {Barrier::Kind::shell, Class::machine, "its login shell does not work", Where::there, "true"},
    {Barrier::Kind::staging, Class::machine, "this program cannot be brought there", Where::there,
     "df -h ~ /tmp; ls -ld ~ ~/.cache; mkdir -p ~/.cache/corro"},
    {Barrier::Kind::machine, Class::machine, "this program does not run there", Where::there,
     "uname -m; ldd --version"},
    {Barrier::Kind::lost, Class::reach, "the connection was lost", Where::there,
     "uptime; dmesg | tail"},
    {Barrier::Kind::version, Class::machine, "another version of this program answers there",
     Where::there, "rm -r ~/.cache/corro"},
    {Barrier::Kind::silent, Class::reach, "it was reached, and does not answer", Where::there,
     "uptime; dmesg | tail"},
};

const BarrierText& text_of(Barrier::Kind kind) {
  return kBarriers[static_cast<std::size_t>(kind)];
}

// Who cannot be found by name needs an address, which only the user knows; a server that is not
// started answers for its machine that nobody listens.
Remedy remedy_for(const Barrier& barrier, const Consultation& about) {
  const BarrierText& text = text_of(barrier.kind);
  if (barrier.kind == Barrier::Kind::unreachable && !about.rsh.empty())
    return {Where::there, "true"};
  if (barrier.kind == Barrier::Kind::unreachable &&
      barrier.why.find("refused") != std::string::npos)
    return {Where::here, "sudo systemctl start ssh   # at the console of %h"};
  return {text.where, text.command};
}

// The pipe's own advice knows files, ports and users; about names and servers it only asks.
std::string exact_fix(const Barrier& barrier) {
  const bool only_asks =
      barrier.kind == Barrier::Kind::name || barrier.kind == Barrier::Kind::unreachable;
  return only_asks ? "" : barrier.fix;
}

void check_barrier(const HostReport& host, const Consultation& about, Ledger& to) {
  const BarrierText& text = text_of(host.barrier->kind);
  to.add(host, {Severity::bad, text.about, text.what, remedy_for(*host.barrier, about),
                host.barrier->why, exact_fix(*host.barrier)});
}

std::string seconds_text(std::chrono::microseconds time) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(time).count());
}

// What may be due to the way there is not held against the clock.
void check_clock(const HostReport& host, Ledger& to) {
  if (!host.clock) return;
  const auto skew = std::chrono::abs(host.clock->ahead) - host.clock->uncertainty;
  if (skew < kSkewDoubtful) return;
  const bool ahead = host.clock->ahead > 0us;
  to.add(host,
         {skew >= kSkewBad ? Severity::bad : Severity::warning,
          Class::clock,
          fmt::format("its clock is {} {} ours", seconds_text(std::chrono::abs(host.clock->ahead)),
                      ahead ? "ahead of" : "behind"),
          {Where::there, "sudo chronyc makestep || sudo systemctl restart systemd-timesyncd"}});
}

void check_latency(const HostReport& host, Ledger& to) {
  if (!host.round_trip || *host.round_trip < kSlowRoundTrip) return;
  to.add(host,
         {Severity::warning,
          Class::reach,
          fmt::format("a message there and back takes {} ms",
                      std::chrono::round<std::chrono::milliseconds>(*host.round_trip).count()),
          {Where::here, "ping -c 10 %h"}});
}

}  // namespace

void check_reach(const Consultation& consultation, Ledger& to) {
  for (const HostReport& host : consultation.hosts) {
    if (host.barrier) check_barrier(host, consultation, to);
    check_clock(host, to);
    check_latency(host, to);
  }
}

}  // namespace corro::launcher::doctor
