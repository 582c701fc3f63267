// A worker that does what its arguments say, in order, so that a test can write down a worker's
// life in one line.  "@2:" in front of an action: only rank 2 does it.
//
//   open  close           join the job, leave it
//   allreduce             one small sum
//   loop=N                sums of N doubles until one fails
//   exit=N  signal=N  segv
//   soon:exit=N, …        the same, 0.2 s from now, whatever it is doing then
//   sleep=S  print=TEXT   (a line, flushed)
//   ignore-term
//   child                 leave a child that ignores SIGTERM
//   daemon                leave a grandchild in a session of its own that ignores SIGTERM and holds
//                         stdout open
#include <corro/corro.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

corro_context* context = nullptr;

[[noreturn]] void fail(corro_error* error) {
  std::fprintf(stderr, "error: %s\n", corro_error_text(error));
  corro_error_free(error);
  std::_Exit(9);
}

void open_context() {
  corro_error* error = nullptr;
  if (corro_open(nullptr, &context, &error) != CORRO_OK) fail(error);
}

void allreduce(std::size_t count) {
  static std::vector<double> data;
  data.assign(count, 1.0);
  corro_error* error = nullptr;
  if (corro_allreduce(context, data.data(), count, CORRO_FLOAT64, CORRO_SUM, &error) != CORRO_OK)
    fail(error);
  if (data[count / 2] != corro_size(context)) std::_Exit(99);
}

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

[[noreturn]] void stay() {
  signal(SIGTERM, SIG_IGN);
  for (;;) pause();
}

void leave_daemon() {
  if (fork() != 0) return;
  setsid();
  if (fork() != 0) std::_Exit(0);
  stay();
}

void act(const std::string& action);

void act_soon(const std::string& action) {
  std::thread([action] {
    sleep_for(0.2);
    act(action);
  }).detach();
}

void act(const std::string& action) {
  const auto equals = action.find('=');
  const auto name = action.substr(0, equals);
  const auto value = equals == action.npos ? "" : action.substr(equals + 1);
  if (name.rfind("soon:", 0) == 0) return act_soon(action.substr(5));
  if (name == "open") return open_context();
  if (name == "close") return corro_close(std::exchange(context, nullptr));
  if (name == "allreduce") return allreduce(16);
  if (name == "loop")
    for (;;) allreduce(std::strtoull(value.c_str(), nullptr, 10));
  if (name == "exit") std::_Exit(std::atoi(value.c_str()));
  if (name == "signal") kill(getpid(), std::atoi(value.c_str())), pause();
  if (name == "segv") signal(SIGSEGV, SIG_DFL), raise(SIGSEGV);
  if (name == "sleep") return sleep_for(std::atof(value.c_str()));
  if (name == "print") return void((std::puts(value.c_str()), std::fflush(stdout)));
  if (name == "ignore-term") return void(signal(SIGTERM, SIG_IGN));
  if (name == "child") return void(fork() == 0 ? stay() : void());
  if (name == "daemon") return leave_daemon();
  std::fprintf(stderr, "actor: what is '%s'?\n", action.c_str());
  std::_Exit(98);
}

}  // namespace

int main(int argc, char** argv) {
  const char* rank = std::getenv("HOROVOD_RANK");
  for (int i = 1; i < argc; ++i) {
    std::string action = argv[i];
    if (action[0] == '@') {
      const auto colon = action.find(':');
      if (!rank || action.substr(1, colon - 1) != rank) continue;
      action = action.substr(colon + 1);
    }
    act(action);
  }
}
