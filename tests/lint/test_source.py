"""What every source file keeps to, and what none may contain."""
import re
import shutil
import subprocess
import warnings

import pytest
import tree

LONG, TOO_LONG = 450, 600  # lines
HEADERS = [path for path in tree.code() if path.suffix == ".h"]
MACHINE_PATH = re.compile(r"(?<![\w.])/((root|work|Users)/\w|home/(?!ada\b))")  # ada is everybody's example
# Written in two pieces, so that this file does not contain it.
NO_HOST_KEYS = re.compile("StrictHostKeyChecking" + r"[\s=]+no\b", re.IGNORECASE)


def lines_with(pattern, paths):
    return [f"{path}:{number}: {line.strip()}"
            for path in paths if (text := tree.text_of(path)) is not None
            for number, line in enumerate(text.splitlines(), 1) if pattern.search(line)]


def is_guarded(path):
    """A C header is read by C compilers too, so it has the guard that the standard knows."""
    text = tree.text_of(path)
    return text.startswith("#pragma once\n") or re.search(r"^#ifndef (\w+)\n#define \1$", text, re.MULTILINE)


def test_every_header_may_be_included_twice():
    assert not [str(path) for path in HEADERS if not is_guarded(path)]


def test_no_header_opens_a_namespace_for_those_who_include_it():
    assert not lines_with(re.compile(r"^using namespace"), HEADERS)


def test_the_identity_of_hosts_is_never_left_unchecked():
    assert not lines_with(NO_HOST_KEYS, tree.files())


def test_no_file_knows_the_machine_it_was_written_on():
    assert not lines_with(MACHINE_PATH, tree.files())


def test_no_file_is_too_long_to_read():
    lengths = {str(path): tree.text_of(path).count("\n") for path in tree.code()}
    for path, length in lengths.items():
        if LONG < length <= TOO_LONG:
            warnings.warn(f"{path} has {length} lines")
    assert not {path: length for path, length in lengths.items() if length > TOO_LONG}


@pytest.mark.skipif(not shutil.which("clang-format-14"), reason="clang-format-14 is not installed")
def test_every_file_is_formatted():
    paths = [str(path) for path in tree.code()]
    done = subprocess.run(["clang-format-14", "--dry-run", "-Werror", *paths], cwd=tree.TOP, capture_output=True,
                          text=True, check=False)
    badly = sorted({line.split(":")[0] for line in done.stderr.splitlines() if "[-Wclang-format" in line})
    assert done.returncode == 0, "clang-format-14 -i " + " ".join(badly)


# The checks themselves.

def test_the_patterns_find_what_they_are_for():
    assert NO_HOST_KEYS.search("ssh -o StrictHost" + "KeyChecking=no host")
    assert NO_HOST_KEYS.search("StrictHost" + "KeyChecking no")
    assert not NO_HOST_KEYS.search("StrictHost" + "KeyChecking=accept-new")
    assert MACHINE_PATH.search("cd /ho" + "me/somebody/corro")
    assert not MACHINE_PATH.search("https://example.org/home/page")
