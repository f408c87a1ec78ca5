"""OpenCL devices: listed, ranked, tried, chosen and explained. It never asks a question.

The ranking is fixed (see `ranking.py`): GPUs, then CPUs, then other devices. Oclgrind, the
simulator, comes last and is only taken when somebody asks for it.

`LLMCL_DEVICE`, or the argument of `choose`, names another one: its number in the list, or words
of its name, platform or version (`pocl 3.0`, `nvidia`).
"""

import dataclasses
import json
import os
import platform as host
import threading
from dataclasses import dataclass, field
from typing import Any

from . import vendors
from .cache import process_cache, writing
from .errors import DeviceError
from .ranking import find, rank, short_version
from .remedies import GO_ON, no_device_remedy, pyopencl_remedy
from .trial import Trial, run_trial, try_apart

_KINDS = ((4, "gpu"), (2, "cpu"), (8, "accelerator"))  # bits of CL_DEVICE_TYPE
# Work-items in a group of a one-dimensional kernel.
_LOCAL_SIZES = {"gpu": 256, "cpu": 32, "accelerator": 64, "simulator": 16}
_PLATFORM_NOT_FOUND = -1001


@dataclass(frozen=True)
class DeviceInfo:
    """What is known of a device before it is opened; sizes in bytes, `index` in the ranking."""

    index: int
    platform: str
    name: str
    platform_version: str
    driver_version: str
    opencl_c: str
    kind: str  # "gpu", "cpu", "accelerator" or "simulator"
    compute_units: int
    local_mem_bytes: int
    max_group_size: int
    global_mem_bytes: int
    alignment_bytes: int  # of sub-buffers
    shares_memory: bool  # with the host: an integrated GPU, or a CPU
    handle: Any = field(compare=False, repr=False)

    def identity(self) -> list:
        """What tells this device from others, in another process too (JSON-able)."""
        return [self.index, self.platform, self.name, self.platform_version, self.driver_version]

    def label(self) -> str:
        """The device in a few words: name, platform, and what its version adds."""
        return f"{self.name} ({self.platform}, {short_version(self.platform_version)})"


@dataclass(eq=False)
class Device:
    """An opened device: context, one in-order queue, and the notes of how it was chosen."""

    info: DeviceInfo
    context: Any
    queue: Any
    local_size: int  # work-items in a group of a one-dimensional kernel
    trial: Trial
    notes: list[str] = field(default_factory=list)

    def describe(self) -> str:
        """One line for people: platform, device, driver version, compute units."""
        info = self.info
        return (
            f"{info.platform}: {info.name}, driver {info.driver_version}, "
            f"{info.compute_units} compute units"
        )


@dataclass
class Scan:
    """Everything that a look at the machine gave: devices in ranking order, and problems."""

    devices: list[DeviceInfo]
    platforms: list[dict]
    notes: list[str]


def list_devices() -> list[DeviceInfo]:
    """The devices of this machine in ranking order; an empty list if there is none.

    Raises DeviceError if pyopencl cannot be imported.
    """
    return scan().devices


def scan() -> Scan:
    """The Scan of this machine: devices in ranking order, platforms, and what went wrong."""
    found, platforms, notes = [], [], []
    for platform in _query_platforms():
        name = platform.name.strip()
        record = {"name": name, "version": platform.version.strip(), "devices": 0}
        platforms.append(record)
        try:
            for handle in platform.get_devices():
                found.append(_describe(platform, handle))
                record["devices"] += 1
        except Exception as error:  # one broken driver must not hide the others
            notes.append(f"{name} cannot tell about its devices ({error}).")
    found.sort(key=rank)  # stable: equal devices keep the driver's order
    devices = [dataclasses.replace(info, index=i) for i, info in enumerate(found)]
    return Scan(devices, platforms, [*process_cache().notes, *_first_notes, *notes])


_first_notes: list[str] = []
_queried_by: int | None = None
_guard = threading.Lock()
_trial_guard = threading.Lock()


def _query_platforms() -> list:
    """pyopencl's platforms, with all that their drivers read at the first query set for it."""
    global _queried_by
    cl = import_pyopencl()
    with _guard:
        if _queried_by not in (None, os.getpid()):
            raise DeviceError(
                "This process was forked from one that uses OpenCL, whose drivers do not survive "
                "that; start it with multiprocessing.get_context('spawn')."
            )
        if _queried_by is None:
            cache = process_cache()
            vendors.prepare_linker(cache)
            with vendors.first_query(cache, _first_notes):
                with writing(cache.part("xdg")):
                    import pyopencl.invoker  # noqa: F401  (opens a database there)

                platforms = _platforms(cl)
                for platform in platforms:
                    _devices_or_none(platform)
            _queried_by = os.getpid()
            return platforms
    return _platforms(cl)


def import_pyopencl():
    """The module pyopencl. Raises DeviceError with the remedy if it cannot be imported."""
    # Without this, pyopencl answers a failing cache with a KeyError instead of a new build.
    os.environ.setdefault("PYOPENCL_CACHE_FAILURE_FATAL", "")
    try:
        import pyopencl
    except Exception as error:  # a wrong NumPy or a wrong DLL raises more than ImportError
        raise DeviceError(pyopencl_remedy(error)) from error
    return pyopencl


def _platforms(cl) -> list:
    try:
        return cl.get_platforms()
    except cl.Error as error:
        if error.code == _PLATFORM_NOT_FOUND:
            return []
        raise DeviceError(f"OpenCL cannot list its platforms ({error}); {GO_ON}.") from error


def _devices_or_none(platform) -> None:
    try:
        platform.get_devices()
    except Exception:
        pass  # reported by scan(), which asks again


def _describe(platform, handle) -> DeviceInfo:
    name = platform.name.strip()
    kind = "accelerator"
    if "oclgrind" in name.lower():  # its type has every bit set
        kind = "simulator"
    else:
        kind = next((word for bit, word in _KINDS if handle.type & bit), kind)
    return DeviceInfo(
        index=-1,
        platform=name,
        name=handle.name.strip(),
        platform_version=platform.version.strip(),
        driver_version=handle.driver_version.strip(),
        opencl_c=handle.opencl_c_version.strip(),
        kind=kind,
        compute_units=handle.max_compute_units,
        local_mem_bytes=handle.local_mem_size,
        max_group_size=handle.max_work_group_size,
        global_mem_bytes=handle.global_mem_size,
        alignment_bytes=handle.mem_base_addr_align // 8,
        shares_memory=_shares_memory(handle),
        handle=handle,
    )


def _shares_memory(handle) -> bool:
    try:
        return bool(handle.host_unified_memory)
    except Exception:  # OpenCL 2.0 made it optional
        return False


def open_device(info: DeviceInfo) -> tuple:
    """A new context and an in-order queue for `info`, whose builds go to this process's cache."""
    cl = import_pyopencl()
    context = cl.Context([info.handle])
    # Built from its cache, a kernel has no source text, which the simulator's reports quote.
    simulated = info.kind == "simulator"
    context.cache_dir = False if simulated else str(process_cache().part("pyopencl"))
    return context, cl.CommandQueue(context)


def try_device(info: DeviceInfo, *, apart: bool = False) -> Trial:
    """The Trial of `info`: a small kernel built, run, timed and compared. Raises nothing.

    With `apart=True` always in a child process, which a broken driver may end.
    """
    return _prove(info, apart=apart)[0]


_failures: dict[str, Trial] = {}  # of this process: what failed is not tried again


def _prove(info: DeviceInfo, *, apart: bool = False) -> tuple[Trial, Any, Any]:
    """The Trial of `info`, and if it works its context and queue."""
    with _trial_guard:  # the child of a trial works in this process's cache
        return _prove_alone(info, apart)


def _prove_alone(info: DeviceInfo, apart: bool) -> tuple[Trial, Any, Any]:
    cache = process_cache()
    # A home may be shared by machines, and a driver that worked may have lost its linker.
    identity = info.identity()
    key = json.dumps([*identity[1:], host.node(), vendors.find_linker()])
    if key in _failures and not apart:
        return _failures[key], None, None
    first_time = not cache.knows(key)
    context = queue = None
    trial = try_apart(identity, key, cache) if apart or first_time else None
    if trial is None or (trial.ok and not apart):
        try:
            context, queue = open_device(info)
            trial = run_trial(context, queue, key)
        except Exception as error:
            trial = Trial(False, 0.0, f"it cannot be opened ({error})")
    if trial.ok and first_time:
        cache.remember(key)
    elif not trial.ok:
        _failures[key] = trial
    return trial, context, queue


def choose(wanted: str | int | None = None, *, local_size: int | None = None) -> Device:
    """The opened Device: the one `wanted`, else `LLMCL_DEVICE`'s, else the first that works.

    A device that fails its trial is passed over, and `.notes` says so. `local_size` replaces the
    size of one-dimensional groups. Raises DeviceError, with the remedy, if no device works, if
    none is called so, or if the device does not allow `local_size`.
    """
    if wanted is None:
        wanted = os.environ.get("LLMCL_DEVICE", "").strip() or None
    if str(wanted).strip().lower() == "numpy":
        raise DeviceError(
            "'numpy' is no OpenCL device; llmcl.engine.get_engine('numpy') gives the NumPy engine."
        )
    looked = scan()
    if wanted is not None and looked.devices:
        candidates = find(looked.devices, wanted)
    else:
        candidates = [info for info in looked.devices if info.kind != "simulator"]
    notes, failed = list(looked.notes), []
    for info in candidates:
        trial, context, queue = _prove(info)
        if trial.ok:
            size = _local_size(info, local_size)
            return Device(info, context, queue, size, trial, notes + failed)
        failed.append(f"{info.label()} was passed over: {trial.note}.")
    raise DeviceError(no_device_remedy(looked, failed))


def _local_size(info: DeviceInfo, wanted: int | None) -> int:
    if wanted is None:
        return min(_LOCAL_SIZES[info.kind], info.max_group_size)
    if not 1 <= wanted <= info.max_group_size:
        raise DeviceError(
            f"local_size is {wanted}, but {info.name} allows 1 to {info.max_group_size}."
        )
    return wanted


def doctor_report() -> dict:
    """Everything about OpenCL on this machine, JSON-able; see `llmcl.doctor.report`."""
    from . import doctor

    return doctor.report()


def format_doctor(report: dict) -> str:
    """The text of a doctor's report; see `llmcl.doctor.text`."""
    from . import doctor

    return doctor.text(report)
