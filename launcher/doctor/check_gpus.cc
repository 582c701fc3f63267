#include <fmt/format.h>

#include <algorithm>

#include "launcher/doctor/agreement.h"
#include "launcher/doctor/ledger.h"

namespace corro::launcher::doctor {

namespace {

using Where = Remedy::Where;

std::string gpus_text(const Inspection& seen) {
  if (seen.gpus.empty()) return {};
  const bool same = std::all_of(seen.gpus.begin(), seen.gpus.end(),
                                [&](const Gpu& gpu) { return gpu.name == seen.gpus.front().name; });
  return fmt::format("{} × {}", seen.gpus.size(), same ? seen.gpus.front().name : "various");
}

bool has_trouble(const Inspection& seen) {
  return std::any_of(seen.troubles.begin(), seen.troubles.end(),
                     [](const Trouble& trouble) { return trouble.about == Trouble::About::gpus; });
}

void check_agreement(const Consultation& consultation, Ledger& to) {
  const Agreement gpus(consultation, gpus_text);
  for (const auto& [host, value] : gpus.odd_ones()) {
    if (gpus.usual().empty() || has_trouble(*host->seen)) continue;
    if (value.empty())
      to.add(*host, {Severity::bad,
                     Class::gpus,
                     fmt::format("it has no GPUs, elsewhere there are {}", gpus.usual()),
                     {Where::there, "lspci | grep -i nvidia; sudo modprobe nvidia; nvidia-smi"}});
    else
      to.add(*host, {Severity::warning,
                     Class::gpus,
                     fmt::format("it has {}, elsewhere there are {}", value, gpus.usual()),
                     {Where::there, "nvidia-smi -L"}});
  }
}

void check_driver(const HostReport& host, Ledger& to) {
  for (const Trouble& trouble : host.seen->troubles)
    if (trouble.about == Trouble::About::gpus)
      to.add(host, {Severity::bad,
                    Class::gpus,
                    "the NVIDIA driver does not answer as it should",
                    {Where::there, "nvidia-smi; sudo dmesg | grep -i nvrm | tail"},
                    trouble.text});
  const auto& libraries = host.seen->libraries;
  const auto library = std::find_if(libraries.begin(), libraries.end(),
                                    [](const Installed& i) { return i.name == "libcuda"; });
  if (host.seen->driver.empty() || library == libraries.end() ||
      library->version == host.seen->driver)
    return;
  to.add(host, {Severity::bad,
                Class::gpus,
                fmt::format("the kernel has driver {} loaded, and libcuda is of {}",
                            host.seen->driver, library->version),
                {Where::there,
                 "sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia; sudo modprobe nvidia"}});
}

void check_share(const HostReport& host, Ledger& to) {
  const auto count = static_cast<int>(host.seen->gpus.size());
  const bool split = std::any_of(host.seen->gpus.begin(), host.seen->gpus.end(),
                                 [](const Gpu& gpu) { return gpu.is_split; });
  if (count > 0 && !split && host.workers > count)
    to.add(host, {Severity::warning,
                  Class::gpus,
                  fmt::format("{} workers would share {} GPUs", host.workers, count),
                  {Where::here, fmt::format("horovodrun -H %h:{} …", count)}});
  for (const Gpu& gpu : host.seen->gpus)
    for (const GpuHolder& holder : gpu.holders)
      to.add(host, {Severity::warning,
                    Class::gpus,
                    fmt::format("GPU {} is used by process {} ({}{}{})", gpu.index, holder.pid,
                                holder.program, holder.user.empty() ? "" : " of ", holder.user),
                    {Where::there, fmt::format("ps -fp {0}; kill {0}", holder.pid)}});
}

}  // namespace

void check_gpus(const Consultation& consultation, Ledger& to) {
  check_agreement(consultation, to);
  for (const HostReport& host : consultation.hosts)
    if (host.seen) {
      check_driver(host, to);
      check_share(host, to);
    }
}

}  // namespace corro::launcher::doctor
