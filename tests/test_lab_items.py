"""Python functions that play kernels: results, findings, and an order that really is shuffled."""

import numpy as np
import pytest

from llmcl.errors import LlmclError
from llmcl.lab import items
from llmcl.lab.items import (
    atomic_inc,
    get_global_id,
    get_global_size,
    get_group_id,
    get_local_id,
    get_local_size,
    get_num_groups,
    local,
    run_items,
)

SEEDS = range(6)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def ones(*shape):
    return np.ones(shape, np.float32)


def add_one(x):
    x[get_global_id(0)] += 1


# ---- results ----


@pytest.mark.parametrize("seed", SEEDS)
def test_a_matrix_product_equals_numpys(seed):
    def matmul(a, b, c, m, n, k):
        row, col = get_global_id(0), get_global_id(1)
        if row >= m or col >= n:
            return
        start = a + row * k
        for p in range(k):
            c[row * n + col] += start[p] * b[p * n + col]

    m, n, k = 5, 7, 3
    rng = np.random.default_rng(seed)
    a, b, c = rng.integers(-9, 9, (m, k)), rng.integers(-9, 9, (k, n)), np.zeros((m, n), int)
    run = run_items(matmul, (m, n), a, b, c, m, n, k, group=(4, 2), seed=seed)
    assert np.array_equal(c, a @ b)
    assert run.findings == []
    assert run.size == (8, 8)
    assert run.shapes == {"a": (m, k), "b": (k, n), "c": (m, n)}


def tree_sum(x, total, scratch):
    i = get_local_id(0)
    scratch[i] = x[get_global_id(0)]
    yield
    width = get_local_size(0) // 2
    while width:
        if i < width:
            scratch[i] += scratch[i + width]
        yield
        width //= 2
    if i == 0:
        total[get_group_id(0)] = scratch[0]


def tree_sum_without_barriers(x, total, scratch):
    for _ in tree_sum(x, total, scratch):
        pass


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tree_sum_with_barriers_never_depends_on_luck(seed):
    x, total = np.arange(32, dtype=np.float32), zeros(4)
    run = run_items(tree_sum, 32, x, total, local(8), group=8, seed=seed)
    assert np.array_equal(total, x.reshape(4, 8).sum(axis=1))
    assert run.findings == []
    assert run.locals == {"scratch"}


def test_without_barriers_the_answer_is_luck():
    answers = set()
    for seed in SEEDS:
        total = zeros(1)
        run = run_items(
            tree_sum_without_barriers, 8, np.arange(8, dtype=np.float32), total, local(8),
            group=8, seed=seed,
        )  # fmt: skip
        answers.add(float(total[0]))
        assert any("both use scratch" in finding for finding in run.findings)
        assert any("which nobody has written" in finding for finding in run.findings)
    assert len(answers) > 1


def test_every_work_item_knows_who_it_is():
    def note(ids):
        x, y = get_global_id(0), get_global_id(1)
        assert (get_global_size(0), get_global_size(1), get_global_size(2)) == (6, 4, 1)
        assert (get_local_size(0), get_local_size(1), get_local_size(2)) == (3, 2, 1)
        assert (get_num_groups(0), get_num_groups(1), get_num_groups(2)) == (2, 2, 1)
        assert (get_global_id(2), get_local_id(2), get_group_id(2)) == (0, 0, 0)
        assert x == get_group_id(0) * 3 + get_local_id(0)
        assert y == get_group_id(1) * 2 + get_local_id(1)
        ids[y * 6 + x] += 1

    ids = np.zeros((4, 6), int)
    run_items(note, (6, 4), ids, group=(3, 2))
    assert (ids == 1).all()


def test_a_global_size_is_rounded_up_to_whole_groups():
    def count(n):
        atomic_inc(n, 0)

    n = np.zeros(1, np.int32)
    assert run_items(count, 5, n, group=4).size == (8,)
    assert n[0] == 8


def test_a_size_may_have_three_dimensions():
    x = np.zeros((2, 3, 4), int)

    def fill(x):
        x[(get_global_id(2) * 3 + get_global_id(1)) * 4 + get_global_id(0)] += 1

    run = run_items(fill, (4, 3, 2), x)
    assert (x == 1).all()
    assert len(run.of((3, 2, 1))) == 2


# ---- the order ----


def order(seed, group=1):
    x = zeros(12)
    return [a.item[0] for a in run_items(add_one, 12, x, group=group, seed=seed).accesses][::2]


@pytest.mark.parametrize("group", [1, 4, 12])
def test_the_order_differs_between_seeds_and_is_the_same_for_one(group):
    orders = [order(seed, group) for seed in SEEDS]
    assert len({tuple(o) for o in orders}) > 1
    assert all(sorted(o) == list(range(12)) for o in orders)
    assert order(3, group) == order(3, group)


def test_groups_run_one_after_another():
    found = order(1, group=4)
    assert [len({i // 4 for i in found[at : at + 4]}) for at in (0, 4, 8)] == [1, 1, 1]
    assert found != sorted(found)


def test_what_is_recorded_is_what_was_touched():
    run = run_items(add_one, 3, zeros(3))
    assert run.of(2) == [((2,), "x", 2, "read", 0), ((2,), "x", 2, "write", 0)]
    assert run.of((2,)) == run.of(2)


def test_phases_count_the_barriers_passed():
    run = run_items(tree_sum, 4, ones(4), zeros(1), local(4), group=4)
    assert [a.phase for a in run.of(0) if a.array == "total"] == [3]


# ---- what a strict device would say ----


def only(run):
    assert len(run.findings) == 1, run.findings
    return run.findings[0]


def test_a_read_and_a_write_past_the_end():
    def shift(x, y):
        i = get_global_id(0)
        y[i] = x[i + 1]

    y = zeros(3)
    run = run_items(shift, 3, ones(3), y)
    assert only(run) == "work-item 2 reads x[3]; x has 3 elements"
    assert np.isnan(y[2])
    run = run_items(add_one, 4, np.zeros(3, np.int32))
    assert run.findings == [
        "work-item 3 reads x[3]; x has 3 elements",
        "work-item 3 writes x[3]; x has 3 elements",
    ]


def test_a_negative_place_does_not_count_from_the_end():
    def back(x):
        (x + 1)[get_global_id(0) - 2] = 5

    x = zeros(3)
    run = run_items(back, 2, x)
    assert only(run) == "work-item 0 writes x[-1]; x has 3 elements"
    assert x.tolist() == [5, 0, 0]


def test_an_atomic_past_the_end():
    def count(n):
        atomic_inc(n, 1)

    run = run_items(count, 1, np.zeros(1, np.int32))
    assert only(run) == "work-item 0 adds to n[1]; n has 1 elements"


def test_local_memory_that_nobody_has_written():
    def peek(y, scratch):
        scratch[get_local_id(0)] = 1
        yield
        y[get_global_id(0)] = scratch[2]

    run = run_items(peek, 4, zeros(4), local(3), group=2)
    assert sorted(run.findings) == [
        f"work-item {i} reads scratch[2], which nobody has written" for i in range(4)
    ]

    def count(scratch):
        atomic_inc(scratch, 0)

    assert "which nobody has written" in only(run_items(count, 1, local(1)))


def test_local_memory_is_new_in_each_group():
    def write_in_group_0(y, scratch):
        if get_group_id(0) == 0:
            scratch[0] = 1
        y[get_group_id(0)] = scratch[0]

    for seed in SEEDS:
        run = run_items(write_in_group_0, 2, zeros(2), local(1), seed=seed)
        assert only(run) == "work-item 1 reads scratch[0], which nobody has written"


def test_a_race_in_local_memory():
    def neighbour(y, scratch):
        i = get_local_id(0)
        scratch[i] = i
        y[get_global_id(0)] = scratch[get_local_size(0) - 1]

    run = run_items(neighbour, 2, zeros(2), local(2), group=2, seed=0)
    assert (
        "work-items 0 and 1 both use scratch[1], one of them writes it, and no barrier stands "
        "between" in run.findings
    )


def test_a_race_in_global_memory_in_one_group_and_between_groups():
    def all_in_one(x):
        x[0] = get_global_id(0)

    for group in (1, 2):
        assert "both use x[0]" in only(run_items(all_in_one, 2, zeros(1), group=group))


def read_after_barrier(x, y):
    i = get_global_id(0)
    x[i] = i
    yield
    y[i] = x[get_global_size(0) - 1 - i]


def test_a_barrier_helps_in_one_group_only():
    y = zeros(4)
    assert run_items(read_after_barrier, 4, zeros(4), y, group=4).findings == []
    assert y.tolist() == [3, 2, 1, 0]
    run = run_items(read_after_barrier, 4, zeros(4), zeros(4), group=2)
    assert only(run).startswith("work-items 0 and 3 both use x[")


def test_two_that_only_read_do_not_race():
    def copy(x, y):
        y[get_global_id(0)] = x[0]

    assert run_items(copy, 4, ones(1), zeros(4), group=2).findings == []


@pytest.mark.parametrize("seed", SEEDS)
def test_atomics_do_not_race_and_tell_what_was_there(seed):
    def count(n, before):
        before[get_global_id(0)] = atomic_inc(n, 0)

    n, before = np.zeros(1, np.int32), np.zeros(8, np.int32)
    run = run_items(count, 8, n, before, group=2, seed=seed)
    assert run.findings == []
    assert n[0] == 8
    assert sorted(before) == list(range(8))


def test_an_atomic_and_a_plain_read_race():
    def count(n, seen):
        atomic_inc(n, 0)
        seen[get_global_id(0)] = n[0]

    run = run_items(count, 2, np.zeros(1, np.int32), np.zeros(2, np.int32))
    assert "both use n[0]" in only(run)


def test_lost_updates_are_found_and_happen():
    def add(x):
        value = x[0]
        yield
        x[0] = value + 1

    x = zeros(1)
    run = run_items(add, 4, x, group=4)
    assert x[0] == 1
    assert "both use x[0]" in only(run)


def test_a_barrier_that_not_all_reach():
    def early(x):
        if get_global_id(0) == 2:
            return
        yield
        x[get_global_id(0)] = 1

    for seed in SEEDS:
        run = run_items(early, 4, zeros(4), group=4, seed=seed)
        assert only(run) == "work-item 0 waits at a barrier that work-item 2 never reaches"
    assert run_items(early, 4, zeros(4), group=1).findings == []


def test_two_barriers_at_once():
    def either(x):
        if get_global_id(0) % 2:
            yield
        else:
            yield
        x[get_global_id(0)] = 1

    def nested(x):
        yield from either(x)

    line = either.__code__.co_firstlineno
    want = (
        f"work-item 1 waits at the barrier in line {line + 2}, and work-item 0 at another, in "
        f"line {line + 4}"
    )
    assert only(run_items(either, 4, zeros(4), group=4)) == want
    assert only(run_items(nested, 4, zeros(4), group=4)) == want
    assert run_items(either, 4, zeros(4), group=1).findings == []


def test_a_report_prints_three_findings_and_how_many_more(capsys):
    run_items(add_one, 3, zeros(3)).report()
    run_items(add_one, 6, zeros(3)).report()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "✓ nothing to complain about"
    assert lines[1].startswith("work-item")
    assert lines[4] == "… and 3 more"


# ---- what is given wrongly ----


@pytest.mark.parametrize(
    ("size", "args", "group", "words"),
    [
        (3, (), 1, "add_one takes x; 0 were given"),
        (3, (zeros(3), 3), 1, "add_one takes x; 2 were given"),
        (3, (zeros(4, 4).T,), 1, "x does not lie row after row; pass np.ascontiguousarray"),
        (0, (zeros(3),), 1, "0 is no number of work-items"),
        (2.5, (zeros(3),), 1, "2.5 is no number of work-items"),
        ((1, 2, 3, 4), (zeros(3),), 1, "is no number of work-items"),
        ((), (zeros(3),), 1, "is no number of work-items"),
        (3, (zeros(3),), -1, "-1 is no number of work-items"),
        ((2, 2), (zeros(3),), 2, r"size \(2, 2\) and the group \(2,\) must have the same length"),
    ],
)
def test_wrong_arguments_are_named(size, args, group, words):
    with pytest.raises(LlmclError, match=words):
        run_items(add_one, size, *args, group=group)


@pytest.mark.parametrize("place", [1.0, np.float32(1), (0, 1), slice(2), "a", None])
def test_a_place_is_one_whole_number(place):
    def read(x):
        x[place]

    with pytest.raises(LlmclError, match="the place must be one whole number"):
        run_items(read, 1, zeros(3))


@pytest.mark.parametrize("count", [0, -1, 2.5, None])
def test_local_memory_has_a_size(count):
    with pytest.raises(LlmclError, match="is no memory"):
        local(count)


def test_ids_exist_only_inside_of_a_run():
    with pytest.raises(LlmclError, match="no work-item is running"):
        get_global_id(0)

    def fail(x):
        raise ValueError("own mistake")

    with pytest.raises(ValueError, match="own mistake"):
        run_items(fail, 1, zeros(1))
    assert items._current is None
