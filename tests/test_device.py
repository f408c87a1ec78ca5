"""Devices: ranked, overridden, tried, explained; pretended where this machine has none."""

import json
import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from llmcl import device, doctor, remedies, trial, vendors
from llmcl.cache import Cache, process_cache
from llmcl.errors import DeviceError
from llmcl.trial import Trial, first_useful_line

ROOT = Path(__file__).resolve().parent.parent
GPU, CPU, ACCELERATOR = 4, 2, 8
posix_only = pytest.mark.skipif(os.name != "posix", reason="needs POSIX processes")
linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="about Linux")


def pretend(name, kind, *, units=8, shared=False, driver="1.0"):
    """A device as pyopencl describes it."""
    return SimpleNamespace(
        name=f" {name} ",
        type=kind,
        driver_version=driver,
        opencl_c_version="OpenCL C 1.2 ",
        max_compute_units=units,
        local_mem_size=32768,
        max_work_group_size=256,
        global_mem_size=1 << 30,
        mem_base_addr_align=1024,
        host_unified_memory=shared,
    )


def platform(name, version, *devices):
    return SimpleNamespace(name=name, version=version, get_devices=lambda: list(devices))


NVIDIA = platform("NVIDIA CUDA", "OpenCL 3.0 CUDA 12.8", pretend("H200", GPU, units=132))
INTEL_GPU = platform("Intel(R) OpenCL Graphics", "OpenCL 3.0 ", pretend("Arc", GPU, units=512))
LAPTOP_GPU = platform(
    "Intel(R) OpenCL HD Graphics", "OpenCL 3.0 ", pretend("UHD 620", GPU, units=999, shared=True)
)
POCL = platform(
    "Portable Computing Language",
    "OpenCL 3.0 PoCL 3.0-rc2  Linux, LLVM 15.0.6",
    pretend("pthread-Intel(R) Xeon", CPU, shared=True, driver="3.0-rc2"),
)
NEW_POCL = platform(
    "Portable Computing Language",
    "OpenCL 3.0 PoCL 5.0  Linux, LLVM 16.0.0",
    pretend("cpu-haswell-Intel(R) Xeon", CPU, shared=True, driver="5.0"),
)
INTEL_CPU = platform("Intel(R) OpenCL", "OpenCL 3.1 LINUX", pretend("Xeon", CPU, shared=True))
BOARD = platform("Some FPGA", "OpenCL 1.2", pretend("Board", ACCELERATOR))
CLOVER = platform("Clover", "OpenCL 1.1 Mesa 20.3", pretend("AMD CEDAR", GPU, units=2))
OCLGRIND = platform("Oclgrind", "OpenCL 1.2 (Oclgrind 21.10)", pretend("Oclgrind Simulator", 15))


@pytest.fixture
def machine(monkeypatch):
    """A function that makes the machine have these platforms, and gives the failing devices."""
    broken = {}

    def prove(context, queue, key=""):
        return Trial(context not in broken, 0.01, broken.get(context, ""))

    def set_up(*platforms):
        monkeypatch.setattr(device, "_query_platforms", lambda: list(platforms))
        return broken

    monkeypatch.setattr(device, "try_apart", lambda *_: None)
    monkeypatch.setattr(device, "open_device", lambda info: (info.name, "queue"))
    monkeypatch.setattr(device, "run_trial", prove)
    monkeypatch.setattr(device, "_failures", {})
    monkeypatch.setattr(Cache, "remember", lambda *_: None)
    monkeypatch.delenv("LLMCL_DEVICE", raising=False)
    return set_up


def names(infos):
    return [info.name for info in infos]


# ---- ranking ---------------------------------------------------------------------------------


@pytest.mark.parametrize("backwards", [False, True])
def test_ranking_does_not_depend_on_the_order_of_the_platforms(machine, backwards):
    platforms = [OCLGRIND, INTEL_CPU, CLOVER, POCL, BOARD, LAPTOP_GPU, NEW_POCL, NVIDIA, INTEL_GPU]
    machine(*(reversed(platforms) if backwards else platforms))
    found = device.list_devices()
    assert names(found) == [
        "Arc",
        "H200",
        "UHD 620",
        "cpu-haswell-Intel(R) Xeon",
        "pthread-Intel(R) Xeon",
        "Xeon",
        "Board",
        "AMD CEDAR",
        "Oclgrind Simulator",
    ]
    assert [info.index for info in found] == list(range(9))
    assert [info.kind for info in found] == ["gpu"] * 3 + ["cpu"] * 3 + [
        "accelerator",
        "gpu",
        "simulator",
    ]
    assert found[0].alignment_bytes == 128


@pytest.mark.parametrize("other, first", [(NVIDIA, "H200"), (CLOVER, "pthread-Intel(R) Xeon")])
def test_two_platforms_in_both_orders(machine, other, first):
    for pair in ((other, POCL), (POCL, other)):
        machine(*pair)
        assert device.choose().info.name == first


def test_a_platform_that_cannot_be_read_does_not_hide_the_others(machine):
    def fail():
        raise RuntimeError("OUT_OF_HOST_MEMORY")

    machine(SimpleNamespace(name="Broken", version="1.2", get_devices=fail), POCL)
    got = device.choose()
    assert got.info.platform == "Portable Computing Language"
    assert any("Broken" in note and "OUT_OF_HOST_MEMORY" in note for note in got.notes)


# ---- the choice ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wanted, name",
    [
        ("pocl 3.0", "pthread-Intel(R) Xeon"),
        ("PoCL 5.0", "cpu-haswell-Intel(R) Xeon"),  # and not the other, whose LLVM is 15.0.6
        ("pocl", "cpu-haswell-Intel(R) Xeon"),  # the first in the ranking
        ("nvidia", "H200"),
        ("h200 CUDA", "H200"),
        ("cpu", "cpu-haswell-Intel(R) Xeon"),
        ("intel cpu", "Xeon"),
        ("haswell", "cpu-haswell-Intel(R) Xeon"),
        ("Intel(R) OpenCL", "Xeon"),  # the platform, although PoCL's device is called Intel too
        ("oclgrind", "Oclgrind Simulator"),
        (0, "H200"),
        ("0", "H200"),
        (4, "Oclgrind Simulator"),
        ("  ", "H200"),
    ],
)
def test_override(machine, monkeypatch, wanted, name):
    machine(OCLGRIND, INTEL_CPU, POCL, NEW_POCL, NVIDIA)
    assert device.choose(wanted if str(wanted).strip() else None).info.name == name
    monkeypatch.setenv("LLMCL_DEVICE", str(wanted))
    assert device.choose().info.name == name


def test_the_argument_comes_before_the_variable(machine, monkeypatch):
    machine(POCL, NVIDIA)
    monkeypatch.setenv("LLMCL_DEVICE", "nvidia")
    assert device.choose("pocl").info.kind == "cpu"


@pytest.mark.parametrize("wanted", ["9", 9, -1, "radeon", "pocl 9", "3.0 nvidia"])
def test_wrong_override_lists_what_there_is(machine, wanted):
    machine(POCL, NVIDIA)
    with pytest.raises(DeviceError) as caught:
        device.choose(wanted)
    text = str(caught.value)
    assert repr(str(wanted)) in text and "0: H200 (NVIDIA CUDA" in text
    assert "1: pthread-Intel(R) Xeon (Portable Computing Language, PoCL 3.0-rc2)" in text


def test_numpy_is_no_device(machine, monkeypatch):
    machine()
    with pytest.raises(DeviceError, match=r"llmcl\.engine\.get_engine"):
        device.choose("NumPy")
    monkeypatch.setenv("LLMCL_DEVICE", "numpy")
    with pytest.raises(DeviceError, match=r"llmcl\.engine\.get_engine"):
        device.choose()


def test_a_device_that_fails_is_passed_over_with_a_note(machine):
    broken = machine(NVIDIA, POCL)
    broken["H200"] = "error: unknown target CPU 'znver9'"
    got = device.choose()
    assert got.info.name == "pthread-Intel(R) Xeon"
    assert got.notes[-1] == (
        "H200 (NVIDIA CUDA, OpenCL 3.0) was passed over: error: unknown target CPU 'znver9'."
    )


def test_a_device_that_was_asked_for_is_not_replaced_by_another(machine):
    broken = machine(NVIDIA, POCL)
    broken["H200"] = "it is busy"
    with pytest.raises(DeviceError, match="it is busy.*LLMCL_DEVICE=numpy"):
        device.choose("nvidia")


def test_a_device_that_ends_the_process_is_passed_over(machine, monkeypatch):
    machine(NVIDIA, POCL)
    died = Trial(False, 0.1, "its driver ended the test process (SIGILL)")
    monkeypatch.setattr(
        device, "try_apart", lambda identity, *_: died if "H200" in identity else None
    )
    opened = []
    monkeypatch.setattr(device, "open_device", lambda info: opened.append(info.name) or (0, 0))
    assert device.choose().info.name == "pthread-Intel(R) Xeon"
    assert "SIGILL" in device.choose().notes[-1]
    assert "H200" not in opened


def test_local_size(machine):
    machine(NVIDIA, POCL, OCLGRIND)
    assert [device.choose(i).local_size for i in range(3)] == [256, 32, 16]
    assert device.choose(local_size=1).local_size == 1
    for wrong in (0, 257):
        with pytest.raises(DeviceError, match=f"{wrong}.*1 to 256"):
            device.choose(local_size=wrong)


# ---- no device -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "system, processor, remedy",
    [
        ("linux", "x86_64", "pip install pocl-binary-distribution"),
        ("linux", "aarch64", "conda install -c conda-forge pocl"),
        ("darwin", "arm64", "conda install -c conda-forge pocl"),
        ("win32", "AMD64", "driver of your graphics card"),
    ],
)
def test_no_platform(machine, monkeypatch, system, processor, remedy):
    machine()
    monkeypatch.setattr(remedies.sys, "platform", system)
    monkeypatch.setattr(remedies.platform, "machine", lambda: processor)
    for wanted in (None, "nvidia"):
        with pytest.raises(DeviceError) as caught:
            device.choose(wanted)
        text = str(caught.value)
        assert text.startswith("No OpenCL driver was found") and "LLMCL_DEVICE=numpy" in text
        assert remedy in text and "\n" not in text


def test_platform_without_devices(machine, monkeypatch):
    machine(platform("Portable Computing Language", "OpenCL 3.0 PoCL 3.0"))
    monkeypatch.setattr(remedies, "closed_gpu_files", lambda: [])
    assert device.list_devices() == []
    with pytest.raises(DeviceError, match=r"OpenCL is here \(Portable.*no device.*=numpy"):
        device.choose()
    monkeypatch.setattr(remedies, "closed_gpu_files", lambda: ["/dev/dri/renderD128"])
    with pytest.raises(DeviceError, match="renderD128.*groups video and render"):
        device.choose()


def test_simulator_alone_is_not_chosen(machine):
    machine(OCLGRIND)
    with pytest.raises(DeviceError, match="LLMCL_DEVICE=oclgrind"):
        device.choose()


def test_simulator_does_not_replace_a_broken_device(machine):
    machine(OCLGRIND, POCL)["pthread-Intel(R) Xeon"] = "unknown target CPU"
    with pytest.raises(DeviceError, match="No OpenCL device works here.*unknown target CPU"):
        device.choose()


@pytest.mark.parametrize(
    "error, remedy",
    [
        (
            ModuleNotFoundError("No module named 'pyopencl'", name="pyopencl"),
            "pip install pyopencl",
        ),
        (ImportError("A module that was compiled using NumPy 1.x"), "--upgrade pyopencl numpy"),
        (ImportError("DLL load failed while importing _cl"), "stray OpenCL library"),
    ],
)
def test_pyopencl_that_cannot_be_imported(error, remedy):
    text = remedies.pyopencl_remedy(error)
    assert remedy in text and "LLMCL_DEVICE=numpy" in text and "\n" not in text


def test_import_failure_is_a_device_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(DeviceError, match="pyopencl"):
        device.import_pyopencl()


# ---- the trial -------------------------------------------------------------------------------


def real(kind):
    found = [info for info in device.list_devices() if info.kind == kind]
    if not found:
        pytest.skip(f"no {kind} here")
    return found[0]


@pytest.mark.parametrize("kind", ["gpu", "cpu", "simulator"])
def test_every_kind_of_device_here_passes(kind):
    result = device.try_device(real(kind))
    assert result.ok and result.note == "" and 0 < result.seconds < 60


def test_trial_gives_the_line_of_the_log(monkeypatch):
    import pyopencl as cl

    context, queue = device.open_device(real("cpu"))
    monkeypatch.setattr(trial, "SOURCE", "__kernel void trial(__global int *x) { x[0] = y; }\n")
    result = trial.run_trial(context, queue)
    assert not result.ok and "use of undeclared identifier 'y'" in result.note

    class Program:
        def __init__(self, *_):
            pass

        def build(self):
            raise cl.RuntimeError(LOG)

    monkeypatch.setattr(cl, "Program", Program)
    assert trial.run_trial(context, queue).note == "error: unknown target CPU 'znver9'"


def test_trial_compares_the_result(monkeypatch):
    context, queue = device.open_device(real("cpu"))
    monkeypatch.setattr(trial, "SOURCE", trial.SOURCE.replace("x[i] * x[i]", "x[i]"))
    result = trial.run_trial(context, queue)
    assert not result.ok and "a small sum came out as" in result.note


LOG = """clBuildProgram failed: BUILD_PROGRAM_FAILURE - clBuildProgram failed: \
BUILD_PROGRAM_FAILURE - clBuildProgram failed: BUILD_PROGRAM_FAILURE

Build on <pyopencl.Device 'pthread' on 'Portable Computing Language' at 0x1>:

warning: /cache/here/tempfile_1.cl:3:5: unused
error: unknown target CPU 'znver9'
1 error generated.
(options: -I /somewhere)"""


@pytest.mark.parametrize(
    "log, line",
    [
        (LOG, "error: unknown target CPU 'znver9'"),
        ("/home/한글 이름/a b/t_1.cl:9:6: error: no such y", "t_1.cl:9:6: error: no such y"),
        ("\nnothing known\nhere", "nothing known"),
        ("", ""),
    ],
)
def test_first_useful_line(log, line):
    assert first_useful_line(log).endswith(line)
    assert "clBuildProgram" not in first_useful_line(log)


@posix_only
@pytest.mark.parametrize(
    "script, note",
    [
        ("echo 'fatal error: unknown target CPU' >&2; kill -ILL $$", "SIGILL.*unknown target CPU"),
        ("exit 7", "status 7"),
        ("exec sleep 20", "did not end within"),
    ],
)
def test_child_that_dies_or_hangs(tmp_path, monkeypatch, script, note):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    python.chmod(0o700)
    monkeypatch.setattr(trial.sys, "executable", str(python))
    monkeypatch.setattr(trial, "TIMEOUT", 1.0)
    result = trial.try_apart([], "", Cache(tmp_path, "slot"))
    assert not result.ok
    assert re.search(note, result.note)


# ---- this machine ----------------------------------------------------------------------------


def test_real_choice_is_a_working_device_and_never_the_simulator(monkeypatch):
    monkeypatch.delenv("LLMCL_DEVICE", raising=False)
    real("cpu")
    got = device.choose()
    assert got.info.kind != "simulator" and got.trial.ok
    assert got.info.name in got.describe() and got.info.driver_version in got.describe()
    assert got.queue.context == got.context
    assert device.list_devices()[got.info.index] == got.info


def test_real_simulator_can_be_asked_for():
    last = device.list_devices()[-1]
    if last.kind != "simulator":
        pytest.skip("Oclgrind is not installed")
    got = device.choose("oclgrind", local_size=1)
    assert got.info == last and got.local_size == 1
    assert got.context.cache_dir is False  # its reports quote the source, which a cache has not


def test_nothing_is_left_in_the_environment():
    device.list_devices()
    names = ("POCL_CACHE_DIR", "OCL_ICD_VENDORS", "XDG_CACHE_HOME")
    folder = str(process_cache().folder)
    assert not any(folder in os.environ.get(name, "") for name in names)


SAY = "from llmcl.device import choose; print('got', choose().describe(), flush=True)"


@posix_only
def test_no_prompt_on_a_terminal_and_the_same_device_without_one():
    here, there = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SAY],
        cwd=ROOT,
        stdin=there,
        stdout=there,
        stderr=there,
        start_new_session=True,
    )
    os.close(there)
    seen, end = b"", time.monotonic() + 60
    while process.poll() is None and time.monotonic() < end:
        if select.select([here], [], [], 0.1)[0]:
            seen += read(here)
    while select.select([here], [], [], 0.1)[0] and (more := read(here)):
        seen += more
    assert process.poll() == 0, seen.decode("utf-8")
    lines = seen.decode("utf-8").split("\r\n")
    for stdin in (subprocess.DEVNULL, None):
        command = [sys.executable, "-c", SAY]
        if stdin is None:  # no standard input at all
            command = ["sh", "-c", 'exec "$0" "$@" <&-', *command]
        plain = subprocess.run(
            command,
            cwd=ROOT,
            stdin=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=True,
        )
        assert plain.stdout.splitlines() == [line for line in lines if line]


def read(descriptor):
    try:
        return os.read(descriptor, 4096)
    except OSError:  # the other end is closed
        return b""


@posix_only
def test_forked_process_is_told_rather_than_left_hanging():
    code = """
import os
from llmcl.device import choose
from llmcl.errors import DeviceError
choose()
child = os.fork()
if child == 0:
    try:
        choose()
    except DeviceError as error:
        os._exit(0 if "spawn" in str(error) else 3)
    os._exit(4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "0"


# ---- vendors ---------------------------------------------------------------------------------


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A system folder with one good and one dead entry, and Intel's library from a wheel."""
    system, intel = tmp_path / "vendors", tmp_path / "libintelocl.so"
    system.mkdir()
    intel.touch()
    (system / "nvidia.icd").write_text("libnvidia-opencl.so.1\n", encoding="utf-8")
    (system / "dead.icd").write_text("/opt/nowhere/libdead.so\n", encoding="utf-8")
    monkeypatch.setattr(vendors, "vendor_folders", lambda: [system, tmp_path / "missing"])
    monkeypatch.setattr(vendors, "intel_library", lambda: intel)
    monkeypatch.setattr(vendors, "nvidia_files", lambda: [])
    monkeypatch.setattr(vendors, "_added", [])
    for name in ("OCL_ICD_VENDORS", "POCL_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    return SimpleNamespace(system=system, intel=intel, cache=Cache(tmp_path, "slot"))


def test_intels_runtime_stands_beside_what_the_system_has(folders):
    with vendors.first_query(folders.cache, []):
        chosen = Path(os.environ["OCL_ICD_VENDORS"])
    told = {file.name: file.read_text(encoding="utf-8").strip() for file in chosen.iterdir()}
    assert told == {
        "nvidia.icd": "libnvidia-opencl.so.1",
        "llmcl-intel-cpu.icd": str(folders.intel),
    }
    assert "OCL_ICD_VENDORS" not in os.environ
    assert vendors.added_libraries() == [str(folders.intel)]


@pytest.mark.parametrize("case", ["set by the user", "not installed", "registered by the system"])
def test_vendor_folder_is_left_alone(folders, monkeypatch, case):
    if case == "set by the user":
        monkeypatch.setenv("OCL_ICD_VENDORS", "theirs")
    elif case == "not installed":
        monkeypatch.setattr(vendors, "intel_library", lambda: None)
    else:
        (folders.system / "intel.icd").write_text(str(folders.intel), encoding="utf-8")
    with vendors.first_query(folders.cache, []):
        assert os.environ.get("OCL_ICD_VENDORS") == ("theirs" if "user" in case else None)
    assert vendors.added_libraries() == []


@pytest.mark.parametrize("entry", [True, False])
def test_nvidias_driver_without_an_entry_is_named(folders, monkeypatch, entry):
    monkeypatch.setattr(vendors, "intel_library", lambda: None)
    monkeypatch.setattr(vendors, "nvidia_files", lambda: [Path("/dev/nvidia0")])
    if not entry:
        (folders.system / "nvidia.icd").unlink()
    with vendors.first_query(folders.cache, []):
        pass
    assert vendors.added_libraries() == ([] if entry else ["libnvidia-opencl.so.1"])


def test_pocl_cache_of_the_user_is_respected_if_it_can_be_used(folders, monkeypatch, tmp_path):
    notes = []
    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path / "mine"))
    with vendors.first_query(folders.cache, notes):
        assert os.environ["POCL_CACHE_DIR"] == str(tmp_path / "mine")
    monkeypatch.setenv("POCL_CACHE_DIR", str(folders.intel / "below a file"))
    assert notes == []
    with vendors.first_query(folders.cache, notes):
        assert os.environ["POCL_CACHE_DIR"] == str(tmp_path / "pocl")
    assert os.environ["POCL_CACHE_DIR"] == str(folders.intel / "below a file")
    assert "POCL_CACHE_DIR" in notes[0] and "below a file" in notes[0]


@linux_only
def test_linker_without_a_compiler(tmp_path, monkeypatch):
    """The script passes everything on but the libraries that come with a compiler."""
    linker = tmp_path / "my ld"
    linker.write_text('#!/bin/sh\nfor a in "$@"; do echo "[$a]"; done\n', encoding="utf-8")
    linker.chmod(0o700)
    monkeypatch.setattr(vendors, "_LIBGCC", ("/nowhere/*",))
    monkeypatch.setattr(vendors, "find_linker", lambda: [str(linker), "ld.lld"])
    monkeypatch.setenv("COMPILER_PATH", "/theirs")
    vendors.prepare_linker(Cache(tmp_path, "slot"))
    folder, theirs = os.environ["COMPILER_PATH"].split(os.pathsep)
    assert theirs == "/theirs"
    arguments = ["-shared", "-o", "a b.so", "-lgcc", "--as-needed", "-lgcc_s", "-lc", "x.o"]
    done = subprocess.run(
        [Path(folder, "ld"), *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[:-1] == [
        "[ld.lld]",
        "[-shared]",
        "[-o]",
        "[a b.so]",
        "[--as-needed]",
        "[x.o]",
    ]


@linux_only
@pytest.mark.parametrize("linker", [None, ["ld"]])
def test_linker_is_left_alone(tmp_path, monkeypatch, linker):
    """Nothing to offer, or nothing to mend."""
    monkeypatch.delenv("COMPILER_PATH", raising=False)
    monkeypatch.setattr(vendors, "find_linker", lambda: linker)
    monkeypatch.setattr(vendors, "_there", lambda _: linker is not None)
    monkeypatch.setattr(vendors.shutil, "which", lambda name: "/usr/bin/ld")
    vendors.prepare_linker(Cache(tmp_path, "slot"))
    assert "COMPILER_PATH" not in os.environ


# ---- the doctor ------------------------------------------------------------------------------


def test_doctor_on_this_machine():
    report = device.doctor_report()
    assert json.loads(json.dumps(report)) == report
    text = device.format_doctor(report)
    for entry in report["devices"]:
        assert entry["trial"]["ok"], entry
        assert entry["name"] in text and entry["driver_version"] in text
    assert report["chosen"]["device"] in text
    assert str(process_cache().folder) in text
    assert report["versions"]["pyopencl"] in text
    loader = report["loader"]  # a driver that is missing, or a loader that looks elsewhere
    assert f"loader: {loader['library'] or 'not visible'}" in text
    assert loader["vendor_folders"]
    for folder in loader["vendor_folders"]:
        assert f"{folder['folder']}: " in text
        assert all(f"{name} -> {library}" in text for name, library in folder["files"].items())


def test_doctor_names_a_gpu_that_opencl_does_not_see(machine, monkeypatch):
    machine(POCL)
    seen = [{"vendor": "NVIDIA", "signs": ["/dev/nvidia0", "nvidia-smi"]}]
    monkeypatch.setattr(doctor, "gpus_seen_by_system", lambda: seen)
    report = device.doctor_report()
    (todo,) = [sentence for sentence in report["remedies"] if "NVIDIA" in sentence]
    assert "/dev/nvidia0, nvidia-smi" in todo and "libnvidia-opencl.so.1" in todo
    assert todo in device.format_doctor(report)
    machine(POCL, NVIDIA)
    assert not any("NVIDIA" in sentence for sentence in device.doctor_report()["remedies"])


def test_doctor_without_any_device(machine):
    machine()
    report = device.doctor_report()
    assert report["chosen"]["device"] is None
    text = device.format_doctor(report)
    assert "No OpenCL driver was found" in text and "no device" in text


def test_doctor_with_a_broken_first_device(machine):
    machine(NVIDIA, POCL)["H200"] = "error: unknown target CPU"
    text = device.format_doctor(device.doctor_report())
    assert "FAILS: error: unknown target CPU" in text
    assert "* 1: pthread-Intel(R) Xeon" in text and "was passed over" in text


def test_doctor_without_pyopencl(monkeypatch):
    def fail():
        raise DeviceError("pyopencl is not installed; run `pip install pyopencl`.")

    monkeypatch.setattr(device, "_query_platforms", fail)
    text = device.format_doctor(device.doctor_report())
    assert "pip install pyopencl" in text and "chosen: none" in text
