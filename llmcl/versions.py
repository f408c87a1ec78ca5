"""Which version of each kernel a device gets: the one place where this is decided.

Every version of a kernel gives the same result within its bound, and is checked by the same tests.
A timed trial chooses only between blocks of the CPU's product, which a test proves equal to the
last bit; what it found is kept for the device and its driver.
"""

import time
from dataclasses import dataclass

import numpy as np

TILE = 16  # the tile of matmul_tiled


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


@dataclass(frozen=True)
class Block:
    """What a work-item of matmul_blocked computes: `stack` blocks of rows x (16 vectors)."""

    rows: int
    vectors: int
    stack: int

    @property
    def options(self) -> tuple[str, ...]:
        """The compiler's options for kernels/matmul.cl."""
        own = {"TILE": TILE, "ROWS": self.rows, "VECTORS": self.vectors, "STACK": self.stack}
        return tuple(f"-D{name}={value}" for name, value in own.items())

    def grid(self, m: int, n: int) -> tuple[int, int]:
        """How many work-items a result of m x n needs."""
        return -(-n // (16 * self.vectors)), -(-m // (self.rows * self.stack))


# Twelve sums in registers of 8 numbers, and in registers of 16.
BLOCKS = (Block(6, 1, 8), Block(12, 2, 4))


def choose_block(engine) -> Block:
    """The fastest of BLOCKS on the engine's device, from the cache or from a short trial."""
    if engine.exact or engine.device.info.kind == "simulator":
        return BLOCKS[0]  # speed is not what such an engine is for
    from .cache import process_cache

    cache, key = process_cache(), f"block of {BLOCKS} on {engine.device.info.identity()[1:]}"
    known = cache.choice(key)
    if known is None:
        known = _fastest(engine)
        cache.keep_choice(key, known)
    return BLOCKS[known]


def _fastest(engine) -> int:
    """The number of the fastest block at a product of the default model's size."""
    m, k, n = 384, 256, 384
    a, b = engine.from_host(np.ones((m, k))), engine.from_host(np.ones((k, n)))
    c, best = engine.empty((m, n)), [float("inf")] * len(BLOCKS)
    for turn in range(8):
        for i, block in enumerate(BLOCKS):
            kernel = engine.program.kernel("matmul", "matmul_blocked", block.options)
            engine.finish()
            start = time.perf_counter()
            kernel(block.grid(m, n), (1, 1), a, b, None, None, c, m, n, k)
            engine.finish()
            if turn:  # the first run compiles
                best[i] = min(best[i], time.perf_counter() - start)
    # The first block stays unless another is clearly faster: noise must not decide.
    fastest = int(np.argmin(best))
    return fastest if best[fastest] < 0.9 * best[0] else 0
