"""Small helpers that the frameworks share."""
import warnings
from typing import Any, Callable, Optional


def get_average_backwards_compatibility_fun(reduce_ops: Any) -> Callable[[Optional[int], Optional[bool]], int]:
    """The function that makes one `op` of the arguments `op` and `average`, the older of the two.

    `reduce_ops` has the numbers `Average` and `Sum`.
    """

    def handle(op: Optional[int], average: Optional[bool]) -> int:
        if op is not None:
            if average is not None:
                raise ValueError("The op parameter supersedes average. Please provide only one of them.")
            return op
        if average is not None:
            warnings.warn("Parameter `average` has been replaced with `op` and will be removed in v1.0",
                          DeprecationWarning, stacklevel=3)
        return reduce_ops.Sum if average is not None and not average else reduce_ops.Average

    return handle
