#include "launcher/machine/pinning.h"

#include <fmt/format.h>
#include <rapidcheck/catch.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "base/text.h"

namespace corro::launcher {

namespace {

using Strings = std::vector<std::string>;

// GPU-a0…, GPU-a1…, … on alternating NUMA nodes.
std::vector<Gpu> gpus(int n, const std::string& name = "A100") {
  std::vector<Gpu> out;
  for (int i = 0; i < n; ++i) {
    Gpu& gpu = out.emplace_back();
    gpu.index = i;
    gpu.name = name;
    gpu.uuid = fmt::format("GPU-a{}-1234", i);
    gpu.numa_node = i % 2;
  }
  return out;
}

void split_up(Gpu& gpu, const Strings& uuids) {
  gpu.is_split = true;
  for (const auto& uuid : uuids) {
    GpuInstance& part = gpu.instances.emplace_back();
    part.uuid = uuid;
    part.gpu_instance = static_cast<int>(gpu.instances.size());
  }
}

// Ranks from 4 on, so that none is taken for a slot.
std::vector<Seat> seats(const std::vector<int>& slots) {
  std::vector<Seat> out;
  for (const int slot : slots) out.push_back({4 + static_cast<int>(out.size()), slot});
  return out;
}

HostGpus host(std::vector<Gpu> has, const std::vector<int>& slots,
              std::optional<std::string> mask = std::nullopt) {
  return {.host = "a", .gpus = std::move(has), .mask = std::move(mask), .seats = seats(slots)};
}

// "CUDA_VISIBLE_DEVICES CORRO_GPU" of each worker, '-' for what is not set.
Strings told(const Pinning& pinning) {
  Strings out;
  for (const WorkerGpu& worker : pinning.workers) {
    const auto value = [&](const std::string& name) {
      for (const auto& [n, v] : worker.variables)
        if (n == name) return v;
      return std::string("-");
    };
    out.push_back(value("CUDA_VISIBLE_DEVICES") + " " + value("CORRO_GPU"));
  }
  return out;
}

Strings texts(const std::vector<PinningTrouble>& troubles) {
  Strings out;
  for (const PinningTrouble& trouble : troubles)
    out.push_back((trouble.fatal ? "error: " : "warning: ") + trouble.text);
  return out;
}

std::vector<int> positions(const Pinning& pinning) {
  std::vector<int> out;
  for (const WorkerGpu& worker : pinning.workers) out.push_back(worker.gpu);
  return out;
}

}  // namespace

TEST_CASE("slot i is given GPU i") {
  SECTION("indexed: it sees those of all, in order, and is told which one is its own") {
    CHECK(told(pin_gpus(host(gpus(2), {0, 1}), GpuPinning::indexed)) == Strings{"- 0", "- 1"});
    CHECK(told(pin_gpus(host(gpus(4), {0, 1}), GpuPinning::indexed)) == Strings{"0,1 0", "0,1 1"});
    CHECK(told(pin_gpus(host(gpus(4), {1, 3}), GpuPinning::indexed)) == Strings{"1,3 0", "1,3 1"});
    CHECK(told(pin_gpus(host(gpus(4), {3, 1}), GpuPinning::indexed)) == Strings{"1,3 1", "1,3 0"});
  }
  SECTION("exclusive: it sees its own only") {
    CHECK(told(pin_gpus(host(gpus(2), {0, 1}), GpuPinning::exclusive)) == Strings{"0 0", "1 0"});
    CHECK(told(pin_gpus(host(gpus(4), {1, 3}), GpuPinning::exclusive)) == Strings{"1 0", "3 0"});
  }
  SECTION("none: nothing is set, nothing is said") {
    auto held = gpus(1);
    held[0].holders = {{.pid = 7, .user = "ada", .program = ""}};
    const auto pinning = pin_gpus(host(held, {0, 1}, "77"), GpuPinning::none);
    CHECK(told(pinning) == Strings{"- -", "- -"});
    CHECK(pinning.troubles.empty());
  }
}

TEST_CASE("the GPU of a worker is known with its place") {
  CHECK(pin_gpus(host(gpus(4), {3}), GpuPinning::exclusive).workers ==
        std::vector<WorkerGpu>{{.rank = 4,
                                .variables = {{"CUDA_VISIBLE_DEVICES", "3"}, {"CORRO_GPU", "0"}},
                                .device = "3",
                                .gpu = 3,
                                .numa_node = 1}});
}

TEST_CASE("a mask that is set is composed with, in its own words") {
  const auto [mask, indexed, exclusive] = GENERATE(table<std::string, Strings, Strings>({
      {"2,3", {"- 0", "- 1"}, {"2 0", "3 0"}},
      {"3,2,0", {"3,2 0", "3,2 1"}, {"3 0", "2 0"}},
      {" 3 , 1 ", {"- 0", "- 1"}, {"3 0", "1 0"}},
      {"GPU-a3-1234,GPU-a1-1234", {"- 0", "- 1"}, {"GPU-a3-1234 0", "GPU-a1-1234 0"}},
      {"GPU-a3,GPU-a1,GPU-a0", {"GPU-a3,GPU-a1 0", "GPU-a3,GPU-a1 1"}, {"GPU-a3 0", "GPU-a1 0"}},
      {"1,GPU-a0,2", {"1,GPU-a0 0", "1,GPU-a0 1"}, {"1 0", "GPU-a0 0"}},
      {"3,2,-1,1", {"- 0", "- 1"}, {"3 0", "2 0"}},
      {"", {"- -", "- -"}, {"- -", "- -"}},
      {" ", {"- -", "- -"}, {"- -", "- -"}},
      {"-1", {"- -", "- -"}, {"- -", "- -"}},
      {"NoDevFiles", {"- -", "- -"}, {"- -", "- -"}},
  }));
  CAPTURE(mask);
  const auto all = pin_gpus(host(gpus(4), {0, 1}, mask), GpuPinning::indexed);
  CHECK(told(all) == indexed);
  CHECK(all.troubles.empty());
  CHECK(told(pin_gpus(host(gpus(4), {0, 1}, mask), GpuPinning::exclusive)) == exclusive);
}

TEST_CASE("a mask leads to the GPUs that it means") {
  const auto found = [](const std::string& mask) {
    return positions(pin_gpus(host(gpus(4), {0, 1}, mask), GpuPinning::indexed));
  };
  CHECK(found("3,1") == std::vector{3, 1});
  CHECK(found("GPU-a2,0") == std::vector{2, 0});
  CHECK(found("") == std::vector{-1, -1});

  // GPU 1 is kept from us, and CUDA counts without it.
  auto some = gpus(3);
  some.erase(some.begin() + 1);
  CHECK(positions(pin_gpus(host(some, {0, 1}, "1,0"), GpuPinning::indexed)) == std::vector{2, 0});
}

TEST_CASE("a mask that names what is not there is an error") {
  const auto [mask, text] = GENERATE(table<std::string, std::string>({
      {"0,4", "there is no GPU 4, only GPUs 0 to 3"},
      {"GPU-a0,GPU-b", "there is no device 'GPU-b'"},
      {"GPU-a", "'GPU-a' fits 4 devices"},
      {"MIG-11", "there is no device 'MIG-11'"},
      {"all", "there is no device 'all'"},
      {"0,,1", "there is no device ''"},
      {"0,", "there is no device ''"},
      {"1,0,1", "GPU 1 is there twice, and CUDA shows no GPU then"},
      {"1,GPU-a1", "GPU-a1 is there twice, and CUDA shows no GPU then"},
  }));
  for (const auto how : {GpuPinning::indexed, GpuPinning::exclusive}) {
    const auto pinning = pin_gpus(host(gpus(4), {0, 1}, mask), how);
    CHECK(texts(pinning.troubles) ==
          Strings{fmt::format("error: a: CUDA_VISIBLE_DEVICES={}: {}", mask, text)});
    CHECK(told(pinning) == Strings{"- -", "- -"});
  }
  CHECK(texts(pin_gpus(host(gpus(1), {0}, "1"), GpuPinning::indexed).troubles) ==
        Strings{"error: a: CUDA_VISIBLE_DEVICES=1: there is no GPU 1, only GPU 0"});
}

TEST_CASE("a UUID in full is never ambiguous") {
  auto two = gpus(2);
  two[0].uuid = "GPU-a";
  two[1].uuid = "GPU-ab";
  CHECK(positions(pin_gpus(host(two, {0}, "GPU-a"), GpuPinning::exclusive)) == std::vector{0});
}

TEST_CASE("of a GPU that is split each slot is given an instance, and sees no other") {
  auto has = gpus(2);
  split_up(has[0], {"MIG-11", "MIG-22"});
  const auto how = GENERATE(GpuPinning::indexed, GpuPinning::exclusive);
  const auto told_with = [&](std::optional<std::string> mask) {
    const auto pinning = pin_gpus(host(has, {0, 1}, mask), how);
    CHECK(pinning.troubles.empty());
    return told(pinning);
  };
  CHECK(told_with(std::nullopt) == Strings{"MIG-11 0", "MIG-22 0"});
  CHECK(told_with("MIG-22,MIG-11") == Strings{"MIG-22 0", "MIG-11 0"});
  CHECK(told_with("MIG-GPU-a0-1234/2/0,MIG-1") == Strings{"MIG-GPU-a0-1234/2/0 0", "MIG-1 0"});

  // A whole GPU beside it goes by its name.
  const auto three = pin_gpus(host(has, {0, 1, 2}), how);
  CHECK(told(three) == Strings{"MIG-11 0", "MIG-22 0", "GPU-a1-1234 0"});
  CHECK(positions(three) == std::vector{0, 0, 1});
}

TEST_CASE("a GPU that is split into nothing is none") {
  auto has = gpus(2);
  split_up(has[0], {});
  CHECK(told(pin_gpus(host(has, {0}), GpuPinning::exclusive)) == Strings{"GPU-a1-1234 0"});
}

TEST_CASE("where GPUs differ, a number is passed on, but nobody knows which GPU it is") {
  auto has = gpus(2);
  has[1].name = "H100";
  has[0].holders = {{.pid = 7, .user = "ada", .program = ""}};
  HostGpus mixed = host(has, {0});
  const auto unknown = pin_gpus(mixed, GpuPinning::exclusive);
  CHECK(told(unknown) == Strings{"0 0"});
  CHECK(positions(unknown) == std::vector{-1});
  CHECK(unknown.workers[0].numa_node == -1);
  CHECK(unknown.troubles.empty());

  SECTION("unless CUDA counts by bus, too") {
    mixed.pci_order = true;
  }
  SECTION("unless it has a name") {
    mixed.mask = "GPU-a0";
  }
  const auto known = pin_gpus(mixed, GpuPinning::exclusive);
  if (mixed.pci_order || mixed.mask) {
    CHECK(positions(known) == std::vector{0});
    CHECK(known.troubles.size() == 1);
  }
}

TEST_CASE("workers without a GPU of their own share, and are named") {
  const auto four = pin_gpus(host(gpus(2), {0, 1, 2, 3}), GpuPinning::indexed);
  CHECK(told(four) == Strings{"- 0", "- 1", "- 0", "- 1"});
  CHECK(texts(four.troubles) ==
        Strings{"warning: a has 2 GPUs for this job, and 2 of its workers have none of their own: "
                "rank 6 is given GPU 0 and rank 7 is given GPU 1"});

  const auto two = pin_gpus(host(gpus(2), {0, 1}, "GPU-a1"), GpuPinning::exclusive);
  CHECK(told(two) == Strings{"GPU-a1 0", "GPU-a1 0"});
  CHECK(texts(two.troubles) ==
        Strings{"warning: a has 1 GPU for this job, and 1 of its workers has none of its own: "
                "rank 5 is given GPU-a1"});

  // Slots that others may have taken GPUs for count as well.
  CHECK(texts(pin_gpus(host(gpus(2), {5}), GpuPinning::indexed).troubles) ==
        Strings{"warning: a has 2 GPUs for this job, and 1 of its workers has none of its own: "
                "rank 4 is given GPU 1"});

  std::vector<int> many(64);
  std::iota(many.begin(), many.end(), 0);
  const auto text = pin_gpus(host(gpus(1), many), GpuPinning::indexed).troubles.at(0).text;
  CHECK(text.ends_with("rank 12 is given GPU 0 and 55 more"));
}

TEST_CASE("a GPU that others hold is said with their pid and user") {
  auto has = gpus(3);
  has[0].holders = {{.pid = 4711, .user = "ada", .program = "python3", .memory_bytes = 12ULL << 30},
                    {.pid = 4712, .user = "", .program = ""}};
  has[1].holders = {{.pid = 5, .user = "root", .program = "nvidia-cuda-mps"}};
  has[2].holders = {{.pid = 6, .user = "bob", .program = ""}};
  CHECK(texts(pin_gpus(host(has, {0, 1}), GpuPinning::indexed).troubles) ==
        Strings{"warning: a: GPU 0 (A100) is held by process 4711 (python3) of ada with 12.0 GiB "
                "and process 4712"});
  CHECK(texts(pin_gpus(host(has, {0}, "GPU-a2"), GpuPinning::exclusive).troubles) ==
        Strings{"warning: a: GPU-a2 (A100) is held by process 6 of bob"});

  split_up(has[0], {"MIG-11", "MIG-22"});
  has[0].instances[1].holders = {{.pid = 8, .user = "eve", .program = "train"}};
  CHECK(pin_gpus(host(has, {0}), GpuPinning::exclusive).troubles.empty());
  CHECK(texts(pin_gpus(host(has, {1}), GpuPinning::exclusive).troubles) ==
        Strings{"warning: a: MIG-22 (A100) is held by process 8 (train) of eve"});
}

TEST_CASE("without GPUs nothing is set and nothing is said, whatever the mask") {
  for (const auto& mask : {std::optional<std::string>(), std::optional<std::string>("0,1"),
                           std::optional<std::string>("nonsense")}) {
    const HostGpus none = host({}, {0, 1}, mask);
    const auto pinning = pin_gpus(none, GpuPinning::exclusive);
    CHECK(told(pinning) == Strings{"- -", "- -"});
    CHECK(pinning.troubles.empty());
    CHECK(compare_hosts({none, none}, GpuPinning::indexed).empty());
  }
}

TEST_CASE("hosts without GPUs in a job with GPUs are an error") {
  const auto named = [](const std::string& name, HostGpus it) {
    it.host = name;
    return it;
  };
  const HostGpus a = named("a", host(gpus(4), {0})), b = named("b", host({}, {0})),
                 hidden = named("c", host(gpus(4), {0}, "-1")), unused = named("d", host({}, {}));
  CHECK(compare_hosts({a, a}, GpuPinning::indexed).empty());
  CHECK(compare_hosts({a, unused}, GpuPinning::indexed).empty());
  CHECK(compare_hosts({b, hidden}, GpuPinning::indexed).empty());
  CHECK(compare_hosts({a, b}, GpuPinning::none).empty());
  CHECK(texts(compare_hosts({b, a}, GpuPinning::indexed)) ==
        Strings{"error: b has no GPU, but a has 4: leave it out with --exclude, or start the "
                "workers with --gpu-pinning none"});
  CHECK(texts(compare_hosts({a, b, hidden}, GpuPinning::exclusive)) ==
        Strings{"error: b and c (CUDA_VISIBLE_DEVICES=-1) have no GPU, but a has 4: leave them out "
                "with --exclude, or start the workers with --gpu-pinning none"});

  std::vector<HostGpus> many = {a};
  for (int i = 0; i < 20; ++i) many.push_back(named(fmt::format("n{}", i), b));
  CHECK(compare_hosts(many, GpuPinning::indexed)
            .at(0)
            .text.starts_with("n0, n1, n2, n3, n4, n5, n6, n7 and 12 more have no GPU"));
}

TEST_CASE("pinning keeps its promises for any mask of numbers") {
  rc::prop("a worker sees its own device at CORRO_GPU, and nothing that the mask hid", [] {
    const int n = *rc::gen::inRange(1, 9);
    const bool masked = *rc::gen::arbitrary<bool>();
    std::vector<int> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    if (masked)
      order = *rc::gen::nonEmpty(rc::gen::unique<std::vector<int>>(rc::gen::inRange(0, n)));
    const std::string mask = fmt::format("{}", fmt::join(order, ","));
    const auto slots = *rc::gen::unique<std::vector<int>>(rc::gen::inRange(0, 12));
    const auto how = *rc::gen::element(GpuPinning::indexed, GpuPinning::exclusive);

    const HostGpus given =
        host(gpus(n), slots, masked ? std::optional<std::string>(mask) : std::nullopt);
    const Pinning pinning = pin_gpus(given, how);
    RC_ASSERT(pinning.workers.size() == slots.size());
    RC_ASSERT(pinning == pin_gpus(given, how));
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const WorkerGpu& worker = pinning.workers[i];
      const int own = order[static_cast<std::size_t>(slots[i]) % order.size()];
      RC_ASSERT(worker.gpu == own);

      std::string visible = mask, at;
      for (const auto& [name, value] : worker.variables)
        (name == "CORRO_GPU" ? at : visible) = value;
      Strings list;
      for (const auto device : split(visible, ',')) list.emplace_back(device);
      RC_ASSERT(list.at(std::stoul(at)) == std::to_string(own));
      RC_ASSERT(how == GpuPinning::indexed || list.size() == 1u);
      for (const std::string& device : list)
        RC_ASSERT(std::find(order.begin(), order.end(), std::stoi(device)) != order.end());
    }
  });
}

}  // namespace corro::launcher
