#include "launcher/doctor/diagnose.h"

#include "ward.h"

namespace corro::launcher::doctor {

TEST_CASE("limits that are too low for a job") {
  Ward ward(3);
  SECTION("of open files") {
    ward.seen(2).nofile = {64, 64};
    check(ward.only(), {Severity::bad, Class::limits,
                        "a process may have 64 files open (nofile), and a worker needs about 262",
                        "ssh h2 'echo '\\''* - nofile 65536'\\'' | sudo tee -a "
                        "/etc/security/limits.d/corro.conf'"});
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
                        "/etc/security/limits.d/corro.conf'"});
    ward.seen(2).is_root = true;
    CHECK(ward.findings().empty());
  }
  SECTION("of locked memory, which matters where there are GPUs") {
    ward.seen(2).memlock = {64 << 10, 64 << 10};
    check(ward.only(),
          {Severity::note, Class::limits,
           "a process may lock 64 KiB of memory (memlock), which RDMA and GPUs need more of",
           "ssh h2 'echo '\\''* - memlock unlimited'\\'' | sudo tee -a "
           "/etc/security/limits.d/corro.conf'"});
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

TEST_CASE("the script is not there, or cannot be read") {
  Ward ward(3);
  ward.consultation.script_is_here = true;
  ward.seen(2).script = FoundScript{"/data/train.py", false, false, "No such file"};
  check(ward.only(), {Severity::bad, Class::files, "the script /data/train.py is not there",
                      "scp -p /data/train.py h2:/data/train.py"});
  ward.consultation.script_is_here = false;
  ward.seen(3).script = ward.seen(2).script;
  CHECK(ward.only().fix == "find . -name train.py");
  ward.seen(3).script.reset();
  ward.seen(2).script->exists = true;
  check(ward.only(), {Severity::bad, Class::files, "the script /data/train.py cannot be read",
                      "ssh h2 'chmod u+r /data/train.py'"});
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

}  // namespace corro::launcher::doctor
