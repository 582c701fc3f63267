#include "launcher/job/arrangement.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace corro::launcher {

namespace {

// Two hosts with two workers each, whose routes are known.
struct Scene {
  Scene() {
    spec.np = 4;
    spec.hosts = {{"a", 2}, {"b", 2}};
    spec.command = {"python", "train.py"};
    spec.cwd = "/data";
    spec.umask = 027;
    plan = *make_plan(spec.hosts, spec.np, 0);
    routes = {{{"a", {"eth0", "10.0.0.1", 4000, 0}}, {"b", {"ib0", "10.0.0.2", 4001, 0}}},
              {"eth1", "10.0.0.9", 4002, 0}};
    facts["a"].cores = 8;
    facts["a"].free_port = 29500;
    facts["b"].cores = 2;
    facts["b"].free_port = 29501;
    for (auto& [host, known] : facts) known.doors = {routes.hosts.at(host)};
  }

  agent::Start start_of(int rank) const {
    return Arrangement(spec, plan, {}, {"10.0.0.9", 5000}, routes, facts, workers).start_of(rank);
  }

  JobSpec spec;
  Plan plan;
  Routes routes;
  FactsByHost facts;
  std::vector<Place> workers = std::vector<Place>(4);
};

std::string variable(const agent::Start& start, const std::string& name) {
  for (const std::string& each : start.env)
    if (each.starts_with(name + "=")) return each.substr(name.size() + 1);
  return "none";
}

}  // namespace

TEST_CASE("a worker is started with its command, its rank and the job's store") {
  const Scene scene;
  const auto start = scene.start_of(2);
  CHECK(start.worker == 2);
  CHECK(start.argv == std::vector<std::string>{"python", "train.py"});
  CHECK(start.cwd == "/data");
  CHECK(start.umask == 027);
  CHECK(variable(start, "HOROVOD_RANK") == "2");
  CHECK(variable(start, "HOROVOD_LOCAL_RANK") == "0");
  const auto has = [&](const std::string& text) {
    return std::any_of(start.env.begin(), start.env.end(),
                       [&](const std::string& each) { return each.ends_with("=" + text); });
  };
  CHECK(has("10.0.0.9:5000"));  // the store
  CHECK(has("10.0.0.2"));       // where it listens for its peers
}

TEST_CASE("the master is the first host, at the port that was free there") {
  const Scene scene;
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(variable(scene.start_of(rank), "MASTER_ADDR") == "10.0.0.1");
    CHECK(variable(scene.start_of(rank), "MASTER_PORT") == "29500");
  }
}

TEST_CASE("each worker gets its own GPU and CPUs, and its part of the host's cores") {
  Scene scene;
  scene.workers[1] = {{{"CUDA_VISIBLE_DEVICES", "1"}}, {4, 5}};
  CHECK(scene.start_of(1).cpus == Cpus{4, 5});
  CHECK(variable(scene.start_of(1), "CUDA_VISIBLE_DEVICES") == "1");
  CHECK(scene.start_of(0).cpus.empty());
  CHECK(variable(scene.start_of(0), "CUDA_VISIBLE_DEVICES") == "none");
  CHECK(variable(scene.start_of(0), "OMP_NUM_THREADS") == "4");
  CHECK(variable(scene.start_of(2), "OMP_NUM_THREADS") == "1");
}

TEST_CASE("only the worker that reads stdin has input") {
  Scene scene;
  scene.spec.stdin_to = {StdinTo::Who::rank, 3};
  CHECK(scene.start_of(3).has_input);
  CHECK_FALSE(scene.start_of(0).has_input);
}

}  // namespace corro::launcher
