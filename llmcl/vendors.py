"""What OpenCL drivers need from the environment before the first question is put to them.

Three things: the names of drivers that no vendor folder holds (Intel's CPU runtime as its wheel
installs it, NVIDIA's driver in a container); cache folders of this process alone; and a linker
for PoCL, which runs `ld` for each kernel and ends the whole process when there is none. The first
and the last are for Linux, where a vendor folder names each driver in an `.icd` file.
"""

import contextlib
import importlib.util
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from .cache import Cache, usable, writing

SYSTEM_FOLDER = Path("/etc/OpenCL/vendors")
_LINKERS = ("ld", "ld.lld", "ld.bfd", "ld.gold", "mold")
_added: list[str] = []
# What PoCL's compiler asks the linker for, and where it looks.
_LIBGCC = ("/usr/lib/gcc/*/*/libgcc.a", "/usr/lib64/gcc/*/*/libgcc.a")
_LIBC = ("/usr/lib/*-linux-gnu/libc.so", "/usr/lib64/libc.so", "/usr/lib/libc.so")


@contextlib.contextmanager
def first_query(cache: Cache, notes: list[str]) -> Iterator[None]:
    """Sets what loader and drivers read once, at the first query, and takes it back afterwards.

    Taken back, so that a child process does not believe that the user had set it. What the user
    did set is respected; a PoCL cache folder that cannot be used is not, because PoCL would
    then have no device, and `notes` says so.
    """
    wanted = {"XDG_CACHE_HOME": str(cache.part("xdg"))}
    chosen = os.environ.get("POCL_CACHE_DIR")
    if not chosen or not usable(Path(chosen)):
        wanted["POCL_CACHE_DIR"] = str(cache.part("pocl"))
        if chosen:
            notes.append(
                f"POCL_CACHE_DIR names {chosen}, which cannot be written, so it was not "
                "used; unset it or name another folder."
            )
    if not os.environ.get("OCL_ICD_VENDORS"):
        folder = _vendor_folder(cache)
        if folder is not None:
            wanted["OCL_ICD_VENDORS"] = str(folder)
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def added_libraries() -> list[str]:
    """The drivers that this process told the loader about, because no vendor folder names them."""
    return list(_added)


def intel_library() -> Path | None:
    """The library of Intel's CPU runtime as its wheel installed it, or None."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        files = metadata.distribution("intel-opencl-rt").files or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == "libintelocl.so":
            path = Path(file.locate()).resolve()
            return path if path.exists() else None
    return None


def has_package(name: str) -> bool:
    """Whether the package `name` is installed here."""
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def vendor_folders() -> list[Path]:
    """The folders in which the loader looks for `.icd` files when nobody says otherwise."""
    here = Path(sys.prefix, "etc", "OpenCL", "vendors")
    if Path(sys.prefix, "conda-meta").is_dir():  # conda's loader looks in its own only
        return [here]
    return [Path(os.environ.get("OPENCL_VENDOR_PATH") or SYSTEM_FOLDER), here]


def icd_files(folder: Path) -> list[Path]:
    """The `.icd` files in `folder` and in the folders that it links to."""
    return sorted([*folder.glob("*.icd"), *folder.glob("*/*.icd")])


def registered(folder: Path) -> dict[str, str]:
    """Library named by each `.icd` file in `folder`, without those that are not there."""
    libraries = {}
    for file in icd_files(folder):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            library = file.read_text(encoding="utf-8").strip()
            if library and (not os.path.isabs(library) or os.path.exists(library)):
                libraries[file.name] = library
    return libraries


def _vendor_folder(cache: Cache) -> Path | None:
    """A folder with what is registered and what is missing there; None if nothing is missing."""
    known: dict[str, str] = {}
    for folder in vendor_folders():
        for name, library in registered(folder).items():
            if library not in known.values():
                known.setdefault(name, library)
    missing = _missing(known)
    if not missing:
        return None
    target = cache.part("vendors")
    with writing(target):
        for old in target.iterdir():
            old.unlink()
        for name, library in {**known, **missing}.items():
            (target / name).write_text(library + "\n", encoding="utf-8")
    _added.extend(missing.values())
    return target


def _missing(known: dict[str, str]) -> dict[str, str]:
    """Drivers that are on this machine and that no vendor folder names."""
    names = {os.path.basename(library).split(".so")[0] for library in known.values()}
    missing = {}
    intel = intel_library()
    if intel is not None and "libintelocl" not in names:
        missing["llmcl-intel-cpu.icd"] = str(intel)
    # A container often has the driver's library without its .icd file. The loader passes over a
    # library that is not there.
    if nvidia_files() and "libnvidia-opencl" not in names:
        missing["llmcl-nvidia.icd"] = "libnvidia-opencl.so.1"
    return missing


def nvidia_files() -> list[Path]:
    """The device files of NVIDIA GPUs on this machine."""
    return sorted(Path("/dev").glob("nvidia[0-9]*"))


def _there(patterns: tuple[str, ...]) -> bool:
    return any(any(Path("/").glob(pattern[1:])) for pattern in patterns)


def find_linker() -> list[str] | None:
    """The command of a linker on this machine, from the system or the `ziglang` wheel, or None."""
    for name in _LINKERS:
        path = shutil.which(name)
        if path:
            return [path]
    spec = importlib.util.find_spec("ziglang")
    if spec and spec.submodule_search_locations:
        zig = Path(spec.submodule_search_locations[0], "zig")
        if zig.exists():
            return [str(zig), "ld.lld"]
    return None


def prepare_linker(cache: Cache) -> None:
    """Gives PoCL a linker on a machine without a C compiler, where PoCL cannot find its own.

    A small script drops the C libraries from the command, which no kernel here needs and which
    come with a compiler only, and calls the linker that there is. Where a compiler is installed,
    or no linker is, nothing changes.
    """
    if not sys.platform.startswith("linux"):
        return
    if shutil.which("ld") and _there(_LIBGCC) and _there(_LIBC):
        return
    linker = find_linker()
    if linker is None:
        return
    folder = cache.part("linker")
    script = folder / "ld"
    with writing(folder):
        script.write_text(_SCRIPT.format(command=shlex.join(linker)), encoding="utf-8")
        script.chmod(0o700)
    # The compiler looks here first, at every kernel, so this one stays set.
    old = os.environ.get("COMPILER_PATH")
    os.environ["COMPILER_PATH"] = f"{folder}{os.pathsep}{old}" if old else str(folder)


_SCRIPT = """#!/bin/sh
count=$#
while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    count=$((count - 1))
    case "$argument" in
        -lgcc | -lgcc_s | -lc | -lm) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {command} "$@"
"""


def loader_library() -> str | None:
    """The file of the OpenCL loader in this process, or None where that cannot be seen."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            for line in maps:
                path = line.split(maxsplit=5)[-1].strip()
                if "libOpenCL" in os.path.basename(path):
                    return path
    except OSError:
        pass
    return None
