import pathlib
import sys
import uuid
import warnings

import signal

import pytest

# Whoever runs the tests in the background may have had signals ignored, and a launcher leaves such signals alone.
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP, signal.SIGUSR1,
               signal.SIGUSR2, signal.SIGWINCH):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


sys.path.insert(0, str(pathlib.Path(__file__).parent))
import corro_system as k  # noqa: E402
import testbed  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "netns: needs hosts, and therefore root or a user namespace")
    for program in (k.HOROVODRUN, k.ACTOR, k.TRAIN):
        if not pathlib.Path(program).exists():
            pytest.exit(f"{program} is not there: build it first, or call ./runtests", returncode=3)


def pytest_collection_modifyitems(items):
    for item in items:
        if "cluster" in item.fixturenames:
            item.add_marker("netns")


@pytest.fixture
def mark(monkeypatch):
    """A text in the environment of all that a test starts; none of it may be left afterwards."""
    text = f"CORRO_TEST={uuid.uuid4()}"
    monkeypatch.setenv(*text.split("="))
    yield text
    import os
    own = {os.getpid()}
    left = k.eventually(lambda: not set(k.marked(text)) - own, timeout=8)
    assert left, f"left behind: {[(p, k.stat_of(p)) for p in set(k.marked(text)) - own]}"


@pytest.fixture(scope="module")
def cluster():
    """cluster(4, …) makes a testbed.Cluster for the tests of a file; at their end no host may have anything running."""
    if reason := testbed.why_not():
        # A skip alone is one letter among hundreds; a warning is shown with its text.
        warnings.warn(f"NOTHING WITH SEVERAL HOSTS WAS TESTED: {reason}")
        pytest.skip(reason)
    made = []

    def make(*arguments, **options):
        made.append(testbed.Cluster(*arguments, **options))
        return made[-1]

    try:
        yield make
        left = {name: [p.argv for p in some] for one in made for name, some in one.left(timeout=8 * k.SLOW).items()}
    finally:
        for one in made:
            one.close()
    assert not left, f"left behind: {left}"
