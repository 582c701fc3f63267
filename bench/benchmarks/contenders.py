"""Who takes part in `bench/run allreduce`, and how each is started."""
import dataclasses
import os
import pathlib
import shutil
import typing

from .common import BIN

# glibc gives large blocks back at every free(), so that Open MPI and MPICH fault their scratch memory in anew at every
# call.  With these thresholds it stays mapped.
TUNABLES = "glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=8589934592"
ALLOWED, DENIED = "allowed", "denied"  # cross-memory attach; a table each
REF_SHM_MOST = 256 << 20  # bytes that the direct mode of ref_shm has room for


@dataclasses.dataclass(frozen=True)
class Command:
    argv: list
    env: dict = dataclasses.field(default_factory=dict)
    host: str = ""  # "" is this machine, without a namespace


@dataclasses.dataclass(frozen=True)
class Contender:
    name: str
    role: str  # corro, other build (of Corro), peer or limit
    tables: tuple
    commands: typing.Callable  # (measurement, scratch folder) -> [Command]; the first of them prints the results
    most_bytes: int = 1 << 62


@dataclasses.dataclass(frozen=True)
class Measurement:
    """What a program is told to measure."""
    sizes: tuple
    samples: int
    target: float  # seconds for a sample

    def words(self):
        return [f"sizes={','.join(map(str, self.sizes))}", f"samples={self.samples}", f"target={self.target}"]

    def variables(self):
        """The same for ref_shm."""
        return {"BENCH_SIZES": ",".join(map(str, self.sizes)), "BENCH_SAMPLES": str(self.samples),
                "BENCH_TARGET": str(self.target)}


def simple(name, role, tables, argv, env=None, host="", **options):
    """A contender of one command, whose last words say what to measure."""
    return Contender(name, role, tables,
                     lambda measurement, _: [Command([*argv, *measurement.words()], env or {}, host)], **options)


def has(program):
    return (BIN / program).exists()


def why_absent():
    """A sentence for each peer that cannot take part."""
    needs = {"Open MPI": ("allreduce_openmpi", "mpirun.openmpi", "openmpi-bin, libopenmpi-dev"),
             "MPICH": ("allreduce_mpich", "mpiexec.mpich", "mpich, libmpich-dev"),
             "Gloo": ("allreduce_gloo", None, "libgloo-dev")}
    return [f"{peer} is not compared: not installed ({packages})" for peer, (program, launcher, packages) in needs.items()
            if not has(program) or (launcher and not shutil.which(launcher))]


# One machine.

def on_this_machine(np, tables):
    """All contenders for so many ranks.  With a core for each rank, every one that can bind to cores does."""
    fits = np <= (os.cpu_count() or 1)
    found = [*corro(np, fits), *openmpi(np, fits), *mpich(np, fits), *gloo([""] * np, "lo"), *references(np)]
    return [one for one in found if set(one.tables) & set(tables)]


def corro_job(programs, np, fits):
    bind = ["--bind-to", "core"] if fits else []
    return [programs / "horovodrun", "-np", np, "-H", f"localhost:{np}", *bind]


def other_build(build, np):
    """Corro as another checkout has built it (ninja bench_allreduce there)."""
    programs = pathlib.Path(build).resolve() / "bin"
    job = corro_job(programs, np, np <= (os.cpu_count() or 1))
    return simple(f"corro of {build}", "other build", (ALLOWED,), [*job, programs / "allreduce_corro"])


def corro(np, fits):
    job = corro_job(BIN, np, fits)
    yield simple("corro", "corro", (ALLOWED,), [*job, BIN / "allreduce_corro"])
    yield simple("corro alloc", "corro", (ALLOWED,), [*job, BIN / "allreduce_corro", "memory=corro"])
    yield simple("corro no-cma", "corro", (DENIED,), [BIN / "deny_cma", *job, BIN / "allreduce_corro"])


def openmpi(np, fits):
    if not has("allreduce_openmpi") or not shutil.which("mpirun.openmpi"):
        return
    job = ["mpirun.openmpi", "--allow-run-as-root", "-np", np, *(["--bind-to", "core"] if fits else ["--oversubscribe"])]
    tuned = ["-x", f"GLIBC_TUNABLES={TUNABLES}"]
    no_cma = ["--mca", "btl_vader_single_copy_mechanism", "none"]
    program = BIN / "allreduce_openmpi"
    yield simple("openmpi", "peer", (ALLOWED,), [*job, program])
    yield simple("openmpi malloc", "peer", (ALLOWED,), [*job, *tuned, program])
    yield simple("openmpi no-cma", "peer", (DENIED,), [BIN / "deny_cma", *job, *no_cma, program])
    yield simple("openmpi no-cma malloc", "peer", (DENIED,), [BIN / "deny_cma", *job, *no_cma, *tuned, program])


def mpich(np, fits):
    if not has("allreduce_mpich") or not shutil.which("mpiexec.mpich"):
        return
    job = ["mpiexec.mpich", *(["-bind-to", "core"] if fits else []), "-n", np]
    tuned = ["-genv", "GLIBC_TUNABLES", TUNABLES]
    program = BIN / "allreduce_mpich"
    yield simple("mpich", "peer", (ALLOWED,), [*job, program])
    yield simple("mpich malloc", "peer", (ALLOWED,), [*job[:-2], *tuned, *job[-2:], program])
    yield simple("mpich no-cma", "peer", (DENIED,), [BIN / "deny_cma", *job, program])
    yield simple("mpich no-cma malloc", "peer", (DENIED,), [BIN / "deny_cma", *job[:-2], *tuned, *job[-2:], program])


def gloo(places, interface):
    """`places` has a host for each rank; "" is this machine."""
    def commands(algorithm):
        def start(measurement, scratch):
            return [Command([BIN / "allreduce_gloo", f"rank={rank}", f"size={len(places)}", f"store={scratch}",
                             f"interface={interface}", f"algorithm={algorithm}", *measurement.words()], {}, host)
                    for rank, host in enumerate(places)]
        return start
    if has("allreduce_gloo"):
        for name, algorithm in (("gloo ring", "ring"), ("gloo halving", "halving-doubling")):
            yield Contender(name, "peer", (ALLOWED, DENIED), commands(algorithm))


def references(np):
    """The hand-written reductions: ref_shm as it stands where the checkout has it beside it, else our own."""
    def ref_shm(mode):
        return lambda measurement, _: [Command([BIN / "ref_shm"],
                                               {"REF_MODE": mode, "NP": str(np), **measurement.variables()})]
    for mode in ("staged", "direct"):
        if has("ref_shm"):
            yield Contender(mode, "limit", (ALLOWED, DENIED), ref_shm(mode),
                            REF_SHM_MOST if mode == "direct" else 1 << 62)
        else:
            yield simple(mode, "limit", (ALLOWED, DENIED), [BIN / "allreduce_reference", f"np={np}", f"mode={mode}"])


# Several hosts.  The launcher runs on h0, ranks on the others; messages go through eth0.

def on_hosts(names, each):
    """All contenders with `each` ranks on every host."""
    np, hosts = len(names) * each, ",".join(f"{name}:{each}" for name in names)
    yield simple("corro", "corro", (ALLOWED,), [BIN / "horovodrun", "-np", np, "-H", hosts, BIN / "allreduce_corro"],
                 host="h0")
    if has("allreduce_openmpi") and shutil.which("mpirun.openmpi"):
        # Spinning, its default with one rank on each host, makes it slower here: the hosts share the cores.
        job = ["mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none", "--map-by", "slot", "--host", hosts,
               "-np", np, "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0",
               "--mca", "mpi_yield_when_idle", "1"]
        yield simple("openmpi", "peer", (ALLOWED,), [*job, BIN / "allreduce_openmpi"], host="h0")
        yield simple("openmpi malloc", "peer", (ALLOWED,),
                     [*job, "-x", f"GLIBC_TUNABLES={TUNABLES}", BIN / "allreduce_openmpi"], host="h0")
    if has("allreduce_mpich") and shutil.which("mpiexec.mpich"):
        job = ["mpiexec.mpich", "-launcher", "ssh", "-hosts", hosts, "-iface", "eth0", "-genv", "UCX_NET_DEVICES", "eth0",
               "-genv", "UCX_TLS", "tcp,self" if each == 1 else "tcp,sm,self"]
        yield simple("mpich", "peer", (ALLOWED,), [*job, "-n", np, BIN / "allreduce_mpich"], host="h0")
        yield simple("mpich malloc", "peer", (ALLOWED,),
                     [*job, "-genv", "GLIBC_TUNABLES", TUNABLES, "-n", np, BIN / "allreduce_mpich"], host="h0")
    yield from gloo([name for name in names for _ in range(each)], "eth0")
