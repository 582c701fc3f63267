"""The small language of the tests that start jobs with the installed wheel."""
import os
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = TOP / "python"
HOROVODRUN = pathlib.Path(sys.executable).parent / "horovodrun"


class Ended:
    """How a finished program went."""

    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def __repr__(self):
        return f"code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def run(*command, timeout=120, env=None, cwd=None):
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "CORRO_LIBRARY")}
    return Ended(subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True,
                                text=True, timeout=timeout, env={**clean, **(env or {})}, cwd=cwd))


def python(program, *arguments, **options):
    """Runs a program of a few lines in this Python, alone."""
    return run(sys.executable, "-c", program, *arguments, **options)


def job(np, program, **options):
    """Runs it as a job of np workers."""
    return run(HOROVODRUN, "-np", np, sys.executable, "-c", program, **options)


def files():
    """Every Python file that users run."""
    return sorted([*PACKAGES.rglob("*.py"), *(TOP / "examples").glob("*.py")])
