#include "launcher/hosts/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "launcher/hosts/gathering.h"

namespace corro::launcher {

namespace {

using Found = Result<std::optional<Allocation>>;

// Where a job looks for what it was given.
struct World {
  const ReadVariable& variable;
  const ReadFile& file;

  // Set, and not to nothing.
  std::optional<std::string> operator[](const std::string& name) const {
    auto value = variable(name);
    return value && !value->empty() ? value : std::nullopt;
  }
  std::optional<std::pair<std::string, std::string>> first_of(
      std::initializer_list<const char*> names) const {
    for (const std::string name : names)
      if (auto value = (*this)[name]) return std::pair(name, *value);
    return std::nullopt;
  }
};

std::string job_in_words(std::string_view scheduler, const std::optional<std::string>& job,
                         std::string_view source) {
  return fmt::format("{}{} ({})", scheduler, job ? " job " + *job : "", source);
}

Found allocation(std::string from, Result<HostList> list) {
  if (!list) return list.error();
  return std::optional(Allocation{std::move(from), std::move(*list)});
}

const std::optional<Allocation> kNone;

// Gives each word of a text to `use`.
template <class Use>
Parsed<Unit> for_each_word(std::string_view text, Use use) {
  for (std::size_t at = 0;;) {
    while (at < text.size() && is_blank(text[at])) ++at;
    if (at == text.size()) return Unit{};
    const auto from = at;
    while (at < text.size() && !is_blank(text[at])) ++at;
    if (Parsed<Unit> ok = use(text.substr(from, at - from), from); !ok) return ok;
  }
}

// Hosts with their slots, as what `read` gathers from a text.
template <class Read>
Result<HostList> gathered(const Text& text, Read read) {
  Gathering all;
  if (Parsed<Unit> ok = read(text.content, all); !ok) return ok.error().in(text);
  if (all.hosts().empty()) return Error(Errc::invalid_input, text.name + ": no host is named");
  return HostList{std::move(all.hosts()), all.notes()};
}

Parsed<Unit> add(Gathering& to, std::string_view name, std::size_t at, int slots) {
  auto item = parse_item(name, at);
  if (!item) return item.error();
  item->slots = slots;
  return to.add(*item);
}

// A word for each slot: "h1 h1 h2", or a line for each.  If none is there twice, they are the
// nodes, and how many slots each has was not said.
Parsed<Unit> read_words(std::string_view text, Gathering& to) {
  auto ok = for_each_word(
      text, [&](std::string_view name, std::size_t at) { return add(to, name, at, 1); });
  if (ok && !to.has_twice())
    for (HostSpec& host : to.hosts()) host.slots = 0;
  return ok;
}

// "h1 4 h2 4".
Parsed<Unit> read_pairs(std::string_view text, Gathering& to) {
  std::string_view host;
  std::size_t host_at = 0;
  auto ok = for_each_word(text, [&](std::string_view word, std::size_t at) -> Parsed<Unit> {
    if (host.empty()) {
      host = word;
      host_at = at;
      return Unit{};
    }
    const auto slots = parse_slots(word, at);
    if (!slots) return slots.error();
    return add(to, std::exchange(host, {}), host_at, *slots);
  });
  if (ok && !host.empty())
    return Fault{{host_at, host.size()}, "the slots of this host are missing", ""};
  return ok;
}

// "host slots queue range" in each line.
Parsed<Unit> read_table(std::string_view text, Gathering& to) {
  std::size_t at = 0;
  for (const auto line : split(text, '\n')) {
    std::vector<std::pair<std::string_view, std::size_t>> words;
    (void)for_each_word(line, [&](std::string_view word, std::size_t in_line) -> Parsed<Unit> {
      words.emplace_back(word, at + in_line);
      return Unit{};
    });
    at += line.size() + 1;
    if (words.empty()) continue;
    const auto [host, host_at] = words[0];
    if (words.size() == 1)
      return Fault{{host_at, host.size()}, "the slots of this host are missing", ""};
    const auto slots = parse_slots(words[1].first, words[1].second);
    if (!slots) return slots.error();
    if (auto ok = add(to, host, host_at, *slots); !ok) return ok;
  }
  return Unit{};
}

template <class Read>
Found from_variable(const std::string& from, const std::string& value, Read read) {
  return allocation(from, gathered({from, value}, read));
}

template <class Read>
Found from_file(const World& world, const std::string& from, const std::string& path, Read read) {
  auto content = world.file(path);
  if (!content) return std::move(content.error()).during(from);
  auto list = gathered({path, *content, true}, read);
  if (!list) return std::move(list.error()).during(from);
  return allocation(from, std::move(list));
}

// "4(x3),2": 4, 4, 4 and 2.
Result<std::vector<int>> parse_counts(const Text& text) {
  std::vector<int> counts;
  std::size_t at = 0;
  for (const auto part : split(text.content, ',')) {
    const auto open = part.find("(x");
    const auto slots = parse_slots(part.substr(0, open), at);
    if (!slots) return slots.error().in(text);
    const bool is_closed = part.ends_with(')');
    const auto times = open == part.npos ? std::optional(1LL)
                       : is_closed       ? parse_int(part.substr(open + 2, part.size() - open - 3))
                                         : std::nullopt;
    if (!times || *times < 1 || *times > kHostsLimit - std::ssize(counts))
      return complaint(
          text, {at, part.size()},
          fmt::format("expected something like '4(x3)', for at most {} nodes", kHostsLimit));
    counts.insert(counts.end(), *times, *slots);
    at += part.size() + 1;
  }
  return counts;
}

// Slurm sets SLURM_TASKS_PER_NODE whether tasks were asked for or not; then it is the number of
// nodes or of CPUs, and means nothing.  Nor does it where it is for other nodes than these.
Result<std::vector<int>> slurm_tasks(const World& world, const std::string& from,
                                     std::size_t nodes) {
  const auto tasks = world.first_of({"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  if (!tasks || !world.first_of({"SLURM_NTASKS", "SLURM_NTASKS_PER_NODE"}))
    return std::vector<int>(nodes, 0);
  auto counts = parse_counts({fmt::format("{}, {}", from, tasks->first), tasks->second});
  if (counts && counts->size() != nodes) counts = std::vector<int>(nodes, 0);
  return counts;
}

// Slots for each of the nodes.  One task with four GPUs is how many ask for a node to start four
// workers on by themselves.
Result<std::vector<int>> slurm_slots(const World& world, const std::string& from,
                                     std::size_t nodes) {
  auto slots = slurm_tasks(world, from, nodes);
  const auto gpus = parse_int(world["SLURM_GPUS_ON_NODE"].value_or("0")).value_or(0);
  if (slots && gpus > 1 && gpus <= kSlotsLimit && !world["SLURM_NTASKS_PER_NODE"])
    for (int& each : *slots)
      if (each <= 1) each = static_cast<int>(gpus);
  return slots;
}

Found find_slurm(const World& world) {
  const auto job = world.first_of({"SLURM_JOB_ID", "SLURM_JOBID"});
  const auto list = world.first_of({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  if (!job || !list) return kNone;
  const auto from = job_in_words("Slurm", job->second, list->first);
  const auto names = parse_node_list({from, list->second});
  if (!names) return names.error();
  const auto slots = slurm_slots(world, from, names->size());
  if (!slots) return slots.error();
  return from_variable(from, list->second, [&](std::string_view text, Gathering& to) {
    for (std::size_t i = 0; i < names->size(); ++i)
      if (auto ok = to.add({(*names)[i], (*slots)[i], "", {}}, {0, text.size()}); !ok) return ok;
    return Parsed<Unit>(Unit{});
  });
}

// Where CSM runs jobs, the first host is the one that launches, and has no GPUs; of the others LSF
// counts the cores, and a worker is wanted for each GPU.
Found without_launch_node(const World& world, Found found) {
  if (!found || !*found || !world["CSM_ALLOCATION_ID"]) return found;
  auto& hosts = (*found)->list.hosts;
  if (hosts.size() > 1) hosts.erase(hosts.begin());
  for (HostSpec& host : hosts) host.slots = 0;
  return found;
}

Found find_lsf(const World& world) {
  const auto job = world["LSB_JOBID"];
  if (!job) return kNone;
  const auto from = [&](const char* source) { return job_in_words("LSF", job, source); };
  if (const auto hosts = world["LSB_MCPU_HOSTS"])
    return without_launch_node(world, from_variable(from("LSB_MCPU_HOSTS"), *hosts, read_pairs));
  if (const auto path = world["LSB_DJOB_HOSTFILE"])
    return without_launch_node(world,
                               from_file(world, from("LSB_DJOB_HOSTFILE"), *path, read_words));
  if (const auto hosts = world["LSB_HOSTS"])
    return without_launch_node(world, from_variable(from("LSB_HOSTS"), *hosts, read_words));
  return kNone;
}

Found find_pbs(const World& world) {
  const auto path = world["PBS_NODEFILE"];
  if (!path) return kNone;
  return from_file(world, job_in_words("PBS", world["PBS_JOBID"], "PBS_NODEFILE"), *path,
                   read_words);
}

Found find_sge(const World& world) {
  const auto path = world["PE_HOSTFILE"];
  if (!path) return kNone;
  return from_file(world, job_in_words("SGE", world["JOB_ID"], "PE_HOSTFILE"), *path, read_table);
}

Found from_host_file(const World& world, const std::string& from, const std::string& path) {
  auto content = world.file(path);
  if (!content) return std::move(content.error()).during(from);
  return allocation(from, parse_host_file({path, *content, true}));
}

// The operator writes a host file and points the MPI of the image to it.
Found find_mpi_operator(const World& world) {
  constexpr const char* kPath = "/etc/mpi/hostfile";
  const bool in_cluster = world["KUBERNETES_SERVICE_HOST"].has_value();
  const auto who = in_cluster ? "MPI operator" : "MPI's default host file";
  const auto named = world.first_of(
      {"OMPI_MCA_orte_default_hostfile", "I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE"});
  if (named && named->second != "none")  // Open MPI's word for it
    return from_host_file(world, fmt::format("{} ({})", who, named->first), named->second);
  if (!in_cluster) return kNone;
  auto found = from_host_file(world, fmt::format("{} ({})", who, kPath), kPath);
  if (!found && found.error().code() == Errc::not_found) return kNone;
  return found;
}

}  // namespace

Found find_allocation(const ReadVariable& variable, const ReadFile& file) {
  const World world{variable, file};
  for (const auto find : {find_slurm, find_lsf, find_pbs, find_sge, find_mpi_operator}) {
    auto found = find(world);
    if (!found || *found) return found;
  }
  return kNone;
}

}  // namespace corro::launcher
