#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "launcher/doctor/ledger.h"

namespace corro::launcher::doctor {

namespace {

using Where = Remedy::Where;

constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30;

constexpr std::uint64_t kTooFull = 16 * kMiB, kNearlyFull = 256 * kMiB;  // a job's own small files
// Data loaders and collectives exchange batches and buffers there.  64 MiB is what a container
// has whose maker did not ask for more.
constexpr std::uint64_t kSharedOfAWorker = 8 * kMiB, kSharedUsual = 128 * kMiB;

std::string megabytes(std::uint64_t bytes) {
  return fmt::format("{} MiB", bytes / kMiB);
}

bool is_read_only(const Folder& folder) {
  return folder.why_not.find("Read-only") != std::string::npos;
}

Remedy make_writable(const Folder& folder) {
  const auto path = shell_word(folder.path);
  return {Where::there,
          is_read_only(folder)
              ? fmt::format("sudo mount -o remount,rw \"$(findmnt -nT {} -o TARGET)\"", path)
              : fmt::format("sudo chown $(id -u) {0}; chmod u+rwx {0}", path)};
}

void check_cwd(const HostReport& host, const Folder& cwd, Ledger& to) {
  const auto path = shell_word(cwd.path);
  if (!cwd.exists)
    to.add(host, {Severity::bad,
                  Class::files,
                  fmt::format("the working directory {} does not exist", cwd.path),
                  {Where::there, "mkdir -p " + path}});
  else if (!cwd.can_enter)
    to.add(host, {Severity::bad,
                  Class::files,
                  fmt::format("the working directory {} cannot be entered", cwd.path),
                  {Where::there, "ls -ld " + path + "; chmod u+x " + path},
                  cwd.why_not});
  else if (!cwd.can_write)
    to.add(host, {Severity::warning, Class::files,
                  fmt::format("the working directory {} cannot be written to", cwd.path),
                  make_writable(cwd), cwd.why_not});
}

void check_space(const HostReport& host, const Folder& folder, Ledger& to) {
  if (!folder.can_write || folder.total_bytes == 0 || folder.free_bytes >= kNearlyFull) return;
  const auto path = shell_word(folder.path);
  to.add(host, {folder.free_bytes < kTooFull ? Severity::bad : Severity::warning,
                Class::files,
                fmt::format("{} is full: {} of {} are free", folder.path,
                            megabytes(folder.free_bytes), megabytes(folder.total_bytes)),
                {Where::there, fmt::format("df -h {0}; du -xah {0} | sort -h | tail -20", path)}});
}

void check_shared_memory(const HostReport& host, const Folder& shm, Ledger& to) {
  const auto needed = kSharedOfAWorker * static_cast<std::uint64_t>(std::max(1, host.workers));
  const Remedy grow{Where::there,
                    fmt::format("sudo mount -o remount,size={}G /dev/shm",
                                std::max<std::uint64_t>(1, host.seen->memory_bytes / 2 / kGiB))};
  if (!shm.can_write)
    to.add(host, {Severity::bad,
                  Class::files,
                  "/dev/shm is missing or cannot be written to",
                  {Where::there, "sudo mount -t tmpfs -o mode=1777 tmpfs /dev/shm"},
                  shm.why_not});
  else if (shm.total_bytes < std::max(needed, kSharedUsual))
    to.add(host, {shm.total_bytes < needed ? Severity::bad : Severity::warning, Class::files,
                  fmt::format("/dev/shm has {} only", megabytes(shm.total_bytes)), grow});
  else if (shm.free_bytes < needed)
    to.add(host, {Severity::bad,
                  Class::files,
                  fmt::format("/dev/shm is full: {} of {} are free", megabytes(shm.free_bytes),
                              megabytes(shm.total_bytes)),
                  {Where::there, "ls -lS /dev/shm | head"}});
}

void check_scratch(const HostReport& host, const Folder& folder, Ledger& to) {
  if (folder.path == "/dev/shm") return check_shared_memory(host, folder, to);
  const bool is_tmp = folder.path == "/tmp";
  if (!folder.can_write)
    to.add(host, {is_tmp ? Severity::bad : Severity::warning, Class::files,
                  fmt::format("{} cannot be written to",
                              is_tmp ? folder.path : "the home " + folder.path),
                  folder.exists ? make_writable(folder)
                                : Remedy{Where::there, "sudo mkdir -p " + shell_word(folder.path)},
                  folder.why_not});
  else if (is_tmp)
    check_space(host, folder, to);
}

// Where others have it, from whom it can be copied.
std::string path_elsewhere(const Consultation& consultation) {
  for (const HostReport& host : consultation.hosts)
    if (host.seen && host.seen->program && host.seen->program->can_run)
      return host.seen->program->path;
  return {};
}

// Whoever lacks a Python installs one; a program of the user's own is copied from here.
Remedy provide(const Consultation& consultation) {
  const std::string& name = consultation.program;
  const auto slash = name.rfind('/');
  if (name.substr(slash + 1).starts_with("python"))
    return {Where::there, "sudo apt-get install -y " + name.substr(slash + 1)};
  const auto path = slash == name.npos ? path_elsewhere(consultation) : name;
  if (path.empty()) return {Where::there, "sudo apt-get install -y " + shell_word(name)};
  return {Where::here, fmt::format("scp -p {0} %h:{0}", shell_word(path))};
}

void check_program(const Consultation& consultation, const HostReport& host, Ledger& to) {
  const FoundProgram& program = *host.seen->program;
  if (program.can_run) return;
  if (program.path.empty())
    to.add(host, {Severity::bad, Class::files,
                  fmt::format("the program {} is not there", consultation.program),
                  provide(consultation), program.why_not});
  else
    to.add(host, {Severity::bad,
                  Class::files,
                  fmt::format("the program {} may not be executed", program.path),
                  {Where::there, "chmod +x " + shell_word(program.path)},
                  program.why_not});
}

// Where it is not even here, its name may be wrong.
Remedy provide_script(const Consultation& consultation, const std::string& path) {
  if (consultation.script_is_here)
    return {Where::here, fmt::format("scp -p {0} %h:{0}", shell_word(path))};
  return {Where::here, "find . -name " + shell_word(path.substr(path.rfind('/') + 1))};
}

void check_script(const Consultation& consultation, const HostReport& host, Ledger& to) {
  const FoundScript& script = *host.seen->script;
  if (script.can_read) return;
  if (!script.exists)
    to.add(host,
           {Severity::bad, Class::files, fmt::format("the script {} is not there", script.path),
            provide_script(consultation, script.path), script.why_not});
  else
    to.add(host, {Severity::bad,
                  Class::files,
                  fmt::format("the script {} cannot be read", script.path),
                  {Where::there, "chmod u+r " + shell_word(script.path)},
                  script.why_not});
}

void check_troubles(const HostReport& host, Ledger& to) {
  for (const Trouble& trouble : host.seen->troubles) {
    if (trouble.about == Trouble::About::paths)
      to.add(host, {Severity::bad,
                    Class::files,
                    "the working directory or the program's does not answer",
                    {Where::there, "findmnt -t nfs,nfs4,lustre,fuse; dmesg | tail"},
                    trouble.text});
    if (trouble.about == Trouble::About::scratch)
      to.add(host, {Severity::bad,
                    Class::files,
                    "/tmp, /dev/shm or the home does not answer",
                    {Where::there, "findmnt -t nfs,nfs4,lustre,fuse; dmesg | tail"},
                    trouble.text});
  }
}

}  // namespace

void check_files(const Consultation& consultation, Ledger& to) {
  for (const HostReport& host : consultation.hosts) {
    if (!host.seen) continue;
    if (host.seen->cwd) {
      check_cwd(host, *host.seen->cwd, to);
      if (host.seen->cwd->path != "/tmp") check_space(host, *host.seen->cwd, to);
    }
    for (const Folder& folder : host.seen->scratch) check_scratch(host, folder, to);
    if (host.seen->program) check_program(consultation, host, to);
    if (host.seen->script) check_script(consultation, host, to);
    check_troubles(host, to);
  }
}

}  // namespace corro::launcher::doctor
