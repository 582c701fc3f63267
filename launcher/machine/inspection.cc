#include "launcher/machine/inspection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/process.h"
#include "base/text.h"
#include "launcher/machine/errand.h"
#include "launcher/machine/libraries.h"
#include "launcher/machine/python.h"
#include "launcher/machine/script.h"

namespace corro::launcher {

namespace {

using About = Trouble::About;

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string first_line(const std::string& path) {
  const auto text = text_of_file(path);
  return text.substr(0, text.find('\n'));
}

// What stands after "NAME:" at the beginning of a line, without blanks.
std::string field(const std::string& text, std::string_view name) {
  for (const auto line : split(text, '\n')) {
    const auto colon = line.find(':');
    if (colon == line.npos || !line.starts_with(name)) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == line.npos ? "" : std::string(line.substr(begin));
  }
  return {};
}

std::uint64_t kilobytes(const std::string& meminfo, std::string_view name) {
  const auto value = field(meminfo, name);
  return static_cast<std::uint64_t>(parse_int(value.substr(0, value.find(' '))).value_or(0)) * 1024;
}

Limit limit_of(const rlimit& found) {
  const auto number = [](rlim_t value) { return value == RLIM_INFINITY ? Limit::kNone : value; };
  return {number(found.rlim_cur), number(found.rlim_max)};
}

Limit limit_of(__rlimit_resource resource) {
  rlimit found{RLIM_INFINITY, RLIM_INFINITY};
  ::getrlimit(resource, &found);
  return limit_of(found);
}

std::string text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address->sa_family == AF_INET)
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  else if (address->sa_family == AF_INET6)
    bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  return bytes && ::inet_ntop(address->sa_family, bytes, text.data(), text.size()) ? text.data()
                                                                                   : "";
}

std::vector<Nic> find_nics(const std::string& root) {
  ifaddrs* head = nullptr;
  if (::getifaddrs(&head) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(head, ::freeifaddrs);
  std::vector<Nic> out;
  for (const ifaddrs* each = head; each; each = each->ifa_next) {
    if (!each->ifa_addr) continue;
    const auto ip = text_of(each->ifa_addr);
    if (ip.empty()) continue;
    const auto speed =
        parse_int(first_line(fmt::format("{}/sys/class/net/{}/speed", root, each->ifa_name)));
    out.push_back({each->ifa_name, ip, (each->ifa_flags & IFF_UP) != 0,
                   (each->ifa_flags & IFF_LOOPBACK) != 0,
                   static_cast<std::int32_t>(std::max(0LL, speed.value_or(0)))});
  }
  return out;
}

// What the kernel tells at once.
void look_at_machine(const InspectionRequest& request, Inspection& out) {
  utsname names{};
  ::uname(&names);
  out.hostname = names.nodename;
  out.kernel = names.release;
  out.architecture = names.machine;
  out.identity = machine_identity(request.root);
  out.cores = usable_cores();
  out.cpu = field(text_of_file(request.root + "/proc/cpuinfo"), "model name");
  const auto memory = text_of_file(request.root + "/proc/meminfo");
  out.memory_bytes = kilobytes(memory, "MemTotal");
  out.available_bytes = kilobytes(memory, "MemAvailable");
  out.nofile = limit_of(descriptors_for_children());
  out.nproc = limit_of(RLIMIT_NPROC);
  out.memlock = limit_of(RLIMIT_MEMLOCK);
  out.is_root = ::geteuid() == 0;
  out.nics = find_nics(request.root);
}

Folder look_at_folder(const std::string& path) {
  Folder out{.path = path};
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    out.exists = errno == EACCES;
    out.why_not = Error::from_errno(path).text();
    return out;
  }
  out.exists = true;
  out.can_enter = S_ISDIR(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
  if (!out.can_enter) {
    out.why_not =
        S_ISDIR(status.st_mode) ? Error::from_errno(path).text() : path + ": it is not a directory";
    return out;
  }
  out.can_write = ::access(path.c_str(), W_OK) == 0;
  if (!out.can_write) out.why_not = Error::from_errno(path).text();
  struct statvfs space {};
  if (::statvfs(path.c_str(), &space) == 0) {
    out.free_bytes = space.f_bavail * space.f_frsize;
    out.total_bytes = space.f_blocks * space.f_frsize;
  }
  return out;
}

// What follows "#!", if it is a script.
std::string interpreter_in(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<std::uint8_t, 256> head{};
  const auto moved = file ? read_some(file.get(), head) : Result<Moved>(Moved{});
  const std::string text(head.begin(),
                         head.begin() + static_cast<std::ptrdiff_t>(moved ? moved->bytes : 0));
  if (!text.starts_with("#!")) return {};
  const auto line = text.substr(2, text.find('\n') - 2);
  const auto begin = line.find_first_not_of(' ');
  return begin == line.npos ? "" : line.substr(begin);
}

// Whoever names a path means that file, even if it cannot be executed.
FoundProgram look_for_program(const InspectionRequest& request) {
  const std::string& name = request.argv.front();
  const auto found = find_program(name, request.env, request.cwd);
  if (found) return {*found, true, {}, interpreter_in(*found)};
  const bool is_there = found.error().code() != Errc::not_found && name.find('/') != name.npos;
  return {is_there ? (std::filesystem::path(request.cwd) / name).string() : "",
          false,
          found.error().text(),
          {}};
}

// What the children find out.
struct Paths {
  std::optional<Folder> cwd;
  std::optional<FoundProgram> program;
  std::optional<FoundScript> script;
  std::string python;  // which one is to be asked
  CORRO_FIELDS(cwd, program, script, python)
};

Paths look_at_paths(const InspectionRequest& request) {
  Paths out;
  if (!request.cwd.empty()) out.cwd = look_at_folder(request.cwd);
  if (!request.argv.empty()) out.program = look_for_program(request);
  out.script = look_for_script(request);
  out.python = python_of(request, out.program.value_or(FoundProgram{}));
  return out;
}

struct Scratch {
  std::vector<Folder> folders;
  CORRO_FIELDS(folders)
};

Scratch look_at_scratch(const std::string& root) {
  Scratch out;
  for (const auto* path : {"/tmp", "/dev/shm"}) out.folders.push_back(look_at_folder(root + path));
  if (const char* home = std::getenv("HOME")) out.folders.push_back(look_at_folder(root + home));
  return out;
}

struct Gear {
  std::string driver;
  std::vector<Installed> libraries;
  CORRO_FIELDS(driver, libraries)
};

Gear look_at_gear(const InspectionRequest& request) {
  return {driver_version(text_of_file(request.root + "/proc/driver/nvidia/version")),
          find_libraries(request.env, request.root)};
}

struct PythonAnswer {
  std::optional<Python> python;
  std::string trouble;
  CORRO_FIELDS(python, trouble)
};

PythonAnswer look_at_python(const std::string& path, const InspectionRequest& request) {
  auto python = ask_python(path, request);
  if (!python) return {std::nullopt, python.error().text()};
  return {std::move(*python), {}};
}

struct GpusAnswer {
  std::vector<Gpu> gpus;
  std::string trouble;
  CORRO_FIELDS(gpus, trouble)
};

GpusAnswer look_at_gpus(const std::string& root) {
  GpuSource source;
  source.root = root;
  auto gpus = find_gpus(source);
  if (!gpus) return {{}, gpus.error().text()};
  return {std::move(*gpus), {}};
}

// A look that a child takes.
template <class Answer>
class Look {
 public:
  template <class Fn>
  Look(Trouble::About about, Fn fn) : about_(about) {
    auto errand = Errand::send([&] { return encode(fn()); });
    if (errand)
      errand_.emplace(std::move(*errand));
    else
      trouble_ = errand.error().text();
  }

  // None: the troubles say why.
  std::optional<Answer> result(Deadline deadline, std::vector<Trouble>& troubles) {
    auto answer = wait(deadline);
    if (!answer) troubles.push_back({about_, answer.error().text()});
    return answer ? std::optional<Answer>(std::move(*answer)) : std::nullopt;
  }

 private:
  Result<Answer> wait(Deadline deadline) {
    if (!errand_) return Error(Errc::io, trouble_);
    const auto bytes = errand_->wait(deadline);
    if (!bytes) return bytes.error();
    auto answer = decode<Answer>(*bytes);
    if (!answer && errand_->end())
      return Error(Errc::io, "the process that looked " + errand_->end()->text());
    return answer;
  }

  Trouble::About about_;
  std::string trouble_;
  std::optional<Errand> errand_;
};

// A directory that cannot be entered is found out by now, and says nothing of Python.
void take_python(const std::string& path, InspectionRequest request, Deadline deadline,
                 Inspection& out) {
  if (path.empty()) {
    out.python.emplace();
    return;
  }
  if (!out.cwd || !out.cwd->can_enter) request.cwd = "/";
  Look<PythonAnswer> look(About::python, [&] { return look_at_python(path, request); });
  auto answer = look.result(deadline, out.troubles);
  if (!answer) return;
  out.python = std::move(answer->python);
  if (!answer->trouble.empty()) out.troubles.push_back({About::python, answer->trouble});
}

}  // namespace

// Containers share the kernel's boot with each other, and are hosts of their own all the same.
std::string machine_identity(const std::string& root) {
  std::error_code error;
  const auto network = std::filesystem::read_symlink("/proc/self/ns/net", error).string();
  return first_line(root + "/proc/sys/kernel/random/boot_id") + " " + network;
}

std::uint32_t usable_cores() {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0
             ? static_cast<std::uint32_t>(CPU_COUNT(&cores))
             : 1;
}

Inspection inspect(const InspectionRequest& request, Deadline deadline) {
  Inspection out;
  Look<Paths> paths(About::paths, [&] { return look_at_paths(request); });
  Look<Scratch> scratch(About::scratch, [&] { return look_at_scratch(request.root); });
  Look<Gear> gear(About::libraries, [&] { return look_at_gear(request); });
  Look<GpusAnswer> gpus(About::gpus, [&] { return look_at_gpus(request.root); });
  look_at_machine(request, out);

  if (auto found = paths.result(deadline, out.troubles)) {
    out.cwd = std::move(found->cwd);
    out.program = std::move(found->program);
    out.script = std::move(found->script);
    take_python(found->python, request, deadline, out);
  }
  if (auto found = scratch.result(deadline, out.troubles)) out.scratch = std::move(found->folders);
  if (auto found = gear.result(deadline, out.troubles)) {
    out.driver = std::move(found->driver);
    out.libraries = std::move(found->libraries);
  }
  if (auto found = gpus.result(deadline, out.troubles)) {
    out.gpus = std::move(found->gpus);
    if (!found->trouble.empty()) out.troubles.push_back({About::gpus, found->trouble});
  }
  return out;
}

}  // namespace corro::launcher
