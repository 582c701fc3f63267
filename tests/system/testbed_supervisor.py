"""The process that holds a cluster of the testbed; testbed.py starts it, as PID 1 of a namespace of its own.

    maker (a test) ── control socket ── supervisor: the bridge, files of the cluster     PID, mount, network namespace
                                          ├─ h0's init ── sshd …                         namespaces of its own
                                          └─ h1's init ── sshd …                         namespaces of its own

Nothing of it has a name outside: no /run/netns, no file, no mount.  So when the supervisor ends, for whatever reason,
the kernel ends every process below it and removes the rest.  It ends when its maker does.
"""
import json
import os
import pathlib
import pwd
import select
import socket
import subprocess
import sys
import time

import testbed_kernel as kernel

# The files of the cluster: on a tmpfs that only the supervisor and, until they hide it, the hosts see.
FILES = pathlib.Path("/run/testbed")
HOMES = pathlib.Path("/home")
ROOT_HOME = HOMES / "root"  # on a host; the machine's own may hold the project, which all users have to reach
MACHINE_ROOT_HOME = pathlib.Path(pwd.getpwuid(0).pw_dir)
USERS = {"bob": (2001, "/bin/bash"), "carol": (2002, "/bin/tcsh"), "finn": (2003, "/usr/bin/fish"),
         "sue": (2004, "/bin/sh")}
SSHD_READY = "/run/sshd.pid"
SSHD_OPTIONS = {
    "HostKey": "/etc/ssh/ssh_host_ed25519_key", "AuthorizedKeysFile": "/etc/ssh/authorized_keys",
    "PidFile": SSHD_READY, "StrictModes": "no", "UsePAM": "no", "UseDNS": "no", "PasswordAuthentication": "no",
    "KbdInteractiveAuthentication": "no", "PermitRootLogin": "prohibit-password", "Subsystem": "sftp internal-sftp",
}
READY_WITHIN = 30  # seconds; sshd takes 20 ms, unless the machine has other things to do


class Plan:
    """What all hosts of a cluster have in common.  Host i: its name, addresses and key follow from i."""

    def __init__(self, last, ipv6, sshd_options, visible):
        self.last, self.ipv6, self.sshd_options, self.visible = last, ipv6, sshd_options, visible

    @staticmethod
    def name(i):
        return f"h{i}"

    @staticmethod
    def address(i):
        return f"10.77.{(i + 1) >> 8}.{(i + 1) & 255}"

    def address6(self, i):
        return f"fd77::{i + 1:x}" if self.ipv6 else None

    @staticmethod
    def hardware_address(i):
        """A host that starts again is still the same card: its neighbours remember it."""
        return f"02:77:00:00:{i >> 8:02x}:{i & 255:02x}"

    def names(self, i):
        """All that a host may be called, by address."""
        yield self.address(i), self.name(i)
        if self.ipv6:
            yield self.address6(i), f"{self.name(i)}-v6"

    def everybody(self):
        return range(self.last + 1)


# The cluster's files.

def make_files(plan):
    kernel.mount("tmpfs", "/run", "tmpfs", options="mode=755")
    (FILES / "keys").mkdir(parents=True)
    make_keys(["client", *map(plan.name, plan.everybody())])
    write("hosts", hosts_file(plan))
    write("passwd", passwd_file())
    write("group", pathlib.Path("/etc/group").read_text() + lines(f"{u}:x:{USERS[u][0]}:" for u in USERS))
    # With "!" an account is locked, and sshd lets nobody in; with "*" there is no password that fits.
    write("shadow", lines(f"{user}:*:19000:0:99999:7:::" for user in ["root", *USERS]), 0o640)
    write("known_hosts", known_hosts_file(plan))
    write("sshd_config", lines(f"{key} {value}" for key, value in {**SSHD_OPTIONS, **plan.sshd_options}.items()))


def make_keys(names):
    """At once: most of the time goes into starting the programs."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", ""]
    running = [subprocess.Popen([*command, "-C", name, "-f", FILES / "keys" / name], stdin=subprocess.DEVNULL)
               for name in names]
    if any([one.wait() for one in running]):
        raise RuntimeError("ssh-keygen failed")


def write(name, text, mode=0o644):
    (FILES / name).write_text(text)
    (FILES / name).chmod(mode)


def lines(some):
    return "".join(f"{line}\n" for line in some)


def hosts_file(plan):
    local = "127.0.0.1 localhost\n" + ("::1 localhost ip6-localhost\n" if plan.ipv6 else "")
    return local + lines(f"{address} {name}" for i in plan.everybody() for address, name in plan.names(i))


def passwd_file():
    kept = [line for line in pathlib.Path("/etc/passwd").read_text().splitlines()
            if line.split(":")[0] not in ("root", *USERS)]
    users = [f"{user}:x:{number}:{number}::{HOMES / user}:{shell}" for user, (number, shell) in USERS.items()]
    return lines([f"root:x:0:0:root:{ROOT_HOME}:/bin/bash", *users, *kept])


def known_hosts_file(plan):
    def entry(i):
        names = ",".join(word for pair in plan.names(i) for word in pair)
        return f"{names} {(FILES / 'keys' / (plan.name(i) + '.pub')).read_text().strip()}"
    return lines(map(entry, plan.everybody()))


# One host, seen from inside: PID 1 of its own namespace.

class Init:
    """Becomes host i, says when it is ready, and then only reaps.  `supervisor` is the socket to speak on."""

    def __init__(self, plan, i, supervisor):
        self.plan, self.i, self.supervisor = plan, i, supervisor

    def live(self):
        try:
            self.leave_the_machine()
            self.supervisor.send(b"made")
            self.supervisor.recv(1)  # the supervisor lays the cable meanwhile
            self.set_up_network()
            self.set_up_files()
            self.start_sshd()
            self.supervisor.send(b"ready")
        except Exception as error:  # whatever it is, the maker has to hear it
            self.supervisor.send(f"{self.plan.name(self.i)}: {error}".encode())
            os._exit(1)
        self.supervisor.close()
        reap_for_ever()

    def leave_the_machine(self):
        kernel.unshare(kernel.NEW_MOUNT | kernel.NEW_UTS | kernel.NEW_IPC | kernel.NEW_NET)
        kernel.set_host_name(self.plan.name(self.i))

    def set_up_network(self):
        commands = ["link set lo up", f"addr add {self.plan.address(self.i)}/16 dev eth0"]
        if self.plan.ipv6:
            commands.append(f"addr add {self.plan.address6(self.i)}/64 dev eth0 nodad")
        ip([*commands, "link set eth0 up"])

    def set_up_files(self):
        kernel.mount("proc", "/proc", "proc")
        show_own_network_in_sys()
        for name in ("hosts", "passwd", "group", "shadow"):
            kernel.bind(FILES / name, f"/etc/{name}")
        self.fill_etc_ssh()
        secrets = self.read_secrets()
        self.hide_the_machine()
        self.fill_homes(*secrets)

    def fill_etc_ssh(self):
        key = FILES / "keys" / self.plan.name(self.i)
        files = {"sshd_config": (FILES / "sshd_config").read_bytes(), "ssh_config": b"",
                 "ssh_host_ed25519_key": key.read_bytes(),
                 "authorized_keys": (FILES / "keys/client.pub").read_bytes()}
        kernel.mount("tmpfs", "/etc/ssh", "tmpfs", options="mode=755")
        for name, content in files.items():
            create(pathlib.Path("/etc/ssh", name), content, 0o600 if name.endswith("_key") else 0o644)

    def read_secrets(self):
        return (FILES / "keys/client").read_bytes(), (FILES / "known_hosts").read_bytes()

    def hide_the_machine(self):
        """Empty directories where programs leave things; what has to be seen everywhere is put back."""
        hidden = [MACHINE_ROOT_HOME, HOMES, "/run", "/dev/shm", "/var/tmp"] + (["/tmp"] if self.i else [])
        kept = {path: os.open(path, os.O_PATH) for path in map(os.path.realpath, self.plan.visible)
                if any(pathlib.Path(path).is_relative_to(above) for above in hidden)}
        for path in hidden:
            mode = "755" if path in (MACHINE_ROOT_HOME, HOMES, "/run") else "1777"
            kernel.mount("tmpfs", path, "tmpfs", options=f"mode={mode}")
        for path, descriptor in kept.items():
            os.makedirs(path, exist_ok=True)
            kernel.bind(f"/proc/self/fd/{descriptor}", path)
            os.close(descriptor)

    def fill_homes(self, client_key, known_hosts):
        for user, (number, _) in USERS.items():
            (HOMES / user).mkdir()
            os.chown(HOMES / user, number, number)
        ROOT_HOME.mkdir()
        kernel.mount("tmpfs", ROOT_HOME, "tmpfs", options="mode=700")
        if self.i:
            return
        folder = ROOT_HOME / ".ssh"
        folder.mkdir(0o700)
        create(folder / "id_ed25519", client_key, 0o600)
        create(folder / "known_hosts", known_hosts, 0o644)
        create(folder / "config", b"IdentityFile ~/.ssh/id_ed25519\nIdentitiesOnly yes\n", 0o600)

    def start_sshd(self):
        os.mkdir("/run/sshd", 0o755)
        with open("/run/sshd.log", "wb") as log:
            sshd = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    cwd="/", env={"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"})
        until = time.monotonic() + READY_WITHIN
        while not os.path.exists(SSHD_READY):
            if sshd.poll() is not None or time.monotonic() > until:
                said = pathlib.Path("/run/sshd.log").read_text(errors="replace").strip()
                raise RuntimeError(f"sshd does not start: {said}")
            time.sleep(0.002)


def show_own_network_in_sys():
    """/sys/class/net belongs to whoever mounted /sys.  A new one hides the control groups, so they are put back."""
    groups = os.open("/sys/fs/cgroup", os.O_PATH)
    kernel.mount("sysfs", "/sys", "sysfs")
    kernel.bind(f"/proc/self/fd/{groups}", "/sys/fs/cgroup")
    os.close(groups)


def create(path, content, mode):
    path.write_bytes(content)
    path.chmod(mode)


def reap_for_ever():
    while True:
        try:
            os.wait()
        except ChildProcessError:  # sshd was ended too
            time.sleep(0.05)


def ip(commands):
    done = subprocess.run(["ip", "-batch", "-"], input=lines(commands), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip: {done.stderr.strip()}")


# All hosts, seen from the supervisor.

class Supervisor:
    def __init__(self, plan):
        self.plan = plan
        self.inits = {}  # host number → pid, as known in here

    def make_bridge(self):
        # The bridge is nobody's host: it shall say nothing of its own.
        pathlib.Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
        ip(["link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0", "link set br0 up"])

    def boot(self, numbers):
        """All of them side by side; returns when every sshd listens."""
        sockets = {i: self.start_init(i) for i in numbers}
        for i in numbers:
            expect(sockets[i], b"made")
        ip(command for i in numbers for command in (
            f"link add v{i} type veth peer name eth0 address {self.plan.hardware_address(i)} netns {self.inits[i]}",
            f"link set v{i} master br0 up"))
        for i in numbers:
            sockets[i].send(b"!")
        for i in numbers:
            expect(sockets[i], b"ready")
            sockets[i].close()

    def start_init(self, i):
        if i in self.inits:
            os.waitpid(self.inits[i], 0)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with kernel.children_born_in(None):
            self.inits[i] = os.fork()
            if self.inits[i] == 0:  # never comes back from here
                ours.close()
                Init(self.plan, i, theirs).live()
        theirs.close()
        return ours


def expect(init, word):
    init.settimeout(READY_WITHIN)
    said = init.recv(4096)
    if said != word:
        raise RuntimeError(said.decode(errors="replace") or "a host ended before it was ready")


def answer(control, content, pid=None):
    """A process is told of by a descriptor: its number would mean nothing outside of this namespace."""
    descriptors = [] if pid is None else [os.pidfd_open(pid)]
    socket.send_fds(control, [json.dumps(content).encode()], descriptors)
    for descriptor in descriptors:
        os.close(descriptor)


def serve(control, maker):
    """Makes the cluster, and hosts again when asked to, until the maker closes its socket or dies."""
    plan = Plan(**json.loads(control.recv(1 << 16)))
    supervisor = Supervisor(plan)

    def boot(numbers):
        supervisor.boot(numbers)
        for i in numbers:
            answer(control, {"host": i}, supervisor.inits[i])

    make_files(plan)
    supervisor.make_bridge()
    answer(control, {"supervisor": True}, os.getpid())
    boot(list(plan.everybody()))
    while True:
        if maker in select.select([control, maker], [], [])[0]:
            return
        request = control.recv(1 << 16)
        if not request:
            return
        boot(json.loads(request)["boot"])


def main():
    control, maker = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    for descriptor in (control.fileno(), maker):
        os.set_inheritable(descriptor, False)
    try:
        serve(control, maker)
    except BrokenPipeError:  # the maker has gone meanwhile
        pass
    except (OSError, RuntimeError) as error:
        answer(control, {"error": str(error)})
    os._exit(0)  # and with this process all that it holds


if __name__ == "__main__":
    main()
