"""Hosts on one machine, made of namespaces: for system tests, and by hand (`tests/system/cluster`).

    with testbed.Cluster(2) as cluster:
        cluster["h0"].run(["horovodrun", "-H", "h1:2,h2:2", "hostname"])
        cluster["h1"].cut()

h0 is where the launcher runs; it can ssh to h1, h2, … and itself.  Every host has a network, a host name, processes,
IPC, an sshd and an /etc/hosts of its own, and begins with an empty /home (root's home is there, too), /run, /dev/shm,
/var/tmp and, but for h0, /tmp.  All else is the machine's: programs are found at the same path everywhere, and every
user can reach the project's tree, even if it lies in a home.  h0 keeps the machine's /tmp because pytest's tmp_path is
there.

The hosts live as long as the process that made them (testbed_supervisor.py has the picture).
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import typing

import testbed_kernel as kernel
from testbed_supervisor import HOMES, ROOT_HOME, USERS, Plan

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("CORRO_BUILD", TOP / "build/release")).resolve()
MOST_HOSTS = 500  # each is a descriptor here, and 1024 of them are what a process usually gets
APART = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount", "--net", "--uts", "--ipc"]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# For what belongs to the testbed itself: no test shall take it for something that it started.
BARE = {"PATH": PATH, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
# Of the maker's environment, what would lead out of the host.
NOT_INSIDE = ("TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "BASH_ENV", "ENV")


class TestbedError(Exception):
    """The testbed cannot do this here; the text says why."""
    __test__ = False  # the name begins with Test, and pytest would look inside


def why_not():
    """Why this machine can have no hosts; None if it can."""
    if os.geteuid() != 0:
        return "only root can make hosts, or root of a user namespace that has several users: see tests/system/as_root"
    for program in ("unshare", "ip", "ssh", "ssh-keygen", "/usr/sbin/sshd", *(shell for _, shell in USERS.values())):
        if not shutil.which(program):
            return f"{program} is not installed (see packaging/packages)"
    done = subprocess.run([*APART, "ip", "link", "add", "br0", "type", "bridge"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    return f"namespaces or bridges cannot be made: {done.stderr.strip()}" if done.returncode else None


class Place:
    """Namespaces to start processes in, known by one process that lives there.  Any thread may use it."""

    def __init__(self, pidfd):
        self.pidfd = pidfd

    def alive(self):
        return self.pidfd is not None and not kernel.has_ended(self.pidfd)

    def popen(self, argv, prepare=lambda: None, **options):
        """A process inside, and yet a child of this process: its pid is as seen from here, signals reach it."""
        inside = kernel.NEW_MOUNT | kernel.NEW_NET | kernel.NEW_UTS | kernel.NEW_IPC

        def in_child():
            kernel.enter(self.pidfd, inside)
            prepare()

        with kernel.children_born_in(self.pidfd):
            return subprocess.Popen([str(word) for word in argv], preexec_fn=in_child, **options)

    def ip(self, *commands):
        process = self.popen(["ip", "-batch", "-"], stdin=-1, stdout=-1, stderr=-1, text=True, env=BARE)
        _, said = process.communicate("".join(f"{command}\n" for command in commands), timeout=30)
        if process.returncode:
            raise TestbedError(f"ip: {said.strip()}")


class Cable:
    """What lies between host i and the bridge.  It runs in the supervisor's namespaces, where the bridge is."""

    def __init__(self, switch, i):
        self.switch, self.port, self.tap = switch, f"v{i}", f"slow{i}"
        self.relay = None

    def cut(self):
        self.switch.ip(f"link set {self.port} down")

    def heal(self):
        self.switch.ip(f"link set {self.port} up")

    def slow(self, delay_ms, loss_percent, seed):
        self.fast()
        self.relay = self.switch.popen(
            [sys.executable, HERE / "testbed_relay.py", self.port, self.tap, delay_ms, loss_percent, seed],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd="/", env=BARE)
        if self.relay.stdout.readline() != b"ready\n":
            self._end_relay()
            raise TestbedError("the relay does not start")
        self.switch.ip(f"link set {self.port} nomaster", f"link set {self.tap} master br0 up")

    def fast(self):
        if self.relay:
            self._end_relay()
            self.switch.ip(f"link set {self.port} master br0")

    def remove(self):
        if self.relay:
            self._end_relay()
        with contextlib.suppress(TestbedError):  # it may have gone with the host's network
            self.switch.ip(f"link del {self.port}")

    def _end_relay(self):
        self.relay.kill()
        self.reap()

    def reap(self):
        if self.relay:
            self.relay.wait(timeout=30)
            self.relay.stdout.close()
            self.relay = None


class Process(typing.NamedTuple):
    pid: int  # as seen from outside: os.kill() takes it
    argv: list
    environ: dict


class Host:
    """One host.  `pid` is that of its first process, as seen from here; None while the host is down."""

    def __init__(self, name, address, address6, pidfd, cable=None, boot=None):
        self.name, self.address, self.address6 = name, address, address6
        self.place, self.cable = Place(pidfd), cable
        self.boot = boot
        self.started = []

    def __repr__(self):
        return f"<{self.name} {self.address}{'' if self.alive() else ', down'}>"

    @property
    def pid(self):
        return kernel.pid_of(self.place.pidfd) if self.alive() else None

    def alive(self):
        return self.place.alive()

    def path(self, inside):
        """Where a path of this host is found from outside."""
        self._must_be_up()
        return pathlib.Path(f"/proc/{self.pid}/root") / str(inside).lstrip("/")

    def _must_be_up(self):
        if not self.alive():
            raise TestbedError(f"{self.name} is down")

    # Processes.

    def popen(self, argv, *, env=None, user="root", cwd=None, **options):
        """As subprocess.Popen, as if somebody had logged in here.  `env` is added to the caller's environment, in which
        HOME, PATH and so on are those of the host.  The process ends with the host."""
        self._must_be_up()
        number, shell = (0, "/bin/bash") if user == "root" else USERS[user]
        home = ROOT_HOME if user == "root" else HOMES / user
        environment = {key: value for key, value in os.environ.items()
                       if key not in NOT_INSIDE and not key.startswith("SSH_")}
        environment |= {"HOME": str(home), "USER": user, "LOGNAME": user, "SHELL": shell, "PATH": f"{BUILD}/bin:{PATH}"}
        wanted = str(cwd or os.getcwd())

        def log_in():
            os.setgroups([])
            os.setgid(number)
            os.setuid(number)
            os.chdir(wanted if cwd or os.access(wanted, os.X_OK) else home)

        try:
            process = self.place.popen(argv, log_in, env={**environment, **(env or {})}, **options)
        except (subprocess.SubprocessError, ProcessLookupError) as error:
            raise TestbedError(f"{self.name} has just ended, or has no {wanted}") from error
        self.started = [one for one in self.started if one.returncode is None] + [process]
        return process

    def run(self, argv, *, timeout=30, input=None, **options):
        """Runs it to its end and returns a subprocess.CompletedProcess; stdout and stderr are text."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace",
                   "stdin": subprocess.DEVNULL if input is None else subprocess.PIPE, **options}
        with self.popen(argv, **options) as process:
            try:
                out, err = process.communicate(input, timeout=timeout)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def processes(self):
        """All that live here, but for the host's own two: its first process, and the sshd that listens."""
        return processes_of([self])[self.name] if self.alive() else []

    def listening(self):
        """The lines of `ss -ltnp`, but for sshd's own."""
        shown = self.run(["ss", "-Hltnp"]).stdout.splitlines()
        return [line for line in shown if not (line.split()[3].endswith(":22") and '("sshd"' in line)]

    # Misfortunes.

    def cut(self):
        """The cable is pulled: nothing gets in or out, and nobody is told."""
        self._must_be_up()
        self.cable.cut()

    def heal(self):
        self._must_be_up()
        self.cable.heal()

    def slow(self, delay_ms=0, loss_percent=0, seed=0):
        """A round trip takes `delay_ms` more, half of it each way, and of the frames of either way some are lost, which
        ones the seed decides.  Connections stay.  Not for throughput: a process in Python carries every frame."""
        self._must_be_up()
        self.cable.slow(delay_ms, loss_percent, seed)
        self.place.ip(f"link set eth0 gso_max_segs {1 if loss_percent else 65535}")

    def fast(self):
        """Takes back slow()."""
        self._must_be_up()
        self.cable.fast()

    def rate(self, limit):
        """Limits what the host sends ("1gbit"); None lifts it."""
        if limit:
            words = ["replace", "dev", "eth0", "root", "tbf", "rate", limit, "burst", "1mb", "latency", "50ms"]
        else:
            words = ["del", "dev", "eth0", "root"]
        done = self.run(["tc", "qdisc", *words])
        if limit and done.returncode:
            raise TestbedError(f"tc: {done.stderr.strip()}")

    def kill(self):
        """The power fails: all processes end at once, and nobody is told.  The cable is pulled first, because the
        kernel would say goodbye for the dead."""
        self._must_be_up()
        self.cable.cut()
        signal.pidfd_send_signal(self.place.pidfd, signal.SIGKILL)
        reap(self.started)
        if not kernel.has_ended(self.place.pidfd, within=30):
            raise TestbedError(f"{self.name} does not end")
        self.cable.remove()

    def revive(self):
        """The host starts again: same name, addresses and keys; its processes and private files are gone."""
        if self.alive():
            raise TestbedError(f"{self.name} is up")
        self.boot()

    def begin(self, pidfd):
        """The host has started (again)."""
        if self.place.pidfd is not None:
            os.close(self.place.pidfd)
        self.place, self.started = Place(pidfd), []


def processes_of(hosts):
    """{host name: [Process]} of all that live; zombies do not, and the permanent ones do not count."""
    found = {host.name: [] for host in hosts}
    firsts = {host.pid for host in hosts}
    by_space = {os.stat(f"/proc/{host.pid}/ns/pid").st_ino: host.name for host in hosts if host.alive()}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            name = by_space.get(os.stat(f"/proc/{pid}/ns/pid").st_ino)
            if name and pid not in firsts and (process := look_at(pid)):
                found[name].append(process)
        except OSError:  # it has just ended
            pass
    return found


def look_at(pid):
    """None if it is a zombie, or an sshd that only listens."""
    here = pathlib.Path(f"/proc/{pid}")
    argv = here.joinpath("cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    state = here.joinpath("stat").read_text(errors="replace").rpartition(") ")[2][0]
    if state in "ZX" or (argv[0].startswith(b"sshd:") and b"[listener]" in argv[0]):
        return None
    pairs = (pair.partition(b"=") for pair in here.joinpath("environ").read_bytes().split(b"\0") if pair)
    return Process(pid, argv, {key: value for key, _, value in pairs})


class Cluster:
    """h0 … hn, the launcher's host and n others.  Ends with close(), with the `with` block, or with this process.

    sshd_options: lines of sshd_config, as a dict ({"MaxStartups": "2:100:2"}).
    visible: directories that are to be seen in all hosts even if they lie in one that every host has for itself,
    such as pytest's tmp_path; the project's tree and build always are.
    """

    def __init__(self, n, *, sshd_options=None, ipv6=True, visible=()):
        if not 0 <= n <= MOST_HOSTS:
            raise TestbedError(f"{n} hosts: from 0 to {MOST_HOSTS} can be made")
        self.plan = Plan(n, ipv6, sshd_options or {},
                         [str(path) for path in (TOP, BUILD, *visible) if os.path.isdir(path)])
        self.hosts, self.switch = {}, None
        self.lock = threading.Lock()  # one question to the supervisor at a time
        self.control, self.supervisor = self._start_supervisor()
        try:
            self._say(vars(self.plan))
            self.switch = Place(self._hear()[1])  # where the bridge is
            self.hosts = {host.name: host for host in map(self._host, self.plan.everybody())}
            self._meet(len(self.hosts))
        except BaseException:
            self.close()
            raise

    def _start_supervisor(self):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # The socket tells of this process's end, unless a forked child holds it too; the pidfd always does.
        maker = os.pidfd_open(os.getpid())
        process = subprocess.Popen(
            [*APART, sys.executable, HERE / "testbed_supervisor.py", str(theirs.fileno()), str(maker)],
            stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(), maker), cwd="/", env=BARE, start_new_session=True)
        theirs.close()
        os.close(maker)
        return ours, process

    def _host(self, i):
        return Host(self.plan.name(i), self.plan.address(i), self.plan.address6(i), None, Cable(self.switch, i),
                    lambda: self._boot(i))

    def _boot(self, i):
        with self.lock:
            self._say({"boot": [i]})
            self._meet(1)

    def _meet(self, count):
        for _ in range(count):
            said, pidfd = self._hear()
            self.hosts[self.plan.name(said["host"])].begin(pidfd)

    def _say(self, content):
        self.control.send(json.dumps(content).encode())

    def _hear(self):
        packet, descriptors, _, _ = socket.recv_fds(self.control, 1 << 16, 1)
        said = json.loads(packet) if packet else {"error": "the supervisor ended"}
        if "error" in said:
            raise TestbedError(said["error"])
        return said, descriptors[0]

    def __getitem__(self, name):
        try:
            return self.hosts[name]
        except KeyError:
            raise TestbedError(f"there is no host {name}, but {', '.join(self.hosts)}") from None

    def __iter__(self):
        return iter(self.hosts.values())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def left(self, timeout=8):
        """Waits until nothing runs on any host; after so many seconds, what still does, as {host name: [Process]}."""
        if self.control.fileno() < 0:  # closed: nothing can be left
            return {}
        until = time.monotonic() + timeout
        while True:
            found = {name: some for name, some in processes_of(list(self)).items() if some}
            if not found or time.monotonic() > until:
                return found
            time.sleep(0.02)

    def close(self):
        """Returns when nothing is left."""
        if self.control.fileno() < 0:
            return
        with contextlib.suppress(OSError):  # the supervisor may have ended by itself
            self.control.shutdown(socket.SHUT_RDWR)  # closing does nothing while a forked child holds it too
        self.control.close()
        for host in self:
            reap(host.started)
            host.cable.reap()
        self.supervisor.wait(timeout=30)
        for place in [self.switch, *(host.place for host in self)]:
            if place and place.pidfd is not None:
                os.close(place.pidfd)
                place.pidfd = None


def reap(processes):
    """A namespace ends only when those who started something inside have taken note of its end."""
    for process in processes:
        process.wait(timeout=30)
