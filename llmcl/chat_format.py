"""How programs turn a chat into the text the model was trained on: for llama.cpp and for Ollama."""

import os

from .errors import GgufError
from .files import replacing


def chat_template() -> str:
    """The Jinja template that turns a chat into the text the model was trained on.

    Only the last message counts: the model has never seen two turns in one text, nor a system
    message. A last message that is the assistant's own is a text to continue, and stays as it is.
    """
    # llama.cpp writes a system message into the question unless the template looks at its content.
    return (
        "{% for message in messages %}"
        "{% if message['role'] == 'system' %}{% if message['content'] == '' %}{% endif %}{% else %}"
        "{% if loop.last %}{% if message['role'] == 'assistant' %}{{ message['content'] }}"
        "{% else %}User: {{ message['content'] }}\nAssistant:{% endif %}{% endif %}"
        "{% endif %}{% endfor %}"
    )


def write_modelfile(path: str | os.PathLike, gguf_name: str, context_length: int = 256) -> None:
    """Writes the Modelfile with which `ollama create` takes the GGUF file beside it.

    The template is Go's; it keeps only the last question, as chat_template() does. Versions of
    Ollama that hand over no list of messages take the part after `else`.
    """
    if gguf_name in ("", ".", "..") or set(gguf_name) & set('/\\\r\n"'):
        raise GgufError(f"{gguf_name!r} is no plain file name; give the name beside the Modelfile.")
    text = (
        f"FROM ./{gguf_name}\n"
        'TEMPLATE """{{ if .Messages }}{{ $last := "" }}{{ range .Messages }}'
        '{{ if eq .Role "user" }}{{ $last = .Content }}{{ end }}{{ end }}'
        "User: {{ $last }}\nAssistant:"
        '{{ else }}User: {{ .Prompt }}\nAssistant:{{ end }}"""\n'
        'PARAMETER stop "<|endoftext|>"\n'
        'PARAMETER stop "User:"\n'
        "PARAMETER temperature 0\n"
        f"PARAMETER num_ctx {context_length}\n"
    )
    with replacing(path, GgufError) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
