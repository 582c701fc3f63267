"""Jobs on several hosts, each a network namespace with a real sshd: they run, they end, and they say what went wrong."""
import os
import re
import signal
import subprocess
import time

import corro_system as k
import pytest
from testbed import ROOT_HOME
from train_reference import losses as reference

SSH = ROOT_HOME / ".ssh"
LEASE, GRACE = 5.0, 5.0


@pytest.fixture(scope="module")
def hosts(cluster):
    return cluster(4)


@pytest.fixture(autouse=True)
def nothing_left(hosts):
    yield
    for host in hosts:
        host.heal()
        host.fast()
    left = hosts.left(timeout=(LEASE + GRACE + 3) * k.SLOW)
    assert not left, left


def run(hosts, *arguments, timeout=60, env=None):
    """horovodrun on h0, to its end."""
    began = time.monotonic()
    done = hosts["h0"].run([k.HOROVODRUN, *map(str, arguments)], timeout=timeout * k.SLOW, env=env)
    return k.Ended(done.returncode, done.stdout, done.stderr, time.monotonic() - began)


def start(hosts, *arguments, **options):
    return hosts["h0"].popen([k.HOROVODRUN, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, **options)


def ended(process, timeout=30):
    out, err = process.communicate(timeout=timeout * k.SLOW)
    return k.Ended(process.returncode, out, err, 0)


def argvs(host):
    return [b" ".join(p.argv) for p in host.processes()]


def runs_on(host, what):
    return any(what in argv for argv in argvs(host))


def until_runs(*hosts, what=b"sleep 60"):
    assert k.eventually(lambda: all(runs_on(host, what) for host in hosts), 20), [argvs(host) for host in hosts]


# What works.

def test_every_rank_runs_where_it_should(hosts):
    done = run(hosts, "-np", 6, "-H", "h1:2,h2:1,h3:3", "sh", "-c",
               "echo $(hostname) $HOROVOD_RANK $HOROVOD_LOCAL_RANK $HOROVOD_CROSS_RANK $CORRO_ADDRESS")
    assert done.code == 0, done
    seen = sorted(re.findall(r"^\[\d\]<stdout>:(.*)$", done.out, re.M), key=lambda line: line.split()[1])
    address = {name: hosts[name].address for name in ("h1", "h2", "h3")}
    assert seen == [f"h1 0 0 0 {address['h1']}", f"h1 1 1 0 {address['h1']}", f"h2 2 0 1 {address['h2']}",
                    f"h3 3 0 2 {address['h3']}", f"h3 4 1 1 {address['h3']}", f"h3 5 2 0 {address['h3']}"], done


def test_training_on_four_hosts_gives_the_losses_of_one(hosts):
    steps = 40
    done = run(hosts, "-np", 8, "-H", "h1:2,h2:2,h3:2,h4:2", k.TRAIN, "--steps", steps, "--trace", timeout=120)
    assert done.code == 0, done
    seen = [float(x) for x in re.findall(r"^\[0\]<stdout>:loss (\S+)$", done.out, re.M)]
    assert len(seen) == steps
    assert max(abs(a - b) for a, b in zip(seen, reference(steps))) < 1e-9
    digests = re.findall(r"^\[(\d+)\]<stdout>:digest (\w+)$", done.out, re.M)
    assert len(digests) == 8 and len({digest for _, digest in digests}) == 1, digests


def test_this_machine_may_be_one_of_them(hosts):
    done = run(hosts, "-np", 4, "-H", "localhost:2,h1:2", k.TRAIN, "--steps", 3, "--trace")
    assert done.code == 0 and len(set(re.findall(r"digest (\w+)", done.out))) == 1, done


@pytest.mark.parametrize("named", ["h1-v6:2,h2-v6:2", "[fd77::2]:2,[fd77::3]:2", "10.77.0.2:2,10.77.0.3:2"])
def test_hosts_by_other_names(hosts, named):
    done = run(hosts, "-np", 4, "-H", named, k.TRAIN, "--steps", 3, "--trace")
    assert done.code == 0 and len(set(re.findall(r"digest (\w+)", done.out))) == 1, done


def test_where_there_is_no_version_4(hosts):
    for name in ("h0", "h1", "h2"):
        hosts[name].run(["ip", "addr", "del", f"{hosts[name].address}/16", "dev", "eth0"])
    try:
        done = run(hosts, "-np", 2, "-H", "h1-v6:1,h2-v6:1", "sh", "-c", f"echo $CORRO_STORE; {k.TRAIN} --steps 2")
    finally:
        for name in ("h0", "h1", "h2"):
            hosts[name].run(["ip", "addr", "add", f"{hosts[name].address}/16", "dev", "eth0"])
    assert done.code == 0 and "[fd77::1]:" in done.out, done


def test_interfaces_need_not_have_the_same_name(hosts):
    hosts["h2"].run(["sh", "-c", "ip link set eth0 down; ip link set eth0 name lan7; ip link set lan7 up;"
                     f"ip addr add {hosts['h2'].address6}/64 dev lan7 2>/dev/null; true"])
    try:
        done = run(hosts, "-np", 2, "-H", "h1:1,h2:1", "sh", "-c", "echo $GLOO_SOCKET_IFNAME $NCCL_SOCKET_IFNAME")
    finally:
        hosts["h2"].run(["sh", "-c", "ip link set lan7 down; ip link set lan7 name eth0; ip link set eth0 up;"
                         f"ip addr add {hosts['h2'].address6}/64 dev eth0 2>/dev/null; true"])
    assert done.code == 0, done
    assert sorted(re.findall(r"<stdout>:(.*)$", done.out, re.M)) == ["eth0 eth0", "lan7 lan7"], done


def test_interfaces_may_be_narrowed(hosts):
    hosts["h1"].run(["sh", "-c", "ip link add slowlan type dummy; ip addr add 10.99.0.1/24 dev slowlan; ip link set slowlan up"])
    try:
        done = run(hosts, "-np", 2, "-H", "h1:1,h2:1", "--network-interfaces", "eth0", "sh", "-c", "echo $CORRO_ADDRESS")
        assert done.code == 0 and hosts["h1"].address in done.out, done
        done = run(hosts, "-np", 2, "-H", "h1:1,h2:1", "--network-interfaces", "slowlan", "true")
        assert done.code == 115 and "nothing was started: " in done.err, done
    finally:
        hosts["h1"].run(["ip", "link", "del", "slowlan"])


def test_everything_that_listens_is_in_the_range_and_at_one_address(hosts):
    job = start(hosts, "-np", 4, "-H", "h1:2,h2:2", "--port-range", "23000-23099", k.TRAIN, "--steps", "100000")
    try:
        until_runs(hosts["h1"], hosts["h2"], what=b"train")
        assert k.eventually(lambda: hosts["h0"].listening())
        time.sleep(0.5)
        for name in ("h0", "h1", "h2"):
            for line in hosts[name].listening():
                ip, port = line.split()[3].rsplit(":", 1)
                assert ip == hosts[name].address and 23000 <= int(port) <= 23099, (name, line)
    finally:
        job.send_signal(signal.SIGINT)
        ended(job)


def test_words_and_variables_arrive_byte_for_byte_whatever_the_login_shell(hosts):
    odd = "a b'c\"d\\e\nf\t$HOME `id` !x * ~ % \x01 ü {} ;&|<>"
    script = "import os, sys; print(ascii([sys.argv[1:], os.environ['ODD']]))"
    done = run(hosts, "-np", 4, "-H", "sue@h1:1,bob@h2:1,carol@h3:1,finn@h4:1", "-x", "ODD",
               "--output-filename", "/tmp", "/usr/bin/python3", "-c", script, odd, "", env={"ODD": odd})
    assert done.code == 0, done
    said = re.findall(r"<stdout>:(.*)$", done.out, re.M)
    assert said == [ascii([[odd, ""], odd])] * 4, done


def test_a_hundred_megabytes_from_another_host(hosts):
    size = 100 << 20
    job = hosts["h0"].popen([k.HOROVODRUN, "-np", "1", "-H", "h1:1", "--tag-format", "", k.WRITE_MUCH, str(size)],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    seen = 0
    while piece := job.stdout.read(1 << 20):
        seen += len(piece)
    assert job.wait(timeout=60 * k.SLOW) == 0 and seen == size


def test_input_reaches_a_worker_on_another_host(hosts):
    text = "".join(f"line {i}\n" for i in range(20_000))
    done = hosts["h0"].run([k.HOROVODRUN, "-np", "2", "-H", "h1:1,h2:1", "--stdin", "1", "sh", "-c",
                            "if [ $RANK = 1 ]; then sha256sum; fi"], input=text, timeout=30 * k.SLOW)
    expected = subprocess.run(["sha256sum"], input=text, capture_output=True, text=True).stdout
    assert done.returncode == 0 and done.stdout == f"[1]<stdout>:{expected}", done


def test_two_jobs_at_once_on_the_same_hosts(hosts):
    jobs = [start(hosts, "-np", 4, "-H", "h1:2,h2:2", k.TRAIN, "--steps", 20, "--trace") for _ in range(2)]
    for job in jobs:
        done = ended(job, 60)
        assert done.code == 0 and len(set(re.findall(r"digest (\w+)", done.out))) == 1, done


@pytest.mark.parametrize("agent", ["ssh", "ssh -q -o BatchMode=yes {host}"])
def test_another_command_in_ssh_s_place(hosts, agent):
    done = run(hosts, "-np", 2, "-H", "h1:1,h2:1", "--rsh-agent", agent, "hostname")
    assert done.code == 0 and sorted(done.out.splitlines()) == ["[0]<stdout>:h1", "[1]<stdout>:h2"], done


def test_the_mpi_operator_s_command_is_taken(hosts):
    done = run(hosts, "-np", 2, "-H", "h1:1,h2:1", "hostname", env={"OMPI_MCA_plm_rsh_agent": "ssh"})
    assert done.code == 0 and "hosts are reached with 'ssh', as OMPI_MCA_plm_rsh_agent=ssh says" in done.err, done


@pytest.mark.parametrize("delay, loss", [(200, 0), (0, 1)])
def test_links_that_are_slow_or_lose(hosts, delay, loss):
    for name in ("h1", "h2"):
        hosts[name].slow(delay_ms=delay, loss_percent=loss, seed=7)
    done = run(hosts, "-np", 2, "-H", "h1:1,h2:1", k.TRAIN, "--steps", 3, "--trace", timeout=60)
    assert done.code == 0 and len(set(re.findall(r"digest (\w+)", done.out))) == 1, done


# What is in the way.

def test_a_host_that_is_down_is_named_with_what_to_do(hosts):
    hosts["h2"].cut()
    done = run(hosts, "-np", 2, "-H", "h1:1,h2:1", "true")
    assert done.code == 111 and "h2 (" in done.err and "ssh -v root@h2 true" in done.err, done
    assert "h1" not in done.err and done.took < 15 * k.SLOW, done


def test_all_that_is_in_the_way_is_said_at_once(hosts):
    known = hosts["h0"].path(SSH / "known_hosts")
    before = known.read_text()
    keys = hosts["h2"].path("/etc/ssh/authorized_keys")
    allowed = keys.read_text()
    try:
        known.write_text("".join(line for line in before.splitlines(True) if "h1" not in line.split()[0]))
        keys.write_text("")
        done = run(hosts, "-np", 3, "-H", "h1:1,h2:1,h3:1", "true")
    finally:
        known.write_text(before)
        keys.write_text(allowed)
    assert done.code in (112, 113), done
    assert "ssh-keyscan" in done.err and "ssh-copy-id" in done.err and "h3" not in done.err, done


@pytest.mark.parametrize("remembers", [[], ["--disable-cache"]])
def test_hosts_that_do_not_reach_each_other(hosts, remembers):
    """Both can be logged into, and a firewall is between them; it was not there a moment ago."""
    assert run(hosts, "-np", 2, "-H", "h1:1,h2:1", *remembers, "true").code == 0
    rule = "nft add table inet t; nft add chain inet t in '{ type filter hook input priority 0; }';" + "".join(
        f"nft add rule inet t in {family} saddr {address} drop;"
        for family, address in (("ip", hosts["h1"].address), ("ip6", hosts["h1"].address6)))
    assert hosts["h2"].run(["sh", "-c", rule]).returncode == 0
    try:
        done = run(hosts, "-np", 2, "-H", "h1:1,h2:1", *remembers, "true")
    finally:
        hosts["h2"].run(["nft", "delete", "table", "inet", "t"])
    assert done.code == 115 and re.search(r"host (h1|h2) cannot reach host (h1|h2) at 10.77.0.", done.err), done
    command = re.search(r"^  (horovodrun doctor -H h1:1,h2:1)   # ", done.err, re.M)
    assert command and not done.out, done


def test_a_directory_that_is_not_there_is_named(hosts):
    hosts["h0"].run(["mkdir", "-p", "/run/only-here"])
    done = hosts["h0"].run([k.HOROVODRUN, "-np", "2", "-H", "h1:1,h2:1", "true"], cwd="/run/only-here")
    assert done.returncode == 125 and re.search(r"on host h[12] could not be started: changing to /run/only-here",
                                                done.stderr), done


def test_who_reached_whom_is_remembered_for_an_hour(hosts):
    memory = hosts["h0"].path(ROOT_HOME / ".cache/corro/ways")
    memory.unlink(missing_ok=True)
    run(hosts, "-np", 2, "-H", "h1:1,h2:1", "--disable-cache", "true")
    assert not memory.exists()
    done = run(hosts, "-np", 2, "-H", "h1:1,h2:1", "true")
    assert done.code == 0 and memory.stat().st_mode & 0o777 == 0o600, done
    words = memory.read_text().split()
    assert f"h1={hosts['h1'].address}" in words and f"@launcher={hosts['h0'].address}" in words, words
    # It is tried first: here is another address that is as good, and one that is not there any more.
    memory.write_text(memory.read_text().replace(f"h1={hosts['h1'].address}", f"h1={hosts['h1'].address6}"))
    done = run(hosts, "-np", 2, "-H", "h1:1,h2:1", "sh", "-c", "echo $CORRO_ADDRESS")
    assert f"<stdout>:{hosts['h1'].address6}\n" in done.out, done
    memory.write_text(memory.read_text().replace(f"h1={hosts['h1'].address6}", "h1=10.9.9.9"))
    done = run(hosts, "-np", 2, "-H", "h1:1,h2:1", "sh", "-c", "echo $CORRO_ADDRESS")
    assert f"<stdout>:{hosts['h1'].address}\n" in done.out, done


# What is lost on the way.

def test_a_link_that_is_cut(hosts):
    job = start(hosts, "-np", 2, "-H", "h1:1,h2:1", "sleep", "60")
    until_runs(hosts["h1"], hosts["h2"])
    hosts["h2"].cut()
    cut = time.monotonic()
    done = ended(job)
    # Heard of for the last time a moment before, given up after the lease, and then the others have to end.
    # Half a second is for a machine that has other things to do.
    assert done.code == 121 and time.monotonic() - cut < (LEASE + 1) * k.SLOW + 0.5, done
    assert done.err.count("h2") == 1 and "it was not heard of for 5.0 s" in done.err, done
    # Its sshd has not heard of the cut, and waits.
    ours = lambda: [argv for argv in argvs(hosts["h2"]) if not argv.startswith(b"sshd: ")]  # noqa: E731
    assert k.eventually(lambda: not ours(), cut + LEASE + GRACE - time.monotonic()), ours()


def test_a_host_that_dies_while_it_runs(hosts):
    job = start(hosts, "-np", 2, "-H", "h1:1,h2:1", "sleep", "60")
    until_runs(hosts["h1"], hosts["h2"])
    hosts["h2"].kill()
    try:
        done = ended(job)
        assert done.code == 121 and "host h2 was lost" in done.err, done
    finally:
        hosts["h2"].revive()


def test_a_host_that_dies_while_it_stops(hosts):
    job = start(hosts, "-np", 2, "-H", "h1:1,h2:1", "--grace", 2, "sh", "-c", "trap '' TERM; sleep 60 & wait; sleep 60")
    until_runs(hosts["h1"], hosts["h2"])
    job.send_signal(signal.SIGINT)
    time.sleep(0.3)
    hosts["h2"].kill()
    try:
        began = time.monotonic()
        done = ended(job)
        assert done.code == 130 and time.monotonic() - began < (2 + 2 + 2 + LEASE) * k.SLOW, done
    finally:
        hosts["h2"].revive()


@pytest.mark.parametrize("after_s", [0.5, 1.5, 2.5, 3.5])  # the key exchange, the login, the channel, the agent
def test_a_host_that_dies_while_it_is_being_reached(hosts, after_s):
    hosts["h2"].slow(delay_ms=500)
    job = start(hosts, "-np", 2, "-H", "h1:1,h2:1", "--start-timeout", 6, "sleep", "60")
    time.sleep(after_s)
    hosts["h2"].kill()
    try:
        done = ended(job)
        assert done.code in (111, 121, 124) and "h2" in done.err, done
    finally:
        hosts["h2"].revive()


def test_an_ssh_pipe_that_is_killed(hosts):
    job = start(hosts, "-np", 2, "-H", "h1:1,h2:1", "sleep", "60")
    until_runs(hosts["h1"], hosts["h2"])
    pipes = [p for p in hosts["h0"].processes() if b"--ssh-pipe" in p.argv and b"h2" in p.argv]
    assert len(pipes) == 1, argvs(hosts["h0"])
    os.kill(pipes[0].pid, signal.SIGKILL)
    done = ended(job)
    assert done.code == 121 and "host h2 was lost" in done.err, done


def test_a_launcher_that_is_killed(hosts):
    job = start(hosts, "-np", 4, "-H", "h1:2,h2:2", "sleep", "60")
    until_runs(hosts["h1"], hosts["h2"])
    job.kill()
    job.communicate()
    assert not hosts.left(timeout=(GRACE + 2) * k.SLOW)


@pytest.mark.parametrize("after", [0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 1.0])
def test_ctrl_c_at_any_time(hosts, after):
    job = start(hosts, "-np", 4, "-H", "h1:2,h2:2", "sleep", "60")
    time.sleep(after)
    job.send_signal(signal.SIGINT)
    began = time.monotonic()
    done = ended(job)
    # Before it can be caught it does what it does to anybody.
    assert done.code == 130 or done.code == -signal.SIGINT, done
    assert time.monotonic() - began < 4 * k.SLOW, done


def test_ctrl_c_while_a_host_does_not_answer(hosts):
    hosts["h2"].cut()
    job = start(hosts, "-np", 2, "-H", "h1:1,h2:1", "sleep", "60")
    assert k.eventually(lambda: any(b"--ssh-pipe" in p.argv and b"h2" in p.argv for p in hosts["h0"].processes()))
    time.sleep(0.5)  # h1 has answered by now
    job.send_signal(signal.SIGINT)
    began = time.monotonic()
    done = ended(job)
    assert done.code == 130 and time.monotonic() - began < 4 * k.SLOW, done


def test_ctrl_c_while_other_hosts_stop(hosts):
    """The second does not wait for the grace."""
    job = start(hosts, "-np", 2, "-H", "h1:1,h2:1", "--grace", 60, "sh", "-c",
                "trap 'echo hears it' INT TERM; while :; do sleep 0.1; done")
    until_runs(hosts["h1"], hosts["h2"], what=b"hears it")
    time.sleep(0.5)  # until the traps are set
    job.send_signal(signal.SIGINT)
    assert job.stdout.readline().endswith("<stdout>:hears it\n")
    job.send_signal(signal.SIGINT)
    began = time.monotonic()
    done = ended(job)
    assert done.code == 130 and time.monotonic() - began < 4 * k.SLOW, done


# What nobody else may see.

def test_nothing_secret_is_seen_on_any_host(hosts):
    secret = "hunter2-in-the-environment"
    job = start(hosts, "-np", 2, "-H", "h1:1,h2:1", "-x", f"TOKEN={secret}", "sleep", "60")
    until_runs(hosts["h1"], hosts["h2"])
    try:
        key = next(p.environ[b"CORRO_JOB_KEY"] for p in hosts["h1"].processes() if p.argv[:1] == [b"sleep"])
        for host in hosts:
            for argv in argvs(host):
                assert key not in argv and b"HOROVOD_RANK=" not in argv, argv
                if host.name != "h0":  # where the user has typed it
                    assert secret.encode() not in argv, argv
            wide = host.run(["sh", "-c", "find ~/.cache /tmp/corro-* /dev/shm -newer /proc/1 -perm /077 -not -type l "
                             "2>/dev/null | grep -i corro"]).stdout
            assert wide == "", wide
    finally:
        job.send_signal(signal.SIGINT)
        ended(job)


@pytest.mark.skipif(k.SLOW > 1, reason="64 hosts are too much for a sanitizer")
def test_sixty_four_hosts(cluster):
    many = cluster(64)
    done = run(many, "-np", 64, "-H", ",".join(f"h{i}:1" for i in range(1, 65)), "--start-timeout", 120, "sh", "-c",
               "hostname", timeout=180)
    assert done.code == 0, done
    assert sorted(done.out.splitlines()) == sorted(f"[{i}]<stdout>:h{i + 1}" for i in range(64)), done
    assert not many.left()


def test_many_hosts_behind_one_sshd_that_lets_few_in(cluster):
    few = cluster(1, sshd_options={"MaxStartups": "2:100:2"})
    config = few["h0"].path(SSH / "config")
    config.write_text(config.read_text() + "Host w*\n  HostName h1\n")
    done = run(few, "-np", 8, "-H", "w[1-8]:1", k.TRAIN, "--steps", 3, "--trace")
    assert done.code == 0 and len(re.findall(r"digest \w+", done.out)) == 8, done
    assert "MaxStartups throttling" in few["h1"].path("/run/sshd.log").read_text()
    assert not few.left()


def test_a_host_with_a_public_and_an_internal_address(hosts):
    """It is logged into by the one, and its peers reach it by the other."""
    for name, address in (("h1", "10.88.0.1"), ("h2", "10.88.0.2")):
        hosts[name].run(["ip", "addr", "add", f"{address}/24", "dev", "eth0"])
    try:
        done = run(hosts, "-np", 2, "-H", "h1/10.88.0.1:1,h2/10.88.0.2:1", "sh", "-c",
                   f"echo $CORRO_ADDRESS; {k.TRAIN} --steps 2 --trace")
        assert done.code == 0 and "<stdout>:10.88.0.1\n" in done.out and "<stdout>:10.88.0.2\n" in done.out, done
    finally:
        for name, address in (("h1", "10.88.0.1"), ("h2", "10.88.0.2")):
            hosts[name].run(["ip", "addr", "del", f"{address}/24", "dev", "eth0"])


def test_hosts_without_a_number_are_asked_for_their_gpus(cluster):
    gpus = "".join(f"gpu GPU-{i}{i}{i}{i} 0000:0{i + 1}:00.0 1000 Model T;" for i in range(3))
    three = cluster(2, sshd_options={
        "SetEnv": f'"LD_LIBRARY_PATH={k.BUILD}/lib/stand_in" "CORRO_STAND_IN_GPUS={gpus}"'})
    done = run(three, "-np", 6, "-H", "h1,h2", "sh", "-c", "echo $HOROVOD_HOSTNAME $HOROVOD_LOCAL_RANK")
    assert done.code == 0 and "a slot for each GPU, else one: h1:3,h2:3" in done.err, done
    assert sorted(line.split(":", 1)[1] for line in done.out.splitlines()) == [
        f"{host} {rank}" for host in ("h1", "h2") for rank in range(3)], done
    refused = run(three, "-np", 2, "-H", "h1,h9", "true")
    assert refused.code == 110 and "h9" in refused.err and "fix:" in refused.err, refused
    checked = run(three, "-np", 4, "-H", "h1,h9", "--dry-run", "true")
    assert checked.code == 110 and "h9" in checked.out, checked
