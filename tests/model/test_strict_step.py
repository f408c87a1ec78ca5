"""A whole training step, and a text with the cache, on the strict device."""

import json

from strict import needs_oclgrind, run_strict

pytestmark = needs_oclgrind
START = """
import dataclasses, json
from model_helpers import assert_gradients_agree, make_model, rounding_of_a_pass
from llmcl import reference, versions
from llmcl.config import Config
from llmcl.generate import generate
from llmcl.optimizer import AdamW, AdamWSettings

config = Config(vocab_size=11, context_length=7, d_model=10, n_heads=2, n_layers=1, d_ff=9)

def use(chosen):
    for field in dataclasses.fields(chosen):
        setattr(engine, field.name, getattr(chosen, field.name))
"""
STEP = """
rng = np.random.default_rng(0)
ids, targets = rng.integers(0, 11, (2, 5)), rng.integers(-1, 11, (2, 5))
found = []

def step(engine):
    model = make_model(engine, config)
    optimizer = AdamW(model, AdamWSettings(decay=0.1))
    loss = model.loss(ids, targets)
    model.backward()
    assert engine.to_host(optimizer.step(loss, 0.01))[2] == 1
    gradients = {name: engine.to_host(g) for name, g in model.gradients.items()}
    return gradients, generate(model, [1, 2, 3], max_new_tokens=4, use_cache=False)

want, text = step(reference.Engine())
for chosen in (versions.CPU, versions.GPU):
    use(chosen)
    got, again = step(engine)
    assert_gradients_agree(got, want, rounding_of_a_pass(config, 2, 5))
    assert again == text
print("right")
"""
TEXT = """
texts = []
for chosen in (versions.CPU, versions.GPU):
    use(chosen)
    texts.append(generate(make_model(engine, config), [1, 2, 3]))
texts.append(generate(make_model(reference.Engine(), config), [1, 2, 3]))
print(json.dumps(texts))
"""


def test_a_training_step_is_clean_and_right(tmp_path):
    run = run_strict(START + STEP, tmp_path)
    assert run.output.split() == ["right"]
    assert run.findings == ""


def test_a_text_with_the_cache_is_clean_and_right(tmp_path):
    run = run_strict(START + TEXT, tmp_path, uninitialized=False)
    texts = json.loads(run.output)
    assert texts[0] == texts[1] == texts[2] and len(texts[0]) == 4
    assert run.findings == ""
