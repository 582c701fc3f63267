#include "launcher/hosts/discovery.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <array>

#include "base/fd.h"
#include "base/process.h"
#include "launcher/hosts/hosts.h"

namespace kolo {

namespace {

Error trouble(const std::string& script, std::string_view what) {
  return Error(Errc::invalid_input, fmt::format("the discovery script {} {}", script, what));
}

Result<std::string> read_all(int fd, const std::string& script, Deadline deadline) {
  std::string text;
  std::array<std::uint8_t, 4096> buffer;
  for (;;) {
    pollfd readable{fd, POLLIN, 0};
    const int ready = ::poll(&readable, 1, deadline.poll_timeout_ms());
    if (ready == 0) return trouble(script, "did not come to an end in time");
    if (ready < 0) continue;
    const auto moved = read_some(fd, buffer);
    if (!moved) return moved.error();
    if (moved->bytes == 0 && !moved->again) return text;
    text.append(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(moved->bytes));
    if (text.size() > kHostTextLimit) return trouble(script, "prints more than a list of hosts");
  }
}

// Its output has ended, and so will it.
ExitStatus wait_for(pid_t pid, Deadline deadline) {
  for (;;) {
    if (const auto ended = reap(pid)) return ended->status;
    if (deadline.passed()) ::kill(-pid, SIGKILL);
    ::poll(nullptr, 0, 1);
  }
}

}  // namespace

Result<std::string> run_discovery_script(const std::string& script, Deadline deadline) {
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  auto pid = spawn({.argv = {"/bin/sh", "-c", script},
                    .env = own_environment(),
                    .out = pipe->write_end.get(),
                    .death_signal = SIGKILL});
  if (!pid) return std::move(pid.error()).during("starting " + script);
  pipe->write_end.reset();
  auto text = read_all(pipe->read_end.get(), script, deadline);
  if (!text) ::kill(-*pid, SIGKILL);
  const auto status = wait_for(*pid, deadline);
  if (text && !status.ok()) return trouble(script, status.text());
  return text;
}

}  // namespace kolo
