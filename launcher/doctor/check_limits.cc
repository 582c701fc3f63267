#include <fmt/format.h>

#include <algorithm>

#include "launcher/doctor/ledger.h"

namespace corro::launcher::doctor {

namespace {

using Where = Remedy::Where;

constexpr std::uint64_t kMiB = 1 << 20;

// What a worker has open besides a connection to each other one: libraries, data, pipes.
constexpr std::uint64_t kFilesOfItsOwn = 256;
constexpr std::uint64_t kFilesUsual = 1024;  // what a login has if nobody has touched it
// PyTorch starts a thread for each core, for each GPU, and for loading data.
constexpr std::uint64_t kThreadsOfAWorker = 32;
constexpr std::uint64_t kThreadsUsual = 1024;
// RDMA and CUDA pin the buffers that they move; NCCL's have some MiB for each peer.
constexpr std::uint64_t kPinnedByGpus = 64 * kMiB;
constexpr std::uint64_t kPinnedUsual = 1 * kMiB;
constexpr std::uint64_t kMemoryOfAWorker = 256 * kMiB;

std::string bytes_text(std::uint64_t bytes) {
  if (bytes < kMiB) return fmt::format("{} KiB", bytes >> 10);
  if (bytes < 10240 * kMiB) return fmt::format("{} MiB", bytes >> 20);
  return fmt::format("{} GiB", bytes >> 30);
}

// In this shell if the user may; else for all logins, and only root can say so.
Remedy raise(const HostReport& host, const Limit& limit, const char* name, char letter,
             const std::string& to) {
  const bool unlimited = to == "unlimited";
  const bool may = limit.hard == Limit::kNone ||
                   (!unlimited && limit.hard >= static_cast<std::uint64_t>(std::stoll(to)));
  if (host.is_here && may) return {Where::there, fmt::format("ulimit -{} {}", letter, to)};
  return {
      Where::there,
      fmt::format("echo '* - {} {}' | sudo tee -a /etc/security/limits.d/corro.conf", name, to)};
}

int all_workers(const Consultation& consultation) {
  int all = 0;
  for (const HostReport& host : consultation.hosts) all += host.workers;
  return all;
}

void check_nofile(const HostReport& host, int np, Ledger& to) {
  const Limit& limit = host.seen->nofile;
  const auto needed = kFilesOfItsOwn + static_cast<std::uint64_t>(np);
  if (limit.soft >= std::max(needed, kFilesUsual)) return;
  to.add(host,
         {limit.soft < needed ? Severity::bad : Severity::warning, Class::limits,
          fmt::format("a process may have {} files open (nofile), and a worker needs about {}",
                      limit.soft, needed),
          raise(host, limit, "nofile", 'n', "65536")});
}

void check_nproc(const HostReport& host, Ledger& to) {
  const Limit& limit = host.seen->nproc;
  const auto needed = kThreadsOfAWorker * static_cast<std::uint64_t>(std::max(1, host.workers));
  if (host.seen->is_root || limit.soft >= std::max(needed, kThreadsUsual)) return;
  to.add(host, {limit.soft < needed ? Severity::bad : Severity::warning, Class::limits,
                fmt::format("a user may have {} threads (nproc), and the workers need about {}",
                            limit.soft, needed),
                raise(host, limit, "nproc", 'u', "65536")});
}

bool has_fast_network(const Inspection& seen) {
  return std::any_of(seen.nics.begin(), seen.nics.end(),
                     [](const Nic& nic) { return nic.name.starts_with("ib"); });
}

void check_memlock(const HostReport& host, Ledger& to) {
  const bool pins = !host.seen->gpus.empty() || has_fast_network(*host.seen);
  const Limit& limit = host.seen->memlock;
  if (limit.soft >= (pins ? kPinnedByGpus : kPinnedUsual)) return;
  to.add(host, {pins ? Severity::warning : Severity::note, Class::limits,
                fmt::format("a process may lock {} of memory (memlock), which RDMA and GPUs need "
                            "more of",
                            bytes_text(limit.soft)),
                raise(host, limit, "memlock", 'l', "unlimited")});
}

void check_cores(const HostReport& host, Ledger& to) {
  const auto cores = static_cast<int>(host.seen->cores);
  if (host.workers <= cores) return;
  to.add(host, {Severity::warning,
                Class::limits,
                fmt::format("{} workers would share {} cores", host.workers, cores),
                {Where::here, fmt::format("horovodrun -H %h:{} …", cores)}});
}

void check_memory(const HostReport& host, Ledger& to) {
  const auto needed = kMemoryOfAWorker * static_cast<std::uint64_t>(std::max(1, host.workers));
  if (host.seen->memory_bytes == 0 || host.seen->available_bytes >= needed) return;
  to.add(host,
         {Severity::warning,
          Class::limits,
          fmt::format("{} of {} of memory are available", bytes_text(host.seen->available_bytes),
                      bytes_text(host.seen->memory_bytes)),
          {Where::there, "ps -eo rss,pid,user,args --sort=-rss | head"}});
}

}  // namespace

void check_limits(const Consultation& consultation, Ledger& to) {
  const int np = all_workers(consultation);
  for (const HostReport& host : consultation.hosts) {
    if (!host.seen || host.seen->hostname.empty()) continue;
    check_nofile(host, np, to);
    check_nproc(host, to);
    check_memlock(host, to);
    check_cores(host, to);
    check_memory(host, to);
  }
}

}  // namespace corro::launcher::doctor
