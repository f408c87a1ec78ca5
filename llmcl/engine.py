"""Which engine computes: OpenCL on a device, or NumPy."""

import os

import numpy as np

from . import reference


def get_engine(wanted: str | int | None = None, *, exact: bool = False):
    """An engine: llmcl.ops.Engine on the wanted device, or llmcl.reference.Engine for "numpy".

    wanted: what llmcl.device.choose takes, or "numpy" (float32) or "numpy64"; without it the
    variable LLMCL_DEVICE, then the best device. Raises DeviceError when there is none.
    """
    wanted = os.environ.get("LLMCL_DEVICE") or None if wanted is None else wanted
    if isinstance(wanted, str) and wanted.strip().lower() in ("numpy", "numpy32", "numpy64"):
        return reference.Engine(np.float64 if wanted.strip().endswith("64") else np.float32)
    from .device import choose  # only here: the NumPy engine works without pyopencl

    device = choose(wanted)
    from . import ops  # after choose, which explains a pyopencl that cannot be imported

    return ops.Engine(device, exact=exact)
