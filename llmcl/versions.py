"""Which version of each kernel a device gets: the one place where this is decided.

Every version of a kernel gives the same result within its bound, and is checked by the same tests.
A timed trial chooses only between blocks of the CPU's product, which a test proves equal to the
last bit; what it found is kept for the device and its driver.
"""

import math
import time
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

TILE = 16  # the tile of matmul_tiled


@dataclass(frozen=True)
class Versions:
    """The choices for a kind of device.

    product: "blocked" (registers), "tiled" (local memory) or "grouped" (both) matrix products.
    wide: whether a work-item takes eight numbers at a time, as suits a CPU, or one, as suits a GPU.
    groups: whether a whole work-group shares a row.
    """

    product: str
    wide: bool
    groups: bool


CPU = Versions(product="blocked", wide=True, groups=False)
GPU = Versions(product="grouped", wide=False, groups=True)
SMALL_GPU = Versions(product="tiled", wide=False, groups=False)


def versions_for(info) -> Versions:
    """The versions for an llmcl.device.DeviceInfo. A GPU with small groups is treated as a CPU."""
    if info.kind != "gpu" or info.max_group_size < TILE * TILE:
        return CPU
    return GPU if info.local_mem_bytes >= 32 * 1024 else SMALL_GPU


@dataclass(frozen=True)
class Tile:
    """What a group of matmul_group computes, and how: see kernels/matmul_gpu.cl.

    A tile of m x n results, k steps of the sum at a time, item_m x item_n results for a work-item,
    and `slices` sets of items that share the steps. buffers: with 2, the next tiles are written
    while these are read. resident: how many groups a compute unit of an NVIDIA H200 holds at once;
    rate: its speed there, measured at 4096 x 4096 x 4096, the largest 1.
    """

    m: int
    n: int
    k: int
    item_m: int
    item_n: int
    slices: int
    buffers: int
    resident: int
    rate: float

    @property
    def items(self) -> int:
        """How many work-items a group has."""
        return self.m // self.item_m * (self.n // self.item_n) * self.slices

    @lru_cache(maxsize=4096)  # noqa: B019  (the tiles live as long as the module)
    def options(self, m: int, n: int, k: int, transpose_a: bool, transpose_b: bool):
        """The compiler's options for a product of these sizes."""
        a_row, b_row = (m if transpose_a else k), (k if transpose_b else n)
        widths = [4 if row % 4 == 0 else 1 for row in (a_row, b_row, n)]
        own = {
            "TILE_M": self.m, "TILE_N": self.n, "TILE_K": self.k, "ITEM_M": self.item_m,
            "ITEM_N": self.item_n, "SLICES": self.slices, "BUFFERS": self.buffers,
            "A_T": int(transpose_a), "B_T": int(transpose_b), "A_WIDTH": widths[0],
            "B_WIDTH": widths[1], "C_WIDTH": widths[2],
        }  # fmt: skip
        return tuple(f"-D{name}={value}" for name, value in own.items())


BIG = Tile(64, 128, 8, 16, 8, 1, 2, 4, 1.0)
MIDDLE = Tile(64, 64, 16, 8, 8, 1, 1, 6, 0.9)
SMALL = Tile(16, 32, 32, 4, 4, 4, 1, 0, 0.0)
TILES = (BIG, MIDDLE, SMALL)


@lru_cache(maxsize=4096)
def choose_tile(m: int, n: int, k: int, units: int) -> tuple[Tile, int]:
    """(tile, parts) for a product on a GPU of so many compute units, by a fixed estimate.

    A chip that the tiles do not fill takes small ones, and so does a thin result. Otherwise the sum
    may be cut into parts, so that the last wave of groups is not left half empty; the price is a
    second launch.
    """

    def blocks(tile):
        return -(-m // tile.m) * -(-n // tile.n)

    if min(m, n) <= 32 or blocks(MIDDLE) < units:
        return SMALL, 1
    best = (float("inf"), MIDDLE, 1)
    for tile in (BIG, MIDDLE):
        for parts in (1, 2, 3, 4, 6, 8):
            if parts > 1 and (k < 512 * parts or blocks(tile) > 16 * units):
                continue
            waves = -(-blocks(tile) * parts // (units * tile.resident))
            cost = waves * tile.resident * tile.m * tile.n * (k / parts) / tile.rate
            if parts > 1:
                cost += m * n * (parts + 2) * 28 / units + 7e5
            best = min(best, (cost, tile, parts), key=lambda choice: choice[0])
    return best[1:]


@dataclass(frozen=True)
class AttentionTile:
    """What a group of fused_attention_gpu.cl owns: `rows` of a head.

    A work-item owns item_rows of them; `across` items share a row. `depth` channels at a time pass
    through local memory.
    """

    rows: int
    item_rows: int
    across: int
    depth: int

    @property
    def items(self) -> int:
        """How many work-items a group has."""
        return self.rows // self.item_rows * self.across

    @lru_cache(maxsize=64)  # noqa: B019  (the tiles live as long as the module)
    def options(self, d_head: int) -> tuple[str, ...]:
        """The compiler's options for heads of this width."""
        own = {
            "D_HEAD": d_head, "TILE": self.rows, "R": self.item_rows, "ITEMS_X": self.across,
            "DEPTH": self.depth,
        }  # fmt: skip
        return tuple(f"-D{name}={value}" for name, value in own.items())


# (rows at most, channels of a head at most, tile); the first that fits is taken.
ANY = math.inf
ATTENTION_TILES = (
    (32, 128, AttentionTile(32, 4, 8, 16)),
    (ANY, 32, AttentionTile(64, 4, 8, 16)),
    (ANY, 64, AttentionTile(64, 8, 16, 16)),
    (ANY, 128, AttentionTile(64, 8, 16, 8)),
)


def choose_attention_tile(rows: int, d_head: int) -> AttentionTile | None:
    """The tile for a head of so many rows and channels; None where local memory is too small."""
    for most_rows, most_channels, tile in ATTENTION_TILES:
        if rows <= most_rows and d_head <= most_channels:
            return tile
    return None


@dataclass(frozen=True)
class Block:
    """What a work-item of the CPU's products computes: `stack` blocks of rows x (16 vectors).

    One that packs computes more, so that its packing is used more often: see kernels/matmul.cl.
    """

    rows: int
    vectors: int
    stack: int
    depth: int = 256

    @cached_property
    def options(self) -> tuple[str, ...]:
        """The compiler's options for kernels/matmul.cl."""
        own = {
            "TILE": TILE, "ROWS": self.rows, "VECTORS": self.vectors, "STACK": self.stack,
            "DEPTH": self.depth,
        }  # fmt: skip
        return tuple(f"-D{name}={value}" for name, value in own.items())

    @property
    def local_bytes(self) -> int:
        """The most local memory that a kernel of kernels/matmul.cl takes."""
        return 4 * self.depth * max(16 * self.vectors, self.rows * ((self.stack + 1) // 2))

    def grid(self, name: str, m: int, n: int) -> tuple[int, int]:
        """How many work-items of the kernel `name` a result of m x n needs."""
        columns, rows = 16 * self.vectors, self.rows * self.stack
        if name == "matmul_packed":
            rows *= self.vectors
        if name == "matmul_packed_add":
            columns *= -(-128 // columns)
            rows = self.rows * ((self.stack + 1) // 2)
        return -(-n // columns), -(-m // rows)


# Twelve sums in registers of 8 numbers, and in registers of 16.
BLOCKS = (Block(6, 1, 8), Block(6, 2, 8))
# For a device of little local memory.
SHALLOW = Block(6, 1, 8, depth=64)


def choose_block(engine) -> Block:
    """The fastest of BLOCKS on the engine's device, from the cache or from a short trial."""
    # Half of it, because drivers keep some: Oclgrind has 32 KiB, and refused 24.
    room = engine.device.info.local_mem_bytes // 2
    fitting = [block for block in BLOCKS if block.local_bytes <= room] or [SHALLOW]
    if engine.exact or len(fitting) == 1:
        return fitting[0]  # speed is not what an exact engine is for
    from .cache import process_cache

    cache, key = process_cache(), f"block of {BLOCKS} on {engine.device.info.identity()[1:]}"
    known = cache.choice(key)
    if known is None:
        known = _fastest(engine)
        cache.keep_choice(key, known)
    return BLOCKS[known]


def _fastest(engine) -> int:
    """The number of the fastest block at a product of about the size that a training step has."""
    m, k, n = 384, 512, 512
    a, b = engine.from_host(np.ones((m, k))), engine.from_host(np.ones((k, n)))
    c, best = engine.empty((m, n)), [float("inf")] * len(BLOCKS)
    for turn in range(10):
        for i, block in enumerate(BLOCKS):
            kernel = engine.program.kernel("matmul", "matmul_blocked", block.options)
            engine.finish()
            start = time.perf_counter()
            for _ in range(5):  # a single launch may find one core asleep
                kernel(block.grid(kernel.name, m, n), (1, 1), a, b, None, None, c, m, n, k)
            engine.finish()
            if turn:  # the first run compiles
                best[i] = min(best[i], time.perf_counter() - start)
    # The first block stays unless another is faster by more than noise.
    fastest = int(np.argmin(best))
    return fastest if best[fastest] < 0.97 * best[0] else 0
