"""The order of devices, and which of them a name means. Both depend on nothing but the devices.

GPUs come first, those with memory of their own before those that share the host's; then CPUs:
PoCL, the newest before older ones, then others, Intel's runtime last (PoCL's wheel is the one
that every lesson is checked on); then accelerators; then Mesa's Clover, which is listed on
machines where it half works; and the simulator Oclgrind last. No timing enters, so that the same
machine gives the same order every time.
"""

import re

from .errors import DeviceError

_ORDER = {"gpu": 0, "cpu": 1, "accelerator": 2, "clover": 3, "simulator": 4}


def rank(info) -> tuple:
    """The sort key of a DeviceInfo: the smaller, the earlier in the list."""
    clover = "clover" in info.platform.lower()
    pocl = pocl_version(info.platform_version)
    intel_cpu = info.kind == "cpu" and info.platform.lower().startswith("intel")
    # On a GPU the vendor's own driver comes before PoCL's; on a CPU PoCL comes first.
    maker = (0 if pocl else 2 if intel_cpu else 1) if info.kind == "cpu" else (1 if pocl else 0)
    shared = info.kind == "gpu" and info.shares_memory
    return (
        _ORDER["clover" if clover else info.kind],
        shared,
        maker,
        tuple(-part for part in pocl),
        -info.compute_units,
        info.platform,
        info.name,
        info.driver_version,
    )


def pocl_version(platform_version: str) -> tuple[int, ...]:
    """(major, minor) of a PoCL platform's version text, () of any other."""
    match = re.search(r"pocl (\d+)\.(\d+)", platform_version, re.I)
    return tuple(int(part) for part in match.groups()) if match else ()


def short_version(platform_version: str) -> str:
    """`PoCL 3.0-rc2` from a long version text, or its first two words."""
    match = re.search(r"pocl \S+", platform_version, re.I)
    return match[0].rstrip(",") if match else " ".join(platform_version.split()[:2])


def find(devices: list, wanted: str | int) -> list:
    """The devices that `wanted` means, best first: a number, or words that must all be there.

    Words that the platform has go before words that only the device's name has: "intel" means
    Intel's runtime rather than PoCL on an Intel processor. Raises DeviceError if there is none.
    """
    text = str(wanted).strip().lower()
    words = text.split()
    if text.isdigit() and int(text) < len(devices):
        return [devices[int(text)]]
    matches = []
    for info in devices:
        # The leading "OpenCL 3.0" would make every platform answer to "3.0".
        version = re.sub(r"^OpenCL \S+\s*", "", info.platform_version, flags=re.I)
        platform = f"{info.platform} {version} {info.kind}".lower()
        in_platform = _found(platform, words)
        if len(_found(f"{platform} {info.name} {info.driver_version}".lower(), words)) < len(words):
            continue
        matches.append((text not in platform, -len(in_platform), info.index, info))
    if not matches:
        names = "; ".join(f"{info.index}: {info.label()}" for info in devices) or "none"
        raise DeviceError(
            f"No device is called {str(wanted)!r}; give a number or a part of a "
            f"name from this list: {names}; or 'numpy' for the NumPy engine."
        )
    return [match[-1] for match in sorted(matches, key=lambda match: match[:3])]


def _found(text: str, words: list[str]) -> list[str]:
    # A number must start where a number starts: "5.0" is not in "15.0.6".
    return [
        word
        for word in words
        if re.search((r"(?<![\d.])" if word[0].isdigit() else "") + re.escape(word), text)
    ]
