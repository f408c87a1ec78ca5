"""The same seed on the same device gives the same bits, in this process and in any other."""

import hashlib
import os
import subprocess
import sys

import numpy as np
from model_helpers import CONFIG, make_batch
from strict import ROOT

from llmcl.engine import get_engine
from llmcl.generate import generate
from llmcl.model import GPT
from llmcl.optimizer import AdamW, AdamWSettings, Schedule


def ten_steps(engine) -> str:
    """A hash of the weights and moments after ten steps, and of a text that is drawn then."""
    model = GPT(CONFIG, engine)
    model.initialize(7)
    optimizer, schedule = AdamW(model, AdamWSettings(decay=0.1)), Schedule(0.01, 10, 3)
    for k in range(1, 11):
        loss = model.loss(*make_batch(seed=k))
        model.backward()
        optimizer.step(loss, schedule.at(k))
    whole = hashlib.sha256()
    for arrays in (model.weights(), *optimizer.moments()):
        for name in sorted(arrays):
            whole.update(arrays[name].tobytes())
    whole.update(bytes(generate(model, [1, 2], max_new_tokens=20, temperature=1.0, seed=3)))
    return whole.hexdigest()


def test_two_engines_in_one_process_give_the_same_bits():
    engine = get_engine()
    assert ten_steps(engine) == ten_steps(engine) == ten_steps(get_engine())


def test_one_batch_asked_three_times_has_one_loss():
    model, (ids, targets) = GPT(CONFIG, get_engine()), make_batch()
    model.initialize(7)
    losses = [model.engine.to_host(model.loss(ids, targets)).tobytes() for _ in range(3)]
    assert len(set(losses)) == 1


def test_two_processes_give_the_same_bits():
    code = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'tests')!r}, "
        f"{str(ROOT / 'tests' / 'model')!r}]\n"
        "import test_repeatable\n"
        "print(test_repeatable.ten_steps(test_repeatable.get_engine()))"
    )
    # The second has one thread, where the device is PoCL.
    others = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300,
            env=os.environ | threads,
        ).stdout.split()[-1]
        for threads in ({}, {"POCL_MAX_PTHREAD_COUNT": "1"})
    ]  # fmt: skip
    assert others == [ten_steps(get_engine())] * 2


def test_the_bits_depend_on_the_seed_of_the_weights_and_on_the_batch():
    engine = get_engine()
    models = []
    for seed in (7, 8):
        model = GPT(CONFIG, engine)
        model.initialize(seed)
        models.append(model.weights()["token_embd.weight"])
    assert (models[0] != models[1]).any()
    assert (make_batch(seed=1)[0] != make_batch(seed=2)[0]).any()
    assert not np.isnan(models[0]).any()
