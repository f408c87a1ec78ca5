"""The faults: real mistakes, one small change each, none of which stops a program.

They lie in five groups, one for each stretch of the road. A number chooses one of each group.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from . import probes


@dataclass(frozen=True)
class Fault:
    """A mistake: where it stands, what is wrong, and what would have caught it.

    changes are triples (file, right text, wrong text) in the package; the right text stands there
    as often as it is meant to be changed. function: the name that holds it. probe(m) raises
    AssertionError when a package m has the fault.
    """

    name: str
    group: str
    changes: tuple[tuple[str, str, str], ...]
    function: str
    why: str
    probe: Callable

    @property
    def file(self) -> str:
        """The file that holds it."""
        return self.changes[0][0]


GROUPS = ("data", "forward", "backward", "update", "file")

# The worked example of the lesson; it is in nobody's copy.
EXAMPLE = Fault(
    "epsilon_inside", "update",
    (
        ("kernels/adamw.cl", "(sqrt(v_new * correction2) + epsilon)",
         "sqrt(v_new * correction2 + epsilon)"),
    ),
    "adamw",
    "Epsilon stands inside the root: where gradients are small, the root of epsilon is far larger "
    "than epsilon, and the step is too small.",
    probes.small_gradients_move_as_far_as_numpy_says,
)  # fmt: skip

FAULTS = (
    Fault(
        "copy", "data",
        (("data.py", "rows.append((piece[:-1], piece[1:]))",
          "rows.append((piece[1:], piece[1:]))"),),
        "windows",
        "Every target is its own input. The model learns to copy, and its loss falls to nothing.",
        probes.the_target_is_the_next_token,
    ),
    Fault(
        "padding", "data",
        (("data.py", "np.full(shape, pad_id, np.int32), np.full(shape, IGNORED, np.int32)",
          "np.full(shape, pad_id, np.int32), np.full(shape, pad_id, np.int32)"),),
        "batch",
        "Padding counts in the loss, so short rows teach the model to pad.",
        probes.padding_never_counts,
    ),
    Fault(
        "question", "data",
        (("data.py", "[IGNORED] * (len(asked) - 1) + answered", "asked[1:] + answered"),),
        "_answer_row",
        "The question counts as well, so the model spends itself on learning to ask.",
        probes.only_the_answer_counts,
    ),
    Fault(
        "no_end", "data",
        (("data.py", "[IGNORED] * (len(asked) - 1) + answered",
          "[IGNORED] * (len(asked) - 1) + answered[:-1] + [IGNORED]"),),
        "_answer_row",
        "The end token is masked as if it were padding, so no answer ever learns to stop.",
        probes.the_answer_ends,
    ),
    Fault(
        "width", "forward",
        (("ops/fused_attention.py",
          "qkv, y, log_sum, b, t, n_heads, first, length, d**-0.5,",
          "qkv, y, log_sum, b, t, n_heads, first, length, c**-0.5,"),),
        "fused_attention",
        "Scores are scaled by the width of the model instead of a head's: all too much alike.",
        probes.attention_is_numpy_s,
    ),
    Fault(
        "gate", "forward",
        (("kernels/gelu.cl", "v / (1.0f + exp(-TWO_ROOT * (v + CUBE * v * v * v)))",
          "v / (1.0f + exp(-1.702f * v))"),),
        "gelu_forward",
        "This is another GELU, the one with 1.702, whose slope is not the one of gelu_backward.",
        probes.gelu_is_numpy_s,
    ),
    Fault(
        "place", "forward",
        (("kernels/embedding.cl", "const int t = place % T;", "const int t = place / T;"),),
        "embedding_forward",
        "Division for remainder: every place gets the position of its row in the batch.",
        probes.positions_go_along_the_text,
    ),
    Fault(
        "one_norm", "forward",
        (("layers.py", 'self.ffn_norm = LayerNorm(*own, prefix + "ffn_norm.", epsilon)',
          'self.ffn_norm = LayerNorm(*own, prefix + "attn_norm.", epsilon)'),),
        "Block.__init__",
        "Both norms of a block use the parameters of the first; those of the second learn nothing.",
        probes.every_parameter_matters,
    ),
    Fault(
        "batch_for_time", "backward",
        (("kernels/embedding.cl", "sum += dx[(b * T + t) * C + c];",
          "sum += dx[(t * B + b) * C + c];"),),
        "embedding_backward_positions",
        "Batch and time are swapped: a position collects the gradients of other places.",
        probes.position_gradients_are_numpy_s,
    ),
    Fault(
        "lost_half", "backward",
        (("layers.py",
          "return self.engine.unembedding_backward(x, table, dlogits, dtable)",
          "return self.engine.unembedding_backward(\n"
          "            x, table, dlogits, self.engine.zeros(dtable.shape)\n        )"),),
        "Head.backward",
        "The output head's half of the tied table's gradient goes into a buffer that nobody reads.",
        probes.the_head_teaches_the_table,
    ),
    Fault(
        "short_cut", "backward",
        (("layers.py",
          "branch = self.attn_norm.backward(self.attention.backward(dx))\n"
          "        return self.engine.residual(dx, branch)",
          "branch = self.attn_norm.backward(self.attention.backward(dx))\n"
          "        return self.engine.residual(dy, branch)"),),
        "Block.backward",
        "The last sum adds dy where dx belongs: what came back through the feed-forward is lost.",
        probes.a_block_s_gradient_is_the_slope,
    ),
    Fault(
        "not_cleared", "backward",
        (("model.py",
          '"""Writes the gradient of the last loss() into `gradients`."""\n'
          "        for whole in self.flat_gradients:\n"
          "            self.engine.fill(whole, 0.0)\n",
          '"""Writes the gradient of the last loss() into `gradients`."""\n'),),
        "GPT.backward",
        "Gradients are not cleared, so each step adds its own to those of all steps before.",
        probes.backward_twice_is_backward_once,
    ),
    Fault(
        "three", "backward",
        (("kernels/gelu.cl", "(1.0f + 3.0f * CUBE * v * v)", "(1.0f + CUBE * v * v)"),),
        "gelu_backward",
        "The slope of x^3 is 3 x^2, and the 3 is missing.",
        probes.gelu_s_slope_is_numpy_s,
    ),
    Fault(
        "no_correction", "update",
        (("ops/adamw.py", "1 / (1 - beta1**step), 1 / (1 - beta2**step)", "1.0, 1.0"),),
        "adamw",
        "No bias correction: m and v start at zero and are used as if they did not.",
        probes.the_first_step_is_a_whole_one,
    ),
    Fault(
        "decay_on_norms", "update",
        (("model.py",
          'return name.endswith(".weight") and "norm" not in name and '
          'name != "position_embd.weight"',
          'return name.endswith(".weight")'),),
        "decays",
        "Weight decay pulls the norms' weights, which belong near 1, and the positions to 0.",
        probes.norms_do_not_decay,
    ),
    Fault(
        "no_root", "update",
        (("kernels/global_norm.cl", "norm > max_norm ? max_norm / norm : 1.0f",
          "sum > max_norm ? max_norm / sum : 1.0f"),
         ("kernels/global_norm_gpu.cl", "norm > max_norm ? max_norm / norm : 1.0f",
          "norm > max_norm ? max_norm / (norm * norm) : 1.0f")),
        "global_norm_status",
        "The root is missing where the gradient is clipped: large gradients become far too small.",
        probes.a_clipped_gradient_has_the_norm_asked_for,
    ),
    Fault(
        "no_floor", "update",
        (("optimizer.py", "/ max(1, self.steps - self.warmup)", "/ max(1, 2 * self.steps)"),),
        "Schedule.at",
        "Half the cosine takes twice the run, so the rate stays high to the end.",
        probes.the_rate_ends_at_its_floor,
    ),
    Fault(
        "twice_m", "update",
        (("optimizer.py", "self.model.engine.write(self.v[name], v[name])",
          "self.model.engine.write(self.v[name], m[name])"),),
        "AdamW.load_moments",
        "A run that is resumed gets m for v, so it goes on with other steps, or with no number.",
        probes.moments_come_back,
    ),
    Fault(
        "square", "file",
        (("gguf_file.py",
          'return name not in ("token_embd.weight", "position_embd.weight")',
          'return "attn_output" not in name and not name.endswith("_embd.weight")'),),
        "_is_transposed",
        "The square matrix attn_output is not transposed. Its shape is the same, so it loads.",
        probes.the_file_s_matrices_lie_as_llama_cpp_reads_them,
    ),
    Fault(
        "heads", "file",
        (("gguf_file.py", '"gpt2.attention.head_count": config.n_heads',
          '"gpt2.attention.head_count": 2 * config.n_heads'),),
        "_metadata",
        "The file names another number of heads: it loads, and attends differently.",
        probes.the_file_s_sizes_are_the_model_s,
    ),
    Fault(
        "loose_epsilon", "file",
        (("gguf_file.py", '"gpt2.attention.layer_norm_epsilon": config.layer_norm_epsilon',
          '"gpt2.attention.layer_norm_epsilon": 1e-3'),),
        "_metadata",
        "The file names another epsilon than the one the model was trained with.",
        probes.the_file_s_epsilon_is_the_model_s,
    ),
    Fault(
        "other_words", "file",
        (("chat_format.py", '"{% else %}User: {{ message[\'content\'] }}\\nAssistant:',
          '"{% else %}User: {{ message[\'content\'] }} Assistant:'),),
        "chat_template",
        "The template renders a blank where the training text has a new line.",
        probes.the_template_renders_the_training_text,
    ),
)  # fmt: skip


def faults_of(number: str) -> list[Fault]:
    """The five faults of a student's number, one of each group; the same for ever."""
    chosen = []
    for group in GROUPS:
        choices = [fault for fault in FAULTS if fault.group == group]
        digest = hashlib.sha256(f"{group} {str(number).strip()}".encode()).digest()
        chosen.append(choices[int.from_bytes(digest[:8], "big") % len(choices)])
    return chosen
