"""What users type, and what they are told when it cannot be done."""
import json
import os
import re
import socket
import subprocess

import pytest
from corro_system import HOROVODRUN, run

# HOROVOD.md, section 1.1: what scripts depend on, row by row, with the message and the exit code.  None: it runs.
SECTION_1_1 = [
    (["-np", 1, "echo", "x.py", "-np", "3"], "[0]<stdout>:x.py -np 3", 0),
    (["-np", 1, "--timeline-f", "X", "sh", "-c", "echo $HOROVOD_TIMELINE"], "[0]<stdout>:X", 0),
    (["-np", 3, "-H", "localhost", "--slots", "4", "sh", "-c", "[ $HOROVOD_RANK != 2 ] || echo $HOROVOD_SIZE"],
     "[2]<stdout>:3", 0),
    (["-np", 1, "--net", "lo", "true"],
     "ambiguous option: --net could match --network-interfaces, --network-interface", 2),
    (["--num-proc=1", "echo", "a"], "[0]<stdout>:a", 0),
    (["--num-proc", 1, "echo", "a"], "[0]<stdout>:a", 0),
    (["-np=1", "echo", "a"], "[0]<stdout>:a", 0),
    (["-np1", "true"], "the following arguments are required: -np/--num-proc", 2),
    (["-np", 1, "--", "true"], "rank 0 on host localhost could not be started: there is no program -- in PATH", 127),
    (["true"], "the following arguments are required: -np/--num-proc", 2),
    (["-np", 1, "--unknown", "true"], "unrecognized arguments: --unknown", 2),
    (["-np", "x", "true"], "argument -np/--num-proc: invalid int value: 'x'", 2),
    (["-np", 1, "--gloo", "--mpi", "true"], "argument --mpi: not allowed with argument --gloo", 2),
    (["-np", 1, "--fusion-threshold-mb", "-1", "true"],
     "argument --fusion-threshold-mb: must be from 0 to 1048576, not -1", 2),
    (["-np", 2], "no command to run was given", 2),
    (["-v"], "0.28.1\nCorro 0.1.0", 0),
    (["-h"], run("--help").out.rstrip("\n"), 0),
    (["-cb"], run("--check-build").out.rstrip("\n"), 0),
]


@pytest.mark.parametrize("arguments, says, code", SECTION_1_1,
                         ids=lambda x: " ".join(map(str, x)) if isinstance(x, list) else "")
def test_section_1_1(arguments, says, code):
    ended = run(*arguments)
    assert ended.code == code, ended
    if code == 0:
        assert ended.out == says + "\n", ended
    elif code == 2:
        assert ended.err.splitlines()[-1] == f"horovodrun: error: {says}" and ended.out == "", ended
        assert ended.err.startswith("usage: horovodrun "), ended
    else:
        assert ended.err.splitlines()[-1] == f"horovodrun: {says}", ended


def test_under_lsf_the_number_need_not_be_said():
    here = socket.gethostname()
    ended = run("sh", "-c", "echo $HOROVOD_SIZE", env={"LSB_JOBID": "7", "LSB_MCPU_HOSTS": f"{here} 2"})
    assert ended.code == 0 and sorted(ended.out.splitlines()) == ["[0]<stdout>:2", "[1]<stdout>:2"], ended
    ended = run("echo", "hi", env={"LSB_JOBID": "7"})
    assert ended.out == "[0]<stdout>:hi\n", ended
    assert ended.err == "horovodrun: note: LSF job 7 names no hosts, so this one is used\n", ended


@pytest.mark.parametrize("arguments, says", [
    (["-np", 3, "-H", "localhost:2", "true"], "Requested more processes (3) than there are available slots (2)"),
    (["-np", 1, "-H", "local host:1", "true"], "\n  local host:1\n       ^"),
    (["-np", 1, "-H", "localhost:0", "true"], "no host has slots"),
])
def test_what_cannot_be_done_is_said_and_ends_with_2(arguments, says):
    ended = run(*arguments)
    assert ended.code == 2 and says in ended.err and ended.out == "", ended


def test_only_what_was_asked_for_is_started():
    assert sorted(run("-np", 2, "-H", "localhost:4", "sh", "-c", "echo $HOROVOD_SIZE").out.splitlines()) == [
        "[0]<stdout>:2", "[1]<stdout>:2"]


def test_a_host_that_is_named_twice_is_one_host():
    ended = run("-np", 2, "-H", "localhost:1,localhost:1", "sh", "-c", "echo $HOROVOD_LOCAL_RANK/$HOROVOD_CROSS_RANK")
    assert sorted(ended.out.splitlines()) == ["[0]<stdout>:0/0", "[1]<stdout>:1/0"], ended


def test_the_command_keeps_its_own_flags():
    ended = run("-np", 1, "echo", "-np", "3", "--verbose")
    assert ended.code == 0 and ended.out == "[0]<stdout>:-np 3 --verbose\n", ended


def test_the_version_that_scripts_read_is_alone_on_the_first_line():
    assert run("-v").out.splitlines()[0] == "0.28.1"


def test_verbose_tells_what_happens_and_never_the_key():
    ended = run("-np", 2, "--verbose", "sh", "-c", "echo key $CORRO_JOB_KEY")
    key = ended.out.split()[-1]
    assert len(key) == 64 and key not in ended.err, ended
    assert "host localhost is ready" in ended.err and "rank 1 runs on host localhost" in ended.err, ended


def test_help_says_all_without_a_terminal_and_in_one_screen_wide():
    text = run("--help").out
    assert "--fusion-threshold-mb MB" in text and "\x1b" not in text
    assert all(len(line) <= 80 for line in text.splitlines()[3:] if not line.startswith("  horovodrun"))


# Hosts

def test_a_host_file_as_people_have_them(tmp_path):
    hosts = tmp_path / "hosts.txt"
    hosts.write_bytes(b"\xef\xbb\xbf# ours\r\n\r\nlocalhost slots=1 max_slots=2\r\n127.0.0.1:1")
    ended = run("-np", 2, "-hostfile", hosts, "sh", "-c", "echo $HOROVOD_HOSTNAME")
    assert sorted(ended.out.splitlines()) == ["[0]<stdout>:localhost", "[1]<stdout>:127.0.0.1"], ended


def test_an_error_in_a_host_file_shows_the_spot(tmp_path):
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("localhost slots=2\nnode01 slots=four\n")
    ended = run("-np", 2, "-hostfile", hosts, "true")
    assert ended.code == 2 and f"{hosts}:2:14: " in ended.err, ended
    line, caret = ended.err.splitlines()[3:5]
    assert caret.index("^") == line.index("four"), ended


def test_a_host_file_may_be_a_pipe(tmp_path):
    script = f"{HOROVODRUN} -np 2 -hostfile <(echo localhost:2) echo hi"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.count("hi") == 2, done


def test_hosts_of_a_discovery_script(tmp_path):
    script = tmp_path / "discover.sh"
    script.write_text("#!/bin/sh\necho localhost:2\necho 127.0.0.1\n")
    script.chmod(0o755)
    ended = run("-np", 3, "--host-discovery-script", script, "--slots", 1, "sh", "-c", "echo $HOROVOD_HOSTNAME")
    assert sorted(ended.out.splitlines()) == ["[0]<stdout>:localhost", "[1]<stdout>:localhost", "[2]<stdout>:127.0.0.1"]
    assert "elastic training is not available yet" in ended.err, ended


def test_a_discovery_script_may_leave_something_running(tmp_path):
    ended = run("-np", 1, "--host-discovery-script", "sleep 5 2>&1 & echo localhost:1", "echo", "hi")
    assert ended.out == "[0]<stdout>:hi\n" and ended.took < 3, ended


def test_a_discovery_script_that_fails_ends_it(tmp_path):
    ended = run("-np", 1, "--host-discovery-script", "echo oops >&2; exit 3", "true")
    assert ended.code == 2 and "oops" in ended.err and "exited with code 3" in ended.err, ended


def test_the_hosts_of_a_scheduler_are_found_and_said():
    here = socket.gethostname()
    env = {"SLURM_JOB_ID": "42", "SLURM_JOB_NODELIST": here, "SLURM_NTASKS": "2", "SLURM_TASKS_PER_NODE": "2"}
    ended = run("sh", "-c", "echo $HOROVOD_HOSTNAME $HOROVOD_SIZE", env=env)
    assert sorted(ended.out.splitlines()) == [f"[0]<stdout>:{here} 2", f"[1]<stdout>:{here} 2"], ended
    assert ended.err == f"horovodrun: note: hosts from Slurm job 42 (SLURM_JOB_NODELIST): {here}, 2 slots\n", ended


def test_a_job_inside_a_job_does_not_take_the_whole_allocation():
    here = socket.gethostname()
    env = {"SLURM_JOB_ID": "42", "SLURM_JOB_NODELIST": f"{here},other", "SLURM_NTASKS": "2",
           "SLURM_TASKS_PER_NODE": "1(x2)"}
    ended = run("-np", 1, "-H", "localhost:1", HOROVODRUN, "-np", 2, "sh", "-c", "echo $HOROVOD_RANK/$HOROVOD_SIZE", env=env)
    assert sorted(ended.out.splitlines()) == ["[0]<stdout>:[0]<stdout>:0/2", "[0]<stdout>:[1]<stdout>:1/2"], ended


@pytest.mark.parametrize("arguments, out", [
    (["rack[1-2]n[01-02]:4,u@login", "--format", "horovod"], "rack1n01:4,rack1n02:4,rack2n01:4,rack2n02:4,u@login\n"),
    (["a[1-2]:4,b", "--format", "openmpi"], "a1 slots=4\na2 slots=4\nb\n"),
    (["node01:4,node02:4,x:1", "--format", "slurm"], "node[01-02],x\n"),
    (["u@a/10.0.0.1:4", "--format", "openmpi"], "u@a slots=4\n"),
])
def test_hosts_are_shown_in_any_notation(arguments, out):
    ended = run("hosts", *arguments)
    assert (ended.code, ended.out) == (0, out), ended


def test_hosts_as_json():
    assert json.loads(run("hosts", "ada@a:2,b", "--format", "json").out) == [
        {"host": "a", "slots": 2, "user": "ada"}, {"host": "b", "slots": None}]


def test_a_program_may_be_called_like_a_subcommand(tmp_path):
    program = tmp_path / "hosts"
    program.write_text("#!/bin/sh\necho mine $*\n")
    program.chmod(0o755)
    ended = run("-np", 1, "hosts", "a", env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert ended.out == "[0]<stdout>:mine a\n", ended


@pytest.mark.parametrize("name", ["LOCALHOST", "localhost.", socket.gethostname().upper()])
def test_this_machine_is_known_by_its_names_however_they_are_written(name):
    assert run("-np", 1, "-H", f"{name}:1", "true").code == 0


# Variables

def test_options_reach_the_workers_as_variables(tmp_path):
    config = tmp_path / "c.yaml"
    config.write_text("params:\n  cache_capacity: 7\n  cycle_time_ms: 9\nparms:\n  x: 1\n")
    ended = run("-np", 1, "--config-file", config, "--cycle-time-ms", "2", "--fusion-threshold-mb", 1, "sh", "-c",
                "echo $HOROVOD_CACHE_CAPACITY $HOROVOD_CYCLE_TIME $HOROVOD_FUSION_THRESHOLD")
    assert ended.out == "[0]<stdout>:7 2.0 1048576\n", ended
    assert f"note: {config}:4: nobody knows the key 'parms'" in ended.err, ended


def test_variables_are_given_and_kept_back():
    ended = run("-np", 1, "-x", "B=x y", "-x", "KEEP_ME", "--env-rules=-KEEP_*,KEEP_2", "sh", "-c",
                "echo $B,$KEEP_1,$KEEP_2,$KEEP_ME,$HOME", env={"KEEP_1": "1", "KEEP_2": "2", "KEEP_ME": "3", "HOME": "h"})
    assert ended.out == "[0]<stdout>:x y,,2,3,h\n", ended


def test_an_interface_that_is_named_is_used_by_all(tmp_path):
    ended = run("-np", 1, "--network-interface", "lo", "sh", "-c",
                "echo $HOROVOD_GLOO_IFACE $NCCL_SOCKET_IFNAME $GLOO_SOCKET_IFNAME")
    assert ended.out == "[0]<stdout>:lo lo lo\n", ended


@pytest.mark.parametrize("names", ["eth99", "lo,eth99"])
def test_an_interface_that_is_not_there_is_said_before_anything_starts(names, tmp_path):
    ended = run("-np", 1, "--network-interfaces", names, "touch", tmp_path / "ran")
    says = r"--network-interfaces: this machine has no interface eth99 with an address; it has lo\b"
    assert ended.code == 2 and re.search(says, ended.err) and not (tmp_path / "ran").exists(), ended
    looked = run("-np", 1, "--network-interfaces", names, "--dry-run", "true")
    assert looked.code == 2 and re.search(says, looked.out), looked


# Output

def test_output_is_kept_in_files_with_its_tags(tmp_path):
    logs = tmp_path / "logs"
    ended = run("-np", 11, "-H", "localhost:11", "--output-filename", logs, "sh", "-c",
                "echo out $HOROVOD_RANK; printf err >&2")
    assert ended.code == 0 and "[10]<stdout>:out 10\n" in ended.out, ended
    assert sorted(p.name for p in logs.iterdir()) == [f"rank.{i:02}" for i in range(11)]
    assert (logs / "rank.07/stdout").read_text() == "[7]<stdout>:out 7\n"
    assert (logs / "rank.10/stderr").read_text() == "[10]<stderr>:err"


def test_one_worker_has_its_file_too(tmp_path):
    assert run("-np", 1, "--output-filename", tmp_path, "echo", "hi").code == 0
    assert (tmp_path / "rank.0/stdout").read_text() == "[0]<stdout>:hi\n"


def test_a_directory_that_cannot_be_written_to_is_said_before_anything_starts(tmp_path):
    (tmp_path / "file").touch()
    ended = run("-np", 1, "--output-filename", tmp_path / "file", "touch", tmp_path / "ran")
    assert ended.code == 125 and "--output-filename" in ended.err and "Not a directory" in ended.err, ended
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_said_once_and_ends_nothing(tmp_path):
    (tmp_path / "rank.0").mkdir()
    (tmp_path / "rank.0/stdout").symlink_to("/dev/full")
    ended = run("-np", 1, "--output-filename", tmp_path, "sh", "-c", "echo a; sleep 0.1; echo b")
    assert ended.code == 0 and ended.out == "[0]<stdout>:a\n[0]<stdout>:b\n", ended
    assert ended.err.count("No space left on device") == 1, ended


def test_lines_have_the_tag_that_was_asked_for():
    assert run("-np", 1, "--tag-format", "{host}.{local_rank} {{", "echo", "hi").out == "localhost.0 {hi\n"
    ended = run("-np", 1, "-prefix-timestamp", "echo", "hi", env={"TZ": "UTC"})
    assert re.fullmatch(r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\[0\]<stdout>:hi\n", ended.out), ended


def test_colours_are_for_terminals_or_for_who_wants_them():
    assert "\x1b" not in run("-np", 1, "echo", "hi").out
    assert run("-np", 1, "--color", "always", "echo", "hi").out == "\x1b[31m[0]<stdout>:\x1b[0mhi\n"


# The end

@pytest.mark.parametrize("policy, code", [("first", 3), ("max", 7), ("rank0", 5)])
def test_whose_exit_code_becomes_ours(policy, code):
    program = "trap '' TERM; case $HOROVOD_RANK in 0) sleep 0.2; exit 5;; 1) exit 3;; 2) sleep 0.2; exit 7;; esac"
    assert run("-np", 3, "--exit-code-policy", policy, "sh", "-c", program).code == code


# Looking before

def test_a_dry_run_starts_nothing_and_says_what_would_be(tmp_path):
    mark = tmp_path / "ran"
    ended = run("-np", 3, "-H", "localhost:2,127.0.0.1:2", "--dry-run", "touch", mark)
    assert ended.code == 0 and "Nothing was started." in ended.out and ended.err == "", ended
    assert re.search(r"^  2 +127\.0\.0\.1 +0 +0/1 +1/2$", ended.out, re.M), ended
    assert not mark.exists()


def test_a_dry_run_for_scripts():
    ended = run("-np", 2, "--dry-run", "--json", "--cycle-time-ms", 3, "-x", "A=b", "true", "a b", cwd="/")
    found = json.loads(ended.out)
    assert ended.code == 0 and found["exit_code"] == 0 and found["np"] == 2 and found["cwd"] == "/"
    assert found["command"] == ["true", "a b"] and found["env"]["A"] == "b"
    assert found["env"]["HOROVOD_CYCLE_TIME"] == "3.0" and found["env"]["CORRO_JOB_KEY"] == "(secret)"
    assert [w["env"]["HOROVOD_RANK"] for w in found["workers"]] == ["0", "1"]
    assert all(check["ok"] for check in found["checks"])


def test_a_dry_run_names_what_a_worker_really_gets():
    arguments = ["-np", 1, "--port-range", "23000-23099", "--start-timeout", 40, "-x", "A=b"]
    found = json.loads(run(*arguments, "--gpu-pinning", "none", "--dry-run", "--json", "env").out)
    out = run(*arguments, "--gpu-pinning", "none", "env", env={"OF_THE_LAUNCHER": "1"}).out
    got = set(re.findall(r"^\[0\]<stdout>:(\w+)=", out, re.M))
    told = {**found["env"], **found["workers"][0]["env"]}
    assert set(told) <= got and got - set(told) <= {*os.environ, "OF_THE_LAUNCHER"}, (got, told)
    assert told["CORRO_PORT_RANGE"] == "23000-23099" and told["HOROVOD_START_TIMEOUT"] == "40"


def test_a_dry_run_shows_how_the_job_would_be_held():
    asked = ["--grace", 2.5, "--stdin", "all", "--gpu-pinning", "exclusive", "--bind-to", "numa", "--port-range",
             "23000-23099", "--exit-code-policy", "rank0"]
    shown = {name: str(value) for name, value in zip(asked[::2], asked[1::2])}
    assert json.loads(run("-np", 1, *asked, "--dry-run", "--json", "true").out)["options"] == shown
    text = run("-np", 1, *asked, "--dry-run", "true").out
    assert not [name for name, value in shown.items() if not re.search(rf"^  {name} +{value}$", text, re.M)], text
    assert json.loads(run("-np", 1, "--dry-run", "--json", "true").out)["options"] == {
        "--grace": "5", "--stdin": "0", "--gpu-pinning": "indexed", "--bind-to": "none", "--port-range": None,
        "--exit-code-policy": "first"}


@pytest.mark.parametrize("arguments, code, says", [
    (["-np", 3, "-H", "localhost:2"], 2, "Requested more processes"),
    (["-np", 1, "-H", "example.invalid:2"], 110, "nobody knows this name"),
])
def test_a_dry_run_finds_what_would_fail(arguments, code, says):
    ended = run(*arguments, "--dry-run", "true")
    assert ended.code == code and says in ended.out and "cannot be started like this" in ended.out, ended


def test_a_dry_run_looks_for_the_program():
    assert run("-np", 1, "--dry-run", "no-such-program").code == 127
    for command in (("python3", "train.py"), ("bash", "-e", "./train.sh")):
        ended = run("-np", 1, "--dry-run", *command, cwd="/")
        assert ended.code == 127 and "No such file or directory" in ended.out, ended
    ended = run("-np", 1, "--dry-run", "--", "true")
    assert ended.code == 127 and "leave it out" in ended.err, ended


def test_what_is_built_is_told_in_horovods_layout():
    text = run("--check-build").out
    assert text == """Horovod v0.28.1:

Available Frameworks:
    [ ] TensorFlow
    [ ] PyTorch
    [ ] MXNet

Available Controllers:
    [ ] MPI
    [X] Gloo

Available Tensor Operations:
    [ ] NCCL
    [ ] DDL
    [ ] CCL
    [ ] MPI
    [X] Gloo    
"""


def test_where_libraries_were_looked_for(tmp_path):
    (tmp_path / "libnccl.so.2").touch()
    text = run("--check-build", "--verbose", env={"LD_LIBRARY_PATH": str(tmp_path)}).out
    assert f"operation NCCL: {tmp_path}/libnccl.so.2 is there\n" in text and "cannot use it yet" in text
    assert "framework PyTorch: horovod.torch is in no Python under " in text
    assert "controller MPI: " in text and "operation MPI: " in text
    assert re.search(rf"operation CCL: libccl.so.1 is not in {tmp_path}, .*/usr/lib\n", text), text
