#include <algorithm>
#include <catch2/catch.hpp>

#include "launcher/doctor/diagnose.h"

namespace kolo::doctor {

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30;

Gpu gpu(int index, const std::string& name = "A100") {
  Gpu out;
  out.index = index;
  out.name = name;
  return out;
}

Inspection healthy() {
  Inspection seen;
  seen.hostname = "some";
  seen.architecture = "x86_64";
  seen.cores = 8;
  seen.memory_bytes = 64 * kGiB;
  seen.available_bytes = 60 * kGiB;
  seen.cwd = Folder{"/data", true, true, true, 100 * kGiB, 200 * kGiB, ""};
  seen.scratch = {{"/tmp", true, true, true, 10 * kGiB, 20 * kGiB, ""},
                  {"/dev/shm", true, true, true, 32 * kGiB, 32 * kGiB, ""},
                  {"/home/ada", true, true, true, 10 * kGiB, 20 * kGiB, ""}};
  seen.program = FoundProgram{"/data/train", true, "", ""};
  seen.python = Python{"/usr/bin/python3", "3.11.2", {{"torch", "2.13.0", "/lib"}}};
  return seen;
}

// h1, h2, … are all well, and h0 is where the launcher is.
struct Ward {
  Consultation consultation;

  explicit Ward(int hosts) {
    consultation.here = "boot net:0";
    consultation.program = "/data/train";
    for (int i = 1; i <= hosts; ++i) {
      HostReport host{.host = "h" + std::to_string(i), .user = {}, .workers = 2};
      host.arrival = Arrival{};
      host.round_trip = 1ms;
      host.clock = ClockOffset{0us, 500us};
      host.seen = healthy();
      host.seen->identity = "boot net:" + std::to_string(i);
      host.seen->nics = {{"eth0", "10.0.0." + std::to_string(i), true, false, 1000}};
      consultation.hosts.push_back(host);
    }
  }

  HostReport& operator[](int i) { return consultation.hosts[static_cast<std::size_t>(i) - 1]; }
  Inspection& seen(int i) { return *(*this)[i].seen; }
  Folder& scratch(int i, int which) { return seen(i).scratch[static_cast<std::size_t>(which)]; }

  void fails(int i, Barrier barrier) {
    (*this)[i].barrier = std::move(barrier);
    (*this)[i].seen.reset();
    (*this)[i].arrival.reset();
  }

  void route(int from, int to, bool open, const std::string& ip = {}) {
    consultation.routes.push_back({"h" + std::to_string(from), "h" + std::to_string(to),
                                   ip.empty() ? "10.0.0." + std::to_string(to) : ip, open,
                                   open ? "" : "timed out"});
  }

  std::vector<Finding> findings() const { return diagnose(consultation); }

  // There must be one only.
  Finding only() const {
    const auto all = findings();
    REQUIRE(all.size() == 1);
    return all.front();
  }
};

using Names = std::vector<std::string>;

struct Expected {
  Severity severity;
  Class about;
  std::string what, fix;
};

void check(const Finding& found, const Expected& expected, const Names& hosts = {"h2"}) {
  CHECK(found.severity == expected.severity);
  CHECK(name_of(found.about) == name_of(expected.about));
  CHECK(found.hosts == hosts);
  CHECK(found.what == expected.what);
  CHECK(found.fix == expected.fix);
}

}  // namespace

TEST_CASE("who is well hears nothing") {
  CHECK(Ward(3).findings().empty());
  CHECK(exit_code(Ward(3).findings()) == 0);
}

TEST_CASE("each barrier on the way has its class, its exit code and its remedy") {
  using Kind = Barrier::Kind;
  struct Case {
    Barrier barrier;
    int code;
    std::string fix;
  };
  const auto [barrier, code, fix] = GENERATE(values<Case>({
      {{Kind::name, "h2: unknown", "getent hosts h2"},
       110,
       "echo 'ADDRESS h2' | sudo tee -a /etc/hosts"},
      {{Kind::unreachable, "h2: timed out", "ssh -v h2 true"}, 111, "ssh -v h2 true"},
      {{Kind::unreachable, "h2: Connection refused", "ssh -v h2 true"},
       111,
       "sudo systemctl start ssh   # at the console of h2"},
      {{Kind::host_key_unknown, "h2", "ssh-keyscan -p 2222 -H h2 >> /k"},
       112,
       "ssh-keyscan -p 2222 -H h2 >> /k"},
      {{Kind::host_key_unknown, "h2", ""}, 112, "ssh-keyscan -H h2 >> ~/.ssh/known_hosts"},
      {{Kind::host_key_changed, "h2", ""}, 112, "ssh-keygen -R h2"},
      {{Kind::refused, "h2", "ssh-copy-id ada@h2"}, 113, "ssh-copy-id ada@h2"},
      {{Kind::unsupported, "h2", "--rsh-agent ssh"}, 113, "--rsh-agent ssh"},
      {{Kind::shell, "h2", ""}, 114, "ssh h2 true"},
      {{Kind::staging, "h2", ""},
       114,
       "ssh h2 'df -h ~ /tmp; ls -ld ~ ~/.cache; mkdir -p ~/.cache/kolo'"},
      {{Kind::machine, "h2", ""}, 114, "ssh h2 'uname -m; ldd --version'"},
      {{Kind::version, "h2", ""}, 114, "ssh h2 'rm -r ~/.cache/kolo'"},
      {{Kind::lost, "h2", ""}, 111, "ssh h2 'uptime; dmesg | tail'"},
      {{Kind::silent, "h2", ""}, 111, "ssh h2 'uptime; dmesg | tail'"},
  }));
  Ward ward(3);
  ward.fails(2, barrier);
  const auto found = ward.only();
  CHECK(found.severity == Severity::bad);
  CHECK(exit_code(found.about) == code);
  CHECK(exit_code(ward.findings()) == code);
  CHECK(found.example == barrier.why);
  CHECK(found.fix == fix);
}

TEST_CASE("what many have is said once") {
  Ward ward(4);
  for (const int i : {1, 2, 4})
    ward.fails(i, {Barrier::Kind::refused, "h" + std::to_string(i), "ssh-copy-id someone"});
  check(ward.only(),
        {Severity::bad, Class::login, "it does not let us in",
         "for h in h1 h2 h4; do ssh-copy-id $h; done"},
        {"h1", "h2", "h4"});
}

TEST_CASE("a remedy for hosts goes by ssh, with user and port, and needs none here") {
  Ward ward(3);
  ward.consultation.ssh = "ssh -p 2222";
  ward[1].is_here = true;
  ward[2].user = "ada";
  for (const int i : {1, 2, 3}) {
    ward.seen(i).cwd->exists = ward.seen(i).cwd->can_enter = false;
    ward.seen(i).cwd->path = "/my data";
  }
  CHECK(ward.only().fix ==
        "mkdir -p '/my data'; for h in ada@h2 h3; do ssh -p 2222 $h 'mkdir -p '\\''/my "
        "data'\\'''; done");
}

TEST_CASE("a clock that differs by more than the way there explains") {
  Ward ward(3);
  ward[2].clock = ClockOffset{-2s, 1ms};
  const std::string fix =
      "ssh h2 'sudo chronyc makestep || sudo systemctl restart systemd-timesyncd'";
  check(ward.only(),
        {Severity::warning, Class::clock, "its clock is 2.0 s behind that of ours", fix});
  ward[2].clock = ClockOffset{1h, 1ms};
  check(ward.only(), {Severity::bad, Class::clock, "its clock is 3600.0 s ahead of ours", fix});
  CHECK(exit_code(ward.findings()) == 120);
  ward[2].clock = ClockOffset{2s, 2s};
  CHECK(ward.findings().empty());
}

TEST_CASE("a slow way is a warning") {
  Ward ward(2);
  ward[2].round_trip = 300ms;
  check(ward.only(), {Severity::warning, Class::reach, "a message there and back takes 300 ms",
                      "ping -c 10 h2"});
}

TEST_CASE("two names of one machine, and another name of this one") {
  Ward ward(3);
  ward.seen(2).identity = ward.seen(1).identity;
  check(ward.only(),
        {Severity::warning, Class::machine,
         "they are one machine, so its cores, memory and GPUs count more than once",
         "horovodrun -H h1:4 …"},
        {"h1", "h2"});
  CHECK(ward.only().without == Names{"h2"});

  Ward other(2);
  other.seen(2).identity = "boot net:0";
  check(other.only(), {Severity::note, Class::machine, "it is this machine, by another name",
                       "horovodrun -H localhost:2 …   # no ssh needed"});
  other[2].is_here = true;
  CHECK(other.findings().empty());
}

TEST_CASE("another kind of processor") {
  Ward ward(3);
  ward.seen(2).architecture = "aarch64";
  check(ward.only(), {Severity::bad, Class::machine, "it is aarch64, elsewhere it is x86_64",
                      "horovodrun --exclude h2 …   # it needs programs of its own"});
}

TEST_CASE("limits that are too low for a job") {
  Ward ward(3);
  SECTION("of open files") {
    ward.seen(2).nofile = {64, 64};
    check(ward.only(), {Severity::bad, Class::limits,
                        "a process may have 64 files open (nofile), and a worker needs about 262",
                        "ssh h2 'echo '\\''* - nofile 65536'\\'' | sudo tee -a "
                        "/etc/security/limits.d/kolo.conf'"});
    CHECK(exit_code(ward.findings()) == 116);
    ward.seen(2).nofile = {512, 1 << 20};
    CHECK(ward.only().severity == Severity::warning);
    ward[2].is_here = true;
    CHECK(ward.only().fix == "ulimit -n 65536");
  }
  SECTION("of threads") {
    ward.seen(2).nproc = {20, 20};
    check(ward.only(), {Severity::bad, Class::limits,
                        "a user may have 20 threads (nproc), and the workers need about 64",
                        "ssh h2 'echo '\\''* - nproc 65536'\\'' | sudo tee -a "
                        "/etc/security/limits.d/kolo.conf'"});
    ward.seen(2).is_root = true;
    CHECK(ward.findings().empty());
  }
  SECTION("of locked memory, which matters where there are GPUs") {
    ward.seen(2).memlock = {64 << 10, 64 << 10};
    check(ward.only(),
          {Severity::note, Class::limits,
           "a process may lock 64 KiB of memory (memlock), which RDMA and GPUs need more of",
           "ssh h2 'echo '\\''* - memlock unlimited'\\'' | sudo tee -a "
           "/etc/security/limits.d/kolo.conf'"});
    ward.seen(2).nics.push_back({"ib0", "10.1.0.2", true, false, 100000});
    CHECK(ward.only().severity == Severity::warning);
  }
  SECTION("of cores and memory") {
    ward.seen(2).cores = 1;
    check(ward.only(), {Severity::warning, Class::limits, "2 workers would share 1 cores",
                        "horovodrun -H h2:1 …"});
    ward.seen(2).cores = 8;
    ward.seen(2).available_bytes = 100 * kMiB;
    CHECK(ward.only().what == "100 MiB of 64 GiB of memory are available");
  }
}

TEST_CASE("the working directory is missing, closed, read-only or full") {
  Ward ward(3);
  Folder& cwd = *ward.seen(2).cwd;
  SECTION("missing") {
    cwd.exists = cwd.can_enter = cwd.can_write = false;
    check(ward.only(), {Severity::bad, Class::files, "the working directory /data does not exist",
                        "ssh h2 'mkdir -p /data'"});
    CHECK(exit_code(ward.findings()) == 118);
  }
  SECTION("closed") {
    cwd.can_enter = cwd.can_write = false;
    check(ward.only(),
          {Severity::bad, Class::files, "the working directory /data cannot be entered",
           "ssh h2 'ls -ld /data; chmod u+x /data'"});
  }
  SECTION("read-only") {
    cwd.can_write = false;
    cwd.why_not = "/data: Read-only file system";
    check(ward.only(),
          {Severity::warning, Class::files, "the working directory /data cannot be written to",
           "ssh h2 'sudo mount -o remount,rw \"$(findmnt -nT /data -o TARGET)\"'"});
    cwd.why_not = "/data: Permission denied";
    CHECK(ward.only().fix == "ssh h2 'sudo chown $(id -u) /data; chmod u+rwx /data'");
  }
  SECTION("full") {
    cwd.free_bytes = 1 * kMiB;
    CHECK(ward.only().what == "/data is full: 1 MiB of 204800 MiB are free");
  }
}

TEST_CASE("/tmp, /dev/shm and the home") {
  Ward ward(3);
  SECTION("/tmp is full, or nearly so") {
    ward.scratch(2, 0).free_bytes = 1 * kMiB;
    check(ward.only(), {Severity::bad, Class::files, "/tmp is full: 1 MiB of 20480 MiB are free",
                        "ssh h2 'df -h /tmp; du -xah /tmp | sort -h | tail -20'"});
    ward.scratch(2, 0).free_bytes = 100 * kMiB;
    CHECK(ward.only().severity == Severity::warning);
  }
  SECTION("/dev/shm is small, as in a container") {
    ward.scratch(2, 1).total_bytes = ward.scratch(2, 1).free_bytes = 64 * kMiB;
    check(ward.only(), {Severity::warning, Class::files, "/dev/shm has 64 MiB only",
                        "ssh h2 'sudo mount -o remount,size=32G /dev/shm'"});
    ward.scratch(2, 1).total_bytes = ward.scratch(2, 1).free_bytes = 8 * kMiB;
    CHECK(ward.only().severity == Severity::bad);
  }
  SECTION("/dev/shm is full, or not there") {
    ward.scratch(2, 1).free_bytes = 0;
    CHECK(ward.only().what == "/dev/shm is full: 0 MiB of 32768 MiB are free");
    ward.scratch(2, 1).can_write = false;
    CHECK(ward.only().fix == "ssh h2 'sudo mount -t tmpfs -o mode=1777 tmpfs /dev/shm'");
  }
  SECTION("the home cannot be written to") {
    ward.scratch(2, 2).can_write = false;
    ward.scratch(2, 2).why_not = "/home/ada: Read-only file system";
    check(ward.only(),
          {Severity::warning, Class::files, "the home /home/ada cannot be written to",
           "ssh h2 'sudo mount -o remount,rw \"$(findmnt -nT /home/ada -o TARGET)\"'"});
  }
}

TEST_CASE("the program is not there, or may not be executed") {
  Ward ward(3);
  ward.seen(2).program = FoundProgram{"", false, "there is no program /data/train", ""};
  check(ward.only(), {Severity::bad, Class::files, "the program /data/train is not there",
                      "scp -p /data/train h2:/data/train"});
  ward.consultation.program = "train";
  CHECK(ward.only().fix == "scp -p /data/train h2:/data/train");  // as others have it
  ward.consultation.program = "python3.12";
  CHECK(ward.only().fix == "ssh h2 'sudo apt-get install -y python3.12'");
  ward.seen(2).program = FoundProgram{"/data/train", false, "/data/train may not be executed", ""};
  check(ward.only(), {Severity::bad, Class::files, "the program /data/train may not be executed",
                      "ssh h2 'chmod +x /data/train'"});
}

TEST_CASE("the odd one out is named by its version") {
  Ward ward(3);
  SECTION("of Python") {
    ward.seen(2).python->version = "3.9.2";
    check(ward.only(), {Severity::bad, Class::versions, "Python is 3.9, elsewhere it is 3.11",
                        "ssh h2 'sudo apt-get install -y python3.11'"});
    CHECK(exit_code(ward.findings()) == 117);
    ward.seen(2).python->version = "3.11.9";
    CHECK(ward.findings().empty());
  }
  SECTION("of a framework") {
    ward.seen(2).python->packages[0].version = "2.12.1";
    check(ward.only(), {Severity::bad, Class::versions, "torch is 2.12.1, elsewhere it is 2.13.0",
                        "ssh h2 '/usr/bin/python3 -m pip install torch==2.13.0'"});
    ward.seen(2).python->packages.clear();
    CHECK(ward.only().what == "there is no torch, elsewhere it is 2.13.0");
  }
  SECTION("of what only one has, which is in nobody's way") {
    ward.seen(2).python->packages.push_back({"jax", "0.4.1", "/lib"});
    check(ward.only(), {Severity::note, Class::versions, "jax is 0.4.1, elsewhere there is none",
                        "ssh h2 '/usr/bin/python3 -m pip uninstall -y jax'"});
  }
  SECTION("of NCCL and CUDA") {
    for (const int i : {1, 2, 3})
      ward.seen(i).libraries = {{"CUDA", "12.4.127", "/a"}, {"NCCL", "2.21.5", "/b"}};
    ward.seen(2).libraries[1].version = "2.18.1";
    check(ward.only(), {Severity::bad, Class::versions, "NCCL is 2.18.1, elsewhere it is 2.21.5",
                        "ssh h2 'sudo apt-get install -y '\\''libnccl2=2.21.5*'\\'''"});
    ward.seen(2).libraries = {{"CUDA", "11.8.89", "/a"}, {"NCCL", "2.21.5", "/b"}};
    check(ward.only(),
          {Severity::warning, Class::versions, "CUDA is 11.8.89, elsewhere it is 12.4.127",
           "ssh h2 'sudo apt-get install -y cuda-cudart-12-4'"});
  }
  SECTION("of the driver") {
    for (const int i : {1, 2, 3}) ward.seen(i).driver = "535.104.05";
    ward.seen(2).driver = "470.1.1";
    check(ward.only(), {Severity::warning, Class::versions,
                        "the NVIDIA driver is 470.1.1, elsewhere it is 535.104.05",
                        "ssh h2 'sudo apt-get install -y nvidia-driver-535'"});
  }
}

TEST_CASE("of two who differ the second is the odd one") {
  Ward ward(2);
  ward.seen(1).python->version = "3.9.2";
  CHECK(ward.only().hosts == Names{"h2"});
  CHECK(ward.only().what == "Python is 3.11, elsewhere it is 3.9");
}

TEST_CASE("GPUs that are missing, different, shared, taken, or whose driver is in disorder") {
  Ward ward(3);
  for (const int i : {1, 2, 3}) ward.seen(i).gpus = {gpu(0), gpu(1)};
  SECTION("missing") {
    ward.seen(2).gpus.clear();
    check(ward.only(), {Severity::bad, Class::gpus, "it has no GPUs, elsewhere there are 2 × A100",
                        "ssh h2 'lspci | grep -i nvidia; sudo modprobe nvidia; nvidia-smi'"});
    CHECK(exit_code(ward.findings()) == 119);
  }
  SECTION("different") {
    ward.seen(2).gpus = {gpu(0, "T4"), gpu(1, "T4")};
    CHECK(ward.only().what == "it has 2 × T4, elsewhere there are 2 × A100");
  }
  SECTION("shared") {
    ward[2].workers = 3;
    check(ward.only(),
          {Severity::warning, Class::gpus, "3 workers would share 2 GPUs", "horovodrun -H h2:2 …"});
  }
  SECTION("taken") {
    ward.seen(2).gpus[1].holders = {{77, "bob", "python", 0}};
    check(ward.only(),
          {Severity::warning, Class::gpus, "GPU 1 is used by process 77 (python of bob)",
           "ssh h2 'ps -fp 77; kill 77'"});
  }
  SECTION("in disorder") {
    ward.seen(2).driver = "535.104.05";
    ward.seen(2).libraries = {{"libcuda", "550.54.15", "/lib"}};
    const auto all = ward.findings();
    REQUIRE_FALSE(all.empty());
    check(
        all.front(),
        {Severity::bad, Class::gpus,
         "the kernel has driver 535.104.05 loaded, and libcuda is of 550.54.15",
         "ssh h2 'sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia; sudo modprobe nvidia'"});
  }
}

TEST_CASE("what could not be found out is told, by what it is about") {
  using About = Trouble::About;
  struct Case {
    About about;
    Severity severity;
    Class is;
  };
  const auto [about, severity, is] =
      GENERATE(values<Case>({{About::paths, Severity::bad, Class::files},
                             {About::scratch, Severity::bad, Class::files},
                             {About::gpus, Severity::bad, Class::gpus},
                             {About::python, Severity::warning, Class::versions},
                             {About::all, Severity::bad, Class::machine}}));
  Ward ward(3);
  if (about == About::python) ward.seen(2).python.reset();
  ward.seen(2).troubles = {{about, "no answer for 8 s"}};
  const auto found = ward.only();
  CHECK(found.severity == severity);
  CHECK(found.about == is);
  CHECK(found.hosts == Names{"h2"});
  CHECK(found.example == "no answer for 8 s");
  CHECK_FALSE(found.fix.empty());
}

TEST_CASE("a firewall between two hosts, of which one has to go") {
  Ward ward(3);
  for (const int from : {1, 2, 3})
    for (const int to : {1, 2, 3})
      if (from != to) ward.route(from, to, !(from == 1 && to == 2));
  check(
      ward.only(),
      {Severity::bad, Class::network, "it does not reach h2 at 10.0.0.2",
       "ssh h2 'sudo nft insert rule inet filter input ip saddr { 10.0.0.1 } tcp dport 20000-20999 "
       "accept'"},
      {"h1"});
  CHECK(exit_code(ward.findings()) == 115);
  CHECK(ward.only().without == Names{"h2"});
  ward.consultation.first_port = 5000;
  ward.consultation.last_port = 5100;
  CHECK(ward.only().fix.find("dport 5000-5100 ") != std::string::npos);
}

TEST_CASE("one whom nobody reaches is the one that has to go") {
  Ward ward(4);
  for (const int from : {1, 2, 3, 4})
    for (const int to : {1, 2, 3, 4})
      if (from != to) ward.route(from, to, to != 2);
  const auto found = ward.only();
  CHECK(found.hosts == Names{"h1", "h3", "h4"});
  CHECK(found.what == "they do not reach h2 at 10.0.0.2");
  CHECK(found.without == Names{"h2"});
}

TEST_CASE("a second address that nobody reaches does no harm, unless there is no common one") {
  Ward ward(3);
  for (const int from : {1, 3}) {
    ward.route(from, 2, true);
    ward.route(from, 2, false, "172.17.0.1");
  }
  CHECK(ward.findings().empty());
  ward.consultation.routes.clear();
  ward.route(1, 2, true);
  ward.route(1, 2, false, "172.17.0.1");
  ward.route(3, 2, false);
  ward.route(3, 2, true, "172.17.0.1");
  check(ward.only(), {Severity::bad, Class::network, "no address of it is good for all others",
                      "ssh h2 'ip -brief address; ip route'"});
}

TEST_CASE("what is bad comes first, and its class gives the exit code") {
  Ward ward(3);
  ward[1].round_trip = 1s;
  ward.seen(2).program = FoundProgram{"", false, "", ""};
  ward.fails(3, {Barrier::Kind::refused, "", ""});
  const auto all = ward.findings();
  REQUIRE(all.size() == 3);
  CHECK(all[0].about == Class::login);
  CHECK(all[1].about == Class::files);
  CHECK(all[2].severity == Severity::warning);
  CHECK(exit_code(all) == 113);
}

TEST_CASE("a job goes on without bad hosts, if enough slots remain") {
  const std::vector<HostSpec> hosts = {{"h1", 2}, {"h2", 2}, {"h3", 2}};
  Ward ward(3);
  ward[1].round_trip = 1s;  // which is not bad enough
  ward.fails(2, {Barrier::Kind::refused, "", ""});
  const auto left = exclude_bad(hosts, ward.findings(), 4);
  REQUIRE(left);
  CHECK(print_hosts(*left, HostFormat::horovod) == "h1:2,h3:2");
  const auto too_few = exclude_bad(hosts, ward.findings(), 5);
  REQUIRE_FALSE(too_few);
  CHECK(too_few.error().text() ==
        "without the hosts that are bad 4 of 6 slots remain, and 5 workers are wanted");
}

}  // namespace kolo::doctor
