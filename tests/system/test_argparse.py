"""Command lines are read as Python's argparse reads them: both are given the same table and the same words."""
import argparse
import json
import os
import random
import re
import subprocess

import corro_system as k
import pytest

SEED = int(os.environ.get("CORRO_SEED", random.SystemRandom().randrange(1 << 32)))
LINES = 4000


class Refused(Exception):
    pass


class Stopped(Exception):
    """--help or --version, which end argparse where they stand."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Refused(message)


@pytest.fixture(scope="module")
def table():
    tool = k.BUILD / "bin/option_table"
    return json.loads(subprocess.run([tool, "json"], capture_output=True, check=True).stdout)


def limited(kind, entry):
    """A number with limits, in the words that Corro has for them; argparse has none."""
    def convert(text):
        number = kind(text)
        if entry["least"] <= number <= entry["most"]:
            return number
        least, most = (f"{entry[side]:g}" if entry[side] % 1 else f"{entry[side]:.0f}" for side in ("least", "most"))
        raise argparse.ArgumentTypeError(f"must be from {least} to {most}, not {text}")
    convert.__name__ = kind.__name__
    return convert


def listed(kind):
    """Cores or names with commas between them, in Corro's words."""
    def convert(text):
        good = r"\d+" if kind == 5 else r"[^,]+"
        if re.fullmatch(rf"{good}(,{good})*", text, re.S):
            return text
        what = "cores as 0,2,4" if kind == 5 else "names as eth0,eth1"
        raise argparse.ArgumentTypeError(f"expected {what}, not {text!r}")
    return convert


class Note(argparse.Action):
    """Takes down what was given, in order."""

    def __call__(self, parser, namespace, values, option_string=None):
        given = [] if self.nargs == 0 else values if isinstance(values, list) else [values]
        namespace.given.append([self.canonical, [str(value) for value in given]])
        if self.canonical in ("--help", "--version"):
            raise Stopped(namespace.given)


def parser_of(table):
    parser = Parser(prog="horovodrun", add_help=False)
    groups = {}
    for entry in table:
        if entry["ours"]:
            continue
        word = entry["exclusive"]
        if word and word not in groups:
            groups[word] = parser.add_mutually_exclusive_group()
        options = {"action": Note, "nargs": entry["takes"] if entry["takes"] != 1 else None}
        if entry["kind"] in (1, 2):
            options["type"] = limited(int if entry["kind"] == 1 else float, entry)
        if entry["kind"] in (5, 10):
            options["type"] = listed(entry["kind"])
        if entry["choices"]:
            options["choices"] = entry["choices"]
        if entry["takes"] == 0:
            options["nargs"] = 0
        action = (groups[word] if word else parser).add_argument(*entry["names"], **options)
        action.canonical = next(name for name in entry["names"] if name.startswith("--"))
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser


def argparse_reading(parser, words):
    """What argparse makes of it, in the form of read_words."""
    namespace = argparse.Namespace(given=[])
    try:
        found, unknown = parser.parse_known_args(words, namespace)
    except Refused as refused:
        return {"error": str(refused)}
    except Stopped as stopped:
        return {"options": stopped.args[0], "command": [], "unknown": None}
    return {"options": found.given, "command": found.command, "unknown": unknown}


def our_readings(lines):
    text = "".join(json.dumps(words) + "\n" for words in lines)
    done = subprocess.run([k.BUILD / "bin/read_words"], input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def numbers_as_written(parser, reading):
    """argparse has converted numbers; what was written must mean the same."""
    kinds = {action.canonical: action.type for action in parser._actions if hasattr(action, "canonical")}
    return {**reading, "options": [[name, [str(kinds[name](v)) if kinds[name] else v for v in values]]
                                   for name, values in reading["options"]]}


def differences(parser, ours_names, lines):
    compared, found = 0, []
    for words, ours in zip(lines, our_readings(lines)):
        # argparse takes fright at words of the command that look like ambiguous options.  We do not look at them.
        command = words[ours.pop("command_at"):]
        tame = ["--", "x"] if command[:1] == ["--"] else ["x"] * bool(command)
        theirs = argparse_reading(parser, words[:len(words) - len(command)] + tame)
        if theirs.get("command"):
            theirs["command"] = command
        if any(name in ours_names for name, _ in ours.get("options", [])):
            continue  # a word that only we know
        if "error" not in ours and "error" not in theirs:
            ours = numbers_as_written(parser, ours)
            if theirs["unknown"] is None:
                ours["unknown"] = None
        compared += 1
        if ours != theirs:
            found.append((words, ours, theirs))
    return compared, found


def some_words(rng, table):
    """A line such as people write it, with slips."""
    names = [name for entry in table if not entry["ours"] for name in entry["names"]]
    values = ["1", "0", "-1", "2.5", "-.5", "x", "", "a:1", "a b", "-x y", "info", "INFO", "1_000", " 7", "+3", "nan",
              "=", "a=b", "-", "it's", 'q"', "\\", "\t"]
    words = []
    for _ in range(rng.randrange(0, 7)):
        name = rng.choice(names)
        slip = rng.random()
        if slip < 0.25:
            name = name[:rng.randrange(1, len(name) + 1)]
        elif slip < 0.3:
            name += rng.choice(["x", "2", "-", "h", "v"])
        elif slip < 0.33:
            name = rng.choice(["--", "-", "--wat", "-z", "-hv", "-vh", "-5", "-a b"])
        if rng.random() < 0.3:
            name += "=" + rng.choice(values)
        words.append(name)
        words += rng.choices(values, k=rng.choice([0, 1, 1, 1, 2]))
    if rng.random() < 0.5:
        words += ["python", "train.py", "-np", "3"]
    return words


def test_every_line_is_read_as_argparse_reads_it(table):
    rng = random.Random(SEED)
    parser = parser_of(table)
    ours_names = {name for entry in table if entry["ours"] for name in entry["names"]}
    lines = [some_words(rng, table) for _ in range(LINES)]
    compared, found = differences(parser, ours_names, lines)
    assert compared > LINES * 0.8, f"CORRO_SEED={SEED}"
    shown = "\n".join(f"{words}\n  Corro:     {ours}\n  argparse: {theirs}" for words, ours, theirs in found[:5])
    assert not found, f"CORRO_SEED={SEED}: {len(found)} of {compared} differ:\n{shown}"


def test_the_comparison_can_fail(table):
    parser = parser_of([entry for entry in table if "--verbose" not in entry["names"]])
    _, found = differences(parser, set(), [["--verbose", "x"]])
    assert found


def test_the_lines_are_of_all_kinds(table):
    rng = random.Random(1)
    parser = parser_of(table)
    readings = [argparse_reading(parser, some_words(rng, table)) for _ in range(1000)]
    errors = " ".join(r["error"] for r in readings if "error" in r)
    for words in ["ambiguous option", "expected one argument", "expected 2 arguments", "invalid int value",
                  "invalid float value", "invalid choice", "not allowed with", "ignored explicit argument", "must be"]:
        assert words in errors, words
    assert sum("error" not in r for r in readings) > 150
