#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/time.h"

namespace corro::launcher {

// Which of the keys of an ssh agent are shown to a host, and in which order: those of files that
// the user has named first, as ssh does; a host hears of no more than a few.
struct KeyChoice {
  std::vector<std::string> preferred;  // public keys, in base64
  bool no_others = false;              // IdentitiesOnly
};

// What an ssh agent answered to the question what keys it has, arranged.  `answer` has its type and
// all that follows, as in draft-miller-ssh-agent, section 4.4; what is not such an answer stays as
// it is.
Bytes arrange_keys(ByteView answer, const KeyChoice&);

// Comments of the certificates in such an answer, and in that of the ssh agent at a socket.
std::vector<std::string> certificates_in(ByteView answer);
std::vector<std::string> certificates_of_agent(const std::string& socket, Deadline);

// A connection to the ssh agent at that socket, whose answers are arranged on their way by a
// thread. It ends when the other end of the descriptor is closed, or when the agent is silent for
// too long: libssh would wait for ever.
Result<Fd> connect_key_agent(const std::string& socket, KeyChoice);

}  // namespace corro::launcher
