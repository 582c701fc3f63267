"""`horovodrun --ssh-pipe` and `--rsh-pipe` on hosts with real sshds: they get there, or say what is in the way."""
import os
import pathlib
import shutil
import signal
import statistics
import struct
import subprocess
import time

import corro_system as k
import pytest
import test_agent_protocol as protocol
import testbed
from pipe_system import (CHANGED_KEY, LOST, MACHINE, NAME, REFUSED, SHELL, STAGING, UNKNOWN_KEY, UNREACHABLE, UNSUPPORTED, Pipe,
                         Unreached)

SSH = testbed.ROOT_HOME / ".ssh"
BOB = testbed.HOMES / "bob"
IDENTITY = f"IdentityFile {SSH}/id_ed25519\nIdentitiesOnly yes\n"
BANNER = {"bob": (".bashrc", "echo 'Welcome to h1!'; printf 'no end'; echo grumble >&2"),
          "carol": (".cshrc", "echo 'Welcome to h1!'; echo corro-; printf 'no end'"),
          "finn": (".config/fish/config.fish", "echo 'Welcome to h1!'; printf 'no end'")}
ODD = ["a b", "'", '"', "\\", "$HOME", "`id`", "!x", "*", "new\nline", "\t", "ü", "%s", "-n", ""]


@pytest.fixture(scope="module")
def hosts(cluster):
    return cluster(3)


@pytest.fixture
def pipe(hosts):
    """pipe("--port", "22", "--", "h1") starts one on h0; at the end nothing may run anywhere."""
    made = []

    def make(*arguments, kind="--ssh-pipe", **options):
        made.append(Pipe(hosts["h0"], kind, *map(str, arguments), **options))
        return made[-1]
    yield make
    for one in made:
        one.close()
    assert not hosts.left(), hosts.left()


@pytest.fixture
def config(hosts):
    """config("Host x", …) is ~/.ssh/config of h0 for one test."""
    path = hosts["h0"].path(SSH / "config")
    before = path.read_text()
    yield lambda *lines: path.write_text("\n".join(lines) + "\n")
    path.write_text(before)


@pytest.fixture
def known_hosts(hosts):
    path = hosts["h0"].path(SSH / "known_hosts")
    before = path.read_text()
    yield path
    path.write_text(before)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """This program at a path that only h0 has, without what debuggers need."""
    path = tmp_path_factory.mktemp("elsewhere") / "horovodrun"
    if k.SLOW == 1:
        subprocess.run(["strip", "-o", path, k.HOROVODRUN], check=True)
    else:
        shutil.copy(k.HOROVODRUN, path)
    return path


@pytest.fixture
def clean_caches(hosts):
    """No host has this program in a cache."""
    def clean():
        for host in hosts:
            for user in ("root", *BANNER):
                host.run(["sh", "-c", "rm -rf ~/.cache /tmp/corro-* /dev/shm/corro-*"], user=user)
    clean()
    yield
    clean()


# There and back.

@pytest.mark.parametrize("target", ["h1", "10.77.0.2", "h1-v6", "fd77::2"])
def test_a_host_is_reached_by_every_name(pipe, target):
    p = pipe("--", target)
    reached = p.reaches()
    assert reached.address in ("10.77.0.2", "fd77::2") and reached.host_key.startswith("SHA256:")
    assert not reached.staged and reached.attempts == 1
    assert p.runs("hostname") == b"h1\n"
    assert p.closes() == []


@pytest.mark.parametrize("user", BANNER)
def test_login_shells_of_all_kinds_may_say_what_they_want(hosts, pipe, user):
    name, line = BANNER[user]
    hosts["h1"].run(["sh", "-c", f"mkdir -p $(dirname ~/{name}); cat > ~/{name}"], user=user, input=line + "\n")
    p = pipe("--user", user, "--", "h1")
    p.reaches()
    assert p.runs("sh", "-c", 'id -un; printf "<%s>" "$@"', "sh", *ODD).decode() == (
        f"{user}\n" + "".join(f"<{word}>" for word in ODD))
    assert p.closes() == []
    hosts["h1"].run(["sh", "-c", f"rm ~/{name}"], user=user)


def test_how_long_it_takes(hosts, pipe, capsys):
    """In turn with ssh itself, which has the same machine at the same time: 60 ms beside 210 where nothing else runs."""
    took, of_ssh = [], []
    for _ in range(9):
        began = time.monotonic()
        p = pipe("--", "h1")
        reached = p.reaches()
        p.says_hello()
        took.append((time.monotonic() - began) * 1e3)
        assert p.closes() == []
        began = time.monotonic()
        assert hosts["h0"].run(["ssh", "h1", "true"]).returncode == 0
        of_ssh.append((time.monotonic() - began) * 1e3)
    ratio = statistics.median(took) / statistics.median(of_ssh)
    with capsys.disabled():
        print(f"\n[from start to Ready {min(took):.0f} to {max(took):.0f} ms, {ratio:.2f} of ssh's; the last: {reached}]")
    assert ratio < 0.6 * k.SLOW


def test_much_goes_through(pipe, capsys):
    size = 100_000_000
    p = pipe("--", "h1")
    p.reaches()
    began = time.monotonic()
    assert len(p.runs("head", "-c", str(size), "/dev/zero")) == size
    took = time.monotonic() - began
    used = os.times()
    assert p.closes() == []
    with capsys.disabled():
        print(f"\n[{size / took / 1e6:.0f} MB/s up; {used.user:.1f} s of the test's own]")


# What is in the way.

def test_a_key_that_the_host_does_not_know(hosts, pipe, config):
    hosts["h0"].run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/run/other"])
    config("IdentityFile /run/other")
    answer = pipe("--", "h1").fails()
    assert answer.kind == REFUSED and answer.fix == "ssh-copy-id root@h1"
    assert "h1 (10.77.0.2 port 22)" in answer.why and "/run/other" in answer.why and "publickey" in answer.why


def test_a_key_that_wants_a_passphrase(hosts, pipe, config):
    hosts["h0"].run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", "/run/locked"])
    config("IdentityFile /run/locked")
    answer = pipe("--", "h1").fails()
    assert answer.kind == REFUSED and answer.fix == "ssh-add /run/locked" and "passphrase" in answer.why


def test_several_identities_are_tried(hosts, pipe, config):
    hosts["h0"].run(["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", "/run/one"])
    config("IdentityFile /run/none")
    p = pipe("--identity", "/run/one", "--identity", SSH / "id_ed25519", "--", "h1")
    p.reaches()
    assert p.runs("hostname") == b"h1\n" and p.closes() == []


def test_what_the_built_in_ssh_cannot_do_is_said(hosts, pipe, config):
    config("IdentityFile /run/none", "HostbasedAuthentication yes")
    answer = pipe("--", "h1").fails()
    assert answer.kind == UNSUPPORTED and answer.fix == "--rsh-agent ssh" and "hostbased" in answer.why
    hosts["h0"].run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/run/certified"])
    hosts["h0"].run(["ssh-keygen", "-q", "-s", "/run/certified", "-I", "me", "/run/certified.pub"])
    config("IdentityFile /run/certified")
    answer = pipe("--", "h1").fails()
    assert answer.kind == UNSUPPORTED and "/run/certified-cert.pub" in answer.why


def test_a_host_that_has_another_key_than_before(pipe, known_hosts):
    lines = known_hosts.read_text().splitlines()
    key = {line.split()[0].split(",")[1]: line.split(maxsplit=1)[1] for line in lines}
    known_hosts.write_text(f"h1 {key['h2']}\n")
    for policy in ("strict", "accept-new"):
        answer = pipe("--host-key-policy", policy, "--", "h1").fails()
        assert answer.kind == CHANGED_KEY and answer.fix == f"ssh-keygen -f {SSH}/known_hosts -R 'h1'"
    assert known_hosts.read_text() == f"h1 {key['h2']}\n"


@pytest.mark.parametrize("said", ["", "yes", "ask", "n" + "o", "off"])
def test_a_host_that_nobody_knows_is_not_spoken_with(pipe, known_hosts, config, said):
    config(IDENTITY, f"StrictHostKeyChecking {said}" if said else "")
    known_hosts.write_text("")
    answer = pipe("--", "h1").fails()
    assert answer.kind == UNKNOWN_KEY and answer.fix == f"ssh-keyscan -H h1 >> {SSH}/known_hosts"
    assert "SHA256:" in answer.why and known_hosts.read_text() == ""


@pytest.mark.parametrize("by", ["option", "configuration"])
def test_a_host_that_nobody_knows_is_got_to_know_if_that_is_wanted(hosts, pipe, known_hosts, config, by):
    if by == "configuration":
        config(IDENTITY, "StrictHostKeyChecking accept-new")
    known_hosts.unlink()
    p = pipe(*(("--host-key-policy", "accept-new") if by == "option" else ()), "--", "h1")
    p.reaches()
    assert p.says_hello().closes() == []
    p = pipe("--host-key-policy", "strict", "--", "h1")
    p.reaches()
    assert p.says_hello().closes() == []
    assert len(known_hosts.read_text().splitlines()) == 1
    assert hosts["h0"].run(["ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "h1", "true"]).returncode == 0


def test_many_that_are_got_to_know(hosts, pipe, known_hosts, config):
    config(IDENTITY, "StrictHostKeyChecking accept-new", "Host h2", "HashKnownHosts yes", "Host *", "HashKnownHosts n" + "o")
    known_hosts.write_text("# by hand")
    for host in ("h1", "h2", "h3"):
        p = pipe("--", host)
        p.reaches()
        assert p.says_hello().closes() == []
    first, *lines = known_hosts.read_text().splitlines()
    assert first == "# by hand" and [line[:3] for line in lines] == ["h1 ", "|1|", "h3 "]
    assert hosts["h0"].run(["ssh-keygen", "-F", "h2", "-f", str(SSH / "known_hosts")]).returncode == 0


def test_a_key_that_is_kept_without_a_port_confirms_and_does_not_accuse(hosts, pipe, known_hosts):
    sshd = hosts["h1"].popen(["/usr/sbin/sshd", "-D", "-p", "2222"])
    assert k.eventually(lambda: hosts["h0"].run(["ssh-keyscan", "-p", "2222", "h1"]).stdout)
    p = pipe("--port", "2222", "--", "h1")
    p.reaches()
    assert p.says_hello().closes() == []
    lines = known_hosts.read_text().splitlines()
    key = {line.split()[0].split(",")[1]: line.split(maxsplit=1)[1] for line in lines}
    known_hosts.write_text(f"h1 {key['h2']}\n")
    assert pipe("--port", "2222", "--", "h1").fails().kind == UNKNOWN_KEY
    known_hosts.write_text(f"[h1]:2222 {key['h2']}\n")
    assert pipe("--port", "2222", "--", "h1").fails().kind == CHANGED_KEY
    k.end(sshd)


def test_hashed_names_are_found(hosts, pipe, known_hosts):
    assert hosts["h0"].run(["ssh-keygen", "-H", "-f", str(SSH / "known_hosts")]).returncode == 0
    assert all(line.startswith("|1|") for line in known_hosts.read_text().splitlines())
    p = pipe("--", "h1")
    p.reaches()
    assert p.says_hello().closes() == []


def test_a_name_that_nobody_has(pipe):
    answer = pipe("--", "nobody.invalid").fails()
    assert answer.kind == NAME and "nobody.invalid" in answer.why and answer.fix == "getent hosts nobody.invalid"


def test_a_port_where_nobody_listens(pipe):
    began = time.monotonic()
    answer = pipe("--port", "4", "--", "h1").fails()
    assert answer.kind == UNREACHABLE and "10.77.0.2 port 4" in answer.why and "refused" in answer.why
    assert "tried 5 times" in answer.why and 1 < time.monotonic() - began < 8 * k.SLOW


def test_an_address_where_nobody_is(pipe):
    began = time.monotonic()
    answer = pipe("--connect-timeout", "700", "--", "10.77.0.99").fails()
    assert answer.kind == UNREACHABLE and "10.77.0.99 port 22" in answer.why
    assert 0.6 < time.monotonic() - began < 4 * k.SLOW


def test_a_host_that_accepts_and_says_nothing(hosts, pipe):
    silent = hosts["h2"].popen(["python3", "-c", "import socket; s = socket.create_server(('', 2323)); "
                                "print('up', flush=True); kept = []\nwhile True: kept.append(s.accept())"], stdout=-1)
    silent.stdout.readline()
    answer = pipe("--port", "2323", "--connect-timeout", "700", "--", "h2").fails()
    assert answer.kind == UNREACHABLE and "in time" in answer.why
    k.end(silent)


def test_no_shell_to_speak_with(hosts, pipe):
    h1 = hosts["h1"]
    h1.run(["sh", "-c", "echo 'echo only for mail; exit 3' > ~/.bashrc"], user="bob")
    answer = pipe("--user", "bob", "--", "h1").fails()
    assert answer.kind == SHELL and "only for mail" in answer.why and "code 3" in answer.why
    h1.run(["sh", "-c", "echo 'yes' > ~/.bashrc"], user="bob")
    answer = pipe("--user", "bob", "--", "h1").fails()
    assert answer.kind == SHELL and "without end" in answer.why
    h1.run(["sh", "-c", "rm ~/.bashrc"], user="bob")


def test_many_at_once_get_in_where_few_are_let_in(cluster):
    few = cluster(1, sshd_options={"MaxStartups": "2:100:2"})
    pipes = [Pipe(few["h0"], "--ssh-pipe", "--", "h1") for _ in range(8)]
    reached = [p.reaches() for p in pipes]
    assert max(r.attempts for r in reached) > 1
    for p in pipes:
        assert p.says_hello().closes() == []
        p.close()


# Ways.

def test_what_the_configuration_says(hosts, pipe, config, known_hosts):
    sshd = hosts["h1"].popen(["/usr/sbin/sshd", "-D", "-p", "2222"])
    hosts["h0"].path("/run/h1_known").write_text(known_hosts.read_text())
    known_hosts.write_text("")
    (hosts["h0"].path(SSH) / "more").write_text("User carol\n")
    config("Host *.example w?rker !never", "  HostName=h1", "  Port 2222", f'  IdentityFile "{SSH}/id_%%ed25519"',
           f"  IdentityFile {SSH}/id_ed25519", "  Include more", "  UserKnownHostsFile /run/none /run/h1_known",
           "  User finn", "Host *", "  HostName nobody.invalid", "  ConnectTimeout 1")
    for name in ("worker", "a.example"):
        p = pipe("--", name)
        for _ in range(50):  # until it listens
            first = p.next()
            if first[0] == protocol.REACHED:
                break
            p = pipe("--", name)
        assert p.runs("id", "-un") == b"carol\n" and p.closes() == []
    assert pipe("--", "never").fails().kind == NAME
    k.end(sshd)


@pytest.mark.parametrize("option", [[], ["--connect-timeout", "9000"]])
def test_a_time_limit_of_the_configuration(pipe, config, option):
    config("Host 10.77.0.99", "ConnectTimeout 1")
    began = time.monotonic()
    assert pipe(*option, "--", "10.77.0.99").fails().kind == UNREACHABLE
    assert time.monotonic() - began < 4 * k.SLOW


def test_a_key_that_only_the_agent_has(hosts, pipe, config):
    h0 = hosts["h0"]
    agent = h0.popen(["ssh-agent", "-D", "-a", "/run/agent"], stdout=subprocess.DEVNULL)
    assert k.eventually(lambda: h0.path("/run/agent").exists())
    env = {"SSH_AUTH_SOCK": "/run/agent"}
    assert h0.run(["ssh-add", "-q", SSH / "id_ed25519"], env=env).returncode == 0
    config("IdentityFile /run/none")
    p = pipe("--", "h1", env=env)
    p.reaches()
    assert p.runs("hostname") == b"h1\n" and p.closes() == []
    config("IdentityFile /run/none", "IdentityAgent /run/agent")
    p = pipe("--", "h1")
    p.reaches()
    assert p.says_hello().closes() == []
    k.end(agent)


def test_a_certificate_that_only_the_agent_has(hosts, pipe, config):
    h0 = hosts["h0"]
    agent = h0.popen(["ssh-agent", "-D", "-a", "/run/agent3"], stdout=subprocess.DEVNULL)
    assert k.eventually(lambda: h0.path("/run/agent3").exists())
    env = {"SSH_AUTH_SOCK": "/run/agent3"}
    h0.run(["sh", "-c", "ssh-keygen -q -t ed25519 -N '' -C mine -f /run/vouched && "
            "ssh-keygen -q -s /run/vouched -I me /run/vouched.pub && ssh-add -q /run/vouched"], env=env)
    config("IdentityFile /run/none")
    answer = pipe("--", "h1", env=env).fails()
    assert answer.kind == UNSUPPORTED and answer.fix == "--rsh-agent ssh" and "certificate 'mine'" in answer.why, answer
    k.end(agent)


def test_of_the_agents_keys_only_those_that_the_configuration_names(hosts, pipe, config):
    h0 = hosts["h0"]
    agent = h0.popen(["ssh-agent", "-D", "-a", "/run/agent2"], stdout=subprocess.DEVNULL)
    assert k.eventually(lambda: h0.path("/run/agent2").exists())
    env = {"SSH_AUTH_SOCK": "/run/agent2"}
    # Ten keys are more than sshd would look at; the right one is the last, and locked in its file.
    for number in range(10):
        h0.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"/run/many{number}"])
        assert h0.run(["ssh-add", "-q", f"/run/many{number}"], env=env).returncode == 0
    h0.run(["sh", "-c", f"cp {SSH}/id_ed25519 /run/right && ssh-add -q /run/right && "
            "ssh-keygen -q -p -N secret -f /run/right"], env=env)
    for only in ("yes", "no"):
        config("IdentityFile /run/right", f"IdentitiesOnly {only}")
        p = pipe("--", "h1", env=env)
        p.reaches()
        assert p.says_hello().closes() == []
    config("IdentityFile /run/many3", "IdentitiesOnly yes")
    answer = pipe("--", "h1", env=env).fails()
    assert answer.kind == REFUSED and "the ssh agent" in answer.why
    k.end(agent)


def test_a_proxy_command(pipe, config):
    config(IDENTITY, "Host h1", "ProxyCommand ssh -q -W %h:%p h2")
    p = pipe("--", "h1")
    p.reaches()
    assert p.runs("hostname") == b"h1\n" and p.closes() == []


def test_a_proxy_command_that_fails(pipe, config):
    config(IDENTITY, "Host h1", "ProxyCommand echo it rains >&2; exit 1")
    answer = pipe("--connect-timeout", "500", "--", "h1").fails()
    assert answer.kind == UNREACHABLE and "it rains" in answer.why


@pytest.mark.parametrize("jumps", ["h2", "root@h2:22", "h3,h2", "ssh://h2"])
def test_jumping_from_host_to_host(hosts, pipe, config, jumps):
    config(IDENTITY, f"Host h1\nProxyJump {jumps}")
    p = pipe("--", "h1")
    p.reaches()
    assert p.runs("sh", "-c", 'hostname; echo ${SSH_CONNECTION:-none}') == b"h1\nnone\n"
    assert any(b"sshd: root" in process.argv[0] for process in hosts["h2"].processes())
    assert p.closes() == []


def test_what_is_in_the_way_of_a_jump_is_said(pipe, config, known_hosts):
    config(IDENTITY, "Host *\nProxyJump h2")
    known_hosts.write_text("".join(line for line in known_hosts.open() if "h2" not in line))
    answer = pipe("--", "h1").fails()
    assert answer.kind == UNKNOWN_KEY and "h1 " in answer.why and "h2 (10.77.0.3 port 22)" in answer.why
    assert answer.fix.startswith("ssh-keyscan -H h2")


# Other commands than ours.

def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("words", [["ssh"], ["ssh", "-q", "bob@{host}"], ["env", "PLACE={host}"], ["/bin/sh", "-c", 'shift; exec "$@"', "x"]])
def test_any_command_that_runs_another_there(pipe, words):
    p = pipe(*(word for w in words for word in ("--rsh-word", w)), "--", "h1", kind="--rsh-pipe")
    reached = p.reaches()
    assert (reached.address, reached.host_key) == ("", "")
    assert p.runs("hostname") == (b"h1\n" if words[0] == "ssh" else b"h0\n")
    assert p.closes() == []


def test_ssh_in_place_of_ours_gets_user_port_and_key(hosts, pipe, config):
    config("IdentityFile /run/none", "Port 4")
    p = pipe("--rsh-word", "ssh", "--user", "bob", "--port", "22", "--identity", SSH / "id_ed25519", "--", "h1",
             kind="--rsh-pipe")
    p.reaches()
    assert p.runs("id", "-un") == b"bob\n" and p.closes() == []


@pytest.mark.parametrize("chatter", ["echo a word >&2; sleep 2", "head -c 300000 /dev/zero >&2"])
def test_a_command_may_say_what_it_wants_on_stderr(pipe, chatter):
    p = pipe("--rsh-word", "/bin/sh", "--rsh-word", "-c", "--rsh-word", f'{chatter}; shift; exec "$@"', "--rsh-word", "x",
             "--", "h1", kind="--rsh-pipe")
    began = time.monotonic()
    p.reaches()
    assert time.monotonic() - began < 10 * k.SLOW
    assert cpu_seconds(p.process.pid) < 0.5 * k.SLOW
    assert p.runs("hostname") == b"h0\n" and p.closes() == []


def test_commands_that_lead_nowhere(pipe, known_hosts):
    answer = pipe("--rsh-word", "nonsense", "--", "h1", kind="--rsh-pipe").fails()
    assert answer.kind == UNREACHABLE and "nonsense" in answer.why
    known_hosts.write_text("")
    answer = pipe("--rsh-word", "ssh", "--rsh-word", "-oBatchMode=yes", "--", "h1", kind="--rsh-pipe").fails()
    assert answer.kind == SHELL and "verification failed" in answer.why and "code 255" in answer.why


def test_a_command_that_passes_no_input_on(pipe):
    answer = pipe("--rsh-word", "/bin/sh", "--rsh-word", "-c", "--rsh-word", 'shift; exec "$@" < /dev/null', "--rsh-word", "x",
                  "--", "h1", kind="--rsh-pipe").fails()
    assert answer.kind == SHELL and "kubectl exec" in answer.why and "--rsh-agent 'kubectl exec -i {host} --'" in answer.fix


# Bringing the program along.

def reach(pipe, elsewhere, *arguments, **options):
    p = pipe("--self", elsewhere, *arguments, "--", "h1", **options)
    reached = p.reaches()
    exe = p.runs("sh", "-c", "readlink /proc/$PPID/exe").decode().strip()
    assert p.closes() == []
    return reached.staged, exe


@pytest.mark.parametrize("user", ["root", *BANNER])
def test_it_is_brought_once(hosts, pipe, elsewhere, clean_caches, user):
    staged, first = reach(pipe, elsewhere, "--user", user)
    home = SSH.parent if user == "root" else testbed.HOMES / user
    assert staged and first.startswith(f"{home}/.cache/corro/horovodrun-")
    h1 = hosts["h1"]
    assert h1.path(first).read_bytes() == elsewhere.read_bytes()
    assert h1.path(first).stat().st_mode & 0o777 == 0o700 == h1.path(first).parent.stat().st_mode & 0o777
    assert os.listdir(h1.path(first).parent) == [os.path.basename(first)]
    assert reach(pipe, elsewhere, "--user", user) == (False, first)


def test_what_was_not_used_for_a_month_goes(hosts, pipe, elsewhere, clean_caches):
    _, path = reach(pipe, elsewhere)
    h1 = hosts["h1"]
    old, young = (h1.path(path).with_name(f"horovodrun-{age}") for age in ("old", "young"))
    for file, days in (old, 31), (young, 29), (h1.path(path), 31):
        file.touch()
        os.utime(file, (time.time() - days * 86400,) * 2)
    assert not reach(pipe, elsewhere)[0]
    assert not old.exists() and young.exists()
    assert time.time() - h1.path(path).stat().st_mtime < 3600, "using it keeps it young"
    os.truncate(h1.path(path), 1000)
    assert reach(pipe, elsewhere) == (True, path), "a file that is cut short is brought again"


def test_a_copy_that_is_damaged_can_be_thrown_away(hosts, pipe, elsewhere, clean_caches):
    _, path = reach(pipe, elsewhere)
    copy = hosts["h1"].path(path)
    copy.write_bytes(bytes(copy.stat().st_size))
    answer = pipe("--self", elsewhere, "--", "h1").fails()
    assert answer.kind == MACHINE and path in answer.why
    assert hosts["h0"].run(["sh", "-c", answer.fix.replace("ssh ", "ssh -oBatchMode=yes ")]).returncode == 0
    assert reach(pipe, elsewhere) == (True, path)


def test_a_program_that_is_gone_from_its_path_is_brought_all_the_same(pipe, elsewhere, clean_caches, tmp_path, monkeypatch):
    copy = shutil.copy(elsewhere, tmp_path)
    monkeypatch.setattr(k, "HOROVODRUN", copy)
    p = pipe("--rsh-word", "/bin/sh", "--rsh-word", "-c", "--rsh-word", f'rm {copy}; shift; exec "$@"', "--rsh-word", "x",
             "--", "h1", kind="--rsh-pipe")
    assert p.reaches().staged
    assert p.runs("hostname") == b"h0\n" and p.closes() == []


@pytest.fixture(params=["the kernel", "uname"])
def pdp11(hosts, request):
    """h1 seems to be one, by what the kernel says (from Linux 6.1 on), or by uname where it says nothing."""
    kernel, h1 = "/proc/sys/kernel/arch", hosts["h1"]
    by_kernel = request.param == "the kernel"
    if by_kernel and not os.path.exists(kernel):
        pytest.skip(f"there is no {kernel}")
    said = "echo pdp11 > /run/arch" if by_kernel else "true > /run/arch"
    h1.run(["sh", "-c", f"{said}; [ ! -e {kernel} ] || mount --bind /run/arch {kernel}"])
    h1.run(["sh", "-c", "mkdir ~/bin; echo 'PATH=~/bin:$PATH' > ~/.bashrc"], user="bob")
    if not by_kernel:
        h1.run(["sh", "-c", "printf '#!/bin/sh\necho pdp11\n' > ~/bin/uname; chmod +x ~/bin/uname"], user="bob")
    yield h1
    h1.run(["sh", "-c", f"umount {kernel}; rm -r {BOB}/bin {BOB}/.bashrc"])


def test_a_machine_of_another_kind_runs_what_is_installed_there(pdp11, pipe, elsewhere, clean_caches):
    h1 = pdp11
    answer = pipe("--self", elsewhere, "--user", "bob", "--", "h1").fails()
    assert answer.kind == MACHINE and "it is pdp11" in answer.why and "horovodrun --version" in answer.fix
    h1.run(["sh", "-c", f"ln -s {k.HOROVODRUN} ~/bin/horovodrun"], user="bob")
    assert reach(pipe, elsewhere, "--user", "bob") == (False, str(k.HOROVODRUN))


@pytest.mark.parametrize("wrong", ["mode", "link", "file", "owner"])
def test_a_cache_that_is_not_private_is_not_used(hosts, pipe, elsewhere, clean_caches, wrong):
    h1 = hosts["h1"]
    h1.run(["sh", "-c", {"mode": "mkdir -m 755 -p ~/.cache/corro", "file": "mkdir ~/.cache; touch ~/.cache/corro",
                         "link": "mkdir -p ~/.cache; mkdir -m 700 ~/real; ln -s ~/real ~/.cache/corro",
                         "owner": "mkdir -m 777 -p ~/.cache"}[wrong]], user="bob")
    if wrong == "owner":
        h1.run(["mkdir", "-m", "700", BOB / ".cache/corro"])
    staged, path = reach(pipe, elsewhere, "--user", "bob")
    assert staged and path.startswith("/tmp/corro-2001/")
    assert reach(pipe, elsewhere, "--user", "bob") == (False, path)
    h1.run(["sh", "-c", f"rm -rf {BOB}/.cache {BOB}/real"])


def test_a_link_in_place_of_the_program_is_not_followed(hosts, pipe, elsewhere, clean_caches):
    _, path = reach(pipe, elsewhere, "--user", "bob")
    h1 = hosts["h1"]
    h1.run(["sh", "-c", f"mv {path} {BOB}/real && ln -s {BOB}/real {path}"], user="bob")
    assert reach(pipe, elsewhere, "--user", "bob") == (True, path)
    assert not h1.path(path).is_symlink()
    h1.run(["rm", BOB / "real"])


def remounted(host, path, options):
    assert host.run(["mount", "-t", "tmpfs", "-o", options, "none", path]).returncode == 0


def test_a_home_that_cannot_be_written_to_and_places_where_nothing_may_run(hosts, pipe, elsewhere, clean_caches):
    h1 = hosts["h1"]
    remounted(h1, str(BOB), "ro")
    staged, path = reach(pipe, elsewhere, "--user", "bob")
    assert staged and path.startswith("/tmp/corro-2001/")
    remounted(h1, "/tmp", "noexec,mode=1777")
    staged, path = reach(pipe, elsewhere, "--user", "bob")
    assert staged and path.startswith("/dev/shm/corro-2001/")
    h1.run(["rm", "-rf", "/dev/shm/corro-2001"])
    remounted(h1, "/dev/shm", "noexec,mode=1777")
    answer = pipe("--self", elsewhere, "--user", "bob", "--", "h1").fails()
    assert answer.kind == STAGING and "/dev/shm" in answer.why
    for path in ("/dev/shm", "/tmp", str(BOB)):
        h1.run(["umount", path])


def test_a_disk_that_is_full(hosts, pipe, elsewhere, clean_caches):
    h1 = hosts["h1"]
    for path in ("/tmp", "/dev/shm", str(BOB)):
        remounted(h1, path, "size=64k,mode=1777")
    answer = pipe("--self", elsewhere, "--user", "bob", "--", "h1").fails()
    assert answer.kind == STAGING and "No space" in answer.why
    for path in ("/tmp", "/dev/shm", str(BOB)):
        assert not list(h1.path(path).rglob("*horovodrun*"))
        h1.run(["umount", path])


def test_two_that_bring_it_at_once(pipe, elsewhere, clean_caches):
    pipes = [pipe("--self", elsewhere, "--", "h1") for _ in range(4)]
    for p in pipes:
        p.reaches()
    for p in pipes:
        assert p.runs("hostname") == b"h1\n" and p.closes() == []


# Ends.

@pytest.mark.parametrize("signo", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("way", ["ssh", "jump", "rsh"])
def test_a_pipe_that_is_killed_leaves_nothing(hosts, pipe, config, signo, way):
    if way == "jump":
        config(IDENTITY, "Host h1", "ProxyJump h2")
    p = pipe("--rsh-word", "ssh", "--", "h1", kind="--rsh-pipe") if way == "rsh" else pipe("--", "h1")
    p.reaches()
    p.says_hello(grace_ms=500)
    p.send(protocol.START, protocol.start(0, "sleep", "60"))
    assert p.next()[0] == protocol.STARTED
    p.process.send_signal(signo)
    p.process.wait(timeout=5)
    assert not hosts.left(timeout=5 * k.SLOW)


@pytest.mark.parametrize("when", ["early", "late"])
def test_a_launcher_that_dies_takes_all_with_it(hosts, pipe, when):
    p = pipe("--", "h1" if when == "late" else "10.77.0.99")
    if when == "late":
        p.reaches()
        p.says_hello(grace_ms=500)
        p.send(protocol.START, protocol.start(0, "sleep", "60"))
        assert p.next()[0] == protocol.STARTED
    p.process.stdin.close()
    p.process.stdout.close()
    p.process.wait(timeout=5 * k.SLOW)
    p.process.stdin = p.process.stdout = open(os.devnull, "wb")
    assert not hosts.left(timeout=5 * k.SLOW)


def test_a_connection_that_breaks_is_told_of(hosts, pipe):
    p = pipe("--", "h1")
    p.reaches()
    p.says_hello(lease_ms=1000, grace_ms=500)
    p.send(protocol.START, protocol.start(0, "sleep", "60"))
    assert p.next()[0] == protocol.STARTED
    hosts["h1"].cut()
    try:
        began = time.monotonic()
        p.send(protocol.LEASE)
        kind, _, body = p.next()
        assert kind == protocol.UNREACHED and time.monotonic() - began < 12 * k.SLOW
        answer = Unreached(body)
        assert answer.kind == LOST and "h1 (10.77.0.2 port 22)" in answer.why and answer.fix == "ssh root@h1 true"
        assert p.next() is None and p.process.wait(timeout=5) == 125
    finally:
        hosts["h1"].heal()


def test_an_sshd_that_is_killed_is_told_of_between_frames(hosts, pipe):
    p = pipe("--", "h1")
    p.reaches()
    p.says_hello(grace_ms=500)
    p.send(protocol.START, protocol.start(0, "sh", "-c", "yes | head -c 900000; sleep 60"))
    assert p.next()[0] == protocol.STARTED
    for process in hosts["h1"].processes():
        if process.argv[0].startswith(b"sshd: root"):
            os.kill(process.pid, signal.SIGKILL)
    kinds = []
    while message := p.next():
        kinds.append(message[0])
    assert kinds[-1] == protocol.UNREACHED and set(kinds[:-1]) <= {protocol.OUTPUT}


def test_how_the_guard_ended_is_passed_on(hosts, pipe):
    p = pipe("--", "h1")
    p.reaches()
    p.says_hello()
    agent = [x for x in hosts["h1"].processes() if b"--guard" in x.argv]
    for process in agent:
        name = pathlib.Path(f"/proc/{process.pid}/comm").read_text().strip()
        if name != "corro-guard":
            os.kill(process.pid, signal.SIGKILL)
    while p.next():
        pass
    assert p.process.wait(timeout=5 * k.SLOW) == 128 + signal.SIGKILL
