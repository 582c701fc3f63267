"""The wheel and what it puts where; files that any Python from 3.8 on can read."""
import ast
import os
import pathlib
import shutil
import sys
import zipfile

import pytest
from jobs import HOROVODRUN, PACKAGES, TOP, files, python, run

WHEEL = next((TOP / "build/wheels").glob("corro-*.whl"), None)


def test_the_tag_and_the_size():
    assert WHEEL, "build it: packaging/wheel"
    version, interpreter, abi, platform = WHEEL.stem.split("-")[1:]
    assert (interpreter, abi) == ("py3", "none") and platform.startswith("manylinux_2_34_")
    assert WHEEL.stat().st_size < 10 << 20


def test_what_is_in_the_wheel():
    with zipfile.ZipFile(WHEEL) as wheel:
        names = {info.filename: info.external_attr >> 16 for info in wheel.infolist()}
    data = next(name for name in names if ".data/" in name).split("/")[0]
    assert names[f"{data}/scripts/horovodrun"] & 0o111
    assert "corro/libcorro.so" in names
    share = {name[len(f"{data}/data/share/"):] for name in names if name.startswith(f"{data}/data/share/")}
    assert share == {"man/man1/horovodrun.1", "bash-completion/completions/horovodrun",
                     "zsh/site-functions/_horovodrun", "fish/vendor_completions.d/horovodrun.fish"}
    packaged = {name for name in names if name.endswith(".py")}
    assert packaged == {str(path.relative_to(PACKAGES)) for path in PACKAGES.rglob("*.py")}
    # Nothing else: no header, no test, no build folder.
    assert {name.split("/")[0] for name in names} == {"corro", "horovod", data, data.replace(".data", ".dist-info")}


def test_the_installed_program_is_the_program_itself():
    with open(HOROVODRUN, "rb") as file:
        assert file.read(4) == b"\x7fELF"
    assert run(HOROVODRUN, "-np", 1, "echo", "hello").out == "[0]<stdout>:hello\n"


def test_the_program_knows_that_pytorch_can_be_used():
    assert "    [ ] TensorFlow\n    [X] PyTorch\n    [ ] MXNet\n" in run(HOROVODRUN, "--check-build").out
    assert "horovod/torch/__init__.py is there" in run(HOROVODRUN, "--check-build", "--verbose").out


def test_extras_are_named_as_horovods():
    ended = python("from importlib.metadata import metadata; print(*metadata('corro').get_all('Provides-Extra'));"
                   "print(*[r for r in metadata('corro').get_all('Requires-Dist') if 'extra' not in r])")
    extras, required = ended.out.splitlines()
    assert set(extras.split()) == {"pytorch", "tensorflow", "keras", "mxnet", "spark", "ray", "all-frameworks"}
    assert required == "cloudpickle"


def test_the_doctor_is_content_here():
    ended = run(sys.executable, "-m", "corro.doctor", env={"PATH": f"{HOROVODRUN.parent}:{os.environ['PATH']}"})
    assert ended.code == 0, ended
    for what in ("libcorro.so  0.1.0", f"horovodrun   {HOROVODRUN}", "torch        2.", "numpy        ", "rank 0 of 1"):
        assert what in ended.out, ended


def copy_of_the_packages(folder):
    for name in ("corro", "horovod"):
        shutil.copytree(PACKAGES / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_the_doctor_names_what_is_wrong(tmp_path):
    here = copy_of_the_packages(tmp_path)
    (here / "horovod-0.28.1.dist-info").mkdir()
    (here / "horovod-0.28.1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: horovod\nVersion: 0.28.1\n")
    ended = run(sys.executable, "-m", "corro.doctor", env={
        "PYTHONPATH": str(here), "CORRO_LIBRARY": "/nowhere/libcorro.so", "PATH": str(HOROVODRUN.parent)})
    assert ended.code == 1
    assert " BAD  libcorro.so  /nowhere/libcorro.so" in ended.out, ended
    assert " BAD  horovod" in ended.out and "pip uninstall -y horovod corro" in ended.out, ended


def test_another_horovod_in_the_same_folder_is_warned_of(tmp_path):
    here = copy_of_the_packages(tmp_path)
    assert "RuntimeWarning" not in python("import horovod", env={"PYTHONPATH": str(here)}).err
    (here / "horovod-0.28.1.dist-info").mkdir()
    ended = python("import horovod", env={"PYTHONPATH": str(here)})
    assert ended.code == 0
    assert "RuntimeWarning: the distribution horovod-0.28.1 is installed in the same folder" in ended.err, ended


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(TOP)))
def test_the_oldest_python_can_read_it(path):
    ast.parse(path.read_text(), str(path), feature_version=(3, 8))


def pythons():
    """Every Python 3.8 or newer that this machine has, pyenv's too, one for each version."""
    root = os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv"
    found = sorted(pathlib.Path(root).glob("versions/3.*/bin/python3"))
    found += [pathlib.Path(path) for path in map(shutil.which, [f"python3.{minor}" for minor in range(8, 20)]) if path]
    out = {}
    for path in found:
        ended = run(path, "-c", "import sys; print('.'.join(map(str, sys.version_info[:2])))")
        if ended.code == 0 and tuple(map(int, ended.out.split("."))) >= (3, 8):
            out.setdefault(ended.out.strip(), path)
    return out


@pytest.mark.parametrize("version, path", sorted(pythons().items()), ids=lambda value: str(value).split("/")[-1])
def test_every_python_here_can_import_it(version, path, tmp_path):
    library = next(pathlib.Path(sys.prefix).glob("lib/python3*/site-packages/corro/libcorro.so"))
    ended = run(HOROVODRUN, "-np", 2, path, "-c", """
import array, corro, corro.doctor, horovod, horovod.common.basics, horovod.common.util
with corro.Context() as job:
    values = array.array("d", [job.rank + 1.0])
    job.allreduce(values)
    print("SUM", values[0])
""", env={"PYTHONPATH": str(PACKAGES), "CORRO_LIBRARY": str(library), "PYTHONDONTWRITEBYTECODE": "1"})
    assert ended.code == 0 and ended.out.count("SUM 3.0") == 2, ended
