"""Which GPU and which CPUs a worker gets.  The GPUs are a stand-in for NVIDIA's library, told by a variable."""
import os
import pwd
import re

import corro_system as k
import pytest
from corro_system import run

FOUR = "".join(f"gpu GPU-{i}{i}{i}{i} 0000:0{i + 1}:00.0 1000 Model T;" for i in range(4))
SHOW = "echo $HOROVOD_RANK sees ${CUDA_VISIBLE_DEVICES-all} and has ${CORRO_GPU-none}"


def with_gpus(description, **more):
    return {"LD_LIBRARY_PATH": str(k.BUILD / "lib/stand_in"), "CORRO_STAND_IN_GPUS": description, **more}


def shown(*arguments, env):
    ended = run(*arguments, "sh", "-c", SHOW, env=env)
    return sorted(line.split(":", 1)[1] for line in ended.out.splitlines()), ended


@pytest.mark.parametrize("arguments, mask, expected", [
    (["-np", 2], None, ["0 sees 0,1 and has 0", "1 sees 0,1 and has 1"]),
    (["-np", 4], None, [f"{i} sees all and has {i}" for i in range(4)]),
    (["-np", 2, "--gpu-pinning", "exclusive"], None, ["0 sees 0 and has 0", "1 sees 1 and has 0"]),
    (["-np", 2, "--gpu-pinning", "none"], None, ["0 sees all and has none", "1 sees all and has none"]),
    (["-np", 2], "3,1", ["0 sees 3,1 and has 0", "1 sees 3,1 and has 1"]),
    (["-np", 2, "--gpu-pinning", "exclusive"], "3,1", ["0 sees 3 and has 0", "1 sees 1 and has 0"]),
    (["-np", 1, "-H", "localhost:4", "--include", "localhost:2"], None, ["0 sees 2 and has 0"]),
    (["-np", 2, "--gpu-pinning", "exclusive"], "GPU-2222,GPU-0000", ["0 sees GPU-2222 and has 0",
                                                                     "1 sees GPU-0000 and has 0"]),
])
def test_each_slot_has_its_gpu(arguments, mask, expected):
    found, ended = shown(*arguments, env=with_gpus(FOUR, **({"CUDA_VISIBLE_DEVICES": mask} if mask else {})))
    assert found == expected, ended


def test_a_host_without_a_number_has_a_slot_for_each_gpu():
    found, ended = shown("-np", 3, "-H", "localhost", env=with_gpus(FOUR, CUDA_VISIBLE_DEVICES="3,1,0"))
    assert len(found) == 3 and "a slot for each GPU, else one: localhost:3" in ended.err, ended
    _, ended = shown("-np", 4, "-H", "localhost", env=with_gpus(FOUR, CUDA_VISIBLE_DEVICES="3,1,0"))
    assert ended.code == 2 and "(4) than there are available slots (3)" in ended.err, ended
    found, ended = shown("-np", 1, "-H", "localhost", "--include", "localhost:3", env=with_gpus(FOUR))
    assert found == ["0 sees 3 and has 0"], ended


def test_without_gpus_nothing_is_set_and_nothing_is_said():
    found, ended = shown("-np", 2, env={"CUDA_VISIBLE_DEVICES": ""})
    assert found == ["0 sees and has none", "1 sees and has none"] and ended.err == "", ended


def test_more_workers_than_gpus_is_said():
    _, ended = shown("-np", 5, "-H", "localhost:5", env=with_gpus(FOUR))
    assert ended.code == 0 and "rank 4" in ended.err and "4 GPUs" in ended.err, ended


def own_name():
    return pwd.getpwuid(os.getuid()).pw_name


def test_a_gpu_that_somebody_holds_is_said_with_pid_and_user():
    description = f"{FOUR}holder 1 {os.getpid()} 500;"
    _, ended = shown("-np", 2, env=with_gpus(description))
    assert ended.code == 0 and str(os.getpid()) in ended.err and own_name() in ended.err, ended


def test_a_mask_that_names_what_is_not_there_stops_the_job_before_it_starts(tmp_path):
    ended = run("-np", 2, "touch", tmp_path / "ran", env=with_gpus(FOUR, CUDA_VISIBLE_DEVICES="7"))
    assert ended.code == 123 and "horovodrun: nothing was started: " in ended.err, ended
    assert not (tmp_path / "ran").exists()


def test_a_driver_that_hangs_does_not_hold_up_the_job_for_long():
    ended = run("-np", 1, "echo", "hi", env=with_gpus("gpu A B 1 C;hang nvmlInit_v2;"))
    assert ended.code == 0 and ended.out == "[0]<stdout>:hi\n" and ended.took < 8 * k.SLOW, ended
    assert "localhost" in ended.err, ended


def test_a_job_in_a_job_has_the_gpus_of_its_worker():
    inner = f"{k.HOROVODRUN} -np 1 --gpu-pinning exclusive sh -c '{SHOW}'"
    ended = run("-np", 2, "--gpu-pinning", "exclusive", "sh", "-c", inner, env=with_gpus(FOUR))
    assert sorted(ended.out.splitlines()) == ["[0]<stdout>:[0]<stdout>:0 sees 0 and has 0",
                                              "[1]<stdout>:[0]<stdout>:0 sees 1 and has 0"], ended


@pytest.mark.parametrize("bind_to", ["core", "numa"])
def test_workers_are_bound_inside_what_is_allowed_and_it_is_reported(bind_to):
    ended = run("-np", 2, "--bind-to", bind_to, "--report-bindings", "sh", "-c", "grep Cpus_allowed_list /proc/self/status")
    allowed = os.sched_getaffinity(0)
    lists = re.findall(r"Cpus_allowed_list:\s*(\S+)", ended.out)
    assert ended.code == 0 and len(lists) == 2, ended
    for text in lists:
        assert cpus(text) <= allowed
    if bind_to == "core" and len(allowed) >= 2:
        assert not cpus(lists[0]) & cpus(lists[1]), ended
    rows = re.findall(r"^  (\d) +localhost +(\S+) ", ended.err, re.M)
    assert sorted(cpus(row[1]) == cpus(text) for row, text in zip(sorted(rows), sorted(lists))) == [True, True], ended


def cpus(text):
    out = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        out |= set(range(int(first), int(last or first) + 1))
    return out
