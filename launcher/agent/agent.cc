#include "launcher/agent/agent.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>

#include "base/channel.h"
#include "base/lease.h"
#include "base/process.h"
#include "base/socket.h"
#include "launcher/agent/examiner.h"
#include "launcher/agent/inspecting.h"
#include "launcher/agent/output_window.h"
#include "launcher/agent/protocol.h"
#include "launcher/agent/shutdown.h"
#include "launcher/agent/sweep.h"
#include "launcher/agent/worker.h"
#include "launcher/network/interfaces.h"
#include "launcher/network/knocking.h"
#include "launcher/network/reception.h"

namespace corro::launcher {

using namespace std::chrono_literals;

namespace agent {

namespace {

constexpr auto kLeaseBeforeHello = 30s;  // for a launcher on a slow link to say its first word
constexpr auto kSettling = 2s;           // of a worker, before anything is spent on its accounts
constexpr auto kKnocking = 3s;           // at the doors of others, at the most
constexpr auto kLastWords = 500ms;       // for what is still to be said when we go

// Where cgroups for workers may be made.  What agents that were killed have left is removed.
std::optional<Cgroup> usable_cgroup() {
  auto home = own_cgroup();
  if (!home) return std::nullopt;
  remove_leftovers(*home);
  return std::move(*home);
}

class Agent {
 public:
  Agent(Loop&, pid_t guard);

  void say_last_words() { channel_.flush(Deadline::in(kLastWords)); }

 private:
  Result<Unit> on_frame(const Frame&);
  void on(const Hello&);
  void on(Start&&);
  void refuse(std::uint32_t worker, const Error& why);
  void on(const Signal&);
  void on(const Lease&) { channel_.send(Up(Alive{})); }
  void on(const Ack&);
  void on(const Close&);
  void on(const Input&);
  void on(const Hold&);
  void on(const Resume&);
  void on(const Survey&);
  void on(const Examine&);
  void on(const Inspect&);
  void on(const Knock&);
  Facts facts(const Survey&);
  void open_doors(const Opener&, PortRange);

  void on_launcher_gone();
  void on_signal();
  void on_child_ended(const Ended&);
  void on_output(std::uint32_t worker, Stream, ByteView);
  void check_lease();
  void open_accounts();

  void end(Duration grace, const std::string& why);
  void kill_if_over();
  bool any_running() const;
  void signal_all(int signo);
  void follow_window();

  Loop& loop_;
  Fd signals_, guard_;
  Channel channel_;
  Loop::Watch signal_watch_, guard_watch_;

  Duration grace_ = 5s;
  corro::Lease lease_;  // of the launcher
  Loop::Timer lease_timer_;

  std::optional<Cgroup> home_ = usable_cgroup();  // none: no cgroup can be had for a worker
  OomWatch oom_{home_};
  std::optional<Loop::Timer> accounts_timer_;
  Spawner spawner_;
  StatusBoard board_;
  std::map<std::uint32_t, std::unique_ptr<Worker>> workers_;
  Examiner examiner_{loop_};
  std::optional<Inspecting> inspecting_;
  OutputWindow window_;

  Key key_;  // of the job, once doors were asked for
  std::optional<Reception> reception_;
  std::optional<Knocking> knocking_;

  Shutdown shutdown_;
  Loop::Timer kill_timer_;
};

Fd signals_to_read() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGCHLD);
  ::sigaddset(&signals, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  return Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

// For what workers start that listens by itself (torch.distributed).  It may be taken before they
// do, as anywhere.
std::uint16_t some_free_port(const std::string& ip, PortRange ports) {
  const auto listener = listen_on({ip, 0}, ports);
  const auto address =
      listener ? local_address(listener->get()) : Result<Address>(listener.error());
  return address ? address->port : 0;
}

// None if it is gone already; as long as it is our parent, no other can have its number.
Fd watchable(pid_t parent) {
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, parent, 0)));
  return ::getppid() == parent ? std::move(fd) : Fd();
}

// The stream is ours alone: neither a worker nor a stray print may get at it.
Fd take_over(int fd, int flags) {
  Fd mine(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  const Fd nothing(::open("/dev/null", flags | O_CLOEXEC));
  ::dup2(nothing.get(), fd);
  (void)set_nonblocking(mine.get());
  return mine;
}

Agent::Agent(Loop& loop, pid_t guard)
    : loop_(loop),
      signals_(signals_to_read()),
      guard_(watchable(guard)),
      channel_(loop, take_over(0, O_RDONLY), take_over(1, O_WRONLY), kDownLimit, std::nullopt,
               {.on_frame = [this](const Frame& frame) { return on_frame(frame); },
                .on_end = [this](const Error&) { on_launcher_gone(); },
                .on_proved = {}}),
      lease_(kLeaseBeforeHello, loop.now()) {
  signal_watch_ = loop_.watch(signals_.get(), corro::Ready::read, [this] { on_signal(); });
  const auto guard_gone = [this] {
    guard_watch_ = {};
    end(0s, "its guard was killed");
  };
  if (guard_)
    guard_watch_ = loop_.watch(guard_.get(), corro::Ready::read, guard_gone);
  else
    loop_.post(guard_gone);  // so early that there was nothing left to watch
  check_lease();
}

Result<Unit> Agent::on_frame(const Frame& frame) {
  lease_.heard(loop_.now());
  auto message = decode_frame<Down>(frame);
  if (!message) return message.error();
  std::visit([this](auto&& m) { on(std::move(m)); }, std::move(*message));
  return Unit{};
}

void Agent::on(const Hello& hello) {
  lease_.set_length(std::chrono::milliseconds(hello.lease_ms));
  grace_ = std::chrono::milliseconds(hello.grace_ms);
  channel_.send(Up(Ready{CORRO_VERSION, ::getpid()}));
  check_lease();
}

void Agent::on(Start&& start) {
  if (shutdown_.has_begun()) return;
  reception_.reset();
  const auto id = start.worker;
  if (workers_.contains(id))
    return refuse(id, Error(Errc::exists, "a worker of this number was started before"));
  auto worker =
      Worker::start(loop_, spawner_, board_, std::move(start),
                    {.on_output = [this, id](Stream s, ByteView bytes) { on_output(id, s, bytes); },
                     .on_taken =
                         [this, id](std::size_t bytes) {
                           channel_.send(Up(Taken{id, static_cast<std::uint32_t>(bytes)}));
                         }});
  if (!worker) return refuse(id, worker.error());
  channel_.send(Up(Started{id, (*worker)->pid()}));
  (*worker)->set_reading(window_.is_open());
  workers_[id] = std::move(*worker);
  if (home_ && !accounts_timer_)
    accounts_timer_ = loop_.at(loop_.now() + kSettling, [this] { open_accounts(); });
}

// To make a cgroup costs a third of what it takes to start a process, and to move somebody there
// may hold us up for ten milliseconds while others fork and end.  So it comes when the workers are
// past their beginning, to one after the other.
void Agent::open_accounts() {
  constexpr auto kPause = 20ms;
  accounts_timer_.reset();
  const auto next = std::find_if(workers_.begin(), workers_.end(), [](const auto& w) {
    return w.second->running() && !w.second->cgroup();
  });
  if (next == workers_.end()) return;
  if (!next->second->enter_cgroup(*home_)) return home_.reset();
  accounts_timer_ = loop_.at(loop_.now() + kPause, [this] { open_accounts(); });
}

void Agent::refuse(std::uint32_t worker, const Error& why) {
  channel_.send(Up(Failed{worker, why.code(), why.text().substr(0, kWhyBytes)}));
}

void Agent::on(const Signal& signal) {
  if (const auto worker = workers_.find(signal.worker); worker != workers_.end())
    worker->second->signal(signal.signo);
}

void Agent::on(const Ack& ack) {
  if (window_.acknowledged(ack.seq)) follow_window();
}

void Agent::on(const Input& input) {
  if (const auto worker = workers_.find(input.worker); worker != workers_.end())
    worker->second->feed(input.bytes, input.ends);
}

// The end of the stream still tells if the launcher dies meanwhile.
void Agent::on(const Hold&) {
  lease_.pause();
  signal_all(SIGSTOP);
}

void Agent::on(const Resume&) {
  lease_.resume(loop_.now());
  check_lease();
  signal_all(SIGCONT);
}

void Agent::on(const Survey& survey) {
  channel_.send(Up(facts(survey)));
}

Facts Agent::facts(const Survey& survey) {
  Facts facts;
  facts.cores = usable_cores();
  if (survey.gpus) {
    auto gpus = find_gpus();
    if (gpus)
      facts.gpus = std::move(*gpus);
    else
      facts.troubles.push_back(gpus.error().text());
  }
  if (survey.topology) {
    auto topology = read_topology();
    if (topology)
      facts.topology = std::move(*topology);
    else
      facts.troubles.push_back(topology.error().text());
  }
  const PortRange ports{survey.first_port, survey.last_port};
  if (survey.doors) open_doors(*survey.doors, ports);
  if (reception_) facts.doors = reception_->doors();
  facts.free_port =
      some_free_port(facts.doors.empty() ? "127.0.0.1" : facts.doors.front().ip, ports);
  return facts;
}

void Agent::open_doors(const Opener& opener, PortRange ports) {
  if (opener.key.size() != key_.bytes.size()) return;
  std::copy(opener.key.begin(), opener.key.end(), key_.bytes.begin());
  reception_.emplace(loop_, key_, opener.host,
                     narrowed(own_addresses(), opener.interfaces, opener.address), ports);
}

void Agent::on(const Knock& knock) {
  const auto tell = [this](std::vector<Opening> openings) {
    channel_.send(Up(Knocked{std::move(openings)}));
    knocking_.reset();
  };
  knocking_.emplace(loop_, key_, knock.doorways, kKnocking, tell);
}

// A Python that can say what it does is asked to, into its own stderr.
void Agent::on(const Examine&) {
  std::vector<Examiner::Subject> subjects;
  for (const auto& [id, worker] : workers_)
    if (worker->running()) subjects.push_back({id, worker->pid()});
  examiner_.examine(std::move(subjects), [this](const auto& seen_of, const auto& seen) {
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const auto& worker = workers_.at(seen_of[i].worker);
      if (!worker->running()) continue;
      channel_.send(Up(Finding{seen_of[i].worker, worker->said(), seen[i]}));
      ask_for_python_stacks(seen[i]);
    }
    channel_.send(Up(Examined{}));
  });
}

void Agent::on(const Inspect& inspect) {
  inspecting_.emplace(loop_, inspect,
                      [this](const Inspected& inspected) { channel_.send(Up(inspected)); });
}

void Agent::on(const Close&) {
  end(0s, "");
}

// What workers write in their grace is read and dropped, so that none has to wait in write(2) when
// it should save its work.
void Agent::on_launcher_gone() {
  if (window_.open_for_good()) follow_window();
  end(grace_, "");
}

void Agent::on_output(std::uint32_t worker, Stream stream, ByteView bytes) {
  if (window_.is_for_good()) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  const auto seq =
      channel_.send(Up(Output{worker, stream, microseconds, Bytes(bytes.begin(), bytes.end())}));
  if (window_.sent(seq, bytes.size())) follow_window();
}

void Agent::follow_window() {
  for (auto& [id, worker] : workers_) worker->set_reading(window_.is_open());
}

// SIGCHLD and not a pidfd for each worker: as a subreaper we must reap orphans too, of which
// nobody told us.  A child's number is ours until we reap it here, so it cannot be mistaken.
void Agent::on_signal() {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof info) == sizeof info)
    if (info.ssi_signo == SIGTERM) end(grace_, "its agent got SIGTERM");
  while (const auto ended = reap()) on_child_ended(*ended);
}

void Agent::on_child_ended(const Ended& ended) {
  for (auto& [id, worker] : workers_) {
    if (worker->pid() != ended.pid || !worker->running()) continue;
    worker->ended();
    const auto oom =
        ended.status.signo == SIGKILL ? oom_.verdict(ended.pid, worker->cgroup()) : OomVerdict{};
    channel_.send(Up(Exited{id, ended.status, worker->said(), oom, ended.used}));
  }
  if (shutdown_.has_begun() && !any_running()) loop_.stop();
}

void Agent::check_lease() {
  if (lease_.check(loop_.now()))
    return end(grace_, fmt::format("the launcher was not heard of for {:.1f} s",
                                   std::chrono::duration<double>(lease_.length()).count()));
  const auto wake = lease_.wake();
  lease_timer_ = wake ? loop_.at(*wake, [this] { check_lease(); }) : Loop::Timer();
}

void Agent::end(Duration grace, const std::string& why) {
  if (shutdown_.begin(grace, loop_.now())) {
    if (!why.empty()) channel_.send(Up(Ending{why}));
    signal_all(SIGTERM);
  }
  kill_if_over();
}

// What has not gone by then is swept when the loop has ended.
void Agent::kill_if_over() {
  if (!shutdown_.is_over(any_running(), loop_.now())) {
    kill_timer_ = loop_.at(*shutdown_.kill_at(), [this] { kill_if_over(); });
    return;
  }
  signal_all(SIGKILL);
  loop_.stop();
}

bool Agent::any_running() const {
  for (const auto& [id, worker] : workers_)
    if (worker->running()) return true;
  return false;
}

void Agent::signal_all(int signo) {
  for (auto& [id, worker] : workers_) worker->signal(signo);
}

}  // namespace
}  // namespace agent

int run_agent(pid_t guard) {
  ::prctl(PR_SET_NAME, "corro-agent");
  adopt_orphans();
  want_many_descriptors();
  Loop loop;
  agent::Agent agent(loop, guard);
  loop.run();
  agent.say_last_words();
  sweep(kStuck);  // whom we leave the guard gets
  return 0;
}

}  // namespace corro::launcher
