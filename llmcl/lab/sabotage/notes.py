"""What a student says about each fault: kept in a file beside the copy, for whoever grades it."""

import json
from pathlib import Path

from ...errors import LlmclError
from ...files import replacing
from .faults import GROUPS

FILE = "findings.json"


def note_finding(folder: Path, group: str, file: str, function: str, why: str) -> None:
    """Keeps what was found in a group: the file, the function or name in it, and one reason.

    Raises LlmclError for a group that does not exist.
    """
    if group not in GROUPS:
        raise LlmclError(f"there is no group {group!r}; choose one of {', '.join(GROUPS)}.")
    found = read_findings(folder)
    found[group] = {"file": file.strip(), "function": function.strip(), "why": why.strip()}
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    with replacing(Path(folder) / FILE, LlmclError) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    print(f"{group}: noted, {len(found)} of {len(GROUPS)}.")


def read_findings(folder: Path) -> dict[str, dict[str, str]]:
    """What is noted so far, by group; empty where nothing is, or nothing that can be read."""
    try:
        found = json.loads((Path(folder) / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    fields = ("file", "function", "why")
    return {
        group: {name: str(entry.get(name, "")) for name in fields}
        for group, entry in (found.items() if isinstance(found, dict) else ())
        if group in GROUPS and isinstance(entry, dict)
    }
