"""What the kernel offers for hosts on one machine, and Python 3.11 does not: namespaces, mounts, host names."""
import contextlib
import ctypes
import os
import select

NEW_MOUNT, NEW_UTS, NEW_IPC, NEW_PID, NEW_NET = 0x00020000, 0x04000000, 0x08000000, 0x20000000, 0x40000000
MS_BIND, MS_REC = 1 << 12, 1 << 14

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result, *what):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{' '.join(map(str, what))}: {os.strerror(number)}")


def unshare(kinds):
    _checked(_libc.unshare(kinds), "unshare", hex(kinds))


def enter(pidfd, kinds):
    """Enters namespaces of the process that the descriptor stands for."""
    _checked(_libc.setns(pidfd, kinds), "setns", hex(kinds))


def set_host_name(name):
    _checked(_libc.sethostname(name.encode(), len(name.encode())), "sethostname", name)


def mount(source, target, kind=None, flags=0, options=None):
    words = [None if word is None else str(word).encode() for word in (source, target, kind, options)]
    _checked(_libc.mount(*words[:3], ctypes.c_ulong(flags), words[3]), "mount", source, target)


def bind(source, target):
    mount(source, target, flags=MS_BIND | MS_REC)


@contextlib.contextmanager
def children_born_in(pidfd):
    """What this thread forks meanwhile lives in that process's PID namespace (pidfd None: in a new one) and is still
    this process's own child: its pid, its signals and its exit status are as usual."""
    own = os.pidfd_open(os.getpid())
    try:
        if pidfd is None:
            unshare(NEW_PID)
        else:
            enter(pidfd, NEW_PID)
        try:
            yield
        finally:
            enter(own, NEW_PID)
    finally:
        os.close(own)


def has_ended(pidfd, within=0):
    """Whether the process has, or does in so many seconds."""
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(within * 1000))


def pid_of(pidfd):
    """The number that this process knows it by; None if it is gone."""
    with open(f"/proc/self/fdinfo/{pidfd}", encoding="ascii") as lines:
        pid = next(int(line.split()[1]) for line in lines if line.startswith("Pid:"))
    return pid if pid > 0 else None
