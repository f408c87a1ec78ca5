"""The Dockerfile and its like, read as far as the tests need them."""

import fnmatch
import json
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INSTRUCTIONS = {"FROM", "RUN", "USER", "WORKDIR", "COPY", "EXPOSE", "CMD"}  # those that we use


def dockerfile() -> list[tuple[str, str]]:
    """(instruction, its text) in order; raises ValueError for a line that is none we know."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    found = []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        if word not in INSTRUCTIONS:
            raise ValueError(f"{word} is no instruction that the tests know")
        found.append((word, re.sub(r"\s+", " ", rest)))
    return found


def devcontainer() -> dict:
    """The values of devcontainer.json."""
    return json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))


def extras(text: str) -> set[str]:
    """The extras in the one `.[…]` of a text."""
    (found,) = re.findall(r"(?:\.|llmcl)\[([a-z,]+)\]", text)
    return set(found.split(","))


def copy_context(target: Path) -> None:
    """Copies what `COPY . .` copies: the checkout without what .dockerignore names."""
    patterns = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    anywhere = [p.removeprefix("**/") for p in patterns if p.startswith("**/")]
    on_top = [p for p in patterns if not p.startswith("**/")]

    def ignored(folder, names):
        rules = anywhere + (on_top if Path(folder) == ROOT else [])
        return [name for name in names if any(fnmatch.fnmatch(name, rule) for rule in rules)]

    shutil.copytree(ROOT, target, ignore=ignored)
