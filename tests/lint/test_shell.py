"""Shell scripts are checked by shellcheck."""
import subprocess

import pytest
import tree

SCRIPTS = [str(path) for path in tree.shell_scripts()]


def test_there_are_scripts_to_check():
    assert {"quickstart", "runtests", ".ci/run", "tests/fuzz/run"} <= set(SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS)
def test_shellcheck_has_nothing_to_say(script):
    done = subprocess.run(["shellcheck", "-x", script], cwd=tree.TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
