"""The completions, in real shells on a terminal: keys are pressed, and the line is read back."""
import fcntl
import json
import os
import pathlib
import re
import select
import shlex
import struct
import subprocess
import termios
import time

import corro_system as k
import pytest

COMPLETIONS = k.TOP / "completions"
BASH_COMPLETION = pathlib.Path("/usr/share/bash-completion/bash_completion")
TABLE = json.loads(subprocess.run([k.BUILD / "bin/option_table", "json"], capture_output=True, check=True).stdout)
ALL = ["bash", "bash-completion", "zsh", "fish"]

TAB, LEFT, OFFER, SHOW = "\t", "\x02", "\x1b*", "\x18p"  # Ctrl-B; Meta-*; Ctrl-X p

# Each shell has a key that puts all that may follow in the line (bash's own Meta-*), and one that shows the line and
# clears it.  corrotrain is a command with a completion of its own.
BASH_RC = """
PS1='ready> '
bind 'set enable-bracketed-paste off'
[[ -z $LOADED ]] || . "$LOADED"
. "$COMPLETIONS/horovodrun"
_corrotrain() { COMPREPLY=($(compgen -W "alpha beta words-$COMP_CWORD --own" -- "$2")); }
complete -F _corrotrain corrotrain
corrofunction() { :; }
show() { printf '<<<%s|%s>>>' "${READLINE_LINE:0:READLINE_POINT}" "${READLINE_LINE:READLINE_POINT}"; READLINE_LINE=; }
bind -x '"\\C-xp": show'
"""

ZSH_RC = """
PS1='ready> '
fpath=("$COMPLETIONS" $fpath)
autoload -Uz compinit && compinit -u -D
bindkey -e
_corrotrain() { compadd -- alpha beta words-$((CURRENT - 1)) --own }
compdef _corrotrain corrotrain
corrofunction() { : }
offer() { _main_complete; compstate[insert]=all }
zle -C offer complete-word offer
bindkey '\\e*' offer
show() { zle -I; print -rn -- "<<<$LBUFFER|$RBUFFER>>>"; BUFFER= }
zle -N show
bindkey '^Xp' show
"""

FISH_RC = """
function fish_prompt; echo -n 'ready> '; end
set -g fish_greeting
set -g fish_autosuggestion_enabled 0
source "$COMPLETIONS/horovodrun.fish"
complete -c corrotrain -f -a 'alpha beta words-(count (commandline -opc)) --own'
function corrofunction; end
function offer
    set -l words (complete -C (commandline -c) | string replace -r '\\t.*' '')
    set -q words[1]; and commandline -r (string escape -- horovodrun $words | string join ' ')
end
bind \\e\\* offer
function show
    set -l before (commandline -c)
    set -l after (string sub -s (math (string length -- "$before") + 1) -- (commandline))
    printf '<<<%s|%s>>>' "$before" "$after"
    commandline ''
end
bind \\cxp show
"""


class Shell:
    """An interactive shell on a terminal of its own."""

    def __init__(self, kind, world):
        self.kind = kind
        home = world / "home"
        (home / ".bashrc").write_text(BASH_RC)
        (home / ".zshrc").write_text(ZSH_RC)
        fish = home / ".config/fish"
        fish.mkdir(parents=True, exist_ok=True)
        (fish / "config.fish").write_text(FISH_RC)
        # Else fish makes completions from all man pages, in the background.
        (home / ".local/share/fish/generated_completions").mkdir(parents=True, exist_ok=True)
        env = {"HOME": str(home), "PATH": f"{world}/bin:/usr/bin:/bin", "TERM": "xterm", "INPUTRC": "/dev/null",
               "LC_ALL": "C.UTF-8", "COMPLETIONS": str(COMPLETIONS), "CORRO_TEST": str(world),
               "LOADED": str(BASH_COMPLETION) if kind == "bash-completion" else ""}
        argv = {"zsh": ["zsh", "-i"], "fish": ["fish", "-i"]}.get(kind, ["bash", "-i"])
        self.terminal, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 500, 0, 0))
        self.process = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=world / "work",
                                        start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(theirs)
        self.output = ""
        self.read_until("ready> ")

    def read_until(self, pattern, timeout=20):
        until = time.monotonic() + timeout * k.SLOW
        while not (found := re.search(pattern, self.output, re.S)):
            left = until - time.monotonic()
            ready = left > 0 and select.select([self.terminal], [], [], left)[0]
            assert ready, f"{self.kind} never wrote {pattern!r}, but {self.output!r}"
            self.output += os.read(self.terminal, 65536).decode(errors="replace")
        self.seen, self.output = self.output[:found.start()], self.output[found.end():]
        return found

    def press(self, keys):
        """The line that these keys lead to, with a | where the cursor is."""
        os.write(self.terminal, (keys + SHOW).encode())
        return self.read_until("<<<(.*?)>>>")[1].replace("\r\n", "\n")

    def offers(self, line):
        """The words that the last of this line may become, in no order."""
        shown = self.press(line + OFFER).rstrip("|")
        if shown == line:
            return []
        before = re.match(r"""((\\.|'[^']*'|"(\\.|[^"\\])*"|[^\s\\'"])*\s+)*""", line)[0]
        words = shlex.split(shown)[1 if self.kind == "fish" else len(shlex.split(before)):]
        typed = line[len(before):]
        return sorted({self.whole(word, typed) if self.kind.startswith("bash") else word for word in words})

    @staticmethod
    def whole(word, typed):
        """readline replaces only what is behind the last '=' or ':', or from '@' on, so only the first has the rest."""
        kept = typed[:typed.rindex("@")] if word.startswith("@") else re.match(r"[^'\"]*[=:]|", typed)[0]
        return word if word.startswith(kept) else kept + word

    def end(self):
        k.end(self.process)
        os.close(self.terminal)


SSH_CONFIG = """
# Host commented
Host login gpu1 gpu2  # the first two
  HostName gpu.example
Host *.example gpu? !gpu1
host=gpu3
Include more config.d/*
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A home, a folder to work in and programs."""
    top = tmp_path_factory.mktemp("world")
    files = {
        "home/.ssh/config": SSH_CONFIG,
        "home/.ssh/more": 'Host "quoted"\nInclude config',  # and round again
        "home/.ssh/config.d/one": "Host inner",
        "home/hosts": "home1 slots=2\nhome2 slots=2\n",
        "work/conf.yaml": "", "work/my conf.yaml": "", "work/confs/a.yaml": "", "work/logs 1/a": "",
        "work/hosts.txt": "n1 slots=2  # a comment\nn2:4\nrack[1-2]:8\n",
        "work/my hosts.txt": "blank1 slots=2\n",
        "work/six.txt": "[2001:db8::1] slots=2\n",
        "work/run.sh": "#!/bin/sh\n",
        "bin/corrotest": "#!/bin/sh\n", "bin/corrotrain": "#!/bin/sh\n",
        "other/horovodrun": "#!/bin/sh\necho 'usage: not ours' >&2; exit 2\n",
    }
    for name, text in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)
    os.mkfifo(top / "work/pipe")
    (top / "elsewhere").mkdir()
    for folder in ("bin", "elsewhere"):
        (top / folder / "horovodrun").symlink_to(k.HOROVODRUN)
    return top


@pytest.fixture(scope="module")
def shells(world):
    """One of each, started when it is asked for."""
    started = {}

    def of(kind):
        if kind not in started:
            started[kind] = Shell(kind, world)
        return started[kind]

    yield of
    for shell in started.values():
        shell.end()
    mark = f"CORRO_TEST={world}"
    assert k.eventually(lambda: not k.marked(mark)), [k.stat_of(pid) for pid in k.marked(mark)]


@pytest.fixture(params=ALL)
def shell(request, shells):
    shell = shells(request.param)
    yield shell
    assert k.eventually(lambda: not k.descendants_of(shell.process.pid)), "what the completion started is still there"


REACHED = ["gpu1", "gpu2", "gpu3", "inner", "localhost", "login", "quoted"]


def hosts(before, after, names):
    return [before + name + after for name in names]


OFFERS = {
    # names
    "--time": ["--timeline-filename", "--timeline-mark-cycles"],
    "-h": ["-h", "-hostfile"],
    "-np 2 -n": ["-np"],
    "-np 2 --verbose --grace 1 --tim": ["--timeline-filename", "--timeline-mark-cycles"],
    "--nothing-like-it": [],
    # choices
    "--log-level W": ["WARNING"],
    "--log-level=W": ["--log-level=WARNING"],
    "--log-lev=W": ["--log-lev=WARNING"],
    "--color ": ["always", "auto", "never"],
    "--color=a": ["--color=always", "--color=auto"],
    "--color=w": [],
    "-np ": [],
    # files and folders
    "--config-file conf.": ["conf.yaml"],
    "--config-file=conf.": ["--config-file=conf.yaml"],
    "--config-file=confs/": ["--config-file=confs/a.yaml"],
    "--config-file my\\ c": ["my conf.yaml"],
    '--config-file "my c': ["my conf.yaml"],
    "--config-file 'my c": ["my conf.yaml"],
    "--config-file=my\\ c": ["--config-file=my conf.yaml"],
    "-H @hosts": ["@hosts.txt"],
    "-H a:2,@hosts": ["a:2,@hosts.txt"],
    "-H @my\\ h": ["@my hosts.txt"],
    "--hosts=a:2,@hosts": ["--hosts=a:2,@hosts.txt"],
    # hosts that ssh knows
    "-H ": hosts("", ":", REACHED),
    "-H gpu": hosts("", ":", ["gpu1", "gpu2", "gpu3"]),
    "-H a:2,": hosts("a:2,", ":", REACHED),
    "-H a:2,b:4,gp": hosts("a:2,b:4,", ":", ["gpu1", "gpu2", "gpu3"]),
    "--hosts=a:2,gp": hosts("--hosts=a:2,", ":", ["gpu1", "gpu2", "gpu3"]),
    "-Hlog": ["-Hlogin:"],
    "-H me@log": ["me@login:"],
    "-H gpu1:": [],
    "-hostfile pipe --exclude lo": ["localhost", "login"],
    # hosts that the line names
    "-hostfile hosts.txt --exclude ": ["n1", "n2", "rack1", "rack2"],
    "--hostfile=hosts.txt --include=n": ["--include=n1", "--include=n2"],
    "-hostfile hosts.txt --exclude n1:0,1@ra": ["n1:0,1@rack1", "n1:0,1@rack2"],
    "-hostfile 'my hosts.txt' --exclude ": ["blank1"],
    "--hostfile=my\\ hosts.txt --exclude ": ["blank1"],
    "-hostfile ~/hosts --exclude home": ["home1", "home2"],
    "-hostfile six.txt --exclude ": ["[2001:db8::1]"],
    "-H w1:2,w2:2 --exclude ": ["w1", "w2"],
    # the program, and what follows it
    "-np 2 corrot": ["corrotest", "corrotrain"],
    "-np 2 --host-discovery-script corrote": ["corrotest"],
    "-np 2 --log-level INFO -H a:2 -x 'b c' corrot": ["corrotest", "corrotrain"],
    "-np 2 ./r": ["./run.sh"],
    "-np 2 corrofunc": [],
    "-np 2 corrotest conf.": ["conf.yaml"],
    "-np 2 corrotest --tim": [],
    # subcommands
    "hosts --f": ["--format"],
    "hosts --format s": ["slurm"],
    "hosts --format=": hosts("--format=", "", ["horovod", "json", "openmpi", "slurm"]),
    "hosts a:2,log": ["a:2,login:"],
    "hosts @hosts": ["@hosts.txt"],
    # words that are hard to take apart
    "-x 'a b' -x \"c:d=e\" -H a\\:2 --time": ["--timeline-filename", "--timeline-mark-cycles"],
    "-x it\\'s --log-level W": ["WARNING"],
    "-x \"say \\\"hi\\\" '\" --log-level W": ["WARNING"],
    "-x 'a=b:c' -H [::1]:2,x:3 --log-level=W": ["--log-level=WARNING"],
    "-x '' --log-level W": ["WARNING"],
    "-x '$(touch made)`touch made`' --log-level W": ["WARNING"],
    "--tag-format '[{rank}]: ' --log-level W": ["WARNING"],
    "--config-file '$(touch made)": [],
    "-np 2 '$(touch made)": [],
    "-hostfile '$(touch made)' --exclude log": ["login"],
}


@pytest.mark.parametrize("line", OFFERS)
def test_what_may_follow_is_offered(shell, world, line):
    assert shell.offers("horovodrun " + line) == sorted(OFFERS[line])
    assert not (world / "work/made").exists()


def test_every_option_that_is_shown_is_offered_and_no_other(shell):
    visible = {name for option in TABLE if not option["hidden"] for name in option["names"]}
    assert len(visible) > 70 and set(shell.offers("horovodrun -")) == visible


@pytest.mark.parametrize("line", ["--output-filename ", "--output-filename="])
def test_folders_only_where_a_folder_is_wanted(shell, line):
    value = line.split()[-1] if "=" in line else ""
    offered = [word.rstrip("/") for word in shell.offers("horovodrun " + line)]
    assert offered == [value + "confs", value + "logs 1"]


def test_the_first_word_is_a_subcommand_or_a_program(shell):
    first, later = shell.offers("horovodrun ho"), shell.offers("horovodrun -np 2 ho")
    assert {"hosts", "horovodrun"} <= set(first) and "doctor" in shell.offers("horovodrun do")
    assert "hosts" not in later and "horovodrun" in later


def test_the_users_command_is_completed_as_if_it_stood_alone(shell):
    own = shell.offers("horovodrun -np 2 -H a:2 -x 'b c' --color=auto corrotrain ")
    if shell.kind == "bash":  # which has no such thing by itself: files
        assert "conf.yaml" in own and "alpha" not in own
    else:
        assert own == ["--own", "alpha", "beta", "words-1"]
        assert shell.offers("horovodrun -np 2 corrotrain x 'y z' al") == ["alpha"]


def test_no_option_of_ours_is_offered_inside_the_users_command(shell):
    for line in ("corrotest -", "corrotrain --", "corrotest x --log-level=", "corrotest -np 2 --ver", "corrotest --color "):
        offered = shell.offers(f"horovodrun -np 2 {line}")
        assert not {"-np", "--verbose", "--version", "--log-level=WARNING", "auto"} & set(offered), line


@pytest.mark.parametrize("typed, becomes", [
    ("--verb", "--verbose |"),
    ("--log-level=W", "--log-level=WARNING |"),
    ("-hostf", "-hostfile |"),
    ("-H log", "-H login:|"),  # slots follow
    ("-H a:2,log", "-H a:2,login:|"),
    ("--config-file conf.", "--config-file conf.yaml |"),
    ("--config-file=conf.", "--config-file=conf.yaml |"),
    ("--output-filename con", "--output-filename confs/|"),
    ("--output-filename=con", "--output-filename=confs/|"),
    ("-H @confs/", "-H @confs/a.yaml |"),
    ("-H @confs", "-H @confs/|"),
    ("-np 2 corrotr", "-np 2 corrotrain |"),
    ("-np 2 ./ru", "-np 2 ./run.sh |"),
    ("-np 2 ./con", "-np 2 ./confs/|"),
])
def test_a_tab_completes_what_is_unambiguous(shell, typed, becomes):
    assert shell.press("horovodrun " + typed + TAB) == "horovodrun " + becomes


@pytest.mark.parametrize("typed", ["--config-file my\\ c", '--config-file "my c', "--config-file 'my c"])
def test_a_tab_keeps_blanks_in_quotes(shell, typed):
    line = shell.press("horovodrun " + typed + TAB).rstrip("|")
    assert shlex.split(line) == ["horovodrun", "--config-file", "my conf.yaml"]


def test_what_is_behind_the_cursor_stays(shell):
    behind = " -np 2 corrotest"
    line = shell.press("horovodrun --verb" + behind + LEFT * len(behind) + TAB)
    assert line.replace("|", "").split() == ["horovodrun", "--verbose", *behind.split()]


@pytest.mark.parametrize("before", ["CORRO=1 ", "true; ", "true | ", "nice "])
def test_other_things_on_the_line_do_not_matter(shell, before):
    if before == "nice " and shell.kind == "bash":
        pytest.skip("only bash-completion looks behind nice")
    assert shell.press(before + "horovodrun --verb" + TAB) == before + "horovodrun --verbose |"


def test_a_path_to_horovodrun_is_used_as_it_stands(shell, world):
    assert shell.press("../elsewhere/horovodrun --verb" + TAB) == "../elsewhere/horovodrun --verbose |"


def test_without_an_answer_nothing_is_offered_and_nothing_is_said(shell):
    """horovodrun may be Horovod's own, or not be installed."""
    for program in ("../other/horovodrun", "./horovodrun"):
        assert shell.press(program + " --verb" + TAB) == program + " --verb|"
        assert not re.search("no such|unknown|not found|usage|error", shell.seen, re.I), shell.seen
