"""`horovodrun doctor` on hosts that something is wrong with: each thing named, with the command that mends it."""
import contextlib
import json
import re

import corro_system as k
import pytest
from testbed_supervisor import ROOT_HOME

SSH = ROOT_HOME / ".ssh"
ROOM = "/var/tmp/doctor"  # which every host has for itself
TRAIN = f"{ROOM}/train"


@pytest.fixture(scope="module")
def hosts(cluster):
    made = cluster(3)
    for host in made:
        sh(host, f"mkdir -p {ROOM}/site {ROOM}/lib {ROOM}/bin && chmod 777 {ROOM} && printf '#!/bin/sh\\n' > {TRAIN} && chmod +x {TRAIN}")
    return made


def sh(host, command):
    done = host.run(["sh", "-c", command])
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


class Report:
    def __init__(self, done):
        self.done, self.code = done, done.returncode
        self.json = json.loads(done.stdout)
        assert self.code == self.json["exit_code"], self

    def __repr__(self):
        return f"code {self.code}\n{json.dumps(self.json['findings'], indent=1)}\n{self.done.stderr}"

    def only(self):
        """The one thing that was found."""
        assert len(self.json["findings"]) == 1, self
        return self.json["findings"][0]


def see(hosts, *words, on="h1:1,h2:1,h3:1", cwd=ROOM, env=None):
    return Report(hosts["h0"].run([k.HOROVODRUN, "doctor", "-H", on, "--json", *words], cwd=cwd, env=env,
                                  timeout=60 * k.SLOW))


def named(report, severity, kind, what, fix, about=("h2",)):
    found = report.only()
    assert (found["severity"], found["class"], found["hosts"]) == (severity, kind, list(about)), report
    assert re.fullmatch(what, found["what"]), report
    assert found["fix"] == fix, report
    assert report.code == (found["exit_code"] if severity == "bad" else 0), report


@contextlib.contextmanager
def seeded(host, do, undo):
    sh(host, do)
    try:
        yield
    finally:
        sh(host, undo)


@contextlib.contextmanager
def changed(path, text):
    before = path.read_text()
    path.write_text(text)
    try:
        yield
    finally:
        path.write_text(before)


def test_hosts_that_are_well(hosts):
    report = see(hosts, TRAIN)
    assert report.code == 0 and report.json["findings"] == [], report
    assert [host["verdict"] for host in report.json["hosts"]] == ["ok"] * 3
    ways = {(way["from"], way["to"]) for way in report.json["routes"] if way["open"]}
    assert ways == {(a, b) for a in ("h1", "h2", "h3") for b in ("h1", "h2", "h3", "the launcher") if a != b}
    first = report.json["hosts"][0]
    assert first["seen"]["hostname"] == "h1" and first["reached"]["address"] and first["round_trip_ms"] < 1000
    assert abs(first["clock_ahead_ms"]) <= first["clock_uncertainty_ms"] + 5


def test_for_people_it_is_a_table(hosts):
    done = hosts["h0"].run([k.HOROVODRUN, "doctor", "-H", "h1:1,nowhere:1"], timeout=60)
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("  ")]
    assert rows[0][:4] == ["host", "reached", "answers", "clock"] and rows[1][0] == "h1" and rows[1][-1] == "ok", done
    assert rows[2][:2] == ["nowhere", "no"] and rows[2][-1] == "bad", done
    assert "\nbad: nowhere: nobody knows this name [name]\n" in done.stdout and "\n  fix: echo 'ADDRESS " in done.stdout
    assert done.returncode == 110 and "\x1b" not in done.stdout and done.stderr == "", done


def firewall(host, *rules):
    """As Debian's nftables.conf names table and chain."""
    lines = ["add table inet filter", "add chain inet filter input { type filter hook input priority 0; }",
             *(f"add rule inet filter input {rule}" for rule in rules)]
    return seeded(host, "nft -f - <<'END'\n" + "\n".join(lines) + "\nEND", "nft delete table inet filter")


# On the way there.

def test_a_name_that_nobody_knows(hosts):
    named(see(hosts, on="h1:1,nowhere:1"), "bad", "name", "nobody knows this name",
          "echo 'ADDRESS nowhere' | sudo tee -a /etc/hosts", ["nowhere"])


def test_a_host_that_is_down(hosts):
    hosts["h2"].cut()
    try:
        report = see(hosts, "--start-timeout", "2")
    finally:
        hosts["h2"].heal()
    named(report, "bad", "reach", "it cannot be reached", "ssh -v h2 true")


def test_a_port_that_is_closed(hosts):
    with firewall(hosts["h2"], "tcp dport 22 reject with tcp reset"):
        named(see(hosts, "--start-timeout", "20"), "bad", "reach", "it cannot be reached",
              "sudo systemctl start ssh   # at the console of h2")


def test_a_host_key_that_is_not_known(hosts):
    known = hosts["h0"].path(SSH / "known_hosts")
    with changed(known, "".join(line for line in known.open() if not line.startswith("10.77.0.3,"))):
        named(see(hosts), "bad", "host key", "its host key is not known", f"ssh-keyscan -H h2 >> {SSH}/known_hosts")


def test_a_host_key_that_has_changed(hosts):
    known = hosts["h0"].path(SSH / "known_hosts")
    keys = {line.split()[0]: line.split(" ", 1)[1] for line in known.open()}
    of = {name: key for names, key in keys.items() for name in names.split(",")}
    lines = "".join(f"{names} {of['h1'] if 'h2' in names.split(',') else key}" for names, key in keys.items())
    with changed(known, lines):
        named(see(hosts), "bad", "host key", "its host key has changed", f"ssh-keygen -f {SSH}/known_hosts -R 'h2'")


def test_a_key_that_is_not_let_in(hosts):
    with changed(hosts["h2"].path("/etc/ssh/authorized_keys"), ""):
        named(see(hosts), "bad", "login", "it does not let us in", "ssh-copy-id root@h2")


def test_a_login_shell_that_does_not_work(hosts):
    with seeded(hosts["h2"], "sed 's,^\\(root:.*\\):[^:]*$,\\1:/bin/false,' /etc/passwd > /run/passwd && "
                             "mount --bind /run/passwd /etc/passwd", "umount /etc/passwd"):
        report = see(hosts)
        found = report.only()
    assert (found["class"], found["what"], report.code) == ("machine", "its login shell does not work", 114), report
    assert found["fix"].startswith("ssh ") and "h2" in found["fix"], report


def test_a_login_that_never_comes_to_an_end(hosts):
    with seeded(hosts["h2"], f"echo 'sleep 20' > {ROOT_HOME}/.bashrc", f"rm {ROOT_HOME}/.bashrc"):
        report = see(hosts, "--start-timeout", "2")
    named(report, "bad", "reach", "it cannot be reached", "ssh -v h2 true")
    assert report.only()["example"] == "nothing was heard of it for 7 s", report


def test_two_names_of_one_machine(hosts):
    named(see(hosts, on="h1:1,h2:1,10.77.0.3:1"), "warning", "machine", "they are one machine, .*",
          "horovodrun -H h2:2 …", ["h2", "10.77.0.3"])


def test_another_name_of_this_machine(hosts):
    config = hosts["h0"].path(SSH / "config")
    with changed(config, config.read_text() + "Host elsewhere\n HostName h0\n"):
        named(see(hosts, on="h1:1,elsewhere:1"), "note", "machine", "it is this machine, by another name",
              "horovodrun -H localhost:1 …   # no ssh needed", ["elsewhere"])


# Between the hosts.

def test_a_firewall_between_two_hosts(hosts):
    begins = "tcp dport 1024-65535 tcp flags & (syn | ack) == syn drop"
    closed = [f"ip saddr {hosts['h1'].address} {begins}", f"ip6 saddr {hosts['h1'].address6} {begins}"]
    mend = "nft insert rule inet filter input ip saddr { 10.77.0.2 } tcp dport 20000-20100 accept"
    with firewall(hosts["h2"], *closed):
        named(see(hosts, "--port-range", "20000-20100"), "bad", "network", "it does not reach h2 at .*",
              f"ssh h2 'sudo {mend}'", ["h1"])
        sh(hosts["h2"], mend)
        assert see(hosts, "--port-range", "20000-20100").code == 0


# Limits.

def limited(host, name, low):
    """The soft limit only: what is taken from the hard one, not even root gets back everywhere."""
    sshd = "prlimit --pid $(cat /run/sshd.pid)"
    before = sh(host, f"{sshd} --{name} --raw --noheadings --output SOFT").strip()
    return seeded(host, f"{sshd} --{name}={low}:", f"{sshd} --{name}={before}:")


LIMITS = "| sudo tee -a /etc/security/limits.d/corro.conf'"


def test_few_open_files(hosts):
    with limited(hosts["h2"], "nofile", 128):
        named(see(hosts), "bad", "limits", r"a process may have 128 files open \(nofile\), .*",
              f"ssh h2 'echo '\\''* - nofile 65536'\\'' {LIMITS}")


def test_few_threads(hosts):
    with limited(hosts["h2"], "nproc", 40):
        named(see(hosts, on="h1:2,bob@h2:2,h3:2"), "bad", "limits", r"a user may have 40 threads \(nproc\), .*",
              f"ssh bob@h2 'echo '\\''* - nproc 65536'\\'' {LIMITS}")


def test_little_locked_memory(hosts):
    with limited(hosts["h2"], "memlock", 65536):
        named(see(hosts), "note", "limits", r"a process may lock 64 KiB of memory \(memlock\), .*",
              f"ssh h2 'echo '\\''* - memlock unlimited'\\'' {LIMITS}")


# Files.

def test_little_shared_memory(hosts):
    with seeded(hosts["h2"], "mount -o remount,size=4M /dev/shm", "mount -o remount,size=50% /dev/shm"):
        found = see(hosts).only()
    assert (found["severity"], found["what"]) == ("bad", "/dev/shm has 4 MiB only")
    assert re.fullmatch(r"ssh h2 'sudo mount -o remount,size=\d+G /dev/shm'", found["fix"])


def test_a_tmp_that_is_full(hosts):
    with seeded(hosts["h2"], "mount -o remount,size=20M /tmp && fallocate -l 18M /tmp/big",
                "rm /tmp/big; mount -o remount,size=50% /tmp"):
        named(see(hosts), "bad", "files", r"/tmp is full: \d MiB of 20 MiB are free",
              "ssh h2 'df -h /tmp; du -xah /tmp | sort -h | tail -20'")


def test_a_home_that_is_read_only(hosts):
    with seeded(hosts["h2"], f"mount -o remount,ro {ROOT_HOME}", f"mount -o remount,rw {ROOT_HOME}"):
        named(see(hosts), "warning", "files", f"the home {ROOT_HOME} cannot be written to",
              f"ssh h2 'sudo mount -o remount,rw \"$(findmnt -nT {ROOT_HOME} -o TARGET)\"'")


def test_no_working_directory(hosts):
    with seeded(hosts["h2"], f"mv {ROOM} {ROOM}.away", f"mv {ROOM}.away {ROOM}"):
        named(see(hosts), "bad", "files", f"the working directory {ROOM} does not exist", f"ssh h2 'mkdir -p {ROOM}'")


def test_a_working_directory_that_is_a_file(hosts):
    with seeded(hosts["h2"], f"mv {ROOM} {ROOM}.away && touch {ROOM}", f"rm {ROOM}; mv {ROOM}.away {ROOM}"):
        named(see(hosts), "bad", "files", f"the working directory {ROOM} cannot be entered",
              f"ssh h2 'ls -ld {ROOM}; chmod u+x {ROOM}'")


def test_a_working_directory_that_cannot_be_written_to(hosts):
    with seeded(hosts["h2"], f"mount -t tmpfs -o ro tmpfs {ROOM}", f"umount {ROOM}"):
        named(see(hosts), "warning", "files", f"the working directory {ROOM} cannot be written to",
              f"ssh h2 'sudo mount -o remount,rw \"$(findmnt -nT {ROOM} -o TARGET)\"'")


def test_no_program(hosts):
    with seeded(hosts["h2"], f"mv {TRAIN} {TRAIN}.away", f"mv {TRAIN}.away {TRAIN}"):
        named(see(hosts, TRAIN), "bad", "files", f"the program {TRAIN} is not there", f"scp -p {TRAIN} h2:{TRAIN}")


def test_a_program_that_may_not_be_executed(hosts):
    with seeded(hosts["h2"], f"chmod -x {TRAIN}", f"chmod +x {TRAIN}"):
        named(see(hosts, TRAIN), "bad", "files", f"the program {TRAIN} may not be executed",
              f"ssh h2 'chmod +x {TRAIN}'")


def test_no_script(hosts):
    script = f"{ROOM}/train.py"
    words = ["/usr/bin/python3", "-u", "train.py", "--epochs", "3"]
    everywhere = ["h1", "h2", "h3"]
    named(see(hosts, *words), "bad", "files", f"the script {script} is not there", "find . -name train.py", everywhere)
    dry = hosts["h0"].run([k.HOROVODRUN, "-np", "3", "-H", "h1:1,h2:1,h3:1", "--dry-run", *words], cwd=ROOM, timeout=60)
    assert dry.returncode == 118 and f"the script {script} is not there" in dry.stdout, dry
    with contextlib.ExitStack() as placed:
        for name in ("h0", "h1", "h3"):
            placed.enter_context(seeded(hosts[name], f"touch {script}", f"rm {script}"))
        named(see(hosts, *words), "bad", "files", f"the script {script} is not there", f"scp -p {script} h2:{script}")
        assert see(hosts, *words, on="h1:1,h3:1").code == 0


def test_a_script_that_cannot_be_read(hosts):
    script = f"{ROOM}/train.sh"
    with seeded(hosts["h2"], f"touch {script} && chmod 0 {script}", f"rm {script}"):
        named(see(hosts, "sh", "train.sh", on="bob@h2:1"), "bad", "files", f"the script {script} cannot be read",
              f"ssh bob@h2 'chmod u+r {script}'")


# Versions.

def fake_python(host, body):
    host.path(f"{ROOM}/bin/python3").write_text(f"#!/bin/sh\n{body}\n")
    return seeded(host, f"chmod +x {ROOM}/bin/python3", f"rm {ROOM}/bin/python3")


def with_bin(hosts):
    path = sh(hosts["h0"], "echo $PATH").strip()
    return {"PATH": f"{ROOM}/bin:{path}"}


def test_another_python(hosts):
    version = sh(hosts["h1"], "python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'").strip()
    # All else as on the other hosts, whatever is installed on this machine.
    older = r"/usr/bin/python3 \"$@\" | sed 's/\(inspection\tpython\)\t[^\t]*/\1\t3.4.1/'".replace('\\"', '"')
    with fake_python(hosts["h2"], older):
        named(see(hosts, env=with_bin(hosts)), "bad", "versions", f"Python is 3.4, elsewhere it is {version}",
              f"ssh h2 'sudo apt-get install -y python{version}'")


def test_a_python_that_does_not_answer(hosts):
    with fake_python(hosts["h2"], "exec sleep 60"):
        report = see(hosts, env=with_bin(hosts))
    named(report, "warning", "versions", "its Python could not be asked", "ssh h2 'python3 --version; type -a python3'")


def install(host, version):
    folder = f"{ROOM}/site/torch-{version}.dist-info"
    return seeded(host, f"mkdir {folder} && printf 'Name: torch\\nVersion: {version}\\n' > {folder}/METADATA",
                  f"rm -r {folder}")


@pytest.mark.parametrize("version, what", [("2.12.1", "torch is 2.12.1, elsewhere it is 2.13.0"),
                                           (None, "there is no torch, elsewhere it is 2.13.0")])
def test_another_torch_or_none(hosts, version, what):
    with contextlib.ExitStack() as installed:
        for name, each in (("h1", "2.13.0"), ("h2", version), ("h3", "2.13.0")):
            if each:
                installed.enter_context(install(hosts[name], each))
        report = see(hosts, env={"PYTHONPATH": f"{ROOM}/site"})
    found = report.only()
    assert (found["hosts"], found["what"], report.code) == (["h2"], what, 117), report
    assert re.fullmatch(r"ssh h2 '\S*python3 -m pip install torch==2.13.0'", found["fix"])


def test_another_nccl(hosts):
    with contextlib.ExitStack() as installed:
        for name, version in (("h1", "2.21.5"), ("h2", "2.18.1"), ("h3", "2.21.5")):
            library = f"{ROOM}/lib/libnccl.so.{version}"
            installed.enter_context(seeded(hosts[name], f"touch {library}", f"rm {library}"))
        report = see(hosts, env={"LD_LIBRARY_PATH": f"{ROOM}/lib"})
    named(report, "bad", "versions", "NCCL is 2.18.1, elsewhere it is 2.21.5",
          "ssh h2 'sudo apt-get install -y '\\''libnccl2=2.21.5*'\\'''")


# What is made of it.

def test_a_job_goes_on_without_a_bad_host(hosts):
    done = hosts["h0"].run([k.HOROVODRUN, "-np", "2", "-H", "nowhere:1,h1:1,h2:1", "--exclude-bad", "hostname"],
                           timeout=60)
    assert done.returncode == 0 and sorted(done.stdout.split()) == ["[0]<stdout>:h1", "[1]<stdout>:h2"], done
    assert "horovodrun: nowhere: nobody knows this name\n  fix: " in done.stderr, done
    assert "horovodrun: going on with h1:1,h2:1\n" in done.stderr, done


def test_a_job_does_not_go_on_with_too_few(hosts):
    done = hosts["h0"].run([k.HOROVODRUN, "-np", "3", "-H", "nowhere:1,h1:1,h2:1", "--exclude-bad", "hostname"],
                           timeout=60)
    assert done.returncode == 110 and done.stdout == "", done
    assert "2 of 3 slots remain, and 3 workers are wanted" in done.stderr, done


def test_a_dry_run_asks_the_doctor_about_other_machines(hosts):
    words = [k.HOROVODRUN, "-np", "2", "--dry-run", "--json", "-H"]
    good = json.loads(hosts["h0"].run([*words, "h1:1,h2:1", "true"], timeout=60).stdout)
    assert good["exit_code"] == 0 and {"host h1", "host h2"} <= {check["check"] for check in good["checks"]}
    done = hosts["h0"].run([*words, "h1:1,nowhere:1", "true"], timeout=60)
    bad = next(check for check in json.loads(done.stdout)["checks"] if not check["ok"])
    assert done.returncode == 110 and bad["check"] == "host nowhere" and bad["text"] == "nobody knows this name", done
    assert bad["fix"].startswith("echo 'ADDRESS nowhere'"), done
