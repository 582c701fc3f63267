#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/time.h"
#include "launcher/agent/protocol.h"

namespace corro::launcher {

// A command that carries the bytes of a connection for us: ProxyCommand, or a pipe of our own to
// the host before.  It ends when its owner does.
class Proxy {
 public:
  static Result<Proxy> start(const std::vector<std::string>& argv);
  Proxy(Proxy&&) noexcept;
  Proxy& operator=(Proxy&&) = delete;
  ~Proxy();

  // For whom speaks through it.
  Fd take_socket() { return std::move(socket_); }

  // When the connection has broken: what the command says of it.  None: nothing.
  std::optional<agent::Unreached> verdict();

 private:
  Proxy(pid_t pid, Fd socket, Fd errors);

  pid_t pid_;
  Fd socket_, errors_;
};

// How a pipe of ours says the same to the one that started it, with the exit code to end with.
int tell_pipe(const agent::Unreached&);

}  // namespace corro::launcher
