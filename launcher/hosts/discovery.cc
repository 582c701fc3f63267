#include "launcher/hosts/discovery.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <array>

#include "base/fd.h"
#include "base/process.h"
#include "launcher/hosts/hosts.h"

namespace corro::launcher {

namespace {

Error trouble(const std::string& script, std::string_view what) {
  return Error(Errc::invalid_input, fmt::format("the discovery script {} {}", script, what));
}

// A script under way.  It is over when it has ended; what it leaves running in the background may
// hold the pipe open for longer.
class Script {
 public:
  Script(pid_t pid, Fd output) : pid_(pid), output_(std::move(output)) {}

  Result<std::string> run(const std::string& name, Deadline deadline) {
    (void)set_nonblocking(output_.get());
    while (!status_ && !deadline.passed()) {
      pollfd readable{output_.get(), POLLIN, 0};
      ::poll(&readable, 1, static_cast<int>(kLook.count()));
      if (const auto ended = reap(pid_)) status_ = ended->status;
      if (!read_on()) return end(trouble(name, "prints more than a list of hosts"));
    }
    if (!status_) return end(trouble(name, "did not come to an end in time"));
    if (!status_->ok()) return trouble(name, status_->text());
    return std::move(text_);
  }

 private:
  static constexpr std::chrono::milliseconds kLook{20};

  // Whether it is not too much.
  bool read_on() {
    std::array<std::uint8_t, 4096> buffer;
    for (;;) {
      const auto moved = read_some(output_.get(), buffer);
      if (!moved || moved->bytes == 0) return true;
      text_.append(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(moved->bytes));
      if (text_.size() > kHostTextLimit) return false;
    }
  }

  Error end(Error why) {
    ::kill(-pid_, SIGKILL);
    while (!status_ && !reap(pid_)) ::poll(nullptr, 0, 1);
    return why;
  }

  pid_t pid_;
  Fd output_;
  std::optional<ExitStatus> status_;
  std::string text_;
};

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
  return Script(*pid, std::move(pipe->read_end)).run(script, deadline);
}

}  // namespace corro::launcher
