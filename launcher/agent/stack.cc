#include "launcher/agent/stack.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>

namespace corro::launcher::agent {

// The header is for the types only.  Linked it would be one more thing that every host must have;
// opened at run time it is there or not.
struct StackReader::Libdw {
  decltype(&::dwfl_begin) begin;
  decltype(&::dwfl_end) end;
  decltype(&::dwfl_report_end) report_end;
  decltype(&::dwfl_linux_proc_report) linux_proc_report;
  decltype(&::dwfl_linux_proc_find_elf) linux_proc_find_elf;
  decltype(&::dwfl_linux_proc_attach) linux_proc_attach;
  decltype(&::dwfl_getthread_frames) getthread_frames;
  decltype(&::dwfl_frame_pc) frame_pc;
  decltype(&::dwfl_addrmodule) addrmodule;
  decltype(&::dwfl_module_info) module_info;
  decltype(&::dwfl_module_addrinfo) module_addrinfo;
};

namespace {

constexpr std::size_t kNameBytes = 120;

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

// The main thread of a process, standing still while this lives.
//
// Not PTRACE_ATTACH, which sends SIGSTOP: if we are killed before the thread has taken it, it stops
// for good.  Seized and interrupted, it goes on when we end, however that comes; and one that was
// stopped already stays so.
class Stopped {
 public:
  explicit Stopped(pid_t pid) : pid_(pid) {
    if (::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) != 0) return;
    seized_ = true;
    if (::ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr) != 0) return;
    int status = 0;
    pid_t waited;
    do waited = ::waitpid(pid, &status, __WALL);
    while (waited < 0 && errno == EINTR);
    if (waited != pid || !WIFSTOPPED(status)) return;
    stopped_ = true;
    // A signal may have come in just now; it is the process's, and it shall have it.
    if (status >> 16 == 0) signal_ = WSTOPSIG(status);
  }
  Stopped(const Stopped&) = delete;
  ~Stopped() {
    if (seized_) ::ptrace(PTRACE_DETACH, pid_, nullptr, signal_);
  }

  explicit operator bool() const { return stopped_; }

 private:
  pid_t pid_;
  bool seized_ = false, stopped_ = false;
  long signal_ = 0;
};

// Debug information is not looked for: names and unwinding need none, it may be gigabytes, and
// libdw would ask servers for it.
int no_debuginfo(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word,
                 char**) {
  return -1;
}

struct Walk {
  decltype(&::dwfl_frame_pc) frame_pc;
  std::vector<Dwarf_Addr> addresses;
};

constexpr std::size_t kWalkMost = 256;  // frames; an interpreter has many that tell nothing

int on_frame(Dwfl_Frame* frame, void* arg) {
  auto& walk = *static_cast<Walk*>(arg);
  Dwarf_Addr pc = 0;
  bool exact = false;
  if (!walk.frame_pc(frame, &pc, &exact) || pc == 0) return DWARF_CB_ABORT;
  // Where a call returns to may be past the end of the function that called.
  walk.addresses.push_back(exact ? pc : pc - 1);
  return walk.addresses.size() < kWalkMost ? DWARF_CB_OK : DWARF_CB_ABORT;
}

// From here on outwards every program is the same.
bool starts_a_program(std::string_view name) {
  return name == "_start" || name == "__libc_start_main" || name == "__libc_start_call_main";
}

// One frame for each visit to the interpreter is enough, since the Python stack is for Python to
// tell; and one for several functions of a library of which we do not know the names.
bool tells_no_more(std::string_view frame, std::string_view last) {
  return (is_interpreter(frame) && is_interpreter(last)) ||
         (frame.starts_with("? (") && frame == last);
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

std::string frame_text(const char* function, std::string_view library_path) {
  std::string name = function ? function : "?";
  int failed = 0;
  const std::unique_ptr<char, void (*)(void*)> readable(
      function ? abi::__cxa_demangle(function, nullptr, nullptr, &failed) : nullptr, std::free);
  if (readable && failed == 0) name = readable.get();
  if (name.size() > kNameBytes) name = name.substr(0, kNameBytes - 3) + "...";
  const auto library = base_name(library_path).substr(0, kNameBytes / 2);
  return library.empty() ? name : fmt::format("{} ({})", name, library);
}

bool is_interpreter(std::string_view frame) {
  const auto open = frame.rfind('(');
  if (open == frame.npos) return false;
  const auto library = frame.substr(open + 1);
  return library.starts_with("python") || library.starts_with("libpython");
}

StackReader StackReader::open() {
  StackReader reader;
  void* library = ::dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return reader;
  static Libdw found;  // filled once; all who open it find the same
  const bool whole = find(library, "dwfl_begin", found.begin) &&
                     find(library, "dwfl_end", found.end) &&
                     find(library, "dwfl_report_end", found.report_end) &&
                     find(library, "dwfl_linux_proc_report", found.linux_proc_report) &&
                     find(library, "dwfl_linux_proc_find_elf", found.linux_proc_find_elf) &&
                     find(library, "dwfl_linux_proc_attach", found.linux_proc_attach) &&
                     find(library, "dwfl_getthread_frames", found.getthread_frames) &&
                     find(library, "dwfl_frame_pc", found.frame_pc) &&
                     find(library, "dwfl_addrmodule", found.addrmodule) &&
                     find(library, "dwfl_module_info", found.module_info) &&
                     find(library, "dwfl_module_addrinfo", found.module_addrinfo);
  if (whole) reader.libdw_ = &found;
  return reader;
}

std::vector<std::string> StackReader::frames(pid_t pid, std::size_t most) const {
  std::vector<std::string> out;
  if (!libdw_) return out;
  const Libdw& dw = *libdw_;
  static char* no_path = nullptr;
  const Dwfl_Callbacks callbacks{.find_elf = dw.linux_proc_find_elf,
                                 .find_debuginfo = no_debuginfo,
                                 .section_address = nullptr,
                                 .debuginfo_path = &no_path};
  const std::unique_ptr<Dwfl, decltype(dw.end)> session(dw.begin(&callbacks), dw.end);
  if (!session) return out;
  if (dw.linux_proc_report(session.get(), pid) != 0) return out;
  if (dw.report_end(session.get(), nullptr, nullptr) != 0) return out;
  if (dw.linux_proc_attach(session.get(), pid, true) != 0) return out;

  // Names take longer than addresses, so they are looked up when it runs again.
  Walk walk{dw.frame_pc, {}};
  if (const Stopped stopped(pid); stopped) dw.getthread_frames(session.get(), pid, on_frame, &walk);

  for (const Dwarf_Addr address : walk.addresses) {
    Dwfl_Module* module = dw.addrmodule(session.get(), address);
    const char* file = nullptr;
    const char* name = nullptr;
    if (module) {
      GElf_Off offset = 0;
      GElf_Sym symbol;
      name = dw.module_addrinfo(module, address, &offset, &symbol, nullptr, nullptr, nullptr);
      file = dw.module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
    }
    if (name && starts_a_program(name)) break;
    std::string text = frame_text(name, file ? file : "");
    if (!out.empty() && tells_no_more(text, out.back())) continue;
    out.push_back(std::move(text));
    if (out.size() == most) break;
  }
  return out;
}

}  // namespace corro::launcher::agent
