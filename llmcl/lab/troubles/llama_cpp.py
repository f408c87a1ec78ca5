"""What llama.cpp says when it refuses a file or a request, or ends."""

from .entry import Trouble

TROUBLES = (
    Trouble(
        "xllamacpp is not installed; pip install 'llmcl[verify]' brings llama.cpp.",
        "Real llama.cpp comes as a package of its own, because not every system has it.",
        "`pip install 'llmcl[verify]'`, with the quotes: some shells read the brackets themselves.",
    ),
    Trouble(
        "llama.cpp did not answer for … in … s.",
        "It was started in a process of its own and did not come back in time: a very large file, "
        "or a machine that does much else.",
        "Try again with less running; `ask_llama(…, seconds=600)` waits longer.",
    ),
    Trouble(
        "llama.cpp … …: ….",
        '"refuses" means that it read the file and said no; "ends its process over" means that it '
        "stopped on the spot, as a program would take a notebook with it. Its own words follow.",
        "Paste its words into `lab.trouble`; every one that our experiments met is in this table.",
        wraps=True,
    ),
    Trouble(
        "llama.cpp refuses … for …: ….",
        "The file was loaded, and the request is not possible; the address comes first, the "
        "reason last.",
        "Look the reason up: usually the prompt is longer than the context.",
        wraps=True,
    ),
    Trouble(
        "xllamacpp is not installed, so our own model in NumPy answers in llama.cpp's place; pip "
        "install 'llmcl[verify]' brings the real one.",
        "A lesson wants to go on without llama.cpp, so it asks our own model. The comparison then "
        "compares ours with ours.",
        "Install the package to see the real thing.",
        kind="printed",
    ),
    Trouble(
        "it gave no reason",
        "llama.cpp ended on the spot, before its last word was written. On a busy machine this "
        "happens.",
        "Run the cell again; the second time the reason usually comes.",
        kind="printed",
    ),
    Trouble(
        "tensor '…' has wrong shape; expected …, got …",
        'The sizes in the file are not those that the header promises. "expected" lists the '
        "fastest dimension first, so a transposed matrix shows its two numbers exchanged.",
        "`token_embd` is (vocabulary, width) in NumPy; all other matrices (out, in). One number "
        "too many in the vocabulary: list of tokens and table must be equally long. `expected 0`: "
        "a key such as `gpt2.feed_forward_length` is missing.",
        kind="llama.cpp",
    ),
    Trouble(
        "tensor '…' not found",
        "A tensor that a GPT-2 model needs is not in the file, or has another name. All biases "
        "are needed too.",
        "Compare with the list in lesson 12a; `write_gguf` writes all.",
        kind="llama.cpp",
    ),
    Trouble(
        "wrong number of tensors; expected …, got …",
        "There is a tensor that llama.cpp does not know. It does not say which.",
        "With a tied head there are 4 + 12 for each block, 28 for two. Take the extra one out.",
        kind="llama.cpp",
    ),
    Trouble(
        "key not found in model: …",
        "The header lacks a fact that llama.cpp needs.",
        "Write the key; the six numbers are listed in lesson 12a. The same words with "
        "`tokenizer.ggml.…` mean a part of the tokenizer.",
        kind="llama.cpp",
    ),
    Trouble(
        "key … has wrong type … but expected type …",
        "Counts are 32-bit unsigned numbers (u32) in this format; 64 bits are refused.",
        "With the gguf package: `add_uint32`.",
        kind="llama.cpp",
    ),
    Trouble(
        "cannot find tokenizer merges in model file",
        "A tokenizer of kind gpt2 needs a list of merges that is not empty, even if no merge is "
        "ever used.",
        "Write one harmless merge whose result is no token; `write_gguf` does this for a "
        "dictionary.",
        kind="llama.cpp",
    ),
    Trouble(
        "cannot find tokenizer vocab in model file",
        "The list of tokens is missing.",
        "Write `tokenizer.ggml.tokens`; `write_gguf` does.",
        kind="llama.cpp",
    ),
    Trouble(
        "unknown tokenizer: …",
        "`tokenizer.ggml.model` names a kind that llama.cpp does not have.",
        "`gpt2` for byte-level BPE.",
        kind="llama.cpp",
    ),
    Trouble(
        "unknown pre-tokenizer type: …",
        "`tokenizer.ggml.pre` names the rule by which text is split first, and llama.cpp knows a "
        "fixed list of names.",
        "`gpt-2` for our BPE, `llama-bpe` for our dictionary.",
        kind="llama.cpp",
    ),
    Trouble(
        "missing pre-tokenizer type, using: 'default'",
        "Only a warning, but do not ignore it: without `tokenizer.ggml.pre` text is split by "
        "another rule than in training, and the ids differ.",
        "Write the key; then compare ids with `llmcl verify`.",
        kind="llama.cpp",
    ),
    Trouble(
        "data is not within the file bounds, model is corrupted or incomplete",
        "The file ends before its last tensor does: a download or copy that broke off, or a full "
        "disk.",
        "Compare the sizes, and copy or export it again.",
        kind="llama.cpp",
    ),
    Trouble(
        "failed to read key-value pairs",
        "The file breaks off within its header.",
        "Copy or export it again.",
        kind="llama.cpp",
    ),
    Trouble(
        "string length … exceeds remaining file size … bytes",
        "A text in the header says that it is longer than what is left of the file: the file was "
        "cut short, or after an experiment by hand a length is wrong.",
        "Copy or export it again. By hand: lengths are 8 bytes, little-endian, and count bytes, "
        "not letters.",
        kind="llama.cpp",
    ),
    Trouble(
        "tensor '…' has offset …, expected …",
        "Every tensor begins at a multiple of 32 bytes behind the header, without gaps of any "
        "other size.",
        "Round each size up to 32 before you lay the next tensor behind it, and fill with zeros.",
        kind="llama.cpp",
    ),
    Trouble(
        "invalid magic characters: …, expected 'GGUF'",
        "The file is no GGUF file; its first four bytes are shown.",
        "Look at the file: a text file or an error page that was saved under this name is common.",
        kind="llama.cpp",
    ),
    Trouble(
        "failed to read magic",
        "The file is empty.",
        "Export it again, and look at its size.",
        kind="llama.cpp",
    ),
    Trouble(
        "failed to open GGUF file …",
        "There is no such file, or its path has letters that the program does not take, which "
        "happens on Windows.",
        "Check the path. On Windows, put the file into a folder directly on the drive, with a "
        "plain English name.",
        kind="llama.cpp",
    ),
    Trouble(
        "unknown model architecture: …",
        "The name of the family in `general.architecture` is not known. Ollama and LM Studio "
        "bring a llama.cpp of their own, which may be older than the family.",
        "`gpt2` for our models. For other files, update the program.",
        kind="llama.cpp",
    ),
    Trouble(
        "binary_op: unsupported types: …",
        "A norm or a bias is stored in F16. llama.cpp loads it and ends the whole process at the "
        "first token.",
        "Every one-dimensional tensor is stored in F32; `write_gguf` does.",
        kind="llama.cpp",
    ),
    Trouble(
        "ops.cpp:…: fatal error",
        "A tensor has a type that this operation cannot use, such as float64: the conversion to "
        "float32 was forgotten.",
        "`array.astype(np.float32)` before writing.",
        kind="llama.cpp",
    ),
    Trouble(
        "GGML_ASSERT(id_to_token.size() == token_to_id.size()) failed",
        "Two tokens of the vocabulary have the same text. The process ends.",
        "`len(set(tokens)) == len(tokens)` must hold; take the double away and renumber.",
        kind="llama.cpp",
    ),
    Trouble(
        "GGML_ASSERT(i01 >= 0 && i01 < ne01) failed",
        "A token stands behind the end of the position table: the conversation is longer than the "
        "context that the model has. The process ends.",
        "Start the program with the model's own context (`-c 256`, `PARAMETER num_ctx 256`), and "
        "begin a new chat.",
        kind="llama.cpp",
    ),
    Trouble(
        "request (… tokens) exceeds the available context size (… tokens), try increasing it",
        "The prompt is longer than the model's context. Increasing it does not help here: the "
        "model has no positions beyond.",
        "Ask with fewer tokens, or train with a longer context.",
        kind="llama.cpp",
    ),
    Trouble(
        "Added a BOS token to the prompt as specified by the model but the prompt also starts "
        "with a BOS token.",
        "The file says that a begin token is added, and the text brings one already. Two of them "
        "never stood in training.",
        "`tokenizer.ggml.add_bos_token` false, written explicitly; export again.",
        kind="llama.cpp",
    ),
    Trouble(
        "Expected 'messages' to be an array",
        "The chat address takes a list of messages, each with role and content.",
        '`{"messages": [{"role": "user", "content": "Hello"}]}`.',
        kind="llama.cpp",
    ),
    Trouble(
        "File Not Found",
        "The server has no such address.",
        "`/completion`, `/tokenize`, `/apply-template`, `/v1/chat/completions` are those of the "
        "lessons.",
        kind="llama.cpp",
    ),
)
