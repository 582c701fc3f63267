"""Where workers run and what they get, and that their words come through."""
import os
import re
import socket
import subprocess
import time

import pytest
import corro_system as k
from corro_system import ACTOR, run


def test_every_rank_knows_its_place_on_two_hosts_that_are_one_machine(mark):
    ended = run("-np", 3, "-H", "localhost:2,127.0.0.1:2", "sh", "-c",
                "echo $HOROVOD_RANK/$HOROVOD_SIZE $HOROVOD_LOCAL_RANK/$HOROVOD_LOCAL_SIZE "
                "$HOROVOD_CROSS_RANK/$HOROVOD_CROSS_SIZE $HOROVOD_HOSTNAME")
    assert sorted(ended.out.splitlines()) == [
        "[0]<stdout>:0/3 0/2 0/2 localhost", "[1]<stdout>:1/3 1/2 0/1 localhost",
        "[2]<stdout>:2/3 0/1 1/2 127.0.0.1"], ended


def test_two_hosts_have_an_agent_each(mark):
    job = k.start("-np", 4, "-H", "localhost:2,127.0.0.1:2", "sleep", "60")
    try:
        cast = k.eventually(lambda: len((c := k.cast_of(job.pid))["worker"]) == 4 and c)
        assert cast and len(cast["guard"]) == 2 and len(cast["agent"]) == 2
        assert [len(k.children_of(a)) for a in cast["agent"]] == [2, 2]
    finally:
        k.end(job)


def test_this_machine_is_known_by_its_own_name(mark):
    assert run("-np", 1, "-H", f"{socket.gethostname()}:1", "true").code == 0


def test_whoever_listens_is_told_a_port_of_the_range(mark):
    ended = run("-np", 1, "--port-range", "24000-24099", "sh", "-c", "echo $MASTER_PORT $HOROVOD_GLOO_RENDEZVOUS_PORT")
    ports = [int(word) for word in ended.out.removeprefix("[0]<stdout>:").split()]
    assert len(ports) == 2 and all(24000 <= port <= 24099 for port in ports), ended


def test_a_job_inside_a_job_has_its_own_ranks(mark):
    ended = run("-np", 2, k.HOROVODRUN, "-np", "2", "sh", "-c", "echo $HOROVOD_RANK of $HOROVOD_SIZE")
    assert ended.code == 0 and sorted(ended.out.splitlines()) == sorted(
        f"[{outer}]<stdout>:[{inner}]<stdout>:{inner} of 2" for outer in range(2) for inner in range(2)), ended


def test_arguments_and_environment_arrive_byte_for_byte(mark):
    odd = "a 'b' \"c\" $d `e` \\ \n\t*é;|&"
    ended = run("-np", 1, "sh", "-c", 'printf "%s%s" "$1" "$ODD"', "sh", odd, env={"ODD": odd})
    assert ended.out.replace("[0]<stdout>:", "") == odd + odd, ended


def test_lines_are_never_torn_and_the_last_one_needs_no_newline(mark):
    lines = 20000
    ended = run("-np", 4, "sh", "-c", f'seq -f "%.0f-$HOROVOD_RANK-{"x" * 80}" {lines}; printf end')
    out = ended.out.replace("end[", "end\n[").splitlines()
    for rank in range(4):
        own = [line for line in out if line.startswith(f"[{rank}]<stdout>:")]
        assert own == [f"[{rank}]<stdout>:{i}-{rank}-{'x' * 80}" for i in range(1, lines + 1)] + [
            f"[{rank}]<stdout>:end"], own[:2]


def test_a_report_begins_on_a_new_line_and_adds_none_to_what_workers_wrote(mark):
    failing = [k.HOROVODRUN, "-np", "2", "sh", "-c", "sleep $RANK; printf abc; exit $RANK"]
    apart = subprocess.run(failing, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30 * k.SLOW)
    assert apart.stdout == "[0]<stdout>:abc[1]<stdout>:abc" and apart.stderr.startswith("horovodrun: rank 1"), apart
    both = subprocess.run(failing, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
                          timeout=30 * k.SLOW)
    assert both.stdout.startswith("[0]<stdout>:abc[1]<stdout>:abc\nhorovodrun: rank 1"), both


def test_binary_output_and_carriage_returns_come_through(mark):
    done = subprocess.run([k.HOROVODRUN, "-np", "1", "printf", r"10%%\r20%%\r\0\377\n"], capture_output=True,
                          timeout=20 * k.SLOW)
    assert done.stdout == b"[0]<stdout>:10%\r[0]<stdout>:20%\r[0]<stdout>:\0\xff\n"


def test_stderr_stays_stderr(mark):
    ended = run("-np", 1, "sh", "-c", "echo out; echo err >&2")
    assert ended.out == "[0]<stdout>:out\n" and ended.err == "[0]<stderr>:err\n", ended


def test_a_reader_that_stands_still_does_not_end_the_job(mark):
    """Longer than the lease: only the workers that write may wait."""
    job = k.start("-np", 2, "sh", "-c", "yes 0123456789012345678901234567890123456789 | head -c 8000000",
                  stdout=subprocess.PIPE)
    time.sleep(7)
    assert job.poll() is None
    out = job.communicate(timeout=30 * k.SLOW)[0]
    words = out.replace(b"[0]<stdout>:", b"").replace(b"[1]<stdout>:", b"")
    assert job.returncode == 0 and len(words) == 2 * 8000000


def test_a_reader_that_goes_away_does_not_end_the_job(mark):
    done = subprocess.run(f"{k.HOROVODRUN} -np 2 sh -c 'seq 200000; exit 0' | head -1; exit ${{PIPESTATUS[0]}}",
                          shell=True, executable="/bin/bash", capture_output=True, timeout=30 * k.SLOW)
    assert done.returncode == 0, done


def test_nothing_secret_is_in_an_argument_list_and_only_loopback_listens(mark):
    job = k.start("-np", 2, ACTOR, "open", "sleep=60")
    try:
        assert k.eventually(lambda: len(k.cast_of(job.pid)["worker"]) == 2)
        worker = k.cast_of(job.pid)["worker"][0]
        variables = dict(v.split("=", 1) for v in open(f"/proc/{worker}/environ").read().split("\0") if "=" in v)
        for pid in k.processes():
            try:
                assert variables["CORRO_JOB_KEY"] not in open(f"/proc/{pid}/cmdline").read()
            except OSError:
                pass
        assert variables["CORRO_STORE"].startswith("127.0.0.1:")
        own = {job.pid, *k.descendants_of(job.pid)}
        listening = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True).stdout.splitlines()
        ours = [line for line in listening if any(f"pid={pid}," in line for pid in own)]
        assert ours and all(line.split()[3].startswith("127.0.0.1:") for line in ours), ours
    finally:
        k.end(job)


STRANGERS = {"silent": b"", "zeros": b"\0" * 4096, "http": b"GET / HTTP/1.1\r\n\r\n",
             "hello only": b"corro\1\0\0\0" + b"n" * 32, "wrong proof": b"corro\1\0\0\0" + b"n" * 32 + b"p" * 32,
             "wrong proof and a frame of 4 GiB": b"corro\1\0\0\0" + b"n" * 32 + b"\xff" * 64}


@pytest.mark.parametrize("kind", STRANGERS)
def test_a_stranger_at_the_store_learns_nothing_and_harms_nobody(mark, kind):
    bytes_ = STRANGERS[kind]
    job = k.start("-np", 2, ACTOR, "open", "sleep=1", "allreduce", "close")
    try:
        assert k.eventually(lambda: len(k.cast_of(job.pid)["worker"]) == 2)
        environ = open(f"/proc/{k.cast_of(job.pid)['worker'][0]}/environ").read().split("\0")
        host, port = next(v for v in environ if v.startswith("CORRO_STORE=")).split("=")[1].split(":")
        with socket.create_connection((host, int(port)), timeout=5) as stranger:
            stranger.sendall(bytes_)
            stranger.shutdown(socket.SHUT_WR)
            answer = b""
            try:
                while more := stranger.recv(4096):
                    answer += more
            except ConnectionResetError:
                pass
        # At the most the server's nonce and its own proof, to whoever says hello in our protocol.
        assert len(answer) <= (64 if bytes_.startswith(b"corro") else 0)
        assert job.wait(timeout=20 * k.SLOW) == 0
    finally:
        k.end(job)


def test_the_whole_environment_is_there(mark):
    ended = run("-np", 1, "env", env={"SOME_VARIABLE": "some value"})
    assert "[0]<stdout>:SOME_VARIABLE=some value\n" in ended.out and "PYTHONUNBUFFERED=1" in ended.out
    assert f"PATH={os.environ['PATH']}\n" in ended.out


def tagged(rank, written):
    """What the desk makes of it: a tag in front of whatever follows a line's end or a carriage return."""
    lines = re.findall(rb"[^\r\n]*(?:[\r\n]|$)", written)
    return b"".join(b"[%d]<stdout>:" % rank + line for line in lines if line)


def test_much_output_is_kept_and_shown_byte_for_byte(tmp_path, mark):
    """Long lines, binary rubbish and progress bars of eight that write at the same time as fast as they can."""
    workers, size = 8, (3 << 20) + 17
    done = subprocess.run([k.HOROVODRUN, "-np", str(workers), "--output-filename", tmp_path,
                           "sh", "-c", f"{k.WRITE_MUCH} {size}; echo"],
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=60 * k.SLOW)
    assert done.returncode == 0, done.stderr[-2000:]
    shown = {rank: bytearray() for rank in range(workers)}
    for line in re.findall(rb"[^\r\n]*(?:[\r\n]|$)", done.stdout):
        if line:
            shown[int(re.match(rb"\[(\d+)\]<stdout>:", line).group(1))] += line
    for rank in range(workers):
        written = subprocess.run([k.WRITE_MUCH, str(size), str(rank)], capture_output=True).stdout
        assert len(written) == size
        kept = (tmp_path / f"rank.{rank}/stdout").read_bytes()
        assert kept == tagged(rank, written + b"\n"), f"rank {rank}: {len(kept)} bytes"
        assert shown[rank] == kept, f"rank {rank}: {len(shown[rank])} bytes"


def test_lines_beyond_the_limit_are_broken_rather_than_mixed(tmp_path, mark):
    """Two ranks with a line of 4 MiB each, in turns: beyond 1 MiB one comes in between the other."""
    worker = """half() { head -c 2097152 /dev/zero | tr '\\0' $RANK; touch $1; }
                after() { while [ ! -e $1 ]; do sleep 0.01; done; }
                if [ $RANK = 0 ]; then half a; after b; half c; else after a; half b; after c; half d; fi
                echo"""
    done = subprocess.run([k.HOROVODRUN, "-np", "2", "--output-filename", "logs", "sh", "-c", worker],
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=60 * k.SLOW, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.fullmatch(rb"(\[(\d)\]<stdout>:(\2*)\n)+", done.stdout), re.findall(rb".{9}<[^>]*>.{9}", done.stdout)
    for rank in (b"0", b"1"):
        assert done.stdout.count(rank) - done.stdout.count(b"[%s]" % rank) == 4 << 20
        kept = (tmp_path / f"logs/rank.{rank.decode()}/stdout").read_bytes()
        assert kept == b"[%s]<stdout>:" % rank + rank * (4 << 20) + b"\n"


def test_a_worker_has_the_limit_on_descriptors_that_the_user_has(mark):
    """Launcher and agent take more for themselves."""
    done = subprocess.run(["sh", "-c", f"ulimit -Sn 777; exec {k.HOROVODRUN} -np 2 sh -c 'ulimit -n'"], text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=30 * k.SLOW)
    assert sorted(done.stdout.splitlines()) == ["[0]<stdout>:777", "[1]<stdout>:777"], done
