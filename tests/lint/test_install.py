"""What `cmake --install` lays out."""
import os
import pathlib
import subprocess

import pytest
from tree import TOP

BUILD = pathlib.Path(os.environ.get("CORRO_BUILD", TOP / "build/release"))
EXPECTED = {
    "bin/horovodrun",
    "lib/libcorro.so",
    "include/corro/corro.h",
    "share/man/man1/horovodrun.1",
    "share/bash-completion/completions/horovodrun",
    "share/zsh/site-functions/_horovodrun",
    "share/fish/vendor_completions.d/horovodrun.fish",
    "share/doc/corro/README.md",
    "share/doc/corro/CHANGELOG.md",
    "share/doc/corro/LICENSE",
}


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    path = tmp_path_factory.mktemp("prefix")
    subprocess.run(["cmake", "--install", BUILD, "--prefix", path], check=True, capture_output=True)
    return path


def test_everything_is_in_its_place_and_nothing_else(prefix):
    assert {str(p.relative_to(prefix)) for p in prefix.rglob("*") if not p.is_dir()} == EXPECTED


def test_the_man_page_is_the_one_with_the_options(prefix):
    page = (prefix / "share/man/man1/horovodrun.1").read_text()
    assert page == (BUILD / "man/horovodrun.1").read_text() and "num\\-proc" in page and "@OPTIONS@" not in page


def test_the_installed_completions_answer(prefix):
    """bash-completion finds the one for bash by its name, when it is first asked for."""
    script = """. /usr/share/bash-completion/bash_completion
        _completion_loader horovodrun
        COMP_LINE='horovodrun --verb' COMP_POINT=17
        _horovodrun
        echo "${COMPREPLY[@]}" """
    env = {**os.environ, "PATH": f"{prefix}/bin:{os.environ['PATH']}", "XDG_DATA_DIRS": str(prefix / "share")}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env=env)
    assert (done.stdout, done.stderr) == ("--verbose\n", "")


def test_the_installed_program_runs(prefix):
    done = subprocess.run([prefix / "bin/horovodrun", "-np", "1", "echo", "hello"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[0]<stdout>:hello\n"), done.stderr


def test_a_program_compiles_links_and_runs_against_what_is_installed(prefix, tmp_path):
    source = tmp_path / "alone.c"
    source.write_text("""
        #include <corro/corro.h>
        int main(void) {
          corro_context* job;
          corro_error* why = 0;
          if (corro_open(0, &job, &why) != CORRO_OK) return 1;
          corro_close(job);
          return 0;
        }""")
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-std=c11", f"-I{prefix}/include", source, f"-L{prefix}/lib",
                    "-lcorro", f"-Wl,-rpath,{prefix}/lib", "-o", tmp_path / "alone"], check=True)
    subprocess.run([tmp_path / "alone"], check=True)
