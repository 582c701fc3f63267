"""A slow and lossy cable: carries frames between a host's port and the bridge, late, and not all of them.

    testbed_relay.py PORT TAP DELAY_MS LOSS_PERCENT SEED

The kernel can limit a rate, but this one has no netem to delay.  The host keeps its interface, its addresses and its
connections: only what lies behind its port changes.  Says "ready" when it listens; its parent then moves the bridge
from PORT to TAP.

    host's eth0 ── veth ── PORT (packet socket) ── this process ── TAP ── bridge
"""
import collections
import fcntl
import os
import random
import select
import socket
import struct
import sys
import time

LARGEST = 1 << 17  # a frame, with its header: the kernel joins up to 64 KiB of one connection
BUFFER_BYTES = 64 << 20
AT_ONCE = 64  # frames read before others get their turn

TUNSETIFF, TUNSETOFFLOAD = 0x400454CA, 0x400454D0
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
TUN_F_CSUM, TUN_F_TSO4, TUN_F_TSO6 = 1, 2, 4
ETH_P_ALL, SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING, SO_RCVBUFFORCE = 3, 263, 15, 23, 33


class Direction:
    """From one descriptor to another, `delay` seconds later.  Frames stay in order."""

    def __init__(self, source, target, delay, is_lost):
        self.source, self.target, self.delay, self.is_lost = source, target, delay, is_lost
        self.waiting = collections.deque()

    def take_in(self):
        try:
            for _ in range(AT_ONCE):
                frame = os.read(self.source, LARGEST)
                if not self.is_lost():
                    self.waiting.append((time.monotonic() + self.delay, frame))
        except OSError:  # all read, or the interface is down
            pass

    def let_out(self, now):
        while self.waiting and self.waiting[0][0] <= now:
            try:
                os.write(self.target, self.waiting.popleft()[1])
            except OSError:  # a cable loses what cannot be sent
                pass

    def next_due(self):
        return self.waiting[0][0] if self.waiting else float("inf")


# Both ends put the kernel's notes before each frame (virtio_net_hdr): which checksums are still to be made, and where
# a large frame is to be cut.  Without them only small, finished frames could be carried.

def open_port(name):
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    port.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    port.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    try:
        port.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    except PermissionError:  # root of a user namespace gets what everybody may have
        port.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    port.bind((name, ETH_P_ALL))
    port.setblocking(False)
    return port


def open_tap(name, whole_frames):
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
    fcntl.ioctl(tap, TUNSETOFFLOAD, TUN_F_CSUM | (TUN_F_TSO4 | TUN_F_TSO6 if whole_frames else 0))
    return tap


def carry(directions):
    while True:
        due = min(direction.next_due() for direction in directions)
        wait = max(due - time.monotonic(), 0) if due < float("inf") else None
        readable, _, _ = select.select([direction.source for direction in directions], [], [], wait)
        for direction in directions:
            if direction.source in readable:
                direction.take_in()
            direction.let_out(time.monotonic())


def main():
    port_name, tap_name = sys.argv[1:3]
    delay_ms, loss_percent = map(float, sys.argv[3:5])
    chance = random.Random(int(sys.argv[5]))
    port = open_port(port_name)
    # When frames are to be lost, they are of the size that a real cable carries.
    tap = open_tap(tap_name, whole_frames=loss_percent == 0)

    def is_lost():
        return chance.random() * 100 < loss_percent

    each_way = delay_ms / 1000 / 2
    print("ready", flush=True)
    carry([Direction(port.fileno(), tap, each_way, is_lost), Direction(tap, port.fileno(), each_way, is_lost)])


if __name__ == "__main__":
    main()
