"""Finds work-items that get into each other's way, in what run_items recorded."""


def shown(item: tuple[int, ...]) -> str:
    """A work-item's id as a reader sees it: 3, or (3, 5)."""
    return str(item[0]) if len(item) == 1 else str(item)


def find_races(run) -> None:
    """Notes, once for each array, an element that two work-items use and one of them writes.

    A barrier between the two makes it right, if they are in one group.
    """
    users: dict[tuple, dict] = {}
    for access in run.accesses:
        group = tuple(i // n for i, n in zip(access.item, run.local, strict=True))
        own = group if access.array in run.locals else None
        users.setdefault((access.array, access.place, own), {})[access[0], access[3:]] = group
    noted = set()
    for (array, place, _), found in sorted(users.items(), key=lambda pair: pair[0][:2]):
        pair = None if array in noted else _race(found)
        if pair:
            noted.add(array)
            run.find(
                f"work-items {shown(pair[0])} and {shown(pair[1])} both use {array}[{place}], one "
                "of them writes it, and no barrier stands between"
            )


def _race(users: dict) -> tuple | None:
    """Two work-items that get into each other's way at one element, or None."""
    writers = [key for key in users if key[1][0] != "read"]
    for writer in writers:
        for other in users:
            apart = writer[0] != other[0]
            together = users[writer] != users[other] or writer[1][1] == other[1][1]
            both_atomic = writer[1][0] == other[1][0] == "atomic"
            if apart and together and not both_atomic:
                return tuple(sorted((writer[0], other[0])))
    return None
