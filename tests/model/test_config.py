"""Config: sizes that fit together, errors that name the value, and the list of parameters."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmcl.config import Config
from llmcl.errors import ConfigError


def test_the_default_model_is_that_of_the_workbook():
    config = Config()
    assert config.n_layers >= 2 and config.d_ff == 4 * config.d_model
    assert config.d_head * config.n_heads == config.d_model
    # Q8_0 takes 34 bytes for 32 weights; positions and vectors stay in 4 bytes each.
    shapes = config.parameter_shapes()
    small = sum(math.prod(s) for n, s in shapes.items() if len(s) == 1 or n.startswith("position"))
    assert 4 * small + (config.parameter_count() - small) * 34 / 32 < 442_000


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(Config)])
@pytest.mark.parametrize("value", (0, -1, "8", None, True, 2**31, math.nan, math.inf, 1.5))
def test_a_size_that_is_no_number_above_zero_is_named(field, value):
    if (field, value) == ("layer_norm_epsilon", 1.5):
        return
    with pytest.raises(ConfigError, match=f"{field} is ") as raised:
        Config(**{field: value})
    assert repr(value) in str(raised.value)


@given(st.integers(1, 200), st.integers(1, 16))
def test_heads_must_divide_the_width_and_the_error_lists_those_that_do(d_model, n_heads):
    if d_model % n_heads == 0:
        assert Config(d_model=d_model, n_heads=n_heads).d_head == d_model // n_heads
        return
    said = f"d_model {d_model} cannot .* n_heads {n_heads} "
    with pytest.raises(ConfigError, match=said) as found:
        Config(d_model=d_model, n_heads=n_heads)
    fits = [int(n) for n in str(found.value).split("[")[1].split("]")[0].split(",")]
    assert fits and all(d_model % h == 0 for h in fits) and n_heads not in fits


def test_a_configuration_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().d_model = 8


def test_a_dictionary_and_back():
    config = Config(vocab_size=300, n_heads=4, layer_norm_epsilon=1e-6)
    assert Config.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    "values", [{}, {"d_model": 8}, Config().to_dict() | {"d_modle": 8}, None, [1, 2], "d_model"]
)
def test_a_dictionary_that_misses_a_field_or_has_another_is_refused(values):
    with pytest.raises(ConfigError, match="a configuration needs the fields"):
        Config.from_dict(values)


def test_the_parameters_have_llama_cpp_s_names_and_our_layout():
    config = Config(vocab_size=50, context_length=9, d_model=6, n_heads=2, n_layers=3, d_ff=20)
    shapes = config.parameter_shapes()
    assert len(shapes) == 4 + 12 * 3
    assert list(shapes)[:2] == ["token_embd.weight", "position_embd.weight"]
    assert list(shapes)[-2:] == ["output_norm.weight", "output_norm.bias"]
    assert shapes["token_embd.weight"] == (50, 6) and shapes["position_embd.weight"] == (9, 6)
    assert shapes["blk.2.attn_qkv.weight"] == (6, 18) and shapes["blk.2.attn_qkv.bias"] == (18,)
    assert shapes["blk.0.attn_output.weight"] == (6, 6)
    assert shapes["blk.1.ffn_up.weight"] == (6, 20) and shapes["blk.1.ffn_down.weight"] == (20, 6)
    assert config.parameter_count() == sum(math.prod(shape) for shape in shapes.values())
