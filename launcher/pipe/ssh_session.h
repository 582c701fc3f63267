#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/time.h"
#include "launcher/pipe/ssh_known_hosts.h"
#include "launcher/pipe/wire.h"

struct ssh_session_struct;

namespace corro::launcher {

// How a login went.
struct LoginAttempt {
  bool admitted = false;
  std::vector<std::string> tried;         // "the ssh agent", files
  std::vector<std::string> locked;        // files of keys that want a passphrase
  std::vector<std::string> certificates;  // beside the keys or in the ssh agent; were not shown
  std::vector<std::string> ways;  // by which the host would let us in: "publickey", "password"
  std::string failure;            // of the connection; empty if it stands
  bool dismissed = false;         // by the host, with a word
  bool refused = false;           // a key was
};

// One connection by libssh.  All of its waits have deadlines; libssh itself never waits.
class SshSession {
 public:
  // The key exchange.  Nothing has been checked then.  After prepare_openssl().
  static Result<std::unique_ptr<SshSession>> shake_hands(Fd socket, const std::string& host,
                                                         const std::string& user,
                                                         const std::string& key_algorithms,
                                                         Deadline);
  ~SshSession();
  SshSession(const SshSession&) = delete;
  SshSession& operator=(const SshSession&) = delete;

  Result<HostKey> host_key();

  struct Credentials {
    std::string agent_socket;  // empty: there is no ssh agent to ask
    std::vector<std::string> files;
    bool only_files = false;  // the agent may help with these, and shows no other key
  };
  LoginAttempt log_in(const Credentials&, Deadline);

  // A channel with a command at its end, or what listens at that port as seen from there.
  // `peer_lost`: it is not the host that refuses.
  Result<std::unique_ptr<Wire>> run(const std::string& command, Deadline);
  Result<std::unique_ptr<Wire>> forward(const std::string& host, int port, Deadline);

  // For what uses it beside this class.
  ssh_session_struct* raw() const { return session_; }
  int socket() const { return socket_.get(); }
  std::string error() const;
  void acknowledge_now() const;

  // Calls `step` until it returns something else than `again`, waiting in between; `again` if the
  // deadline passed.
  template <class Step>
  int finish(int again, Deadline deadline, Step step) {
    int code;
    while ((code = step()) == again && wait(deadline)) continue;
    return code;
  }

 private:
  explicit SshSession(Fd socket);
  bool wait(Deadline);
  bool is_broken() const;
  bool is_dismissed() const;
  Error not_opened() const;
  bool log_in_with_agent(const Credentials&, LoginAttempt&, Deadline);
  bool log_in_with_file(const std::string& file, LoginAttempt&, Deadline);
  bool note(int code, LoginAttempt&);

  Fd socket_;
  ssh_session_struct* session_;
  ssh_key_struct* host_key_ = nullptr;
  bool waited_too_long_ = false;
};

}  // namespace corro::launcher
