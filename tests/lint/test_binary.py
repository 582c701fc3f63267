"""What is built and shipped: the program that any host can run, the library, its header."""
import os
import pathlib
import re
import subprocess

import pytest
import tree

BUILD = pathlib.Path(os.environ.get("CORRO_BUILD", tree.TOP / "build/release"))
GLIBC = re.compile(r"(linux-vdso|ld-linux-[\w-]+|libc|libm|libpthread|libdl|librt)\.so\.\d+")
GLIBC_FLOOR = (2, 34)  # what the wheel's tag manylinux_2_34 promises


def built(name):
    path = BUILD / name
    assert path.exists(), f"{path} is not there: build first (cmake --preset release && ninja -C build/release)"
    return str(path)


def output(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout


def needed_by(path):
    """The names of all shared libraries that the loader finds for it."""
    return {pathlib.PurePath(line.split()[0]).name for line in output("ldd", path).splitlines()}


def exported_by(path):
    """The names that others can link to; the names of versions (type A) are none."""
    symbols = [line.split() for line in output("nm", "-D", "--defined-only", path).splitlines()]
    return {name.split("@")[0] for _, kind, name in symbols if kind != "A"}


def test_the_program_needs_nothing_but_glibc():
    others = {name for name in needed_by(built("bin/horovodrun")) if not GLIBC.fullmatch(name)}
    assert not others


def test_the_library_needs_nothing_but_glibc():
    others = {name for name in needed_by(built("lib/libcorro.so")) if not GLIBC.fullmatch(name)}
    assert not others


@pytest.mark.parametrize("name", ["bin/horovodrun", "lib/libcorro.so"])
def test_no_newer_glibc_is_asked_for_than_promised(name):
    symbols = re.findall(r"GLIBC_(\d+)\.(\d+)\S*\s+(\S+)", output("objdump", "-T", built(name)))
    assert symbols
    assert not {symbol for major, minor, symbol in symbols if (int(major), int(minor)) > GLIBC_FLOOR}


def test_the_library_exports_its_own_interface_and_nothing_else():
    names = exported_by(built("lib/libcorro.so"))
    assert "corro_open" in names
    assert not {name for name in names if not name.startswith("corro_")}


def test_the_header_is_plain_c():
    output("gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-x", "c", "-I",
           str(tree.TOP / "runtime/capi"), "-", input='#include "corro/corro.h"\nint main(void) { return 0; }\n')


def test_glibc_and_only_glibc_is_taken_for_glibc():
    for name in ("libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "linux-vdso.so.1", "libpthread.so.0"):
        assert GLIBC.fullmatch(name)
    for name in ("libstdc++.so.6", "libgcc_s.so.1", "libcrypto.so.3", "libcap.so.2", "libmpi.so.40"):
        assert not GLIBC.fullmatch(name)
