"""One table of options (cli/options.cc, as --help shows it): the man page and the completions have the same."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from tree import TOP

BUILD = pathlib.Path(os.environ.get("KOLO_BUILD", TOP / "build/release"))
MAN = TOP / "man/horovodrun.1"
BASH, ZSH, FISH = (TOP / "completions" / name for name in ("horovodrun", "_horovodrun", "horovodrun.fish"))


def option(brief, name, takes_value):
    return frozenset(filter(None, (brief, name))), bool(takes_value)


def options_of_help(text):
    """{({names}, takes a value)}, from lines like '  -np, --num-proc N      how many …'."""
    body = text.split("\noptions:\n")[1].split("\n\n")[0]
    lines = re.findall(r"^  (?:(-\w+), )?(--[\w-]+)(?: (\S+))?  +\S", body, re.M)
    assert len(lines) == len(body.splitlines())
    return {option(*line) for line in lines}


def options_of_man(text):
    items = re.findall(r"^\.It Fl (?:(\w+) , -([\w-]+)|-([\w-]+))(?: (Ar .*))?$", text, re.M)
    assert len(items) == text.count("\n.It Fl ")
    return {option(brief and "-" + brief, "--" + (long or alone), value) for brief, long, alone, value in items}


def options_of_zsh(text):
    specs = re.findall(r"^  (?:'\([^']*\)'\{(-\w+),(--[\w-]+)=?\}'|'(--[\w-]+)=?)\[[^]]*\](:?)", text, re.M)
    assert len(specs) == text.count("[")
    return {option(brief, long or alone, value) for brief, long, alone, value in specs}


def options_of_fish(text):
    lines = [line for line in text.splitlines() if re.match(r"complete -c horovodrun -[sol] ", line)]
    found = (re.match(r"complete -c horovodrun(?: -[so] (\w+))? -l ([\w-]+)( -x)?", line) for line in lines)
    return {option(m[1] and "-" + m[1], "--" + m[2], m[3]) for m in found}


def completed_by_bash(line):
    script = """. "$1"; COMP_LINE=$2; COMP_POINT=${#2}; _horovodrun; printf '%s\\n' "${COMPREPLY[@]}" """
    done = subprocess.run(["bash", "-c", script, "bash", BASH, line], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture(scope="module")
def help_text():
    return subprocess.run([BUILD / "bin/horovodrun", "--help"], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def options(help_text):
    return options_of_help(help_text)


def test_help_is_read_as_it_stands(help_text, options):
    assert option("-np", "--num-proc", True) in options and option(None, "--verbose", False) in options
    assert "guard" not in help_text


@pytest.mark.parametrize("read, path", [(options_of_man, MAN), (options_of_zsh, ZSH), (options_of_fish, FISH)],
                         ids=["man", "zsh", "fish"])
def test_all_have_the_options_that_there_are(options, read, path):
    assert read(path.read_text()) == options


def test_bash_completes_every_option(options):
    assert sorted(completed_by_bash("horovodrun -np 2 -")) == sorted(name for names, _ in options for name in names)


def test_bash_knows_which_options_take_a_value(options):
    """After one that does, there are no options to choose from."""
    for names, takes_value in options:
        for name in names:
            assert ("--help" in completed_by_bash(f"horovodrun {name} -")) != takes_value, name


def test_bash_knows_where_the_command_begins():
    assert completed_by_bash("horovodrun -np 2 --grace 1 -H localhost:2 --verb") == ["--verbose"]
    assert completed_by_bash("horovodrun --hosts=localhost:2 -np=2 --verb") == ["--verbose"]
    assert completed_by_bash("horovodrun -np 2 python --verb") == []
    assert completed_by_bash(f"horovodrun -np 2 ls {TOP}/READ") == [f"{TOP}/README.md"]
    assert completed_by_bash("horovodrun -np 2 -H local") == ["localhost:"]


@pytest.mark.parametrize("shell, path", [("bash", BASH), ("zsh", ZSH), ("fish", FISH)])
def test_completions_parse(shell, path):
    """zsh and fish are looked at where they are installed; issue 4 runs the completions in all three."""
    if shutil.which(shell):
        subprocess.run([shell, "-n", path], check=True)


def test_every_exit_status_of_help_is_in_the_man_page(help_text):
    section = help_text.split("exit status:")[1].split("\n\n")[0]
    documented = MAN.read_text().split(".Sh EXIT STATUS")[1].split(".Sh ")[0]
    codes = re.findall(r"\b\d{1,3}\b", section.replace("128+n", ""))
    assert len(codes) >= 8 and not [code for code in codes if not re.search(rf"^\.It .*\b{code}\b", documented, re.M)]


def test_every_variable_of_the_recipe_is_in_the_man_page():
    set_by_us = set(re.findall(r'to\["(\w+)"\]', (TOP / "launcher/plan/recipe.cc").read_text()))
    assert len(set_by_us) >= 14 and not [name for name in set_by_us if name not in MAN.read_text()]


def test_the_man_page_renders_without_a_warning():
    done = subprocess.run(["groff", "-mandoc", "-ww", "-Tutf8", "-z", MAN], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    done = subprocess.run(["man", "-l", "--warnings", MAN], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "" and "horovodrun -np 4 python train.py" in done.stdout
