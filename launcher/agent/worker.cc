#include "launcher/agent/worker.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <csignal>
#include <utility>

namespace corro::launcher::agent {

namespace {

constexpr int kOutputPipe = 256 << 10;

// Its read end is for the worker.  Who is given nothing to read has the agent's own stdin, which is
// /dev/null.
Result<Pipe> source_of_input(const Start& start) {
  return start.has_input ? make_pipe() : Pipe{};
}

}  // namespace

Worker::Worker(Loop& loop, Events events)
    : loop_(loop),
      events_(std::move(events)),
      sources_{{Stream::out, {}, {}}, {Stream::err, {}, {}}} {}

Result<std::unique_ptr<Worker>> Worker::start(Loop& loop, Spawner& spawner, StatusBoard& board,
                                              Start start, Events events) {
  auto in = source_of_input(start), out = make_pipe(), err = make_pipe();
  if (!in) return in.error();
  if (!out) return out.error();
  if (!err) return err.error();
  widen(*out, kOutputPipe);
  for (const Fd* end : {&out->read_end, &err->read_end, &in->write_end})
    if (*end)
      if (auto set = set_nonblocking(end->get()); !set) return set.error();

  std::unique_ptr<Worker> worker(new Worker(loop, std::move(events)));
  worker->id_ = start.worker;
  // Without it we do not know what it tells.
  if (auto page = board.next()) worker->page_ = std::move(*page);
  if (worker->page_)
    start.env.push_back(fmt::format("{}={}", kStatusVariable, worker->page_->handle(kExtraFd)));

  const auto pid = spawner.spawn({.argv = std::move(start.argv),
                                  .env = std::move(start.env),
                                  .cwd = std::move(start.cwd),
                                  .in = in->read_end.get(),
                                  .out = out->write_end.get(),
                                  .err = err->write_end.get(),
                                  .new_session = false,
                                  .death_signal = SIGKILL,
                                  .umask = static_cast<mode_t>(start.umask),
                                  .cpus = {start.cpus.begin(), start.cpus.end()},
                                  .extra = worker->page_ ? worker->page_->fd() : -1,
                                  .may_be_examined = true});
  if (!pid) return pid.error();

  worker->pid_ = *pid;
  worker->input_ = std::move(in->write_end);
  worker->sources_[0].fd = std::move(out->read_end);
  worker->sources_[1].fd = std::move(err->read_end);
  return worker;
}

bool Worker::enter_cgroup(const Cgroup& home) {
  auto made = WorkerCgroup::create(home, id_);
  if (!made || !made->take_in(pid_)) return false;
  cgroup_ = std::move(*made);
  return true;
}

void Worker::signal(int signo) const {
  if (running_) ::kill(-pid_, signo);
  if (running_ && signo == SIGTERM) ::kill(-pid_, SIGCONT);  // who is stopped does not hear it
  if (signo == SIGKILL && cgroup_) cgroup_->kill();
}

void Worker::feed(ByteView bytes, bool ends) {
  if (!input_) return events_.on_taken(bytes.size());
  append(waiting_, bytes);
  input_ends_ = ends;
  write_input();
}

void Worker::write_input() {
  if (!waiting_.empty()) {
    const auto moved = write_some(input_.get(), waiting_);
    if (!moved) return close_input();  // it does not read any more
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(moved->bytes));
    if (moved->bytes > 0) events_.on_taken(moved->bytes);
  }
  if (waiting_.empty() && input_ends_) return close_input();
  if (waiting_.empty())
    input_watch_ = {};
  else if (!input_watch_)
    input_watch_ = loop_.watch(input_.get(), corro::Ready::write, [this] { write_input(); });
}

void Worker::close_input() {
  input_watch_ = {};
  input_.reset();
  if (!waiting_.empty()) events_.on_taken(std::exchange(waiting_, {}).size());
}

void Worker::set_reading(bool reading) {
  for (Source& source : sources_) {
    if (!reading || !source.fd)
      source.watch = {};
    else if (!source.watch)
      source.watch =
          loop_.watch(source.fd.get(), corro::Ready::read, [this, &source] { read_once(source); });
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
  events_.on_output(source.stream, ByteView(buffer).first(moved->bytes));
  return true;
}

void Worker::ended() {
  running_ = false;
  close_input();
  // As much as a pipe may hold at the most; a descendant that goes on writing has to wait its turn.
  constexpr int kReads = (1 << 20) / kOutputBytes;
  for (Source& source : sources_)
    for (int i = 0; i < kReads && source.fd && read_once(source); ++i) {
    }
}

}  // namespace corro::launcher::agent
