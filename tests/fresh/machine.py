#!/usr/bin/env python3
"""A bare Debian 12, for stories that begin on a machine where nothing is installed.

    with Machine() as machine:                    what debootstrap makes, and sudo
        tree = machine.clone("root")              the tree as it is here, in the user's home
        done = machine.run("./quickstart", user="root", cwd=tree)

A machine is a process in mount, PID, UTS and IPC namespaces of its own, which it has entered by pivot_root: a process
that a chroot holds leaves it again when it enters other namespaces, as the testbed's processes do.  The network is this
machine's.  What is written there is kept in memory, so nothing has to be removed: when the process ends, or the one
that made the machine, the kernel ends and removes all of it.

By hand, a line of bash in a clone of the tree, in root's home or with --user in that of a user with sudo:

    tests/fresh/machine.py [--user] './quickstart && ./runtests system'

Kept between runs, in build/fresh or where CORRO_FRESH_CACHE says: the bootstrapped system, and the packages that apt
has downloaded.  The compiler cache is this machine's own.
"""
import contextlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("CORRO_FRESH_CACHE", TOP / "build/fresh")).resolve()
SUITE = "bookworm"
USER = "ada"  # may use sudo without a password
HOMES = {"root": pathlib.PurePath("/root"), USER: pathlib.PurePath("/home", USER)}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
COMPILER_CACHE = "/var/cache/ccache"  # inside
# What apt needs to know in order to reach the mirror; the rest of apt's configuration is this machine's own affair.
REACHES_MIRROR = re.compile(r"^Acquire::(https?|ftp|Check-Valid-Until|ForceIPv\d)\b")
NEEDED_MEMORY = 3 << 30  # bytes; packages of all groups and a build are half of it
BOOT = """set -eu
read -r pid _ </proc/self/stat
mount -t tmpfs -o mode=755 tmpfs {stage}
cd {stage}
mkdir lower upper work root
mount --bind {bare} lower
mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work overlay root
cd root
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/pts dev/shm dev/net
# Not kmsg: the kernel's log has numbers of processes that mean nothing in this namespace.
for device in null zero full random urandom tty net/tun; do
  [ ! -e "/dev/$device" ] || {{ touch "dev/$device"; mount --bind "/dev/$device" "dev/$device"; }}
done
mount -t devpts -o newinstance,mode=620,gid=5,ptmxmode=666 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for i in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${{i%%:*}}" "dev/${{i#*:}}"; done
mount -t tmpfs -o mode=755 tmpfs run
{binds}
pivot_root . mnt
umount -l /mnt
cd /
hostname bare
echo "$pid"
read -r _ || true  # until the maker closes the pipe
"""


def why_not():
    """Why no machine can be made here; None if one can."""
    if os.geteuid() != 0:
        return "only root can make a bare Debian 12: debootstrap and pivot_root"
    for program in ("debootstrap", "git", "unshare", "wget"):
        if not shutil.which(program):
            return f"{program} is not installed (see packaging/packages)"
    if available_memory() < NEEDED_MEMORY:
        return f"less than {NEEDED_MEMORY >> 30} GiB of memory are available"
    if not (mirror := mirrors().get("Debian")):
        return "apt on this machine names no mirror of Debian"
    done = subprocess.run(["wget", "-q", "--tries=2", "--timeout=20", "--spider", f"{mirror}dists/{SUITE}/InRelease"],
                          stdin=subprocess.DEVNULL, check=False)
    return f"{mirror} does not answer, or has no {SUITE}" if done.returncode else None


def mirrors():
    """{"Debian": URI, "Debian-Security": URI}, as apt on this machine has them."""
    lines = output_of("apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)",
                      "Created-By: Packages").splitlines()
    return {label: uri for origin, label, uri in (line.split("|") for line in reversed(lines)) if origin == "Debian"}


def available_memory():
    text = pathlib.Path("/proc/meminfo").read_text(encoding="ascii")
    return int(re.search(r"^MemAvailable: *(\d+) kB", text, re.M)[1]) << 10


def output_of(*argv):
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout


class Done:
    """How a command in a machine went."""

    def __init__(self, code, text, took):
        self.code, self.text, self.took = code, text, took

    def __repr__(self):
        return f"code {self.code} after {self.took:.0f} s\n{self.text[-6000:]}"


class Machine:
    """`shown`: {folder of this machine: where it is seen inside}."""

    def __init__(self, shown=None):
        shown = {CACHE / "debs": "/var/cache/apt/archives", compiler_cache(): COMPILER_CACHE, **(shown or {})}
        bare, stage = bootstrapped(), CACHE / "stage"
        for folder in (stage, *shown):
            folder.mkdir(parents=True, exist_ok=True)
        script = BOOT.format(bare=shlex.quote(str(bare)), stage=shlex.quote(str(stage)),
                             binds="\n".join(bind(*pair) for pair in shown.items()))
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "bash", "-c", script],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self.pid = self.process.stdout.readline().decode().strip()  # of its first process, as seen from here
        if not self.pid:
            self.close()
            raise RuntimeError("the machine did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends all that runs there; nothing is left of it."""
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=60)

    def clone(self, user):
        """The tree with what is not committed yet, in the user's home; returns where it is inside."""
        tree = HOMES[user] / "corro"
        with tempfile.TemporaryDirectory() as here:
            clone_to(pathlib.Path(here, "corro"))
            packed = subprocess.run(["tar", "-C", here, "-c", "corro"], stdout=subprocess.PIPE, check=True).stdout
        done = self.run(f"tar -x --no-same-owner -C {tree.parent}", user=user, input=packed)
        assert done.code == 0, done
        return tree

    def run(self, command, *, input=b"", timeout=1800, quiet=False, **options):
        """Runs a line of bash to its end, as after a login; the options are those of popen()."""
        began = time.monotonic()
        process = self.popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
        try:
            text, _ = process.communicate(input, timeout=timeout)
        except subprocess.TimeoutExpired:
            self.close()  # or what the command has started would hold the pipe open
            text, _ = process.communicate()
        done = Done(process.returncode, text.decode(errors="replace"), time.monotonic() - began)
        if not quiet:
            print(f"--- {options.get('user', 'root')}: {command}: {done}", flush=True)
        return done

    def popen(self, command, *, user="root", cwd="/", env=None, **options):
        """As subprocess.Popen, for a line of bash."""
        words = {"HOME": HOMES[user], "USER": user, "LOGNAME": user, "SHELL": "/bin/bash", "PATH": PATH,
                 "LANG": "C.UTF-8", "TERM": "dumb", **compiler_cache_settings(user, cwd), **(env or {})}
        argv = ["nsenter", "--target", self.pid, "--mount", "--pid", "--uts", "--ipc", "--",
                "setpriv", "--reuid", user, "--regid", user, "--init-groups",
                "env", "-i", "-C", cwd, *(f"{key}={value}" for key, value in words.items()), "bash", "-c", command]
        return subprocess.Popen(argv, **options)


def bind(here, inside):
    target = shlex.quote(inside.lstrip("/"))
    return f"mkdir -p {target}; mount --bind {shlex.quote(str(here))} {target}"


def clone_to(there):
    git = ["git", "-c", "safe.directory=*"]
    output_of(*git, "clone", "-q", "--no-hardlinks", TOP, there)
    changed = output_of(*git, "-C", TOP, "ls-files", "-z", "--modified", "--others", "--exclude-standard")
    for name in changed.split("\0")[:-1]:
        (there / name).unlink(missing_ok=True)
        if os.path.lexists(TOP / name):
            (there / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TOP / name, there / name, follow_symlinks=False)


# What all machines begin with.

def bootstrapped():
    """The folder with the system; made once."""
    made, sources = CACHE / "bare", sources_list()
    stamp = CACHE / "bare.sources"
    if made.is_dir() and stamp.is_file() and stamp.read_text() == sources:
        return made
    stamp.unlink(missing_ok=True)
    shutil.rmtree(made, ignore_errors=True)
    packages = ["sudo"] + (["ca-certificates"] if "https:" in sources else [])
    (CACHE / "bootstrap").mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={','.join(packages)}", f"--cache-dir={CACHE / 'bootstrap'}",
         SUITE, made, mirrors()["Debian"]],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    set_up(made, sources)
    stamp.write_text(sources)
    return made


def sources_list():
    found = mirrors()
    lines = [f"deb {found['Debian']} {suite} main" for suite in (SUITE, f"{SUITE}-updates")]
    if "Debian-Security" in found:
        lines.append(f"deb {found['Debian-Security']} {SUITE}-security main")
    return "".join(f"{line}\n" for line in lines)


def set_up(root, sources):
    """What an installer asks for: mirror, name server, host name, a user."""
    (root / "etc/apt/sources.list").write_text(sources)
    settings = [line for line in output_of("apt-config", "dump").splitlines() if REACHES_MIRROR.match(line)]
    (root / "etc/apt/apt.conf.d/90mirror").write_text("".join(f"{line}\n" for line in settings))
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    if "https:" in sources:
        shutil.copytree("/etc/ssl/certs", root / "etc/ssl/certs", dirs_exist_ok=True)
    (root / "etc/hostname").write_text("bare\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost bare\n::1 localhost\n")
    # A machine that is removed in a minute need not survive a power failure.
    (root / "etc/dpkg/dpkg.cfg.d/no-sync").write_text("force-unsafe-io\n")
    subprocess.run(["chroot", root, "useradd", "-m", "-s", "/bin/bash", USER], check=True)
    (root / "etc/sudoers.d" / USER).write_text(f"{USER} ALL=(ALL) NOPASSWD: ALL\n")


# The compiler cache.

def compiler_cache():
    """This machine's own if it has ccache, so that what was compiled here need not be compiled there."""
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        return pathlib.Path(output_of("ccache", "--get-config", "cache_dir").strip())
    return CACHE / "ccache"


def compiler_cache_settings(user, cwd):
    """As the trees have different paths, none of them may be a part of what is looked up.  Only root may write."""
    settings = {"CCACHE_DIR": COMPILER_CACHE, "CCACHE_BASEDIR": cwd, "CCACHE_NOHASHDIR": "1",
                "CCACHE_SLOPPINESS": "pch_defines,time_macros,include_file_mtime,include_file_ctime"}
    if user != "root":
        settings |= {"CCACHE_READONLY": "1", "CCACHE_TEMPDIR": "/tmp/ccache"}
    return settings


def main():
    user = USER if sys.argv[1:2] == ["--user"] else "root"
    words = sys.argv[1 if user == "root" else 2:]
    if len(words) != 1:
        sys.exit("usage: machine.py [--user] COMMAND")
    if reason := why_not():
        sys.exit(f"machine.py: {reason}")
    with Machine() as machine:
        return machine.popen(words[0], user=user, cwd=machine.clone(user)).wait()


if __name__ == "__main__":
    sys.exit(main())
