#include "launcher/pipe/agent_start.h"

#include <fmt/format.h>

#include "base/crypto.h"
#include "base/text.h"
#include "launcher/pipe/bootstrap.h"
#include "launcher/pipe/program.h"

namespace corro::launcher {

using namespace std::chrono_literals;

namespace {

// With a shell that reads slow files before it hears us, and with a link that stands still.
constexpr auto kPatience = 30s;
constexpr auto kMoment = 1s;

std::string random_hail() {
  return "corro-" + hex(random_nonce()).substr(0, 16);
}

agent::Unreached no_program(const Error& error) {
  return {agent::Barrier::staging, "this program cannot be read: " + error.text(),
          "ls -l \"$(command -v horovodrun)\""};
}

// Not every command gives what it is told to a shell.
std::string there(const std::string& command, const Way& way) {
  return way.is_by_command ? fmt::format("echo {} | {} sh", shell_word(command), way.by_hand)
                           : fmt::format("{} {}", way.by_hand, shell_word(command));
}

agent::Unreached with_host(agent::Unreached barrier, const Way& way) {
  barrier.why = fmt::format("{}: {}", way.name, barrier.why);
  barrier.fix = there(barrier.fix, way);
  return barrier;
}

class Starting {
 public:
  Starting(const Way& way, Program program)
      : way_(way), wire_(*way.wire), program_(program), talk_(random_hail(), std::move(program)) {}

  ReachResult<StartedAgent> run() {
    if (auto sent = send(talk_.script()); !sent) return sent.error();
    for (;;) {
      auto heard = read_from(wire_, Deadline::in(kPatience));
      asides_ += wire_.take_asides();
      if (!heard) return explain(heard.error());
      if (heard->empty()) return explain_end();
      auto step = talk_.hear(*heard);
      if (auto* stuck = std::get_if<agent::Unreached>(&step)) return with_asides(*stuck);
      if (auto* frames = std::get_if<Bootstrap::Frames>(&step))
        return StartedAgent{std::move(frames->first), staged_};
      if (const auto* need = std::get_if<Bootstrap::Need>(&step))
        if (auto staged = stage(*need); !staged) return staged.error();
    }
  }

 private:
  // Who takes no more may have said why, which is read next.
  ReachResult<Unit> send(std::string_view text) {
    const auto sent = write_to(wire_, view_of(text), kPatience);
    if (!sent && sent.error().code() == Errc::timed_out) return explain(sent.error());
    return Unit{};
  }

  ReachResult<Unit> stage(const Bootstrap::Need& need) {
    const auto bytes = read_program(program_);
    if (!bytes) return no_program(bytes.error());
    if (auto why = misfit(need, program_.machine, *bytes)) return with_host(*why, way_);
    staged_ = true;
    if (auto sent = send(Bootstrap::go_ahead(hex(sha256(*bytes)))); !sent) return sent.error();
    return send_program(*bytes);
  }

  // Listens meanwhile: who cannot take it (a disk is full) says so and takes no more.
  ReachResult<Unit> send_program(ByteView bytes) {
    constexpr std::size_t kPiece = 128 << 10;
    while (!bytes.empty()) {
      if (auto objection = overhear()) return std::move(*objection);
      const auto moved = wire_.write_some(bytes.first(std::min(kPiece, bytes.size())));
      if (!moved) return Unit{};  // why, they may say themselves
      bytes = bytes.subspan(moved->bytes);
      if (!moved->again) continue;
      if (auto waited = await(wire_.interests(true, true), Deadline::in(kPatience)); !waited)
        return explain(waited.error());
    }
    return Unit{};
  }

  std::optional<agent::Unreached> overhear() {
    Bytes piece(4096);
    const auto heard = wire_.read_some(piece);
    asides_ += wire_.take_asides();
    if (!heard || heard->again) return std::nullopt;
    if (heard->bytes == 0) return explain_end();
    const auto step = talk_.hear(ByteView(piece).first(heard->bytes));
    const auto* stuck = std::get_if<agent::Unreached>(&step);
    return stuck ? std::optional(with_asides(*stuck)) : std::nullopt;
  }

  agent::Unreached explain(const Error& error) const {
    if (error.code() == Errc::timed_out) return with_host(talk_.explain_silence(), way_);
    const std::string why = "the connection was lost: " + error.text();
    return with_host({agent::Barrier::lost, why, "true"}, way_);
  }

  agent::Unreached explain_end() {
    const auto code = wire_.exit_code(Deadline::in(kMoment));
    asides_ += wire_.take_asides();
    if (code == 0 && !talk_.is_heard() && way_.is_by_command) return explain_deafness();
    return with_host(talk_.explain_end(code, asides_), way_);
  }

  agent::Unreached explain_deafness() const {
    return {agent::Barrier::shell,
            fmt::format("{}: the shell there has ended and heard nothing: this command does not "
                        "pass on what it is given to read, as kubectl exec and docker exec do with "
                        "-i",
                        way_.name),
            "horovodrun --rsh-agent 'kubectl exec -i {host} --' …"};
  }

  agent::Unreached with_asides(agent::Unreached stuck) const {
    if (!asides_.empty()) stuck.why += "; on stderr: " + asides_.substr(0, agent::kWhyBytes / 2);
    return with_host(std::move(stuck), way_);
  }

  const Way& way_;
  Wire& wire_;
  Program program_;
  Bootstrap talk_;
  std::string asides_;
  bool staged_ = false;
};

}  // namespace

ReachResult<StartedAgent> start_agent(const Way& way, const std::string& self) {
  auto program = find_program_file(self);
  if (!program) return no_program(program.error());
  return Starting(way, std::move(*program)).run();
}

}  // namespace corro::launcher
