"""Hosts on one machine, made of namespaces: for system tests, and by hand (`tests/system/cluster`).

    with testbed.Cluster(2) as cluster:
        cluster["h0"].run(["horovodrun", "-H", "h1:2,h2:2", "hostname"])
        cluster["h1"].cut()

h0 is where the launcher runs; it can ssh to h1, h2, … and itself.  Every host has a network, a host name, processes,
IPC, an sshd and an /etc/hosts of its own, and begins with an empty $HOME, /home, /run, /dev/shm, /var/tmp and, but for
h0, /tmp.  All else is the machine's: programs are found at the same path everywhere.  h0 keeps the machine's /tmp
because pytest's tmp_path is there.

The hosts live as long as the process that made them (testbed_supervisor.py has the picture).
"""
import json
import os
import pathlib
import pwd
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading

import testbed_kernel as kernel
from testbed_supervisor import HOMES, ROOT_HOME, USERS, Plan

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("KOLO_BUILD", TOP / "build/release")).resolve()
MOST_HOSTS = 1000  # a bridge has 1023 ports
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Of the maker's environment, what would lead out of the host.
NOT_INSIDE = ("TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "BASH_ENV", "ENV")


class TestbedError(Exception):
    """The testbed cannot do this here; the text says why."""
    __test__ = False  # the name begins with Test, and pytest would look inside


def why_not():
    """Why this machine can have no hosts; None if it can."""
    if os.geteuid() != 0:
        return "only root can make hosts: sshd has to become other users"
    for program in ("unshare", "ip", "ssh", "ssh-keygen", "/usr/sbin/sshd", *(shell for _, shell in USERS.values())):
        if not shutil.which(program):
            return f"{program} is not installed (see packaging/packages)"
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount", "--net", "--uts", "--ipc", "ip", "link", "add", "br0",
                           "type", "bridge"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    return f"namespaces or bridges cannot be made: {done.stderr.strip()}" if done.returncode else None


class Place:
    """Namespaces to start processes in, known by one process that lives there.  Any thread may use it."""

    def __init__(self, pidfd):
        self.pidfd = pidfd

    def alive(self):
        return self.pidfd is not None and not select.select([self.pidfd], [], [], 0)[0]

    def popen(self, argv, prepare=lambda: None, **options):
        """A process inside, and yet a child of this process: its pid is as seen from here, signals reach it."""
        inside = kernel.NEW_MOUNT | kernel.NEW_NET | kernel.NEW_UTS | kernel.NEW_IPC

        def in_child():
            kernel.enter(self.pidfd, inside)
            prepare()

        with kernel.children_born_in(self.pidfd):
            return subprocess.Popen([str(word) for word in argv], preexec_fn=in_child, **options)

    def ip(self, *commands):
        process = self.popen(["ip", "-batch", "-"], stdin=-1, stdout=-1, stderr=-1, text=True)
        _, said = process.communicate("".join(f"{command}\n" for command in commands), timeout=30)
        if process.returncode:
            raise TestbedError(f"ip: {said.strip()}")


class Host:
    """One host.  `pid` is that of its first process, as seen from here; None while the host is down."""

    def __init__(self, name, address, address6, pidfd):
        self.name, self.address, self.address6 = name, address, address6
        self.place = Place(pidfd)
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
        return pathlib.Path(f"/proc/{self.pid}/root") / str(inside).lstrip("/")

    # Processes.

    def popen(self, argv, *, env=None, user="root", cwd=None, **options):
        """As subprocess.Popen, as if somebody had logged in here.  `env` is added to the caller's environment, with
        HOME, PATH and so on those of the host.  Ends with the host."""
        if not self.alive():
            raise TestbedError(f"{self.name} is down")
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

        process = self.place.popen(argv, log_in, env={**environment, **(env or {})}, **options)
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


class Cluster:
    """h0 … hn, the launcher's host and n others.  Ends with close(), with the `with` block, or with this process.

    sshd_options: lines of sshd_config, as a dict ({"MaxStartups": "2:100:2"}).
    visible: directories that are to be seen in all hosts even if they lie in one that every host has for itself,
    such as pytest's tmp_path; the project's tree and build always are.
    """

    def __init__(self, n, *, sshd_options=None, ipv6=True, visible=()):
        if not 0 <= n <= MOST_HOSTS:
            raise TestbedError(f"{n} hosts: from 0 to {MOST_HOSTS} can be made")
        self.plan = Plan(n, ipv6, sshd_options or {}, [str(path) for path in (TOP, BUILD, *visible) if os.path.isdir(path)])
        self.hosts = {}
        self.lock = threading.Lock()
        self.control, self.supervisor = self._start_supervisor()
        try:
            self.control.send(json.dumps(vars(self.plan)).encode())
            self.switch = Place(self._answer()[1])  # where the bridge is
            for _ in self.plan.everybody():
                self._meet(*self._answer())
        except BaseException:
            self.close()
            raise

    def _start_supervisor(self):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # The socket tells of this process's end, unless a forked child holds it too; the pidfd always does.
        maker = os.pidfd_open(os.getpid())
        process = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount", "--net", "--uts", "--ipc",
             sys.executable, HERE / "testbed_supervisor.py", str(theirs.fileno()), str(maker)],
            stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(), maker), cwd="/", start_new_session=True)
        theirs.close()
        os.close(maker)
        return ours, process

    def _answer(self):
        packet, descriptors, _, _ = socket.recv_fds(self.control, 1 << 16, 1)
        said = json.loads(packet) if packet else {"error": "the supervisor ended"}
        if "error" in said:
            raise TestbedError(said["error"])
        return said, descriptors[0]

    def _meet(self, said, pidfd):
        i = said["host"]
        name = self.plan.name(i)
        self.hosts[name] = Host(name, self.plan.address(i), self.plan.address6(i), pidfd)

    def __getitem__(self, name):
        return self.hosts[name]

    def __iter__(self):
        return iter(self.hosts.values())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Returns when nothing is left."""
        self.control.close()
        for host in self:
            reap(host.started)
        self.supervisor.wait(timeout=30)


def reap(processes):
    """A namespace ends only when those who started something inside have taken note of its end."""
    for process in processes:
        process.wait(timeout=30)
