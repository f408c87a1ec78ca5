"""Numbers that follow from a text, the same in every version of Python and of NumPy."""

import hashlib


class Draw:
    """Whole numbers drawn by a text, one after the other."""

    def __init__(self, seed: str):
        self._seed, self._drawn = seed, 0

    def whole(self, low: int, high: int, step: int = 1) -> int:
        """A whole number from low to high, both possible."""
        self._drawn += 1
        digest = hashlib.sha256(f"{self._seed}\n{self._drawn}".encode()).digest()
        return low + step * (int.from_bytes(digest[:8], "big") % ((high - low) // step + 1))

    def pick(self, values):
        """One of the values."""
        return values[self.whole(0, len(values) - 1)]

    def some(self, count: int, low: int = -3, high: int = 3) -> list[int]:
        """Whole numbers that are not all the same."""
        while True:
            values = [self.whole(low, high) for _ in range(count)]
            if len(set(values)) > 1:
                return values
