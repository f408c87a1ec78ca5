"""Which version of each kernel a device gets: the one place where this is decided.

Every version of a kernel gives the same result within its bound, and is checked by the same tests.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Versions:
    """The choices for a kind of device.

    product: "blocked" (registers) or "tiled" (local memory) matrix products. wide: whether a
    work-item takes eight numbers at a time, as suits a CPU, or one, as suits a GPU.
    """

    product: str
    wide: bool


CPU = Versions(product="blocked", wide=True)
GPU = Versions(product="tiled", wide=False)


def versions_for(info) -> Versions:
    """The versions for an llmcl.device.DeviceInfo. A GPU with small groups is treated as a CPU."""
    return GPU if info.kind == "gpu" and info.max_group_size >= 256 else CPU
