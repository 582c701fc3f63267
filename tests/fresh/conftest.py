import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import machine as m  # noqa: E402


@pytest.fixture(scope="module")
def bare():
    """bare(…) makes a machine.Machine, which ends with the tests of the file."""
    if reason := m.why_not():
        pytest.skip(reason)
    made = []

    def make(**options):
        made.append(m.Machine(**options))
        return made[-1]

    yield make
    for one in made:
        one.close()
