"""Dockerfile, devcontainer and Binder set up what make and the README set up; see also
tests/classroom/test_containers.py, which runs their commands."""

import importlib.util
import json
import os
import re
import tomllib

from container_files import ROOT, devcontainer, dockerfile, extras

LESSONS = {"lab", "verify", "linker"}  # what the lessons need on a machine without a C compiler


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")


def test_all_ways_name_the_same_extras_and_the_project_has_them():
    (install,) = [rest for word, rest in dockerfile() if "pip install" in rest]
    assert extras(install) == LESSONS
    assert extras(devcontainer()["postCreateCommand"]) == LESSONS
    assert extras(text_of(".binder/requirements.txt")) == LESSONS
    spec = importlib.util.spec_from_file_location("wheelhouse", ROOT / "deploy/wheelhouse.py")
    wheelhouse = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(wheelhouse)
    assert {*wheelhouse.EXTRAS.split(","), "linker"} == LESSONS
    known = tomllib.loads(text_of("pyproject.toml"))["project"]["optional-dependencies"]
    assert set(known) >= LESSONS
    # make and the README install the extra dev, which holds the lessons' own; make adds the linker.
    assert {"lab", "verify"} <= extras(known["dev"][0])
    assert "$(PIP) '.[dev]'" in text_of("Makefile") and "'.[linker]'" in text_of("Makefile")
    assert ".venv/bin/pip install -e '.[dev]'" in text_of("README.md")


def test_the_dockerfile_runs_as_a_learner_and_starts_on_lesson_00():
    steps = dockerfile()
    words = [word for word, _ in steps]
    assert words[0] == "FROM" and words[-1] == "CMD" and words.count("FROM") == 2
    users = [rest for word, rest in steps if word == "USER"]
    assert users == ["learner"] and words.index("USER") < words.index("COPY")
    command = json.loads(steps[-1][1])
    assert command[0] == ".venv/bin/python"
    (page,) = [part for part in command if "default_url" in part]
    assert (ROOT / page.split("/lab/tree/")[1]).is_file()
    assert not any("token" in part or "password" in part for part in command)
    ignored = text_of(".dockerignore").split()
    assert {".git", ".venv*", "build"} <= set(ignored)


def test_the_devcontainer_builds_a_stage_that_is_there():
    about = devcontainer()
    stages = [rest.split(" AS ")[1] for word, rest in dockerfile() if " AS " in rest]
    assert about["build"]["target"] in stages
    assert (ROOT / ".devcontainer" / about["build"]["dockerfile"]).is_file()
    assert ("USER", about["remoteUser"]) in dockerfile()


def test_binder_takes_a_python_that_the_project_supports():
    found = re.fullmatch(r"python-3\.(\d+)\n", text_of(".binder/runtime.txt"))
    image = re.match(r"python:3\.(\d+)-slim", dict(reversed(dockerfile()))["FROM"])
    assert found and image is None or int(found[1]) == int(image[1]) >= 11
    assert os.access(ROOT / ".binder/postBuild", os.X_OK)
    assert "llmcl doctor --class" in text_of(".binder/postBuild")
