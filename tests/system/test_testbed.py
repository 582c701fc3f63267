"""The hosts that other tests rely on: they are apart from each other, they fail when told to, and they go away."""
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
import corro_system as k
import testbed

HERE = pathlib.Path(__file__).parent
# The quick key exchange: what is tested is the testbed, not OpenSSH's patience.
SSH = ["ssh", "-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes", "-o", "KexAlgorithms=curve25519-sha256"]
CONNECT = """
import socket, sys, time
for _ in range(3):
    began = time.monotonic()
    socket.create_connection((sys.argv[1], 22), 20)
    print(time.monotonic() - began)
"""


@pytest.fixture(scope="module")
def hosts(cluster):
    return cluster(2)


def ssh(hosts, target, command="true", patience=10, timeout=30):
    return hosts["h0"].run([*SSH, "-o", f"ConnectTimeout={patience}", target, command], timeout=timeout)


def round_trip(hosts, name):
    """Seconds from a SYN to its answer, the best of three."""
    done = hosts["h0"].run([sys.executable, "-c", CONNECT, name])
    return min(map(float, done.stdout.split()))


@pytest.mark.parametrize("target", ["h1", "10.77.0.2", "h1-v6", "fd77::2"])
def test_a_host_is_reached_by_every_name_with_its_key_checked(hosts, target):
    done = ssh(hosts, target, "hostname")
    assert (done.returncode, done.stdout, done.stderr) == (0, "h1\n", "")


def test_a_host_with_the_wrong_key_is_refused(hosts):
    done = hosts["h0"].run([*SSH, "-o", "HostKeyAlias=h2", "h1", "true"])
    assert done.returncode == 255 and "verification failed" in done.stderr, done


@pytest.mark.parametrize("user, shell, question", [
    ("bob", "bash", "echo $BASH_VERSION"), ("carol", "tcsh", "echo $tcsh"), ("finn", "fish", "echo $FISH_VERSION"),
    ("sue", "sh", "echo 0 $0")])
def test_users_log_in_with_shells_of_their_own(hosts, user, shell, question):
    done = ssh(hosts, f"{user}@h1", f"{question}; whoami; pwd")
    version, name, home = done.stdout.splitlines()
    assert version[0].isdigit() and name == user and home.endswith(user), (shell, done)
    assert hosts["h1"].run(["whoami"], user=user).stdout == f"{user}\n"


def test_hosts_share_programs_but_nothing_that_jobs_leave(hosts, tmp_path):
    for host in hosts:
        assert host.run(["hostname"]).stdout == f"{host.name}\n"
        assert host.run([k.HOROVODRUN, "--version"]).returncode == 0
    for folder in ("/tmp", "/run", "/dev/shm", "/var/tmp", "~"):
        assert ssh(hosts, "h1", f"cd {folder} && echo here > only-h1").returncode == 0
        seen = ssh(hosts, "h2", f"cd {folder} && ls").stdout.split()
        # A project that lies in one of them is seen all the same.
        seen = [name for name in seen if not k.TOP.is_relative_to(pathlib.Path(folder) / name)]
        assert seen in ([], ["sshd", "sshd.log", "sshd.pid"])
    assert hosts["h1"].path("/dev/shm/only-h1").read_text() == "here\n"
    assert not pathlib.Path("/dev/shm/only-h1").exists()
    assert hosts["h0"].run(["touch", tmp_path / "from-h0"]).returncode == 0 and (tmp_path / "from-h0").exists()


def test_processes_and_sockets_are_seen_host_by_host(hosts):
    listener = hosts["h1"].popen([sys.executable, "-c", "import socket; s = socket.create_server(('', 4321)); "
                                  "print('up', flush=True); s.accept()"], stdout=-1, env={"MARK": "mine"})
    assert listener.stdout.readline() == b"up\n"
    assert [(p.pid, p.argv[1], p.environ[b"MARK"]) for p in hosts["h1"].processes()] == [(listener.pid, b"-c", b"mine")]
    assert len(hosts["h1"].listening()) == 1 and ":4321" in hosts["h1"].listening()[0]
    assert hosts["h2"].processes() == [] and hosts["h2"].listening() == []
    listener.terminate()
    assert listener.wait(timeout=5) == -signal.SIGTERM
    assert not hosts.left(timeout=5)


def test_a_cut_host_answers_nobody_until_it_is_healed(hosts):
    # Whoever is connected hears nothing: no end, no reset.
    session = hosts["h0"].popen([*SSH, "h1", "echo begun; read line; echo $line"], stdin=-1, stdout=-1)
    assert session.stdout.readline() == b"begun\n"
    hosts["h1"].cut()
    done = ssh(hosts, "h1", patience=1)
    assert done.returncode == 255 and "timed out" in done.stderr, done
    assert session.poll() is None
    hosts["h1"].heal()
    assert ssh(hosts, "h1").returncode == 0
    assert session.communicate(b"again\n", timeout=20)[0] == b"again\n"


def test_a_slow_host_takes_longer_by_what_was_asked_for(hosts):
    assert round_trip(hosts, "h1") < 0.1 * k.SLOW
    hosts["h1"].slow(delay_ms=200)
    assert 0.2 <= round_trip(hosts, "h1") < 0.4 * k.SLOW
    assert round_trip(hosts, "h2") < 0.1 * k.SLOW
    hosts["h1"].fast()
    assert round_trip(hosts, "h1") < 0.1 * k.SLOW


def test_a_lossy_host_loses_frames_but_no_bytes(hosts):
    hosts["h1"].slow(delay_ms=2, loss_percent=3, seed=7)
    done = ssh(hosts, "h1", "head -c 2000000 /dev/zero", timeout=60)
    hosts["h1"].fast()
    assert done.returncode == 0 and len(done.stdout) == 2000000
    resent = hosts["h1"].run(["nstat", "-asz", "TcpRetransSegs"]).stdout
    assert int(resent.split("TcpRetransSegs")[1].split()[0]) > 0, resent


def test_a_rate_holds_for_what_the_host_sends(hosts):
    hosts["h1"].rate("80mbit")
    began = time.monotonic()
    assert len(ssh(hosts, "h1", "head -c 10000000 /dev/zero").stdout) == 10000000
    assert time.monotonic() - began > 0.8  # a burst of 1 MB goes at once
    hosts["h1"].rate(None)


def test_a_killed_host_is_gone_at_once_and_comes_back_empty(hosts):
    h1 = hosts["h1"]
    session = hosts["h0"].popen([*SSH, "h1", "echo begun; touch ~/note; sleep 60"], stdout=-1)
    assert session.stdout.readline() == b"begun\n"
    inside = h1.popen(["sleep", "60"])
    h1.kill()
    assert inside.poll() == -signal.SIGKILL and not h1.alive() and h1.processes() == []
    assert ssh(hosts, "h1", patience=1).returncode == 255
    assert session.poll() is None  # the power fails without a word
    with pytest.raises(testbed.TestbedError, match="h1 is down"):
        h1.run(["true"])

    h1.revive()
    done = ssh(hosts, "h1", "hostname; ls ~")
    assert (done.returncode, done.stdout) == (0, "h1\n"), done
    session.kill()
    session.wait(timeout=5)


def test_two_clusters_do_not_know_each_other(hosts, cluster, tmp_path):
    other = cluster(1, sshd_options={"Banner": "/etc/shells"}, ipv6=False, visible=[tmp_path])
    done = ssh(other, "h1", f"touch /dev/shm/the-other {tmp_path}/result; ls /dev/shm")
    assert done.stdout == "the-other\n" and "/etc/shells" in done.stderr, done
    assert "the-other" not in ssh(hosts, "h1", "ls /dev/shm").stdout
    assert (tmp_path / "result").exists()
    assert other["h1"].address6 is None and ssh(other, "h1-v6").returncode == 255
    other.close()
    assert ssh(hosts, "h1").returncode == 0


def test_what_is_wrong_is_said(cluster):
    with pytest.raises(testbed.TestbedError, match="h0: sshd does not start: .*Nonsense"):
        testbed.Cluster(1, sshd_options={"Nonsense": "yes"})
    with pytest.raises(testbed.TestbedError, match="from 0 to"):
        testbed.Cluster(5000)


def test_by_hand(cluster):
    def by_hand(*words):
        done = subprocess.run([HERE / "cluster", "--name", f"test_{os.getpid()}", *words], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout or done.stderr

    code, said = by_hand("up", "1")
    assert code == 0, said
    try:
        assert by_hand("ssh", "h1", "hostname") == (0, "h1\n")
        assert by_hand("run", "--user", "bob", "h0", "--", "sh", "-c", "whoami; kill -9 $$") == (137, "bob\n")
        code, said = by_hand("kill", "h1")
        assert code == 0, said
        assert by_hand("run", "h1", "true") == (1, "cluster: h1 is down\n")
        assert by_hand("list")[1].splitlines()[1].split() == ["h1", "10.77.0.2", "fd77::2", "down"]
    finally:
        assert by_hand("down")[0] == 0
    assert by_hand("list")[1].startswith("cluster: there is no cluster here")


def test_many_hosts_are_made_in_a_few_seconds(cluster):
    began = time.monotonic()
    many = cluster(64)
    assert time.monotonic() - began < 10 * k.SLOW
    assert many["h64"].run([*SSH, "h0", "true"]).returncode == 255  # only h0 has the key
    assert many["h0"].run([*SSH, "h64", "hostname"]).stdout == "h64\n"
    many.close()


# It takes note of what ends, as a test does that closes its cluster: a zombie would hold its namespace.
MAKER = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
import testbed
cluster = testbed.Cluster(2)
cluster["h1"].slow(delay_ms=1)
cluster["h2"].popen(["setsid", "sleep", "600"])
print("up", flush=True)
while True:
    try:
        os.wait()
    except ChildProcessError:
        time.sleep(600)
"""


def names_on(host):
    """Where a testbed might leave something that lasts: files, mounts, interfaces, named namespaces."""
    return host.run(["sh", "-c", "find /tmp /run /dev/shm /var/tmp /home ~ -xdev | sort; cat /proc/self/mountinfo; "
                     "ip -br link; ip netns"]).stdout


@pytest.mark.parametrize("victim", ["maker", "unshare", "supervisor"])
def test_however_a_cluster_ends_nothing_of_it_is_left(hosts, victim):
    """The cluster is made on a host of another cluster, where nobody else makes anything meanwhile."""
    before = names_on(hosts["h2"])
    maker = hosts["h2"].popen([sys.executable, "-c", MAKER, HERE], stdout=subprocess.PIPE)
    assert maker.stdout.readline() == b"up\n"
    below = k.descendants_of(maker.pid)
    assert len(below) >= 10, [k.stat_of(pid) for pid in below]  # unshare, supervisor, 3 hosts, 3 sshd, relay, sleep
    unshare = next(pid for pid in k.children_of(maker.pid) if k.stat_of(pid)[0] == "unshare")
    os.kill({"maker": maker.pid, "unshare": unshare, "supervisor": k.children_of(unshare)[0]}[victim], signal.SIGKILL)
    gone = k.eventually(lambda: not set(below) & set(k.processes()), timeout=5)
    k.end(maker)
    assert gone, victim
    assert names_on(hosts["h2"]) == before and hosts["h2"].processes() == []
