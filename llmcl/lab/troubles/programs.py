"""Files that load and are wrong, the rows of `llmcl verify`, Ollama and LM Studio."""

from .entry import Trouble

TROUBLES = (
    Trouble(
        "It loads and answers nonsense: a square matrix is transposed",
        "`attn_output` has as many rows as columns, so no shape betrays it. Logits differ by 1 "
        "and more.",
        'Only a comparison of logits shows it: `llmcl verify model.gguf`, row "answer kept in the '
        'file".',
        kind="silent",
    ),
    Trouble(
        "It loads and answers nonsense: a wrong number of heads",
        "The width is split otherwise, and every sum still has its length. Nothing is reported.",
        "Compare `gpt2.attention.head_count` with the configuration; `llmcl verify` finds it.",
        kind="silent",
    ),
    Trouble(
        "It loads and is slightly wrong: epsilon of layer norm",
        "1e-3 in place of 1e-5 moves logits a little, so most answers stay and some change.",
        "`llmcl verify`; the key is `gpt2.attention.layer_norm_epsilon`.",
        kind="silent",
    ),
    Trouble(
        "It loads and answers nonsense: stray bytes before the tensors",
        "A few bytes too many before the data shift every number, and each is read half from its "
        "neighbour.",
        "Data begin at the next multiple of 32 behind the header. `llmcl verify` finds it.",
        kind="silent",
    ),
    Trouble(
        "It loads and answers nonsense: weights are NaN",
        "One NaN spreads through every sum. The program still picks a token, always the same one.",
        "`np.isfinite(w).all()` before writing; `write_gguf` refuses such weights.",
        kind="silent",
    ),
    Trouble(
        "It loads, and tokens vanish or differ",
        "The vocabulary lacks the 256 byte tokens, or merges were trained without the splitting "
        "rule. Letters then vanish without a word, or ids differ.",
        '`llmcl verify`, row "token ids"; export with a tokenizer of llmcl.',
        kind="silent",
    ),
    Trouble(
        "WRONG answer kept in the file",
        "A row of `llmcl verify`. The weights or sizes in the file are not those that were "
        "exported: somebody changed the file, or it was damaged.",
        "Export again.",
        kind="printed",
    ),
    Trouble(
        "WRONG token ids",
        "llama.cpp splits text otherwise than our tokenizer. The detail shows the first text that "
        "differs.",
        "Export with llmcl, unchanged; with another tokenizer, its `pre` is wrong.",
        kind="printed",
    ),
    Trouble(
        "WRONG logits",
        "Both read the same weights, and one of them computes otherwise, by more than rounding "
        "explains.",
        "If `llmcl check` is clean, update xllamacpp and report it with both versions.",
        kind="printed",
    ),
    Trouble(
        "WRONG load log",
        "llama.cpp warned while it loaded; the detail is its first warning.",
        "Look the warning up in this table.",
        kind="printed",
    ),
    Trouble(
        "it is not in the form that llama.cpp's logs have",
        "This version of llama.cpp writes its log in another form, or ended before it wrote one, "
        "so warnings cannot be told from news.",
        "Run `llmcl verify` again; if it stays, install the version that pyproject.toml asks for.",
        kind="printed",
    ),
    Trouble(
        "Error rendering prompt with jinja template",
        "LM Studio's own engine for chat templates does not know something in the template of "
        "this model.",
        "Our template uses for, if and else only. For another model, choose a template in its "
        "prompt settings, or update LM Studio.",
        kind="other",
    ),
    Trouble(
        "Error: invalid model name",
        "Ollama allows small letters, digits, `-`, `_` and `.` in a name.",
        "`ollama create llmcl -f Modelfile`.",
        kind="other",
    ),
    Trouble(
        "no Modelfile or safetensors files found",
        "`ollama create` looks for the Modelfile in the folder you are in.",
        "`cd` to the folder that holds Modelfile and model.gguf, then create again.",
        kind="other",
    ),
    Trouble(
        "model is required",
        "Ollama's chat address wants to know which of its models is asked.",
        'One more key in the JSON: `"model": "first-llm"`, a name that `ollama list` shows.',
        kind="other",
    ),
    Trouble(
        "llama runner process has terminated",
        "Ollama's engine ended when it opened the file or computed with it. The reason stands in "
        "its log.",
        "`llmcl verify model.gguf` gives a reason sooner. Otherwise `journalctl -u ollama` on "
        "Linux, `~/.ollama/logs/server.log` on macOS, `%LOCALAPPDATA%\\Ollama` on Windows.",
        kind="other",
    ),
    Trouble(
        "unable to load model: …",
        "Ollama names the copy that it made of your file, and not the reason.",
        "`llmcl verify model.gguf` asks a current llama.cpp. If that takes the file, update "
        "Ollama, and run `ollama create` once more.",
        kind="other",
    ),
    Trouble(
        "pull model manifest: file does not exist",
        "`ollama run` knows no model of this name, so it looked for one in the library on the web.",
        "First `ollama create first-llm -f Modelfile`, in the folder of the Modelfile; `ollama "
        "list` shows what there is.",
        kind="other",
    ),
    Trouble(
        "could not connect to …llama",
        "Ollama has two parts, and the one that runs in the background does not run.",
        "Start the app, or `ollama serve` in another terminal.",
        kind="other",
    ),
    Trouble(
        "Failed to load the model",
        "LM Studio shows its engine's last word only, sometimes as a number.",
        "`llmcl verify model.gguf` gives the reason. If that takes the file, update LM Studio's "
        "runtime, and set the context length to the model's own or less.",
        kind="other",
    ),
)
