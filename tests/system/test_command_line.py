"""What users type, and what they are told when it cannot be done."""
import pytest
from kolo_system import run


@pytest.mark.parametrize("arguments, says", [
    (["-np", 3, "-H", "localhost:2", "true"], "asked for 3 workers, but the hosts have 2 slots"),
    (["-np", 1, "--wat", "true"], "unrecognized arguments: --wat"),
    (["-np", 1, "-H", "localhost", "true"], "'localhost': expected host:slots"),
    (["-np", 1, "-H", "local host:1", "true"], "is not a host name"),
    (["-np", 1, "-H", "localhost:0", "true"], "slots must be a number"),
    (["-np", 2], "no command to run was given"),
    (["true"], "the following arguments are required: -np/--num-proc"),
    (["-np", "x", "true"], "argument -np/--num-proc: invalid int value: 'x'"),
    (["-np", 1, "-H", "example.invalid:1", "true"], "other machines cannot be reached yet"),
])
def test_what_cannot_be_done_is_said_and_ends_with_2(arguments, says):
    ended = run(*arguments)
    assert ended.code == 2 and says in ended.err and ended.out == "", ended


def test_the_command_keeps_its_own_flags():
    ended = run("-np", 1, "echo", "-np", "3", "--verbose")
    assert ended.code == 0 and ended.out == "[0]<stdout>:-np 3 --verbose\n", ended


def test_the_version_that_scripts_read_is_alone_on_the_first_line():
    assert run("-v").out.splitlines()[0] == "0.28.1"


def test_verbose_tells_what_happens_and_never_the_key():
    ended = run("-np", 2, "--verbose", "sh", "-c", "echo key $KOLO_JOB_KEY")
    key = ended.out.split()[-1]
    assert len(key) == 64 and key not in ended.err, ended
    assert "host localhost is ready" in ended.err and "rank 1 runs on host localhost" in ended.err, ended
