"""Every operation in NumPy: the truth that the OpenCL kernels are checked against.

The names, arguments and shapes are those of llmcl.ops. Precision is that of the arrays given.
"""

from .adamw import adamw
from .attention import (
    attention,
    attention_backward,
    attention_mix,
    attention_mix_backward,
    attention_scores,
    attention_scores_backward,
)
from .cross_entropy import cross_entropy, cross_entropy_backward
from .embedding import embedding, embedding_backward, unembedding, unembedding_backward
from .fill import fill
from .fused_attention import fused_attention, fused_attention_backward
from .gelu import gelu, gelu_backward
from .global_norm import global_norm, sum_squares
from .layer_norm import layer_norm, layer_norm_backward
from .linear import linear, linear_backward, matmul
from .pair_counts import pair_counts
from .residual import residual
from .softmax import causal_softmax, softmax, softmax_backward

OPERATIONS = (
    adamw, attention, attention_backward, attention_mix, attention_mix_backward, attention_scores,
    attention_scores_backward, causal_softmax, cross_entropy, cross_entropy_backward, embedding,
    embedding_backward, fill, fused_attention, fused_attention_backward, gelu, gelu_backward,
    global_norm, layer_norm, layer_norm_backward, linear, linear_backward, matmul, pair_counts,
    residual, softmax, softmax_backward, sum_squares, unembedding, unembedding_backward,
)  # fmt: skip

from .engine import Engine  # noqa: E402  (it needs OPERATIONS)

__all__ = ["OPERATIONS", "Engine", *(operation.__name__ for operation in OPERATIONS)]
