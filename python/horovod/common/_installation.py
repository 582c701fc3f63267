"""Whether another distribution has put its files where ours are."""
import os
import warnings
from typing import List


def foreign_distributions(package_file: str) -> List[str]:
    """Metadata folders of a distribution `horovod` beside the package whose __init__.py is given."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(package_file)))
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(os.path.join(folder, name) for name in names
                  if name.startswith("horovod-") and name.endswith((".dist-info", ".egg-info")))


def warn_of_another_horovod(package_file: str) -> None:
    """Both distributions own the folder `horovod`, so the files of each are mixed with the other's."""
    for found in foreign_distributions(package_file):
        warnings.warn(
            f"the distribution {os.path.basename(found).rsplit('.', 1)[0]} is installed in the same folder as corro: "
            f"{os.path.dirname(os.path.abspath(package_file))} has files of both, and those of corro are in use. "
            "To have one only: pip uninstall -y horovod corro, then install corro again.",
            RuntimeWarning, stacklevel=3)
