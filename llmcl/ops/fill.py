"""One value for every element."""


def fill(x, value):
    """Writes value into every element of x."""
    x.engine.launch("fill", "fill", x.size, x, float(value), x.size)
