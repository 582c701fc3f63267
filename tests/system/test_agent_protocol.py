"""launcher/agent/PROTOCOL.md, held against a real agent by a reader that shares no code with it."""
import os
import re
import signal
import struct
import subprocess
import time

import corro_system as k
import pytest

PAGE = k.TOP / "launcher/agent/PROTOCOL.md"
HELLO, START, SIGNAL, LEASE, ACK, CLOSE, INPUT, HOLD, RESUME, SURVEY, EXAMINE, INSPECT = range(1, 13)
(READY, STARTED, FAILED, OUTPUT, EXITED, ENDING, FACTS, TAKEN, FINDING, EXAMINED, REACHED, UNREACHED,
 INSPECTED) = range(65, 78)
OUTPUT_WINDOW = 1 << 20


def string(text):
    raw = text.encode()
    return struct.pack("<I", len(raw)) + raw


def strings(texts):
    return struct.pack("<I", len(texts)) + b"".join(map(string, texts))


def start(worker, *argv, has_input=False):
    return (struct.pack("<I", worker) + strings(argv) + strings(["PATH=/usr/bin:/bin"]) + string("/")
            + struct.pack("<I?I", 0o22, has_input, 0))


def status_of(body):
    """(worker, code, signal)"""
    return struct.unpack("<Iii", body[:12])


class Agent:
    """Speaks frames with `horovodrun --guard`."""

    def __init__(self):
        self.process = subprocess.Popen([k.HOROVODRUN, "--guard"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.sent = 0

    def says_hello(self, lease_ms=5000, grace_ms=5000):
        self.send(HELLO, string("0.1.0") + struct.pack("<II", lease_ms, grace_ms))
        assert self.next()[0] == READY
        return self

    def send(self, kind, body=b""):
        self.sent += 1
        self.send_raw(struct.pack("<IHQ", 10 + len(body), kind, self.sent) + body)

    def send_raw(self, frame):
        self.process.stdin.write(frame)
        self.process.stdin.flush()

    def next_raw(self):
        """One whole frame; empty at the end of the stream."""
        head = self.process.stdout.read(4)
        return head + self.process.stdout.read(struct.unpack("<I", head)[0]) if head else b""

    def next(self):
        """(kind, seq, body), or None at the end of the stream."""
        frame = self.next_raw()
        return (*struct.unpack("<HQ", frame[4:14]), frame[14:]) if frame else None

    def next_of(self, kind):
        while (message := self.next()) and message[0] != kind:
            pass
        return message

    def ends(self):
        """All that it still says, to its end."""
        said = []
        while message := self.next():
            said.append(message)
        assert self.process.wait(timeout=5 * k.SLOW) == 0
        return said


@pytest.fixture
def agent(mark):
    made = []

    def make():
        made.append(Agent())
        return made[-1]
    yield make
    for a in made:
        k.end(a.process)
        a.process.stdin.close()
        a.process.stdout.close()


def example_of(page):
    """[(direction, frame)] of the page's example."""
    text = re.search(r"## Example\n.*?```\n(.*?)```", page, re.S)[1]
    frames = []
    for line in filter(str.strip, text.splitlines()):
        direction, raw = line[:5].strip(), bytes.fromhex(line[5:56])
        if direction:
            frames.append([direction, raw])
        else:
            frames[-1][1] += raw
    return frames


def without_chance(frame):
    """Without what is another each time: pids, times, what the host has."""
    if frame[4] in (READY, STARTED):
        return frame[:-4]
    if frame[4] == FACTS:
        return frame[:14]
    if frame[4] == EXITED:  # whether memory was why may be known in several ways
        return frame[4:26]
    return frame[:19] + frame[27:] if frame[4] == OUTPUT else frame


def test_an_agent_says_what_the_page_says(agent):
    a = agent()
    frames = example_of(PAGE.read_text())
    assert [d for d, _ in frames] == ["down", "up", "down", "up", "down", "up", "up", "up", "down", "down"]
    for direction, frame in frames:
        if direction == "down":
            a.send_raw(frame)
        else:
            assert without_chance(a.next_raw()) == without_chance(frame)
    assert a.ends() == []


def test_the_page_has_every_kind_of_the_header():
    header = (PAGE.parent / "protocol.h").read_text()
    declared = set(re.findall(r"struct (\w+) \{\s+static constexpr std::uint16_t kKind = (\d+);", header))
    assert len(declared) == 28 and declared == set(re.findall(r"^\| (\w+) \| (\d+) \|", PAGE.read_text(), re.M))


def test_output_comes_before_the_exit_and_waits_for_acknowledgement(agent):
    a = agent().says_hello()
    a.send(START, start(0, "sh", "-c", "yes | head -c 4000000; exit 3"))
    assert a.next()[0] == STARTED
    got = unacknowledged = 0
    while True:
        kind, seq, body = a.next()
        if kind == EXITED:
            break
        assert kind == OUTPUT
        size = len(body) - 17
        got += size
        unacknowledged += size
        assert unacknowledged <= OUTPUT_WINDOW + (64 << 10)
        if unacknowledged >= OUTPUT_WINDOW:
            a.send(ACK, struct.pack("<Q", seq))
            unacknowledged = 0
    assert got == 4000000 and status_of(body) == (0, 3, 0)
    a.send(CLOSE)
    assert a.ends() == []


def test_input_arrives_and_ends_and_is_taken(agent):
    a = agent().says_hello()
    a.send(START, start(0, "sh", "-c", "cat; exit 4", has_input=True))
    assert a.next()[0] == STARTED
    for text, ends in (b"one\n", False), (b"two", True):
        a.send(INPUT, struct.pack("<II", 0, len(text)) + text + struct.pack("<?", ends))
    taken, said = 0, b""
    while (message := a.next())[0] != EXITED:
        if message[0] == TAKEN:
            taken += struct.unpack("<II", message[2])[1]
        else:
            said += message[2][17:]
    assert (taken, said) == (7, b"one\ntwo") and status_of(message[2]) == (0, 4, 0)


def test_input_for_one_who_does_not_read_is_taken_all_the_same(agent):
    a = agent().says_hello()
    a.send(START, start(0, "sh", "-c", "exec <&-; sleep 60", has_input=True))
    a.send(START, start(1, "sleep", "60"))
    text = b"x" * 65536
    for worker in (0, 0, 0, 1):
        a.send(INPUT, struct.pack("<II", worker, len(text)) + text + struct.pack("<?", False))
    taken = {0: 0, 1: 0}
    while taken != {0: 3 * len(text), 1: len(text)}:
        kind, _, body = a.next()
        if kind == TAKEN:
            worker, size = struct.unpack("<II", body)
            taken[worker] += size


def test_what_workers_do_is_seen(agent):
    a = agent().says_hello()
    a.send(START, start(0, "sleep", "60"))
    a.send(START, start(1, "true"))
    assert a.next_of(EXITED)
    a.send(EXAMINE)
    kind, _, body = a.next()
    assert kind == FINDING and struct.unpack("<I", body[:4]) == (0,) and b"sleep" in body
    assert a.next()[0] == EXAMINED
    a.send(CLOSE)


def test_held_workers_stand_still_and_the_lease_rests(agent):
    a = agent().says_hello(lease_ms=300)
    a.send(START, start(0, "sleep", "60"))
    pid = struct.unpack("<Ii", a.next()[2])[1]
    a.send(HOLD)
    assert k.eventually(lambda: k.stat_of(pid)[1] == "T")
    time.sleep(1.5)
    assert k.stat_of(pid)[1] == "T"
    a.send(RESUME)
    assert k.eventually(lambda: k.stat_of(pid)[1] == "S")
    a.send(CLOSE)
    assert ENDING not in {kind for kind, _, _ in a.ends()}


def test_output_has_the_time_at_which_it_was_read(agent):
    a = agent().says_hello()
    before = time.time()
    a.send(START, start(0, "echo", "hi"))
    _, _, body = a.next_of(OUTPUT)
    assert before <= struct.unpack("<q", body[5:13])[0] / 1e6 <= time.time()


def test_a_number_is_used_once(agent):
    a = agent().says_hello()
    a.send(START, start(7, "sleep", "60"))
    assert a.next()[0] == STARTED
    a.send(START, start(7, "sleep", "60"))
    kind, _, body = a.next()
    assert kind == FAILED and struct.unpack("<IB", body[:5]) == (7, 2)
    a.send(SIGNAL, struct.pack("<Ii", 7, signal.SIGTERM))
    assert status_of(a.next_of(EXITED)[2]) == (7, 0, signal.SIGTERM)
    a.send(SIGNAL, struct.pack("<Ii", 7, signal.SIGTERM))
    a.send(SIGNAL, struct.pack("<Ii", 99, signal.SIGTERM))
    a.send(CLOSE)
    assert a.ends() == []


@pytest.mark.parametrize("frame, what", [
    (struct.pack("<IHQ", 10, 99, 1), "a kind that is unknown"),
    (struct.pack("<IHQ", 11, LEASE, 1) + b"\0", "a field too many"),
    (struct.pack("<IHQ", 10, ACK, 1), "a field too few"),
    (b"\xff\xff\xff\xff", "4 GiB"),
    (b"\0\0\0\0", "a frame too short to be one"),
    (struct.pack("<IHQ", 10, START, 1)[:9], "half a frame, and the end"),
], ids=lambda x: x if isinstance(x, str) else "")
def test_what_is_malformed_ends_the_workers(agent, frame, what):
    a = agent().says_hello(grace_ms=1000)
    a.send(START, start(0, "sleep", "60"))
    assert a.next()[0] == STARTED
    a.send_raw(frame)
    a.process.stdin.close()
    a.process.stdin = open(os.devnull, "wb")
    assert {kind for kind, _, _ in a.ends()} <= {EXITED}


def test_a_lease_that_runs_out_is_said_before_the_workers_end(agent):
    a = agent().says_hello(lease_ms=300, grace_ms=1000)
    a.send(START, start(0, "sleep", "60"))
    assert a.next()[0] == STARTED
    kind, _, why = a.next()
    assert kind == ENDING and why[4:] == b"the launcher was not heard of for 0.3 s"
    assert [status_of(body) for kind, _, body in a.ends() if kind == EXITED] == [(0, 0, signal.SIGTERM)]


def test_an_inspection_tells_of_the_host_and_does_not_hold_up_the_agent(agent, tmp_path):
    slow = tmp_path / "python3"
    slow.write_text("#!/bin/sh\nsleep 60\n")
    slow.chmod(0o755)
    a = agent().says_hello()
    before = time.time()
    a.send(INSPECT, string(str(tmp_path)) + strings(["python3"]) + strings([f"PATH={tmp_path}:/usr/bin:/bin"])
           + struct.pack("<I", 1000))
    a.send(START, start(0, "true"))
    assert a.next()[0] == STARTED  # before the inspection has ended
    body = a.next_of(INSPECTED)[2]
    asked, answered = (us / 1e6 for us in struct.unpack("<qq", body[-16:]))
    assert before <= asked <= answered <= time.time() and answered - asked < 3 * k.SLOW
    assert os.uname().nodename.encode() in body and b"no answer for" in body
    a.send(CLOSE)
    a.ends()
