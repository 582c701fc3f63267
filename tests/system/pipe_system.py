"""Pipes to other hosts, as the tests see them: what is started, what it says, what it leaves."""
import contextlib
import struct
import subprocess
import threading

import corro_system as k
import test_agent_protocol as protocol

NAME, UNREACHABLE, UNKNOWN_KEY, CHANGED_KEY, REFUSED, UNSUPPORTED, SHELL, STAGING, MACHINE, LOST = range(10)


class Fields:
    """Takes the fields of a message one by one."""

    def __init__(self, body):
        self.left = body

    def number(self, form="<I"):
        size = struct.calcsize(form)
        value, = struct.unpack(form, self.left[:size])
        self.left = self.left[size:]
        return value

    def text(self):
        size = self.number()
        value, self.left = self.left[:size].decode(), self.left[size:]
        return value


class Reached:
    def __init__(self, body):
        fields = Fields(body)
        self.address = fields.text()
        self.resolve, self.connect, self.login, self.start = (fields.number() / 1e3 for _ in range(4))  # ms
        self.staged, self.attempts, self.host_key = fields.number("<?"), fields.number(), fields.text()

    def __repr__(self):
        return (f"{self.address}: {self.resolve:.1f} + {self.connect:.1f} + {self.login:.1f} + {self.start:.1f} ms, "
                f"{self.attempts} attempts{', staged' * self.staged}")


class Unreached:
    def __init__(self, body):
        fields = Fields(body)
        self.kind, self.why, self.fix = fields.number("<B"), fields.text(), fields.text()

    def __repr__(self):
        return f"kind {self.kind}: {self.why}\nfix: {self.fix}"


class Pipe(protocol.Agent):
    """`horovodrun --ssh-pipe` or `--rsh-pipe` on a host, spoken with."""

    def __init__(self, host, *arguments, **options):
        self.process = host.popen([k.HOROVODRUN, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, **options)
        self.sent = 0
        self.patience = threading.Timer(60 * k.SLOW, self.process.kill)  # a pipe that hangs shall not hold up the tests
        self.patience.start()

    def reaches(self):
        kind, seq, body = self.next()
        assert kind == protocol.REACHED, Unreached(body)
        assert seq == 0
        return Reached(body)

    def fails(self):
        """What it says, and then ends."""
        kind, seq, body = self.next()
        assert kind == protocol.UNREACHED, Reached(body)
        answer = Unreached(body)
        assert seq == 0 and answer.fix and answer.why, answer
        assert self.next() is None and self.process.wait(timeout=10 * k.SLOW) == 125
        return answer

    def runs(self, *argv):
        """What a worker there writes to its stdout."""
        self.says_hello()
        self.send(protocol.START, protocol.start(0, *argv))
        said = bytearray()
        while (message := self.next())[0] != protocol.EXITED:
            if message[0] == protocol.OUTPUT:
                said += message[2][17:]
                self.send(protocol.ACK, struct.pack("<Q", message[1]))
        return bytes(said)

    def closes(self):
        self.send(protocol.CLOSE)
        return self.ends()

    def close(self):
        self.patience.cancel()
        k.end(self.process)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
