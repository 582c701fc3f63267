"""What the README says, typed on a machine where nothing is installed."""
import re

import machine as m
import pytest

TRAINED = "100.0 % of the samples are on their side"


class Start:
    """A machine on which ./quickstart was the first thing that root typed."""

    def __init__(self, machine):
        self.machine = machine
        self.tree = machine.clone("root")
        self.quickstart = machine.run("./quickstart", cwd=self.tree)
        self.build = self.tree / "build/release"

    def run(self, command, **options):
        """A command of root's in the tree, after ./quickstart has done its part."""
        assert self.quickstart.code == 0, self.quickstart
        return self.machine.run(command, cwd=self.tree, **options)


@pytest.fixture(scope="module")
def start(bare):
    return Start(bare())


def test_quickstart_as_root(start):
    assert start.quickstart.code == 0 and TRAINED in start.quickstart.text, start.quickstart


def test_what_cmake_installs_runs_from_its_prefix(start):
    """As a user who cannot even see the tree: it is in root's home."""
    prefix = "/opt/corro"
    done = start.run(f"cmake --install {start.build} --prefix {prefix} && g++ -std=c++20 -O2 examples/train.cc"
                     f" -I{prefix}/include -L{prefix}/lib -lcorro -Wl,-rpath,{prefix}/lib -o /opt/train")
    assert done.code == 0, done
    done = start.machine.run(f"{prefix}/bin/horovodrun -np 2 /opt/train", user="ada")
    assert done.code == 0 and TRAINED in done.text, done


def test_every_library_that_is_installed_for_the_build_is_used_by_it(start):
    """Its headers or its archive: what the compiler has read, and what the rules name."""
    libraries = re.findall(r"^build (.*-dev)$", (m.TOP / "packaging/packages").read_text(), re.M)
    read = start.run(f"ninja -C {start.build} -t deps; cat {start.build}/build.ninja", quiet=True)
    used = set(re.findall(r"/usr/[^\s$:]+\.\w+", read.text))  # files, not folders
    listed = start.run("".join(f"echo ={name}; dpkg -L {name};" for name in libraries), quiet=True)
    files = {part.split("\n")[0]: set(part.split("\n")[1:]) for part in listed.text.split("=")[1:]}
    assert len(files) > 5 and not [name for name in libraries if not files[name] & used]


def test_the_unit_tests_after_quickstart(start):
    """In the same build folder, which gets the tests now."""
    done = start.run("./runtests unit")
    assert done.code == 0 and re.search(r"^\d+ passed, 0 failed", done.text, re.M), done
    assert not re.search("SKIPPED .*: there is no (libdw|python3)", done.text), done


def test_quickstart_as_a_user_with_sudo(bare):
    machine = bare()
    done = machine.run("./quickstart", user="ada", cwd=machine.clone("ada"))
    assert done.code == 0 and TRAINED in done.text, done
