"""One table of options (cli/option_table.cc): --help, the man page and the completions say what it says.

The completions ask the program itself; tests/system/test_completions.py holds them against the table.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess

import pytest
from tree import TOP

BUILD = pathlib.Path(os.environ.get("CORRO_BUILD", TOP / "build/release"))
HOROVODRUN = BUILD / "bin/horovodrun"
PAGE = BUILD / "man/horovodrun.1"
BASH, ZSH, FISH = (TOP / "completions" / name for name in ("horovodrun", "_horovodrun", "horovodrun.fish"))


def printed_by(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


TABLE = json.loads(printed_by(BUILD / "bin/option_table", "json"))
VISIBLE = [option for option in TABLE if not option["hidden"]]
HIDDEN = [name for option in TABLE if option["hidden"] for name in option["names"]]
HELP = printed_by(HOROVODRUN, "--help")


ESCAPES = {r"\-": "-", r"\(aq": "'", r"\(ga": "`", r"\(ha": "^", r"\(ti": "~", r"\%": "", r"\e": "\\"}


def plain(text):
    """mdoc's text as it is shown."""
    for escape, char in ESCAPES.items():
        text = text.replace(escape, char)
    return text


SOURCE = plain(PAGE.read_text())


def section(name):
    return SOURCE.split(f"\n.Sh {name}\n")[1].split("\n.Sh ")[0]


def heading_of(option):
    """-np, --num-proc NUM_PROC"""
    value = "|".join(option["choices"]) or option["value"]
    return " ".join([", ".join(option["names"])] + [value] * option["takes"])


def name_in(text, name):
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)


def test_the_table_is_read_as_it_stands():
    assert len(VISIBLE) > 60 and len(HIDDEN) > 5
    headings = [heading_of(option) for option in VISIBLE]
    assert "-np, --num-proc NUM_PROC" in headings and "--color auto|always|never" in headings
    assert "--blacklist-cooldown-range SECONDS SECONDS" in headings


def test_help_lists_the_options_of_the_table_and_no_others():
    assert sorted(re.findall(r"^  (-\S.*?)(?:  +\S.*)?$", HELP, re.M)) == sorted(map(heading_of, VISIBLE))


def test_the_man_page_lists_the_options_of_the_table_and_no_others():
    items = re.findall(r"^\.It (Fl .*)$", section("OPTIONS"), re.M)
    shown = [item.replace(" , ", ", ").replace("Fl ", "-").replace("Ar ", "") for item in items]
    assert sorted(shown) == sorted(map(heading_of, VISIBLE))


def test_what_the_table_says_of_an_option_is_in_the_man_page():
    for option in VISIBLE:
        heading = rf"^\.It .*\bFl {option['names'][-1][1:]}( Ar .*)?\n"
        item = re.search(heading + r"((?!\.It |\.El).*\n)*", section("OPTIONS"), re.M)
        for what in filter(None, (option["variable"], option["key"])):
            assert name_in(item[0], what), option["names"]


def test_every_key_of_the_configuration_file_is_in_the_man_page():
    keys = re.findall(r"^\.It Li (\S+)$", section("CONFIGURATION FILE"), re.M)
    assert keys == sorted({option["key"] for option in TABLE if option["key"]})


def test_what_is_hidden_is_nowhere():
    shown = {"--help": HELP, "the man page": re.sub(r"\bFl ", "-", SOURCE)}
    assert not [(name, where) for name in [*HIDDEN, "--guard", "--complete"]
                for where, text in shown.items() if name_in(text, name)]


def codes_in(headings):
    return [code for heading in headings for code in re.findall(r"\d+", heading)]


def test_help_and_the_man_page_know_every_exit_status():
    listed = HELP.split("\nexit status:")[1].split("\n\n")[0]
    in_help = codes_in(re.findall(r"^  (\d[\d, ]*?)  ", listed, re.M))
    assert in_help == codes_in(re.findall(r"^\.It (.*)$", section("EXIT STATUS"), re.M))
    sources = [path.read_text() for folder in ("cli", "launcher") for path in (TOP / folder).rglob("*.[ch]*")]
    used = {code for text in sources for code in re.findall(r"\bkExit\w+ = (\d+)", text)}
    assert len(used) >= 10 and used <= set(in_help)


def test_the_man_page_says_which_options_may_be_repeated():
    said = section("DESCRIPTION").split("the last one counts.\nOf\n")[1].split("\nall count.")[0]
    assert re.findall(r"^\.Fl (\S+)", said, re.M) == [
        option["names"][0][1:] for option in VISIBLE if option["repeatable"]]


def test_help_marks_what_has_no_effect_yet():
    for option in VISIBLE:
        entry = re.search(rf"^  {re.escape(heading_of(option))}(?!\S).*\n(?:   .*\n)*", HELP + "\n", re.M)[0]
        said = " ".join(entry.split())
        assert ("[not available yet]" in said) == (option["state"] == "later"), said
        assert ("[only passed on yet]" in said) == (option["state"] == "reaches_workers"), said


def test_every_variable_that_workers_get_is_in_the_man_page():
    recipe = (TOP / "launcher/plan/recipe.cc").read_text()
    bodies = re.findall(r"> (?:job|slot)_variables\(.*?\n}", recipe, re.S)
    names = [name for body in bodies for name in re.findall(r'\{"(\w+)", ', body)]
    items = " ".join(re.findall(r"^\.It Ev (.*)$", section("ENVIRONMENT"), re.M))
    assert len(names) >= 14 and not [name for name in names if not name_in(items, name)]


def test_every_subcommand_that_works_is_in_the_man_page():
    listed = HELP.split("\nsubcommands")[1].split("\n\n")[0]
    entries = re.findall(r"^  (\w+) (.*(?:\n {10,}.*)*)", listed, re.M)
    names = [name for name, text in entries if "not available" not in " ".join(text.split())]
    assert "hosts" in names and not [name for name in names if f".Cm {name}" not in section("SYNOPSIS")]


# The man page as it is read.

@pytest.mark.parametrize("command", [["groff", "-mandoc", "-ww", "-Tutf8", "-z"], ["man", "--warnings", "-l"]],
                         ids=["groff", "man"])
def test_the_man_page_renders_without_a_warning(command):
    done = subprocess.run([*command, PAGE], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""


def test_the_man_page_fits_a_terminal():
    """Nothing to copy is cut in two, or changed into what no shell understands."""
    shown = printed_by("man", "-l", PAGE, env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"})
    assert not [line for line in shown.splitlines() if len(line) > 80]
    assert not [line for line in examples() if line not in shown]


# Its examples.

def examples():
    """Lines with the program that somebody may type, from anywhere in the section."""
    return re.findall(r"^(?:\.Dl )?((?:nohup )?horovodrun .*)$", section("EXAMPLES"), re.M)


def arguments_of(example):
    """What the shell gives to horovodrun, up to a pipe or the like."""
    words = shlex.shlex(example, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    taken = []
    for word in words:
        if re.fullmatch(r"[|&;<>]+", word):
            break
        taken.append(word)
    return taken[taken.index("horovodrun") + 1:]


def test_there_are_examples_for_the_ten_most_common_uses():
    uses = [r"-np \d+ python", r"-H \S+:\d", "-hostfile", "--dry-run", "--output-filename", "-x ", "--config-file",
            "--grace", r"horovodrun python", "horovodrun hosts", r"sh -c '"]
    text = "\n".join(examples())
    assert len(examples()) >= 10 and not [use for use in uses if not re.search(use, text)]


@pytest.mark.parametrize("example", examples())
def test_examples_are_understood(example, tmp_path):
    """Those without -np are for a job of a scheduler."""
    (tmp_path / "hosts.txt").write_text("server1 slots=4\nserver2 slots=4\n")
    (tmp_path / "job.yaml").write_text("params:\n  cycle_time_ms: 2.5\n")
    arguments = arguments_of(example)
    look = [] if arguments[0] == "hosts" else ["--dry-run"]
    slurm = {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "node[1-2]", "SLURM_TASKS_PER_NODE": "2(x2)",
             "SLURM_NTASKS": "4"}
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "CORRO_", "HOROVOD_"))}
    done = subprocess.run([HOROVODRUN, *look, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False,
                          timeout=60, env={**env, **({} if "-np" in arguments else slurm)})
    assert "usage:" not in done.stderr and "error:" not in done.stderr, done.stderr
    assert "each worker:" in done.stdout if look else "slots=8" in done.stdout, done.stdout


# The completions as files.

@pytest.mark.parametrize("shell, path", [("bash", BASH), ("zsh", ZSH), ("fish", FISH)])
def test_completions_parse(shell, path):
    subprocess.run([shell, "-n", path], check=True)


def test_shellcheck_has_nothing_to_say_about_the_one_for_bash():
    done = subprocess.run(["shellcheck", BASH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_completions_know_no_option_themselves():
    names = [name for option in TABLE for name in option["names"] if name.startswith("--")]
    for path in (BASH, ZSH, FISH):
        assert not [name for name in names if name_in(path.read_text(), name)], path
