"""Where each parameter lies in the one flat buffer that holds them all."""

import math

# A sub-buffer must start at a multiple of the device's alignment; 1024 bytes suit every device.
STEP = 1024 // 4


def layout(shapes: dict[str, tuple[int, ...]]) -> tuple[dict[str, int], int]:
    """(the first element of every part by name, the length of the whole), in float32 elements.

    Every part starts at a multiple of 1024 bytes, so the layout is the same on every device.
    """
    starts, end = {}, 0
    for name, shape in shapes.items():
        starts[name] = end
        end += -(-math.prod(shape) // STEP) * STEP
    return starts, end
