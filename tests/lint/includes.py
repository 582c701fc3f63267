"""Which file may include what.  ARCHITECTURE.md quotes MAY_INCLUDE; test_includes.py compares the two."""
import fnmatch
import pathlib
import re

# A box may include itself and these.  The longest name that fits a file is its box.
MAY_INCLUDE = {
    "base": [],
    "rendezvous": ["base"],

    "launcher/hosts": ["base"],
    "launcher/machine": ["base"],
    "launcher/plan": ["launcher/hosts", "base"],
    "launcher/output": ["base"],
    "launcher/network": ["base"],
    "launcher/agent": ["launcher/machine", "launcher/network", "launcher/output", "base"],
    "launcher/pipe": ["launcher/agent", "base"],
    "launcher/session": ["launcher/agent", "base"],
    "launcher/fleet": ["launcher/session", "launcher/agent", "base"],
    "launcher/supervise": ["launcher/plan", "rendezvous", "base"],
    "launcher/doctor": ["launcher/hosts", "launcher/machine", "launcher/network", "base"],
    "launcher/job": ["launcher/agent", "launcher/doctor", "launcher/fleet", "launcher/hosts", "launcher/machine", "launcher/network",
                     "launcher/output", "launcher/pipe", "launcher/plan", "launcher/session", "launcher/supervise",
                     "rendezvous", "base"],

    # What the user says becomes a JobSpec, which is made of the parts' own types.
    "cli": ["launcher/job", "launcher/doctor", "launcher/hosts", "launcher/machine", "launcher/plan", "base"],
    # One program is launcher, guard, agent and ssh-pipe; main chooses.
    "cli/main.cc": ["cli", "launcher/job", "launcher/doctor", "launcher/agent", "launcher/pipe", "base"],
    "man": ["cli"],

    "runtime/op": ["base"],
    "runtime/pattern": ["runtime/op", "base"],
    "runtime/transport": ["runtime/op", "base"],
    "runtime/domain": ["runtime/op", "base"],
    "runtime/group": ["runtime/op", "runtime/pattern", "runtime/transport", "rendezvous", "base"],
    "runtime/wiring": ["runtime/op", "runtime/pattern", "runtime/transport", "rendezvous", "base"],
    "runtime/backend": ["runtime/domain", "runtime/group", "runtime/op", "runtime/pattern", "runtime/transport",
                        "runtime/wiring", "rendezvous", "base"],
    "runtime/capi": ["runtime/backend", "runtime/op", "base"],
    "runtime/capi/corro": [],  # the C header: for anybody, on nothing
    "examples": ["runtime/capi/corro"],
}
MAY_INCLUDE["runtime/capi"].append("runtime/capi/corro")

# Decisions: events and time in, orders out.  They do not read, sleep, lock or look around.
PURE = ["launcher/plan/*", "launcher/doctor/*", "launcher/network/barrier.h", "launcher/network/door.h", "launcher/network/addressing.*", "launcher/supervise/*", "launcher/agent/output_window.h", "launcher/agent/shutdown.h", "launcher/fleet/host_life.h", "launcher/machine/binding.*", "launcher/machine/pinning.*",
        "launcher/pipe/arguments.cc", "launcher/pipe/back_off.*", "launcher/pipe/bootstrap.*", "launcher/pipe/ssh_config.*",
        "runtime/op/*", "runtime/pattern/*", "runtime/group/*", "runtime/backend/native/stages.*",
        "runtime/backend/native/topology.*", "runtime/domain/layout.h", "runtime/domain/rounds.*", "rendezvous/store_core.*", "rendezvous/messages.*",
        "base/frame.*", "base/codec.h", "base/lease.h", "base/proof.*", "base/transition.h"]
ACTING = re.compile(r"base/(loop|channel|socket|fd|process|log)\.h"
                    r"|(sys|net|netinet)/.*|(unistd|fcntl|poll|signal|pthread|ifaddrs)\.h"
                    r"|thread|mutex|condition_variable|future|iostream|fstream")

# A library is named in one place.
LIBRARIES = {
    "asio": ["base/loop.cc"],
    "spdlog": ["base/log.cc"],
    "openssl": ["base/crypto.cc"],
    "fmt": ["*.cc", "tests/*"],
    "CLI": ["cli/*"],
    "nlohmann": ["cli/*", "tests/*"],
    "yaml-cpp": ["cli/*"],
    "elfutils": ["launcher/agent/stack.cc"],  # opened at run time
    "libssh": ["launcher/pipe/ssh_*.cc"],
    "hwloc": ["launcher/machine/topology.cc"],
    "hwy": ["runtime/op/*"],
    "gloo": ["runtime/backend/gloo/*", "bench/*"],
    "nccl": ["runtime/backend/nccl/*"],
    "cuda": ["runtime/backend/cuda/*"],
    "cuda_runtime": ["runtime/backend/cuda/*"],
    "mpi": ["runtime/backend/mpi/*", "bench/*"],
    "catch2": ["tests/*"],
    "rapidcheck": ["tests/*"],
    "benchmark": ["bench/*"],
    "corro": ["examples/*", "tests/*", "bench/*"],  # ours, as a user names it
}
SYSTEM_FOLDERS = {"sys", "net", "netinet", "arpa", "linux", "bits"}
SYSTEM = set("""
    cpuid cxxabi dirent dlfcn elf emmintrin errno fcntl fnmatch getopt glob grp ifaddrs limits link locale malloc math netdb poll pthread pty pwd sched semaphore
    signal spawn stddef stdint stdio stdlib string strings syslog termios time ucontext unistd
""".split())

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def box_of(path):
    """The longest name in the map that this path is, or lies in."""
    names = [str(p) for p in [path, *pathlib.PurePath(path).parents]]
    return next((name for name in names if name in MAY_INCLUDE), None)


def target_of(source, name):
    """The file that an include in quotes means, from the top."""
    if "/" not in name:
        return str(pathlib.PurePath(source).parent / name)
    return "runtime/capi/" + name if name.startswith("corro/") else name


def library_of(name):
    """None for what belongs to the language or the system."""
    head, slash, _ = name.partition("/")
    if slash:
        return None if head in SYSTEM_FOLDERS else head
    stem, dot, _ = name.partition(".")
    return None if not dot or stem in SYSTEM else stem


def matches(path, patterns):
    return any(fnmatch.fnmatch(path, pattern) for pattern in patterns)


def wrong_edge(path, name):
    target = target_of(path, name)
    here, there = box_of(path), box_of(target)
    if here is None:
        return f"{path} is in no box of the map"
    if there is None:
        return f"{path} includes {target}, which is in no box of the map"
    # main.cc is part of the box that it lies in.
    if there != here and there not in MAY_INCLUDE[here]:
        return f"{path} includes {target}: {here} does not know {there}"
    return None


def wrong_library(path, name):
    library = library_of(name)
    if library is None:
        return None
    if library not in LIBRARIES:
        return f"{path} includes <{name}>, of a library that is not in the table"
    if not matches(path, LIBRARIES[library]):
        return f"{path} includes <{name}>: {library} is named in {', '.join(LIBRARIES[library])} only"
    return None


def violations(sources):
    """What is wrong, a sentence each; sources: path from the top → text."""
    found = []
    for path, text in sources.items():
        on_the_map = not path.startswith(("tests/", "bench/"))
        for quote, name in INCLUDE.findall(text):
            if quote == "<":
                found.append(wrong_library(path, name))
            elif on_the_map:
                found.append(wrong_edge(path, name))
            if on_the_map and matches(path, PURE) and ACTING.fullmatch(name):
                found.append(f"{path} includes {name}, but only decides")
        if on_the_map and box_of(path) is None:
            found.append(f"{path} is in no box of the map")
    return sorted({sentence for sentence in found if sentence})


# A target of CMake is a box; what it links is what it may include.
CMAKE_LIBRARY = re.compile(r"corro_library\(\s*corro_(\w+)\s(.*?)\)", re.DOTALL)


def links(cmake_text):
    """(box, linked box) for each link between boxes in a CMakeLists.txt."""
    def box(name):
        return next((b for b in MAY_INCLUDE if b.split("/")[-1] == name), None)
    for name, rest in CMAKE_LIBRARY.findall(cmake_text):
        for linked in re.findall(r"corro_(\w+)", rest.split("LINKS")[-1]):
            if box(name) and box(linked):
                yield box(name), box(linked)


def map_text():
    """MAY_INCLUDE as ARCHITECTURE.md quotes it: a box, and what it may include; its own folder's parts by their last name."""
    lines = []
    for box, others in MAY_INCLUDE.items():
        folder = box.split("/")[0] + "/"
        names = [other.removeprefix(folder) if other != "cli" else other for other in others]
        lines.append(f"{box:<20} ► {', '.join(names)}" if names else box)
    return "\n".join(lines)
