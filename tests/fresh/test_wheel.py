"""The wheel on a machine without a compiler."""
import subprocess

import machine as m
import pytest

WHEELS, DEPENDENCIES = m.TOP / "build/wheels", m.CACHE / "wheels"
PROGRAM = """
import corro, numpy
with corro.Context() as job:
    values = numpy.full(3, job.rank + 1.0, dtype=numpy.float32)
    job.allreduce(values)
    print(f"rank {job.rank} of {job.size}: {values.tolist()}")
"""


@pytest.fixture(scope="module")
def installed(bare):
    """A machine with python3-venv, on which a user has installed the wheel into an environment of its own."""
    subprocess.run([m.TOP / "packaging/wheel"], stdin=subprocess.DEVNULL, check=True)
    # What the wheel and the program depend on is fetched here: how to reach an index is this machine's own affair.
    pip = [m.TOP / "build/wheel-tools/bin/python", "-m", "pip"]
    subprocess.run([*pip, "download", "--quiet", "--only-binary", ":all:", "--dest", DEPENDENCIES, "cloudpickle", "numpy"],
                   stdin=subprocess.DEVNULL, check=True)
    machine = bare(shown={WHEELS: "/opt/wheels", DEPENDENCIES: "/opt/dependencies"})
    done = machine.run("apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv")
    assert done.code == 0, done
    done = machine.run("python3 -m venv ~/env && ~/env/bin/pip install --no-index --find-links /opt/dependencies"
                       " /opt/wheels/*.whl numpy", user=m.USER)
    assert done.code == 0, done
    return machine


def test_there_is_no_compiler(installed):
    assert installed.run("command -v cc gcc g++ c++ cmake").code != 0


def test_workers_speak_with_each_other(installed):
    installed.run("cat >~/program.py", user=m.USER, input=PROGRAM.encode())
    done = installed.run("~/env/bin/horovodrun -np 2 ~/env/bin/python ~/program.py", user=m.USER)
    assert done.code == 0, done
    for rank in (0, 1):
        assert f"[{rank}]<stdout>:rank {rank} of 2: [3.0, 3.0, 3.0]" in done.text.splitlines(), done


def test_the_doctor_is_content(installed):
    done = installed.run(". ~/env/bin/activate && python -m corro.doctor", user=m.USER)
    assert done.code == 0 and "torch        not installed" in done.text, done


def test_without_pytorch_the_import_says_so(installed):
    done = installed.run("~/env/bin/python -c 'import horovod.torch'", user=m.USER)
    assert done.text.splitlines()[-1].startswith("ImportError: horovod.torch needs PyTorch"), done


def test_what_else_the_wheel_brings(installed):
    done = installed.run("cd ~/env/share && ls man/man1/horovodrun.1 bash-completion/completions/horovodrun"
                         " zsh/site-functions/_horovodrun fish/vendor_completions.d/horovodrun.fish", user=m.USER)
    assert done.code == 0, done


def test_nothing_of_it_is_left_when_it_is_uninstalled(installed):
    done = installed.run("~/env/bin/pip uninstall -y corro && find ~/env -name '*horovod*' -o -name '*corro*'",
                         user=m.USER)
    assert done.code == 0 and not [line for line in done.text.splitlines() if line.startswith("/")
                                   and "__pycache__" not in line], done
