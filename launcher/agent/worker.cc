#include "launcher/agent/worker.h"

#include <fcntl.h>

#include <array>
#include <csignal>

#include "base/process.h"

namespace kolo::agent {

Worker::Worker(Loop& loop, OnOutput on_output)
    : loop_(loop),
      on_output_(std::move(on_output)),
      sources_{{Stream::out, {}, {}}, {Stream::err, {}, {}}} {}

Result<std::unique_ptr<Worker>> Worker::start(Loop& loop, const Start& start, OnOutput on_output) {
  auto out = make_pipe(), err = make_pipe();
  if (!out) return out.error();
  if (!err) return err.error();
  for (const Pipe* pipe : {&*out, &*err})
    if (auto set = set_nonblocking(pipe->read_end.get()); !set) return set.error();
  const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));

  const auto pid = spawn({.argv = start.argv,
                          .env = start.env,
                          .cwd = start.cwd,
                          .in = nothing.get(),
                          .out = out->write_end.get(),
                          .err = err->write_end.get(),
                          .new_session = false,
                          .death_signal = SIGKILL});
  if (!pid) return pid.error();

  std::unique_ptr<Worker> worker(new Worker(loop, std::move(on_output)));
  worker->pid_ = *pid;
  worker->sources_[0].fd = std::move(out->read_end);
  worker->sources_[1].fd = std::move(err->read_end);
  return worker;
}

void Worker::signal(int signo) const {
  if (running_) ::kill(-pid_, signo);
}

void Worker::set_reading(bool reading) {
  for (Source& source : sources_) {
    if (!reading || !source.fd)
      source.watch = {};
    else if (!source.watch)
      source.watch =
          loop_.watch(source.fd.get(), kolo::Ready::read, [this, &source] { read_once(source); });
  }
}

// Whether there may be more.
bool Worker::read_once(Source& source) {
  std::array<std::uint8_t, kOutputBytes> buffer;
  const auto moved = read_some(source.fd.get(), buffer);
  if (moved && moved->again) return false;
  if (!moved || moved->bytes == 0) {
    source.watch = {};
    source.fd.reset();
    return false;
  }
  on_output_(source.stream, ByteView(buffer).first(moved->bytes));
  return true;
}

void Worker::ended() {
  running_ = false;
  // As much as a pipe may hold at the most; a descendant that goes on writing has to wait its turn.
  constexpr int kReads = (1 << 20) / kOutputBytes;
  for (Source& source : sources_)
    for (int i = 0; i < kReads && source.fd && read_once(source); ++i) {
    }
}

}  // namespace kolo::agent
