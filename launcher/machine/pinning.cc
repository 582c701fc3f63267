#include "launcher/machine/pinning.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/assert.h"
#include "base/text.h"

namespace corro::launcher {

namespace {

constexpr std::size_t kMostListed = 8;

// One of the devices that a host shows.
struct Entry {
  std::string name;  // in CUDA_VISIBLE_DEVICES
  const Gpu* gpu = nullptr;
  const GpuInstance* instance = nullptr;
};
using Entries = std::vector<Entry>;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// "a, b and c", or the first few and how many more.
std::string listed(const std::vector<std::string>& items) {
  std::string out;
  const std::size_t shown = items.size() > kMostListed + 1 ? kMostListed : items.size();
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == items.size();
    out += (i == 0 ? "" : last ? " and " : ", ") + items[i];
  }
  if (shown < items.size()) out += fmt::format(" and {} more", items.size() - shown);
  return out;
}

std::string called(const Entry& entry) {
  return parse_int(entry.name) ? "GPU " + entry.name : entry.name;
}

// CUDA and the driver count alike.
bool order_is_known(const HostGpus& host) {
  return host.pci_order || std::all_of(host.gpus.begin(), host.gpus.end(), [&](const Gpu& gpu) {
           return gpu.name == host.gpus.front().name;
         });
}

Entries all_devices(const HostGpus& host) {
  const bool any_split =
      std::any_of(host.gpus.begin(), host.gpus.end(), [](const Gpu& gpu) { return gpu.is_split; });
  const bool known = any_split || order_is_known(host);
  Entries entries;
  for (std::size_t i = 0; i < host.gpus.size(); ++i) {
    const Gpu& gpu = host.gpus[i];
    // How CUDA counts beside GPUs that are split is nowhere said, so there names are used.
    if (!gpu.is_split)
      entries.push_back({any_split ? gpu.uuid : std::to_string(i), known ? &gpu : nullptr});
    else
      for (const GpuInstance& part : gpu.instances) entries.push_back({part.uuid, &gpu, &part});
  }
  return entries;
}

// Everything that a UUID or the beginning of one fits.  An instance has two names: "MIG-<uuid>"
// and, before driver 470, "MIG-<uuid of the GPU>/<GPU instance>/<compute instance>".
Entries devices_named(std::string_view name, const HostGpus& host) {
  Entries found;
  for (const Gpu& gpu : host.gpus) {
    if (name.starts_with("GPU-") && gpu.uuid.starts_with(name))
      found.push_back({std::string(name), &gpu});
    for (const GpuInstance& part : gpu.instances) {
      const auto old_name =
          fmt::format("MIG-{}/{}/{}", gpu.uuid, part.gpu_instance, part.compute_instance);
      if (name.starts_with("MIG-") && (part.uuid.starts_with(name) || old_name == name))
        found.push_back({std::string(name), &gpu, &part});
    }
  }
  return found;
}

bool is_named_in_full(const Entry& entry) {
  return entry.name == (entry.instance ? entry.instance->uuid : entry.gpu->uuid);
}

Error wrong_mask(const HostGpus& host, std::string_view what) {
  return Error(Errc::invalid_input,
               fmt::format("{}: CUDA_VISIBLE_DEVICES={}: {}", host.host, *host.mask, what));
}

Result<Entry> device_at(long long index, const HostGpus& host) {
  const auto gpus = static_cast<long long>(host.gpus.size());
  if (index >= gpus)
    return wrong_mask(
        host, gpus == 1 ? fmt::format("there is no GPU {}, only GPU 0", index)
                        : fmt::format("there is no GPU {}, only GPUs 0 to {}", index, gpus - 1));
  const Gpu* gpu = order_is_known(host) ? &host.gpus[static_cast<std::size_t>(index)] : nullptr;
  return Entry{std::to_string(index), gpu};
}

Result<Entry> device_called(std::string_view name, const HostGpus& host) {
  Entries found = devices_named(name, host);
  for (Entry& entry : found)
    if (found.size() == 1 || is_named_in_full(entry)) return std::move(entry);
  return wrong_mask(host, found.empty() ? fmt::format("there is no device '{}'", name)
                                        : fmt::format("'{}' fits {} devices", name, found.size()));
}

bool same_device(const Entry& a, const Entry& b) {
  return a.name == b.name || (a.gpu && a.gpu == b.gpu && a.instance == b.instance);
}

// As CUDA reads it: a number below zero, and what Slurm and Torque write for "none", ends the list.
Result<Entries> masked_devices(const HostGpus& host) {
  Entries entries;
  if (trimmed(*host.mask).empty()) return entries;
  for (const auto part : split(*host.mask, ',')) {
    const auto name = trimmed(part);
    const auto index = parse_int(name);
    if (name == "NoDevFiles" || (index && *index < 0)) break;
    auto entry = index ? device_at(*index, host) : device_called(name, host);
    if (!entry) return entry.error();
    const bool twice = std::any_of(entries.begin(), entries.end(),
                                   [&](const Entry& e) { return same_device(e, *entry); });
    if (twice)
      return wrong_mask(
          host, fmt::format("{} is there twice, and CUDA shows no GPU then", called(*entry)));
    entries.push_back(std::move(*entry));
  }
  return entries;
}

Result<Entries> devices_of(const HostGpus& host) {
  if (host.gpus.empty()) return Entries();
  return host.mask ? masked_devices(host) : all_devices(host);
}

std::size_t entry_for(const Seat& seat, const Entries& entries) {
  CORRO_ASSERT(seat.slot >= 0);
  return static_cast<std::size_t>(seat.slot) % entries.size();
}

// The devices of the job here, as positions in the list.
std::set<std::size_t> used_by(const std::vector<Seat>& seats, const Entries& entries) {
  std::set<std::size_t> used;
  for (const Seat& seat : seats) used.insert(entry_for(seat, entries));
  return used;
}

WorkerGpu without_gpu(const Seat& seat) {
  return {.rank = seat.rank, .variables = {}, .device = {}};
}

WorkerGpu worker_with(const Seat& seat, const Entry& entry) {
  return {.rank = seat.rank,
          .variables = {},
          .device = entry.name,
          .gpu = entry.gpu ? entry.gpu->index : -1,
          .numa_node = entry.gpu ? entry.gpu->numa_node : -1};
}

std::vector<WorkerGpu> one_each(const HostGpus& host, const Entries& entries) {
  std::vector<WorkerGpu> workers;
  for (const Seat& seat : host.seats) {
    const Entry& own = entries[entry_for(seat, entries)];
    WorkerGpu& worker = workers.emplace_back(worker_with(seat, own));
    worker.variables = {{"CUDA_VISIBLE_DEVICES", own.name}, {"CORRO_GPU", "0"}};
  }
  return workers;
}

std::vector<WorkerGpu> all_for_all(const HostGpus& host, const Entries& entries) {
  const auto used = used_by(host.seats, entries);
  std::string visible;
  for (const std::size_t i : used) visible += (visible.empty() ? "" : ",") + entries[i].name;

  std::vector<WorkerGpu> workers;
  for (const Seat& seat : host.seats) {
    const std::size_t own = entry_for(seat, entries);
    WorkerGpu& worker = workers.emplace_back(worker_with(seat, entries[own]));
    if (used.size() < entries.size())
      worker.variables.emplace_back("CUDA_VISIBLE_DEVICES", visible);
    const auto position = std::distance(used.begin(), used.find(own));
    worker.variables.emplace_back("CORRO_GPU", std::to_string(position));
  }
  return workers;
}

std::optional<PinningTrouble> too_few(const HostGpus& host, const Entries& entries) {
  std::vector<std::string> without;
  for (const Seat& seat : host.seats)
    if (static_cast<std::size_t>(seat.slot) >= entries.size())
      without.push_back(
          fmt::format("rank {} is given {}", seat.rank, called(entries[entry_for(seat, entries)])));
  if (without.empty()) return std::nullopt;
  return PinningTrouble{
      false,
      fmt::format("{} has {} GPU{} for this job, and {} of its workers {} none of {} own: {}",
                  host.host, entries.size(), entries.size() == 1 ? "" : "s", without.size(),
                  without.size() == 1 ? "has" : "have", without.size() == 1 ? "its" : "their",
                  listed(without))};
}

// The server of CUDA's multi-process service holds a GPU so that others may share it.
bool is_in_the_way(const GpuHolder& holder) {
  return !holder.program.starts_with("nvidia-cuda-mps");
}

std::string described(const GpuHolder& holder) {
  std::string out = fmt::format("process {}", holder.pid);
  if (!holder.program.empty()) out += fmt::format(" ({})", holder.program);
  if (!holder.user.empty()) out += fmt::format(" of {}", holder.user);
  if (holder.memory_bytes > 0)
    out += fmt::format(" with {:.1f} GiB", static_cast<double>(holder.memory_bytes) / (1 << 30));
  return out;
}

std::optional<PinningTrouble> held(const HostGpus& host, const Entry& entry) {
  if (!entry.gpu) return std::nullopt;
  std::vector<std::string> holders;
  for (const GpuHolder& holder : entry.instance ? entry.instance->holders : entry.gpu->holders)
    if (is_in_the_way(holder)) holders.push_back(described(holder));
  if (holders.empty()) return std::nullopt;
  return PinningTrouble{false, fmt::format("{}: {} ({}) is held by {}", host.host, called(entry),
                                           entry.gpu->name, listed(holders))};
}

}  // namespace

int count_devices(const HostGpus& host) {
  const auto entries = devices_of(host);
  return entries ? static_cast<int>(entries->size()) : 0;
}

Pinning pin_gpus(const HostGpus& host, GpuPinning how) {
  Pinning nothing;
  for (const Seat& seat : host.seats) nothing.workers.push_back(without_gpu(seat));
  if (how == GpuPinning::none) return nothing;
  const auto entries = devices_of(host);
  if (!entries) nothing.troubles.push_back({true, entries.error().text()});
  if (!entries || entries->empty()) return nothing;

  const auto used = used_by(host.seats, *entries);
  const bool instances =
      std::any_of(used.begin(), used.end(), [&](std::size_t i) { return (*entries)[i].instance; });
  Pinning pinning;
  pinning.workers = how == GpuPinning::exclusive || instances ? one_each(host, *entries)
                                                              : all_for_all(host, *entries);
  if (auto trouble = too_few(host, *entries)) pinning.troubles.push_back(std::move(*trouble));
  for (const std::size_t i : used)
    if (auto trouble = held(host, (*entries)[i])) pinning.troubles.push_back(std::move(*trouble));
  return pinning;
}

std::vector<PinningTrouble> compare_hosts(const std::vector<HostGpus>& hosts, GpuPinning how) {
  if (how == GpuPinning::none) return {};
  std::vector<std::string> without;
  std::string with;
  for (const HostGpus& host : hosts) {
    const auto entries = devices_of(host);
    if (!entries || host.seats.empty()) continue;  // pin_gpus says what is wrong with a mask
    if (!entries->empty() && with.empty())
      with = fmt::format("{} has {}", host.host, entries->size());
    else if (entries->empty())
      without.push_back(host.gpus.empty() || !host.mask
                            ? host.host
                            : fmt::format("{} (CUDA_VISIBLE_DEVICES={})", host.host, *host.mask));
  }
  if (with.empty() || without.empty()) return {};
  const bool one = without.size() == 1;
  return {{true, fmt::format("{} {} no GPU, but {}: leave {} out with --exclude, or start the "
                             "workers with --gpu-pinning none",
                             listed(without), one ? "has" : "have", with, one ? "it" : "them")}};
}

}  // namespace corro::launcher
