"""The layers of the model. Each has forward and backward that read as mirror images.

A layer is written once and runs on either engine (llmcl.ops or llmcl.reference). forward keeps what
backward needs; backward takes the gradient of the output, adds the gradients of the parameters to
the gradient buffers, and returns the gradient of the input. Shapes: (B, T, C).
"""


class Layer:
    """A piece of the model that owns some parameters.

    engine: where it computes. parameters, gradients: the whole model's tensors by name; prefix: the
    start of the names of this layer's own.
    """

    def __init__(self, engine, parameters: dict, gradients: dict, prefix: str = ""):
        self.engine = engine
        self._parameters = parameters
        self._gradients = gradients
        self.prefix = prefix
        self.saved: tuple = ()

    def forget(self) -> None:
        """Lets go of what forward kept, here and in the layers inside."""
        self.saved = ()
        for part in vars(self).values():
            if isinstance(part, Layer):
                part.forget()

    def parameter(self, name: str):
        """The tensor of one of this layer's parameters."""
        return self._parameters[self.prefix + name]

    def gradient(self, name: str):
        """The tensor that collects that parameter's gradient."""
        return self._gradients[self.prefix + name]


class Embedding(Layer):
    """Token and position tables: ids (B, T) -> (B, T, C), and back to logits (B, T, V)."""

    def forward(self, ids, first: int = 0):
        """The vectors of the tokens, standing at positions first, first + 1, ..."""
        self.saved = (ids,)
        tokens = self.parameter("token_embd.weight")
        positions = self.parameter("position_embd.weight")
        return self.engine.embedding(ids, tokens, positions, first)

    def backward(self, dx) -> None:
        """Adds to the gradients of both tables; ids have no gradient."""
        (ids,) = self.saved
        dtokens = self.gradient("token_embd.weight")
        dpositions = self.gradient("position_embd.weight")
        self.engine.embedding_backward(ids, dx, dtokens, dpositions)


class Head(Layer):
    """The output head, tied to the token table: (B, T, C) -> logits (B, T, V)."""

    def forward(self, x):
        """Each place's vector against every token's vector."""
        self.saved = (x,)
        return self.engine.unembedding(x, self.parameter("token_embd.weight"))

    def backward(self, dlogits):
        """Adds to the gradient that the look-up adds to as well."""
        (x,) = self.saved
        table, dtable = self.parameter("token_embd.weight"), self.gradient("token_embd.weight")
        return self.engine.unembedding_backward(x, table, dlogits, dtable)


class Linear(Layer):
    """y = x W + b: (B, T, K) -> (B, T, N)."""

    def forward(self, x, plus=None):
        """x W + b, and a residual connection's `plus` (B, T, N) on top, whose gradient is dy."""
        self.saved = (x,)
        return self.engine.linear(x, self.parameter("weight"), self.parameter("bias"), plus)

    def backward(self, dy):
        """dx = dy W^T; the weight gets x^T dy, the bias the sum of dy."""
        (x,) = self.saved
        dw, db = self.gradient("weight"), self.gradient("bias")
        return self.engine.linear_backward(x, self.parameter("weight"), dy, dw, db)


class LayerNorm(Layer):
    """Each row at mean 0 and variance 1, then scaled and shifted."""

    def __init__(self, engine, parameters, gradients, prefix, epsilon: float):
        super().__init__(engine, parameters, gradients, prefix)
        self.epsilon = epsilon

    def forward(self, x):
        """(x - mean) / sqrt(variance + epsilon) * weight + bias."""
        weight, bias = self.parameter("weight"), self.parameter("bias")
        y, mean, rstd = self.engine.layer_norm(x, weight, bias, self.epsilon)
        self.saved = (x, mean, rstd)
        return y

    def backward(self, dy):
        """The gradient of x, which also acts through the mean and the variance of its row."""
        x, mean, rstd = self.saved
        dweight, dbias = self.gradient("weight"), self.gradient("bias")
        weight = self.parameter("weight")
        return self.engine.layer_norm_backward(x, weight, mean, rstd, dy, dweight, dbias)


class Attention(Layer):
    """Causal multi-head attention: one linear layer to q, k, v; one from the heads back."""

    def __init__(self, engine, parameters, gradients, prefix, n_heads: int):
        super().__init__(engine, parameters, gradients, prefix)
        self.n_heads = n_heads
        self.qkv = Linear(engine, parameters, gradients, prefix + "attn_qkv.")
        self.output = Linear(engine, parameters, gradients, prefix + "attn_output.")

    def forward(self, x, cache=None, first: int = 0, plus=None):
        """(B, T, C) -> (B, T, C), on top of `plus`.

        With a cache (1, P, 3C), x holds the places from `first` on.
        """
        qkv, length = self.qkv.forward(x), first + x.shape[1]
        if cache is not None:
            self.engine.copy(cache, qkv, row=first)
            qkv = cache
        y, log_sum = self.engine.fused_attention(qkv, self.n_heads, first, length)
        self.saved = (qkv, y, log_sum)
        return self.output.forward(y, plus)

    def backward(self, dy):
        """Through the output layer, the attention itself, and the layer to q, k, v."""
        qkv, y, log_sum = self.saved
        dy = self.output.backward(dy)
        dqkv = self.engine.fused_attention_backward(qkv, y, log_sum, dy)
        return self.qkv.backward(dqkv)


class FeedForward(Layer):
    """Two linear layers with a GELU between: each place thinks by itself."""

    def __init__(self, engine, parameters, gradients, prefix):
        super().__init__(engine, parameters, gradients, prefix)
        self.up = Linear(engine, parameters, gradients, prefix + "ffn_up.")
        self.down = Linear(engine, parameters, gradients, prefix + "ffn_down.")

    def forward(self, x, plus=None):
        """(B, T, C) -> (B, T, F) -> (B, T, C), on top of `plus`."""
        wide = self.up.forward(x)
        self.saved = (wide,)
        return self.down.forward(self.engine.gelu(wide), plus)

    def backward(self, dy):
        """Down, GELU, up, in reverse."""
        (wide,) = self.saved
        dwide = self.down.backward(dy)
        return self.up.backward(self.engine.gelu_backward(wide, dwide))


class Block(Layer):
    """A pre-norm transformer block: x + attention(norm(x)), then x + feed_forward(norm(x))."""

    def __init__(self, engine, parameters, gradients, prefix, n_heads: int, epsilon: float):
        super().__init__(engine, parameters, gradients, prefix)
        own = engine, parameters, gradients
        self.attn_norm = LayerNorm(*own, prefix + "attn_norm.", epsilon)
        self.attention = Attention(*own, prefix, n_heads)
        self.ffn_norm = LayerNorm(*own, prefix + "ffn_norm.", epsilon)
        self.feed_forward = FeedForward(*own, prefix)

    def forward(self, x, cache=None, first: int = 0):
        """(B, T, C) -> (B, T, C). The last product of each branch adds the residual by itself."""
        x = self.attention.forward(self.attn_norm.forward(x), cache, first, plus=x)
        return self.feed_forward.forward(self.ffn_norm.forward(x), plus=x)

    def backward(self, dy):
        """The gradient passes straight through each sum, and once more through each branch."""
        branch = self.ffn_norm.backward(self.feed_forward.backward(dy))
        dx = self.engine.residual(dy, branch)
        branch = self.attn_norm.backward(self.attention.backward(dx))
        return self.engine.residual(dx, branch)
