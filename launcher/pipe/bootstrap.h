#pragma once

#include <optional>
#include <string>
#include <variant>

#include "base/bytes.h"
#include "launcher/agent/protocol.h"

namespace corro::launcher {

// This program as a file: what another host needs to know to find the same one.
struct Program {
  std::string path;  // by which it was started
  std::string id;    // no other build has it
  std::uint64_t size = 0;
  std::int64_t modified = 0;  // seconds since 1970
  std::string machine;        // for which it was made, as uname has it
  std::string file{};         // that has its bytes, also if another is at its path by now
};

// How an agent is started on a host where there is nothing but a shell, maybe not even this
// program.  Bytes in, the next step out.
//
//   we                                  they (sh, with what the login shell says before)
//   the script           ─────────────►
//                        ◄───────────── HAIL
//   (if the program is not there)
//                        ◄───────────── NEED machine libc version | NOWHERE
//   GO digest, program   ─────────────►
//                        ◄───────────── SPOILT, and no more
//                        ◄───────────── RUN path
//                        ◄───────────── GUARD, from the guard itself; then frames
//
// Their lines begin with a word that is random for each conversation; whatever else is written is
// passed over.  We never write ahead: a shell may read more of its input than it
// needs, and what it has read is lost.
class Bootstrap {
 public:
  // `hail`: that word, hexadecimal digits.
  Bootstrap(std::string hail, Program);

  // What a shell is told first.
  std::string script() const;

  // For Need: what comes before the program's bytes.
  static std::string go_ahead(const std::string& digest);

  struct Listen {};
  struct Need {
    std::string machine, libc;  // as uname and getconf have it; "x86_64", "glibc 2.36"
  };
  struct Frames {
    Bytes first;  // what has come of them
  };
  using Step = std::variant<Listen, Need, Frames, agent::Unreached>;

  Step hear(ByteView);

  // Whether the shell has begun with the script.
  bool is_heard() const { return hailed_; }

  // The stream has ended, and the wrong way: this is why, with a command there as the fix, as
  // always here.  `asides`: what came on stderr.
  agent::Unreached explain_end(std::optional<int> exit_code, const std::string& asides) const;

  // No answer came in time.
  agent::Unreached explain_silence() const;

 private:
  std::optional<Step> take_line(std::string_view line);
  std::string noise() const;
  bool is_in_cache(const std::string& path) const;

  std::string hail_;
  Program program_;
  Bytes heard_;        // not yet a line
  std::string noise_;  // of the login shell
  bool hailed_ = false;
  std::string ran_;  // the program that the shell has made way for
};

// Why a program of these bytes does not run on such a machine, if so.
std::optional<agent::Unreached> misfit(const Bootstrap::Need&, const std::string& own_machine,
                                       ByteView program);

}  // namespace corro::launcher
