"""The one line of `llmcl doctor --class`, which a teacher collects from every learner.

    llmcl-class=ok llmcl=0.1.0 python=3.11.7 system=Linux-x86_64 device=cpu-… kernels=61-of-61 …

Words without spaces, each a name, an equals sign and a value. It holds no folder, no name of the
machine or of its user, and no free text, so it can be sent to anybody.
"""

import importlib.util
import platform
import re
from collections.abc import Iterable

from . import __version__
from .cache import process_cache
from .check import check_all
from .engine import get_engine
from .errors import LlmclError

FIRST = "llmcl-class"
# What the extra `lab` brings; the kernel behind a notebook comes with JupyterLab or ipywidgets.
LESSON_PACKAGES = ("jupyterlab", "ipywidgets", "matplotlib", "ipykernel")
LONGEST_VALUE = 40


def class_values() -> dict[str, str]:
    """The values of the line by name; `llmcl-class` is ok if the lessons will run, else no.

    The chosen device runs every kernel once, so this takes seconds. Raises nothing.
    """
    name, kernels = _tried()
    missing = [p for p in LESSON_PACKAGES if importlib.util.find_spec(p) is None]
    cache = _cache()
    ok = kernels != "wrong" and name != "none" and not missing and cache != "none"
    values = {
        FIRST: "ok" if ok else "no",
        "llmcl": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()}-{platform.machine()}",
        "device": name,
        "kernels": kernels,
        "cache": cache,
        "lessons": "lack-" + ",".join(missing) if missing else "yes",
        "llama.cpp": "yes" if importlib.util.find_spec("xllamacpp") else "no",
    }
    return {key: _word(value) for key, value in values.items()}


def class_line(values: dict[str, str]) -> str:
    """The values as one line."""
    return " ".join(f"{name}={value}" for name, value in values.items())


def read_lines(lines: Iterable[str]) -> list[dict[str, str]]:
    """The values of every class line among some lines, whatever else stands in them."""
    found = (re.search(rf"{FIRST}=(?:ok|no)(?: [\w.-]+=\S*)*", line) for line in lines)
    return [dict(word.split("=", 1) for word in match[0].split()) for match in found if match]


def _tried() -> tuple[str, str]:
    """(the chosen device, what its kernels came to): "12-of-12", "wrong", "unchecked"."""
    try:
        engine = get_engine()
        if engine.device is None:
            return "numpy", "unchecked"  # nothing to compare: the lessons run on NumPy alone
        name = f"{engine.device.info.kind}-{engine.device.info.name}"
    except LlmclError:
        return "none", "unchecked"
    try:
        results = [found.ok for _, comparisons, _ in check_all(engine) for found in comparisons]
    except Exception:  # a driver raises what it likes; every kernel must end well
        return name, "wrong"
    return name, f"{sum(results)}-of-{len(results)}" if all(results) else "wrong"


def _cache() -> str:
    """Whether compiled kernels are kept: "kept", "temporary", or "none" without any folder."""
    try:
        return {"slot": "kept", "lent": "kept"}.get(process_cache().kind, "temporary")
    except LlmclError:
        return "none"


def _word(value: str) -> str:
    """The value without spaces, signs of paths, or anything long."""
    return re.sub(r"[^A-Za-z0-9.,()+-]+", "_", value).strip("_")[:LONGEST_VALUE]
