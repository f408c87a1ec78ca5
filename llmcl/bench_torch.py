"""The same training step in PyTorch, written as its users write it: the peer of `llmcl bench`."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from .config import Config


class Block(nn.Module):
    """A pre-norm block with fused attention, as llmcl.layers.Block."""

    def __init__(self, c: Config):
        super().__init__()
        self.n_heads = c.n_heads
        self.attn_norm, self.ffn_norm = nn.LayerNorm(c.d_model), nn.LayerNorm(c.d_model)
        self.attn_qkv = nn.Linear(c.d_model, 3 * c.d_model)
        self.attn_output = nn.Linear(c.d_model, c.d_model)
        self.ffn_up = nn.Linear(c.d_model, c.d_ff)
        self.ffn_down = nn.Linear(c.d_ff, c.d_model)

    def forward(self, x):
        """(B, T, C) -> (B, T, C)."""
        b, t, c = x.shape
        heads = self.attn_qkv(self.attn_norm(x)).view(b, t, 3, self.n_heads, c // self.n_heads)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn_output(y.transpose(1, 2).reshape(b, t, c))
        return x + self.ffn_down(F.gelu(self.ffn_up(self.ffn_norm(x)), approximate="tanh"))


class GPT(nn.Module):
    """The model of llmcl.model.GPT, its head tied to the embedding."""

    def __init__(self, c: Config):
        super().__init__()
        self.token_embd = nn.Embedding(c.vocab_size, c.d_model)
        self.position_embd = nn.Embedding(c.context_length, c.d_model)
        self.blocks = nn.ModuleList([Block(c) for _ in range(c.n_layers)])
        self.output_norm = nn.LayerNorm(c.d_model)

    def forward(self, ids, targets):
        """The mean cross-entropy."""
        x = self.token_embd(ids) + self.position_embd.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.output_norm(x) @ self.token_embd.weight.T
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def device_for(engine) -> str:
    """PyTorch's name of the kind of device that an engine computes on: "cuda" or "cpu"."""
    gpu = engine.device.info.kind == "gpu" and torch.cuda.is_available()
    return "cuda" if gpu else "cpu"


def make_torch_step(config: Config, ids: np.ndarray, kind: str):
    """A function that makes one training step, in float32 without TF32, and waits for it."""
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("highest")
    model = GPT(config).to(kind)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.as_tensor(ids, dtype=torch.long, device=kind)

    def step():
        optimizer.zero_grad()
        model(tokens, tokens).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if kind == "cuda":
            torch.cuda.synchronize()

    return step
