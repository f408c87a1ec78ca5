"""What to tell a person whose machine offers no OpenCL device: what is missing, and the way out.

The way out differs with the cause and the system, and one of them is always open: the NumPy
engine.
"""

import os
import platform
import sys
from pathlib import Path

GO_ON = "go on without OpenCL with LLMCL_DEVICE=numpy"


def pyopencl_remedy(error: Exception) -> str:
    """The sentence for an `import pyopencl` that failed with `error`."""
    reason = " ".join(str(error).split())[:160]
    if isinstance(error, ModuleNotFoundError) and error.name == "pyopencl":
        return f"pyopencl is not installed; run `pip install pyopencl`, or {GO_ON}."
    if "numpy" in reason.lower():
        return (
            "pyopencl does not fit the installed NumPy; run `pip install --upgrade pyopencl "
            f"numpy`, or {GO_ON} ({reason})."
        )
    return (
        "pyopencl is installed but cannot be loaded; run `pip install --force-reinstall "
        f"pyopencl` and remove any stray OpenCL library, or {GO_ON} ({reason})."
    )


def driver_remedy() -> str:
    """How to get an OpenCL driver on this system."""
    if sys.platform == "darwin":
        return "install PoCL with `conda install -c conda-forge pocl`"
    if sys.platform == "win32":
        return "install the driver of your graphics card's or processor's maker"
    if platform.machine() in ("x86_64", "AMD64"):
        return "install the CPU driver with `pip install pocl-binary-distribution`"
    return "install your GPU's driver, or PoCL with `conda install -c conda-forge pocl`"


def no_device_remedy(looked, failed: list[str]) -> str:
    """The sentence for a machine (an `llmcl.device.Scan`) where no device can be chosen.

    `failed` are the sentences of devices that were tried in vain.
    """
    if failed:
        return (
            f"No OpenCL device works here. {' '.join(failed)} {_failed_remedy(failed)}, or {GO_ON}."
        )
    if looked.devices:  # nothing but the simulator
        return (
            f"The only OpenCL device is the simulator {looked.devices[0].name}, which is slow "
            f"and has to be asked for (LLMCL_DEVICE=oclgrind); {driver_remedy()}, or {GO_ON}."
        )
    if looked.platforms:
        names = ", ".join(platform["name"] for platform in looked.platforms)
        return (
            f"OpenCL is here ({names}), but it offers no device{_because(looked)}; "
            f"{_no_device_cause()}, or {GO_ON}."
        )
    return f"No OpenCL driver was found; {driver_remedy()}, or {GO_ON}."


def _because(looked) -> str:
    return f" ({' '.join(looked.notes)})" if looked.notes else ""


def _no_device_cause() -> str:
    closed = closed_gpu_files()
    if closed:
        return f"{closed[0]} may not be opened by you: {group_remedy()}"
    return f"look at `llmcl doctor`, or {driver_remedy()}"


def _failed_remedy(failed: list[str]) -> str:
    if any('"ld"' in line or "linker" in line for line in failed):
        return f"PoCL needs a linker: {linker_remedy()}"
    return f"Look at `llmcl doctor`, {driver_remedy()}"


def linker_remedy() -> str:
    """How to get what PoCL calls for each kernel."""
    return (
        "install a C compiler (`apt install gcc`), or without root `pip install ziglang` or "
        "Intel's runtime (`pip install intel-opencl-rt intel-cmplr-lib-rt`)"
    )


def group_remedy() -> str:
    """How to get the right to use a GPU's device file."""
    return "add yourself to the groups video and render, and log in again"


def closed_gpu_files() -> list[str]:
    """GPU device files that exist and that this user may not open."""
    files = [
        *Path("/dev").glob("dri/renderD*"),
        *Path("/dev").glob("nvidia[0-9]*"),
        Path("/dev/kfd"),
    ]
    return [str(file) for file in files if file.exists() and not os.access(file, os.R_OK | os.W_OK)]
