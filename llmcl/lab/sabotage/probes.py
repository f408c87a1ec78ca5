"""For each fault a test that would have caught it. m is the package under test.

They stand by themselves, as a student's would: sizes are odd and all different, NumPy in float64 or
a slope by a small step is the judge, and each looks at one thing.
"""

import tempfile
from pathlib import Path

import numpy as np

SIZES = {"context_length": 256, "d_model": 32, "n_heads": 4, "n_layers": 3, "d_ff": 96}


def _tokenizer(m):
    return m.tokenizer.ByteBPE.train(["the cat saw the sea", "the sea saw the cat"], 280)


def _numbers(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


def _close(got, want, share=1e-3):
    """Equal within a share of the largest: far above rounding, far below any fault."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    assert got.shape == want.shape and np.abs(got - want).max() <= share * np.abs(want).max()


def _model(m, engine):
    """A model with random weights of a size at which everything matters."""
    model = m.model.GPT(m.config.Config(vocab_size=71, **SIZES), engine)
    rng = np.random.default_rng(7)
    shapes = model.config.parameter_shapes().items()
    model.load_weights({n: rng.normal(0, 0.3, s) + ("norm.weight" in n) for n, s in shapes})
    return model


def _batch():
    rng = np.random.default_rng(5)
    return rng.integers(0, 71, (3, 11)), rng.integers(0, 71, (3, 11))


# ---- data ----


def the_target_is_the_next_token(m):
    """n tokens ask n - 1 questions, and each answer is the token after."""
    rows = m.data.windows([5, 6, 7, 8, 9], 256)
    assert rows == [([5, 6, 7, 8], [6, 7, 8, 9])]


def padding_never_counts(m):
    """A short row beside a long one: what is filled up has the target -1."""
    rows = [([1, 2, 3], [2, 3, 4]), ([5], [6])]
    _, targets = m.data.batch(rows, pad_id=9)
    assert targets.tolist() == [[2, 3, 4], [6, -1, -1]]


def _tuned(m):
    tokenizer = _tokenizer(m)
    dialogue = m.data.Dialogue("the cat", "saw the sea")
    return tokenizer, m.data.tune_rows([dialogue], tokenizer)[0]


def only_the_answer_counts(m):
    """As many targets count as the answer has tokens, and one more or less for its end."""
    tokenizer, (_, targets) = _tuned(m)
    counted = [t for t in targets if t >= 0 and t != tokenizer.end_id]
    assert tokenizer.decode(counted) == " saw the sea"


def the_answer_ends(m):
    """The last target of a dialogue is the end token."""
    tokenizer, (_, targets) = _tuned(m)
    assert targets[-1] == tokenizer.end_id


# ---- forward ----


def attention_is_numpy_s(m):
    """Heads narrower than the model, and scores large enough that their scale matters."""
    engine, qkv = m.engine.get_engine(), _numbers(2, 7, 3 * 20)
    y, _ = engine.fused_attention(engine.from_host(qkv), 4)
    _close(engine.to_host(y), m.reference.fused_attention(qkv, 4)[0])


def gelu_is_numpy_s(m):
    """Between -3 and 3, where the gate is neither open nor shut."""
    engine, x = m.engine.get_engine(), np.linspace(-3, 3, 37)
    _close(engine.to_host(engine.gelu(engine.from_host(x))), m.reference.gelu(x))


def positions_go_along_the_text(m):
    """More places than rows, so that the one cannot stand for the other."""
    engine = m.engine.get_engine()
    ids, tables = np.array([[3, 1, 3, 0, 2], [0, 2, 1, 1, 3]]), (_numbers(4, 7), _numbers(9, 7))
    got = engine.embedding(*map(engine.from_host, (ids, *tables)))
    _close(engine.to_host(got), m.reference.embedding(ids, *tables))


def every_parameter_matters(m):
    """After one backward pass, no tensor's gradient is zero as a whole."""
    model = _model(m, m.reference.Engine())
    model.loss(*_batch())
    model.backward()
    silent = [name for name, gradient in model.gradients.items() if not np.any(gradient)]
    assert not silent, silent


# ---- backward ----


def position_gradients_are_numpy_s(m):
    """Batch and time differ, and so do all the gradients."""
    engine, dx, ids = m.engine.get_engine(), _numbers(3, 5, 7), np.zeros((3, 5), np.int32)
    got, want = [engine.zeros((2, 7)), engine.zeros((9, 7))], [np.zeros((2, 7)), np.zeros((9, 7))]
    engine.embedding_backward(engine.from_host(ids), engine.from_host(dx), *got)
    m.reference.embedding_backward(ids, dx, *want)
    _close(engine.to_host(got[1]), want[1])


def the_head_teaches_the_table(m):
    """The head alone: what it adds to the table's gradient is dlogits^T x."""
    engine, x, dlogits = m.reference.Engine(), _numbers(1, 5, 7), _numbers(1, 5, 11)
    gradients = {"token_embd.weight": np.zeros((11, 7))}
    head = m.layers.Head(engine, {"token_embd.weight": _numbers(11, 7)}, gradients)
    head.forward(x)
    head.backward(dlogits)
    _close(gradients["token_embd.weight"], dlogits[0].T @ x[0])


def a_block_s_gradient_is_the_slope(m):
    """One block by itself, along one direction of its input, by a central difference."""
    block = _model(m, m.reference.Engine()).blocks[1]
    x, direction, dy = _numbers(3, 2, 5, 32)
    block.forward(x)
    got = (block.backward(dy) * direction).sum()
    ahead, behind = (block.forward(x + h * direction) for h in (1e-5, -1e-5))
    want = ((ahead - behind) * dy).sum() / 2e-5
    assert abs(got - want) < 1e-3 * abs(want)


def backward_twice_is_backward_once(m):
    """Clearing belongs to backward: the same batch gives the same gradient again."""
    model = _model(m, m.reference.Engine())
    runs = []
    for _ in range(2):
        model.loss(*_batch())
        model.backward()
        runs.append(np.array(model.gradients["output_norm.weight"]))
    _close(runs[1], runs[0])


def gelu_s_slope_is_numpy_s(m):
    """NumPy's slope is itself the slope of NumPy's GELU, which a small step shows."""
    engine, x = m.engine.get_engine(), np.linspace(-3, 3, 37)
    got = engine.gelu_backward(engine.from_host(x), engine.from_host(np.ones(37)))
    _close(engine.to_host(got), m.reference.gelu_backward(x, np.ones(37)))


# ---- update ----


def _one_step(m, gradient, step=1, epsilon=1e-8):
    """How far AdamW moves a weight of 0 at a rate of 1, without decay."""
    engine = m.engine.get_engine()
    w, v, mean = (engine.zeros((3,)) for _ in range(3))
    status = engine.from_host(np.array([1.0, 1, 1, 1, 0]))
    engine.adamw(
        w, engine.from_host(np.array(gradient)), mean, v, status, rate=1.0, beta1=0.9, beta2=0.999,
        epsilon=epsilon, decay=0.0, step=step, n_decay=0,
    )  # fmt: skip
    return engine.to_host(w)


def small_gradients_move_as_far_as_numpy_says(m):
    """A gradient of the size of the root of epsilon: there it matters where epsilon stands."""
    _close(_one_step(m, [1e-4, -1e-4, 2e-4], epsilon=1e-8), [-1, 1, -1], share=1e-2)


def the_first_step_is_a_whole_one(m):
    """With the bias corrected, the first step is the rate, whatever the gradient is.

    Not with beta2 = 0.99: there (1 - beta1) / sqrt(1 - beta2) is 1 by chance.
    """
    _close(_one_step(m, [5.0, -0.5, 1.5]), [-1, 1, -1])


def norms_do_not_decay(m):
    """Only matrices are pulled to 0."""
    decaying = [name for name in _names(m) if m.model.decays(name)]
    assert not [n for n in decaying if "norm" in n or "bias" in n or "position" in n], decaying
    assert "token_embd.weight" in decaying and "blk.0.ffn_up.weight" in decaying


def _names(m):
    """The names of all parameters of a small model."""
    return m.config.Config(vocab_size=71, **SIZES).parameter_shapes()


def a_clipped_gradient_has_the_norm_asked_for(m):
    """norm times clip is max_norm, wherever the norm was larger."""
    engine, gradient = m.engine.get_engine(), 3 * _numbers(19, 23)
    status = engine.global_norm([engine.from_host(gradient)], engine.from_host(np.ones(1)), 0.5)
    norm, clip = engine.to_host(status)[:2]
    _close([norm, norm * clip], [np.sqrt((gradient**2).sum()), 0.5])


def the_rate_ends_at_its_floor(m):
    """At the last step nothing but the floor is left."""
    schedule = m.optimizer.Schedule(rate=2.0, steps=150, warmup=10, floor=0.1)
    _close([schedule.at(10), schedule.at(150)], [2.0, 0.2])


def moments_come_back(m):
    """What is saved and loaded again is what it was: m as m, and v as v."""
    model = _model(m, m.reference.Engine())
    optimizer = m.optimizer.AdamW(model)
    shapes = model.config.parameter_shapes()
    saved = [{n: k * np.ones(s) for n, s in shapes.items()} for k in (2.0, 3.0)]
    optimizer.load_moments(*saved, 4)
    for got, want in zip(optimizer.moments(), saved, strict=True):
        assert all((got[name] == want[name]).all() for name in want)


# ---- file ----


def _written(m, **changes):
    """A reader of llama.cpp's own package on a file that m wrote, and what went into it."""
    from gguf import GGUFReader

    tokenizer = _tokenizer(m)
    config = m.config.Config(vocab_size=tokenizer.vocab_size, **(SIZES | changes))
    shapes = config.parameter_shapes()
    rng = np.random.default_rng(3)
    weights = {name: rng.normal(0, 0.1, shape) for name, shape in shapes.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "probe.gguf"
        m.gguf_file.write_gguf(path, config, weights, tokenizer, "F32")
        reader = GGUFReader(path)
        fields = {n: f.contents() for n, f in reader.fields.items() if n.startswith("gpt2.")}
        tensors = {t.name: np.array(t.data) for t in reader.tensors}
        del reader
    return config, weights, fields, tensors


def the_file_s_matrices_lie_as_llama_cpp_reads_them(m):
    """Rows are outputs: every matrix of a block is the transpose of ours."""
    _, weights, _, tensors = _written(m)
    for name, weight in weights.items():
        if weight.ndim == 2 and name.startswith("blk."):
            _close(tensors[name], weight.T)


def the_file_s_sizes_are_the_model_s(m):
    """Heads, blocks and widths that all differ."""
    config, _, fields, _ = _written(m)
    got = [fields[f"gpt2.{n}"] for n in ("attention.head_count", "block_count", "embedding_length")]
    assert got == [config.n_heads, config.n_layers, config.d_model]


def the_file_s_epsilon_is_the_model_s(m):
    """With an epsilon that is not the usual one."""
    config, _, fields, _ = _written(m, layer_norm_epsilon=3e-6)
    _close(fields["gpt2.attention.layer_norm_epsilon"], config.layer_norm_epsilon)


def the_template_renders_the_training_text(m):
    """What a program asks is what the model was trained on, to the letter."""
    from jinja2 import Environment

    messages = [{"role": "user", "content": "Why does ice float?"}]
    asked = Environment().from_string(m.chat_format.chat_template()).render(messages=messages)
    assert asked == m.data.prompt_text("Why does ice float?")
