"""What the README says, typed on a machine where nothing is installed."""
import re

import machine as m
import pytest

TRAINED = "100.0 % of the samples are on their side"
# System tests that need every user of a host to reach the tree, or an empty home there.
IN_A_HOME = "share_programs or killed_host or words_and_variables or another_kind or slow_host"


class Start:
    """A machine on which ./quickstart was the first thing that a user typed, in a clone in the user's home."""

    def __init__(self, machine, user):
        self.machine, self.user = machine, user
        self.tree = machine.clone(user)
        self.quickstart = machine.run("./quickstart", user=user, cwd=self.tree)
        self.build = self.tree / "build/release"

    def run(self, command, **options):
        """A command in the tree, after ./quickstart has done its part."""
        assert self.quickstart.code == 0, self.quickstart
        return self.machine.run(command, user=self.user, cwd=self.tree, **options)

    def run_tests(self, words):
        done = self.run(f"./runtests {words}")
        assert done.code == 0 and re.search(r"^\d+ passed, 0 failed", done.text, re.M), done
        return done


@pytest.fixture(scope="module")
def root(bare):
    return Start(bare(), "root")


@pytest.fixture(scope="module")
def ada(bare):
    """She may use sudo."""
    return Start(bare(), "ada")


def test_quickstart_as_root(root):
    assert root.quickstart.code == 0 and TRAINED in root.quickstart.text, root.quickstart


def test_quickstart_as_a_user_with_sudo(ada):
    assert ada.quickstart.code == 0 and TRAINED in ada.quickstart.text, ada.quickstart


def test_what_cmake_installs_runs_from_its_prefix(root):
    """As a user who cannot even see the tree: it is in root's home."""
    prefix = "/opt/corro"
    done = root.run(f"cmake --install {root.build} --prefix {prefix} && g++ -std=c++20 -O2 examples/train.cc"
                    f" -I{prefix}/include -L{prefix}/lib -lcorro -Wl,-rpath,{prefix}/lib -o /opt/train")
    assert done.code == 0, done
    done = root.machine.run(f"{prefix}/bin/horovodrun -np 2 /opt/train", user="ada")
    assert done.code == 0 and TRAINED in done.text, done


def test_every_library_that_is_installed_for_the_build_is_used_by_it(root):
    """Its headers or its archive: what the compiler has read, and what the rules name."""
    libraries = re.findall(r"^build (.*-dev)$", (m.TOP / "packaging/packages").read_text(), re.M)
    read = root.run(f"ninja -C {root.build} -t deps; cat {root.build}/build.ninja", quiet=True)
    used = set(re.findall(r"/usr/[^\s$:]+\.\w+", read.text))  # files, not folders
    listed = root.run("".join(f"echo ={name}; dpkg -L {name};" for name in libraries), quiet=True)
    files = {part.split("\n")[0]: set(part.split("\n")[1:]) for part in listed.text.split("=")[1:]}
    assert len(files) > 5 and not [name for name in libraries if not files[name] & used]


def test_the_unit_tests_after_quickstart(root):
    """In the same build folder, which gets the tests now."""
    done = root.run_tests("unit")
    assert not re.search("SKIPPED .*: there is no (libdw|python3)", done.text), done


@pytest.mark.parametrize("who", ["root", "ada"])
def test_hosts_when_the_tree_is_in_a_home(who, request):
    """An ordinary user makes them in a user namespace."""
    done = request.getfixturevalue(who).run_tests(f"system '{IN_A_HOME}'")
    assert "SKIPPED" not in done.text, done
