"""The files of the project, as the lint tests see them."""
import pathlib

TOP = pathlib.Path(__file__).resolve().parents[2]
NOT_OURS = {".git", "build", "__pycache__", ".cache", ".pytest_cache"}
CODE = {".cc", ".h"}


def files():
    """Every file that is ours, as a path from the top."""
    def below(folder):
        for path in sorted(folder.iterdir()):
            if path.name in NOT_OURS or path.is_symlink():
                continue
            if path.is_dir():
                yield from below(path)
            else:
                yield path.relative_to(TOP)
    return list(below(TOP))


def code():
    return [path for path in files() if path.suffix in CODE]


def text_of(path):
    """None if it is not text."""
    try:
        return (TOP / path).read_text()
    except UnicodeDecodeError:
        return None


def shell_scripts():
    for path in files():
        with open(TOP / path, "rb") as file:
            first = file.readline(100)
        if first.startswith(b"#!") and first.split()[-1].split(b"/")[-1] in (b"sh", b"bash"):
            yield path
