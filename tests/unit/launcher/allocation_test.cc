#include "launcher/hosts/allocation.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>

namespace corro::launcher {

namespace {

using Hosts = std::vector<HostSpec>;
using Strings = std::map<std::string, std::string>;

// A machine with these variables and files.
Result<std::optional<Allocation>> find(const Strings& variables, const Strings& files = {}) {
  return find_allocation(
      [&](const std::string& name) -> std::optional<std::string> {
        const auto i = variables.find(name);
        return i == variables.end() ? std::nullopt : std::optional(i->second);
      },
      [&](const std::string& path) -> Result<std::string> {
        const auto i = files.find(path);
        if (i == files.end())
          return Error(Errc::not_found, fmt::format("opening {}: No such file or directory", path));
        return i->second;
      });
}

Allocation found(const Strings& variables, const Strings& files = {}) {
  const auto allocation = find(variables, files);
  if (!allocation) FAIL(allocation.error().text());
  REQUIRE(*allocation);
  return **allocation;
}

Strings slurm(Strings more = {}) {
  more.insert({{"SLURM_JOB_ID", "4711"}, {"SLURM_JOB_NODELIST", "n[1-3]"}});
  return more;
}

}  // namespace

TEST_CASE("without a scheduler nothing is found") {
  CHECK(*find({}) == std::nullopt);
  CHECK(*find({{"SLURM_JOB_ID", "1"}}) == std::nullopt);
  CHECK(*find({{"SLURM_JOB_NODELIST", "a"}}) == std::nullopt);
  CHECK(*find({{"SLURM_JOB_ID", ""}, {"SLURM_JOB_NODELIST", "a"}}) == std::nullopt);
  CHECK(*find({{"LSB_JOBID", "1"}}) == std::nullopt);
  CHECK(*find({{"PBS_JOBID", "1"}}) == std::nullopt);
  CHECK(*find({}, {{"/etc/mpi/hostfile", "a:1"}}) == std::nullopt);
}

TEST_CASE("Slurm's nodes have the tasks that were asked for") {
  const Allocation a = found(slurm({{"SLURM_NTASKS", "10"}, {"SLURM_TASKS_PER_NODE", "4(x2),2"}}));
  CHECK(a.from == "Slurm job 4711 (SLURM_JOB_NODELIST)");
  CHECK(a.list.hosts == Hosts{{"n1", 4}, {"n2", 4}, {"n3", 2}});
  CHECK(found({{"SLURM_JOBID", "7"}, {"SLURM_NODELIST", "a,b"}}) ==
        Allocation{"Slurm job 7 (SLURM_NODELIST)", {Hosts{{"a", 0}, {"b", 0}}, {}}});
}

TEST_CASE("where no tasks were asked for, a node has its GPUs, or what is counted later") {
  const Hosts unknown = {{"n1", 0}, {"n2", 0}, {"n3", 0}};
  CHECK(found(slurm()).list.hosts == unknown);
  CHECK(found(slurm({{"SLURM_TASKS_PER_NODE", "48(x3)"}})).list.hosts == unknown);
  CHECK(found(slurm({{"SLURM_GPUS_ON_NODE", "0"}})).list.hosts == unknown);
  CHECK(
      found(slurm({{"SLURM_TASKS_PER_NODE", "48(x3)"}, {"SLURM_GPUS_ON_NODE", "8"}})).list.hosts ==
      Hosts{{"n1", 8}, {"n2", 8}, {"n3", 8}});
  CHECK(found(slurm({{"SLURM_NTASKS_PER_NODE", "2"},
                     {"SLURM_TASKS_PER_NODE", "2(x3)"},
                     {"SLURM_GPUS_ON_NODE", "8"}}))
            .list.hosts == Hosts{{"n1", 2}, {"n2", 2}, {"n3", 2}});
}

TEST_CASE("one task with several GPUs is a node to start several workers on") {
  CHECK(found(slurm({{"SLURM_NTASKS", "3"},
                     {"SLURM_TASKS_PER_NODE", "1(x3)"},
                     {"SLURM_GPUS_ON_NODE", "4"}}))
            .list.hosts == Hosts{{"n1", 4}, {"n2", 4}, {"n3", 4}});
}

TEST_CASE("in a step the nodes are the step's, and what is for other nodes counts for nothing") {
  CHECK(found(slurm({{"SLURM_STEP_NODELIST", "n2"},
                     {"SLURM_NTASKS", "2"},
                     {"SLURM_STEP_TASKS_PER_NODE", "2"}}))
            .list.hosts == Hosts{{"n2", 2}});
  CHECK(found(slurm({{"SLURM_NTASKS", "1"}, {"SLURM_TASKS_PER_NODE", "1"}})).list.hosts ==
        Hosts{{"n1", 0}, {"n2", 0}, {"n3", 0}});
}

TEST_CASE("what Slurm says must make sense") {
  const auto [name, value, complaint] = GENERATE(table<std::string, std::string, std::string>({
      {"SLURM_TASKS_PER_NODE", "4(x2),",
       "Slurm job 4711 (SLURM_JOB_NODELIST), SLURM_TASKS_PER_NODE: the number of slots is missing "
       "here\n  4(x2),\n        ^"},
      {"SLURM_TASKS_PER_NODE", "4(x99999999999)",
       "Slurm job 4711 (SLURM_JOB_NODELIST), SLURM_TASKS_PER_NODE: expected something like "
       "'4(x3)', for at most 131072 nodes\n  4(x99999999999)\n  ^~~~~~~~~~~~~~~"},
      {"SLURM_TASKS_PER_NODE", "4(x3",
       "Slurm job 4711 (SLURM_JOB_NODELIST), SLURM_TASKS_PER_NODE: expected something like "
       "'4(x3)', for at most 131072 nodes\n  4(x3\n  ^~~~"},
      {"SLURM_JOB_NODELIST", "n[1-3",
       "Slurm job 4711 (SLURM_JOB_NODELIST): this bracket is not closed\n"
       "  n[1-3\n   ^\n  Did you mean 'n[1-3]'?"},
  }));
  Strings variables = slurm({{"SLURM_NTASKS", "12"}, {"SLURM_TASKS_PER_NODE", "4(x3)"}});
  variables[name] = value;
  const auto allocation = find(variables);
  REQUIRE_FALSE(allocation);
  CHECK(allocation.error() == Error(Errc::invalid_input, complaint));
}

TEST_CASE("LSF's hosts come from whichever variable it sets") {
  const Hosts hosts = {{"h1", 2}, {"h2", 1}};
  CHECK(found({{"LSB_JOBID", "12"}, {"LSB_MCPU_HOSTS", "h1 2 h2 1"}, {"LSB_HOSTS", "x"}}) ==
        Allocation{"LSF job 12 (LSB_MCPU_HOSTS)", {hosts, {}}});
  CHECK(found({{"LSB_JOBID", "12"}, {"LSB_DJOB_HOSTFILE", "/job"}}, {{"/job", "h1\nh1\nh2\n"}}) ==
        Allocation{"LSF job 12 (LSB_DJOB_HOSTFILE)", {hosts, {}}});
  CHECK(found({{"LSB_JOBID", "12"}, {"LSB_HOSTS", "h1 h1 h2"}}) ==
        Allocation{"LSF job 12 (LSB_HOSTS)", {hosts, {}}});
}

TEST_CASE("where CSM runs jobs, the host that launches is left out, unless it is the only one") {
  CHECK(found({{"LSB_JOBID", "12"},
               {"CSM_ALLOCATION_ID", "3"},
               {"LSB_MCPU_HOSTS", "batch01 1 h1 42 h2 42"}})
            .list.hosts == Hosts{{"h1", 0}, {"h2", 0}});
  CHECK(
      found({{"LSB_JOBID", "12"}, {"CSM_ALLOCATION_ID", "3"}, {"LSB_HOSTS", "h1 h1"}}).list.hosts ==
      Hosts{{"h1", 0}});
}

TEST_CASE("what LSF says must make sense") {
  CHECK(find({{"LSB_JOBID", "12"}, {"LSB_MCPU_HOSTS", "h1 4 h2"}}).error().text() ==
        "LSF job 12 (LSB_MCPU_HOSTS): the slots of this host are missing\n"
        "  h1 4 h2\n"
        "       ^~");
  CHECK(find({{"LSB_JOBID", "12"}, {"LSB_MCPU_HOSTS", "h1 h2"}}).error().text() ==
        "LSF job 12 (LSB_MCPU_HOSTS): slots must be a number from 0 to 1048576\n"
        "  h1 h2\n"
        "     ^~");
  CHECK(find({{"LSB_JOBID", "12"}, {"LSB_HOSTS", "  "}}).error().text() ==
        "LSF job 12 (LSB_HOSTS): no host is named");
}

TEST_CASE("PBS has a line for each slot, and one is enough") {
  CHECK(found({{"PBS_JOBID", "3.server"}, {"PBS_NODEFILE", "/aux/3"}},
              {{"/aux/3", "a\r\na\r\nb\r\n"}}) ==
        Allocation{"PBS job 3.server (PBS_NODEFILE)", {Hosts{{"a", 2}, {"b", 1}}, {}}});
  CHECK(find({{"PBS_JOBID", "3"}, {"PBS_NODEFILE", "/aux/3"}}).error().text() ==
        "PBS job 3 (PBS_NODEFILE): opening /aux/3: No such file or directory");
  CHECK(find({{"PBS_NODEFILE", "/aux/3"}}, {{"/aux/3", "a\nb;\n"}}).error().text() ==
        "PBS (PBS_NODEFILE): /aux/3:2:2: ';' does not belong in a host name\n"
        "  b;\n"
        "   ^");
}

TEST_CASE("SGE has hosts and slots in columns") {
  CHECK(found({{"JOB_ID", "9"}, {"PE_HOSTFILE", "/pe"}},
              {{"/pe", "a 4 all.q@a UNDEFINED\nb 2 all.q@b <NULL>\na 1 gpu.q@a UNDEFINED\n"}}) ==
        Allocation{"SGE job 9 (PE_HOSTFILE)", {Hosts{{"a", 5}, {"b", 2}}, {}}});
  CHECK(find({{"PE_HOSTFILE", "/pe"}}, {{"/pe", "a 4 q u\nb\n"}}).error().text() ==
        "SGE (PE_HOSTFILE): /pe:2:1: the slots of this host are missing\n"
        "  b\n"
        "  ^");
}

TEST_CASE("the MPI operator's host file is found by its variables or in its place") {
  const Strings files = {{"/etc/mpi/hostfile", "w-0.w slots=2\nw-1.w slots=2\n"},
                         {"/x", "w-0.w:2\nw-1.w:2\n"}};
  const Hosts hosts = {{"w-0.w", 2}, {"w-1.w", 2}};
  const std::pair<std::string, std::string> inside = {"KUBERNETES_SERVICE_HOST", "10.0.0.1"};
  CHECK(found({inside}, files) == Allocation{"MPI operator (/etc/mpi/hostfile)", {hosts, {}}});
  CHECK(found({inside, {"OMPI_MCA_orte_default_hostfile", "/x"}}, files) ==
        Allocation{"MPI operator (OMPI_MCA_orte_default_hostfile)", {hosts, {}}});
  CHECK(found({{"I_MPI_HYDRA_HOST_FILE", "/x"}}, files).from ==
        "MPI's default host file (I_MPI_HYDRA_HOST_FILE)");
  CHECK(found({{"HYDRA_HOST_FILE", "/x"}}, files).list.hosts == hosts);
  CHECK(*find({inside}) == std::nullopt);
  CHECK(*find({{"OMPI_MCA_orte_default_hostfile", "none"}}) == std::nullopt);
  CHECK(find({{"HYDRA_HOST_FILE", "/none"}}).error().text() ==
        "MPI's default host file (HYDRA_HOST_FILE): opening /none: No such file or directory");
}

TEST_CASE("a scheduler goes before the MPI operator, and Slurm before all") {
  Strings variables = slurm({{"PBS_NODEFILE", "/x"}, {"HYDRA_HOST_FILE", "/x"}});
  CHECK(found(variables, {{"/x", "p"}}).from.starts_with("Slurm"));
  variables.erase("SLURM_JOB_ID");
  CHECK(found(variables, {{"/x", "p"}}).from.starts_with("PBS"));
}

}  // namespace corro::launcher
