"""One trouble: what is read, why it happens, and what to do."""

from dataclasses import dataclass

KINDS = ("raised", "printed", "llama.cpp", "silent", "other", "question")


@dataclass(frozen=True)
class Trouble:
    """A message with its cause and its cure; "…" in the message stands for what differs.

    kind: llmcl raised it or printed it, llama.cpp says it, llama.cpp is silent about it, another
    program says it, or it is a question. wraps: its "…" holds another message, which says more.
    """

    message: str
    cause: str
    cure: str
    kind: str = "raised"
    wraps: bool = False
