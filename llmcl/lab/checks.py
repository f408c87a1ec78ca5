"""The check that ends every section: a result against its reference, in words."""

from .. import check as _check
from ..errors import LlmclError


class CheckFailed(LlmclError):
    """A result that is further from its reference than rounding allows."""


def check(name: str, got, want, bound) -> None:
    """Prints that a result agrees with its reference within the bound; raises CheckFailed if not.

    got is what the engine computed, want the reference in float64, bound the largest error that
    rounding explains, as a number or an array (llmcl.reference.bounds derives it).
    """
    outcome = _check.compare(got, want, bound)
    if not outcome.ok:
        raise CheckFailed(f"✗ {name}: {outcome}; rounding does not explain it.")
    print(f"✓ {name}: agrees with NumPy (error below its bound)")
