#include "launcher/plan/recipe.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

namespace corro::launcher {

namespace {

const Key kKey = *Key::from_hex("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff");

const HostShare kShare{.ip = "10.0.0.7", .interface = "eth0", .cores = 8};

// A job on a:2,b:1, started with some environment.
struct Job {
  Setting setting{{"python", "train.py", "--lr", "0.1"},
                  {},
                  "/home/ada",
                  {"127.0.0.1", 4711},
                  {"10.0.0.1", 29500},
                  {},
                  kKey};
  Plan plan = *make_plan(std::vector<HostSpec>{{"a", 2}, {"b", 1}}, 3, 5);

  explicit Job(std::vector<std::string> env = {}) {
    setting.environment.inherited = std::move(env);
  }

  HostShare share = kShare;

  Recipe recipe(int rank) const {
    return Recipes(setting, plan).recipe_for(plan.slots[rank], share);
  }

  std::map<std::string, std::string> variables(int rank) const {
    std::map<std::string, std::string> out;
    for (const std::string& entry : recipe(rank).env) {
      const auto equals = entry.find('=');
      REQUIRE(out.emplace(entry.substr(0, equals), entry.substr(equals + 1)).second);
    }
    return out;
  }
};

}  // namespace

TEST_CASE("a worker learns its place, and where and how to meet the others") {
  auto variables = Job().variables(2);
  CHECK(variables ==
        std::map<std::string, std::string>{
            {"HOROVOD_HOSTNAME", "b"},
            {"HOROVOD_RANK", "2"},
            {"HOROVOD_SIZE", "3"},
            {"HOROVOD_LOCAL_RANK", "0"},
            {"HOROVOD_LOCAL_SIZE", "1"},
            {"HOROVOD_CROSS_RANK", "1"},
            {"HOROVOD_CROSS_SIZE", "2"},
            {"RANK", "2"},
            {"WORLD_SIZE", "3"},
            {"LOCAL_RANK", "0"},
            {"LOCAL_WORLD_SIZE", "1"},
            {"GROUP_RANK", "1"},
            {"MASTER_ADDR", "10.0.0.1"},
            {"MASTER_PORT", "29500"},
            {"OMP_NUM_THREADS", "8"},
            {"CORRO_DEFAULTS",
             "OMP_NUM_THREADS,HOROVOD_GLOO_IFACE,NCCL_SOCKET_IFNAME,GLOO_SOCKET_IFNAME"},
            {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "127.0.0.1"},
            {"HOROVOD_GLOO_RENDEZVOUS_PORT", "4711"},
            {"HOROVOD_GLOO_IFACE", "eth0"},
            {"NCCL_SOCKET_IFNAME", "eth0"},
            {"GLOO_SOCKET_IFNAME", "eth0"},
            {"HOROVOD_CONTROLLER", "gloo"},
            {"HOROVOD_CPU_OPERATIONS", "gloo"},
            {"CORRO_STORE", "127.0.0.1:4711"},
            {"CORRO_JOB_KEY", kKey.hex()},
            {"CORRO_GENERATION", "5"},
            {"CORRO_ADDRESS", "10.0.0.7"},
            {"PYTHONUNBUFFERED", "1"},
        });
}

TEST_CASE("the command and the directory are the user's own") {
  const Recipe recipe = Job().recipe(1);
  CHECK(recipe.argv == std::vector<std::string>{"python", "train.py", "--lr", "0.1"});
  CHECK(recipe.cwd == "/home/ada");
}

TEST_CASE("a job that starts another gives it its own place") {
  Job outer, inner(outer.recipe(2).env), alone;
  for (Job* job : {&inner, &alone}) {
    job->setting.store = {"10.0.0.9", 99};
    job->setting.key = Key{};
  }
  CHECK(inner.variables(1) == alone.variables(1));
}

TEST_CASE("variables are passed on byte for byte") {
  const std::vector<std::string> env = {"LINES_=one\ntwo\n", "QUOTES='\"$(id)`\\",
                                        "EQUATION=a=b=c",    "EMPTY=",
                                        "BYTES=\xff\x01",    "PATH=/usr/bin:/bin"};
  const auto passed = Job(env).recipe(0).env;
  for (const std::string& entry : env) CHECK(std::count(passed.begin(), passed.end(), entry) == 1);
}

TEST_CASE("what belongs to the launcher's shell stays there") {
  const Job job({"OLDPWD=/tmp", "_=/usr/bin/horovodrun", "BASH_FUNC_module%%=() { :; }",
                 "_HOROVOD_SECRET_KEY=x", "OLDPWDS=kept", "_A=kept"});
  const auto variables = job.variables(0);
  for (const char* name : {"OLDPWD", "_", "BASH_FUNC_module%%", "_HOROVOD_SECRET_KEY"})
    CHECK_FALSE(variables.contains(name));
  CHECK(variables.at("OLDPWDS") == "kept");
  CHECK(variables.at("_A") == "kept");
}

TEST_CASE("what is no variable is left out, and of two of a name the first counts") {
  const auto variables =
      Job({"no equals sign", "=nameless", "TWICE=first", "TWICE=second"}).variables(0);
  CHECK(variables.at("TWICE") == "first");
  CHECK_FALSE(variables.contains(""));
  CHECK_FALSE(variables.contains("no equals sign"));
}

TEST_CASE("the key is in the environment and nowhere else") {
  const Recipe recipe = Job().recipe(0);
  for (const std::string& word : recipe.argv) CHECK(word.find(kKey.hex()) == word.npos);
  CHECK(recipe.cwd.find(kKey.hex()) == recipe.cwd.npos);
  CHECK(std::count_if(recipe.env.begin(), recipe.env.end(), [](const std::string& entry) {
          return entry.find(kKey.hex()) != entry.npos;
        }) == 1);
}

TEST_CASE("rules say which variables are inherited, and the last that fits counts") {
  Job job({"AWS_SECRET=s", "AWS_REGION=r", "PATH=/bin", "A=1"});
  const auto names = [&] {
    std::vector<std::string> out;
    for (const auto& [name, value] : user_variables(job.setting.environment)) out.push_back(name);
    return out;
  };
  using Names = std::vector<std::string>;
  CHECK(names() == Names{"A", "AWS_REGION", "AWS_SECRET", "PATH"});
  job.setting.environment.rules = {{"AWS_*", false}};
  CHECK(names() == Names{"A", "PATH"});
  job.setting.environment.rules = {{"AWS_*", false}, {"AWS_REGION", true}};
  CHECK(names() == Names{"A", "AWS_REGION", "PATH"});
  job.setting.environment.rules = {{"AWS_REGION", true}, {"*", false}};
  CHECK(names().empty());
  job.setting.environment.rules = {{"*", false}, {"[AP]*", true}, {"AWS_?ECRET", false}};
  CHECK(names() == Names{"A", "AWS_REGION", "PATH"});
}

TEST_CASE("what the user exports counts more than options, and they more than what is inherited") {
  Job job({"HOROVOD_CYCLE_TIME=1", "NCCL_DEBUG=WARN", "HOME=/home/ada"});
  job.setting.environment.rules = {{"*", false}};
  job.setting.environment.tunables = {"HOROVOD_CYCLE_TIME=2", "NCCL_DEBUG=INFO"};
  job.setting.environment.exported = {"NCCL_DEBUG=TRACE=x", "EMPTY="};
  auto variables = job.variables(0);
  CHECK(variables["HOROVOD_CYCLE_TIME"] == "2");
  CHECK(variables["NCCL_DEBUG"] == "TRACE=x");
  CHECK(variables.contains("EMPTY"));
  CHECK_FALSE(variables.contains("HOME"));
}

TEST_CASE("a worker's place cannot be overwritten") {
  Job job;
  job.setting.environment.exported = {"HOROVOD_RANK=7", "CORRO_STORE=elsewhere:1"};
  CHECK(job.variables(2).at("HOROVOD_RANK") == "2");
  CHECK(job.variables(2).at("CORRO_STORE") == "127.0.0.1:4711");
  CHECK(is_ours("HOROVOD_RANK"));
  CHECK(is_ours("CORRO_JOB_KEY"));
  CHECK_FALSE(is_ours("HOROVOD_CYCLE_TIME"));
}

TEST_CASE("workers of a host share its cores, unless the user says how many threads they have") {
  CHECK(Job().variables(0).at("OMP_NUM_THREADS") == "4");  // two of them on a
  CHECK(Job().variables(2).at("OMP_NUM_THREADS") == "8");
  CHECK(Job({"OMP_NUM_THREADS=3"}).variables(0).at("OMP_NUM_THREADS") == "3");
  Slot crowded{.local_size = 20};
  CHECK(default_variables(crowded, kShare).front().second == "1");
}

TEST_CASE("an interface that the user's variables name is kept") {
  const auto variables = Job({"NCCL_SOCKET_IFNAME=ib0"}).variables(0);
  CHECK(variables.at("NCCL_SOCKET_IFNAME") == "ib0");
  CHECK(variables.at("GLOO_SOCKET_IFNAME") == "eth0");
}

TEST_CASE("interfaces that the user's options name count more, and -x still more") {
  Job job({"NCCL_SOCKET_IFNAME=wlan0", "GLOO_SOCKET_IFNAME=wlan0"});
  job.share.chosen = {"ib0", "eth0"};
  job.setting.environment.exported = {"GLOO_SOCKET_IFNAME=ib0"};
  const auto variables = job.variables(0);
  CHECK(variables.at("NCCL_SOCKET_IFNAME") == "ib0,eth0");
  CHECK(variables.at("HOROVOD_GLOO_IFACE") == "eth0");  // by which the host is known
  CHECK(variables.at("GLOO_SOCKET_IFNAME") == "ib0");
  CHECK(variables.at("CORRO_DEFAULTS") == "OMP_NUM_THREADS");
}

}  // namespace corro::launcher
