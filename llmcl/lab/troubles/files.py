"""Checkpoints and GGUF files, as llmcl reads and writes them."""

from .entry import Trouble

TROUBLES = (
    Trouble(
        "… is no file; give the path of a .safetensors checkpoint.",
        "There is nothing under this path, or it is a folder.",
        "`llmcl train --out build` writes several: build/pretrain.safetensors, "
        "build/tune.safetensors.",
    ),
    Trouble(
        "… is no file; give a .gguf or .safetensors file.",
        "There is nothing under this path. A relative path starts at the folder you are in, and a "
        "notebook's is notebooks/.",
        "`ls` the folder. From a notebook the file of a run in build/ is `../build/model.gguf`.",
    ),
    Trouble(
        "… cannot be read (…).",
        "The file is there, and the system does not open it for you.",
        "Check its rights with `ls -l`, and whether another program holds it.",
    ),
    Trouble(
        "… is damaged or no safetensors file (its description is too deeply nested); give another "
        "checkpoint.",
        "The description that llmcl stores beside the weights is no list of settings, but hundreds "
        "of brackets in each other.",
        "It was not written by llmcl. Take one of your own checkpoints.",
    ),
    Trouble(
        "… is damaged or no safetensors file (…); give another checkpoint.",
        "The beginning is not that of a safetensors file, or the file is shorter than its own "
        "list says. A download or copy that broke off does this.",
        "Copy it again; compare the sizes. llmcl itself writes files whole or not at all.",
    ),
    Trouble(
        "… is a safetensors file, but no checkpoint of llmcl (…); use one that `llmcl train` "
        "wrote.",
        "Safetensors is a common format; this file is from another program, or from a newer llmcl.",
        "Use your own checkpoints; weights of other models have other names and layouts.",
    ),
    Trouble(
        "… does not fit together: … Give another checkpoint.",
        "The file can be read, but its parts contradict each other; the middle of the sentence "
        "says which.",
        "Look the middle up here. Do not mend the file by hand; take an earlier checkpoint.",
        wraps=True,
    ),
    Trouble(
        "its tokenizer has … tokens, its model ….",
        "Tokenizer and weights in this checkpoint are from different runs, so ids would mean "
        "other words.",
        "Take the file as a run wrote it.",
    ),
    Trouble(
        "the tensor … … … is not expected.",
        "The file holds a weight of a name, shape or type that this configuration does not have.",
        "It was changed, or stored by another program; take an earlier checkpoint.",
    ),
    Trouble(
        "… has values that are not finite.",
        "A weight in the file is inf or nan: training ran away before it was stored.",
        "Take an earlier checkpoint, and train on with a smaller learning rate.",
    ),
    Trouble(
        "… of … is missing.",
        "The file has some of the weights (or of AdamW's moments), and not all.",
        "Take another checkpoint; this one was cut or made by hand.",
    ),
    Trouble(
        "its state is ….",
        "What the run kept beside the weights, such as its step, is no dictionary.",
        "Take a file that `llmcl train` or `lab.keep_checkpoint` wrote.",
    ),
    Trouble(
        "cannot write … (…): choose another folder or make room; what was there before is "
        "unchanged.",
        "The disk is full, or the folder does not let you write. Files are written beside the old "
        "one and then exchanged, so nothing is half there.",
        "`df -h` shows the room; otherwise choose another folder.",
    ),
    Trouble(
        "… is the checkpoint itself; give another name.",
        "The export would overwrite what it reads from.",
        "`-o model.gguf`.",
    ),
    Trouble(
        "… is no plain file name; give the name beside the Modelfile.",
        "Ollama looks for the model beside its Modelfile, so a path, or a name with a line break, "
        "does not belong there.",
        "Put both files into one folder and give the bare name, `model.gguf`.",
    ),
    Trouble(
        "dtype is …; choose one of ….",
        "Three types of numbers can be written: F32 (4 bytes), F16 (2), Q8_0 (1 and a little).",
        '`dtype="Q8_0"`, with capitals.',
    ),
    Trouble(
        "the tokenizer has … tokens and the model …; export a model with the tokenizer it was "
        "trained with.",
        "The vocabulary in the file must have one token for each row of the embedding table, or "
        "llama.cpp refuses it.",
        "Keep the tokenizer with the model: `lab.keep_checkpoint`, or a checkpoint of `llmcl "
        "train`.",
    ),
    Trouble(
        "context_length … is not a multiple of …: llama.cpp would read past the end of the "
        "position table; train with ….",
        "llama.cpp rounds its window up to a multiple of 256, and a token behind the table's end "
        "ends the whole process.",
        "Train with a context of 256, or another multiple.",
    ),
    Trouble(
        "… … is not a multiple of 32, the length of a Q8_0 block; export in F16 or F32, or train "
        "with another width.",
        "Q8_0 stores 32 numbers with one scale, and a row is made of whole blocks.",
        '`dtype="F16"`, or a width such as 64, 96 or 128.',
    ),
    Trouble(
        "… has shape …; this configuration needs ….",
        "The weight and the configuration are from different models, or the weight is transposed: "
        "ours lie (in, out).",
        "Take both from one model: `model.config` and `model.weights()`.",
    ),
    Trouble(
        "… has weights that are not finite; export an earlier checkpoint.",
        "A weight is inf or nan. The file would load, and every answer would be nonsense.",
        "Export a checkpoint from before the loss jumped.",
    ),
    Trouble(
        "… has a weight of size …, and … ends at …; export in F32.",
        "F16 ends at 65,504; a larger number would become inf without a word. Sound training "
        "stays far below, so training went wrong too.",
        'Look at the loss curve; `dtype="F32"` writes the number anyway.',
    ),
    Trouble(
        "… is …; a GGUF file keeps texts, numbers, and lists of one kind of them, none of them "
        "empty.",
        "What you want to store about the model has a type that the format lacks, such as None, a "
        "dictionary or an empty text.",
        "Turn it into a text or a number, or leave it out.",
    ),
    Trouble(
        "… is no file that llmcl can use: ….",
        "The file is a GGUF or near to one, and something in it is not as ours are. The reason "
        "follows the colon.",
        "Look the reason up here. llmcl reads what llmcl wrote; for other models there is "
        "llama.cpp.",
        wraps=True,
    ),
    Trouble(
        "… is damaged: …; export it again.",
        "The reader stumbled over bytes that cannot be right. A copy that broke off, or an edit "
        "by hand.",
        "Export the checkpoint again, or copy the file again.",
        wraps=True,
    ),
    Trouble(
        "it is cut short, or one of its counts is wrong",
        "The file says that more numbers follow than it has bytes.",
        "Compare its size with the original's, and copy it again. After an experiment with its "
        "bytes, write it anew.",
    ),
    Trouble(
        "it does not begin as a GGUF file does; give a .gguf file",
        "The first four bytes of a GGUF file are the letters GGUF. This one is something else, "
        "perhaps an error page that was saved under the name.",
        'Look at its first bytes: `open(path, "rb").read(16)`.',
    ),
    Trouble(
        "it is of architecture …, and not …",
        "The file holds a model of another family, whose parts have other names and rules.",
        "llama.cpp opens it; llmcl reads GPT-2-style files only.",
    ),
    Trouble(
        "it is written for machines of the other byte order",
        "Its numbers have their bytes in the other order, as on some old machines.",
        "Get a file in the usual order (little-endian); nearly all are.",
    ),
    Trouble(
        "it has no key …",
        "A fact that is needed, such as the number of heads, is not written in the file.",
        "Write the file with `write_gguf`, which writes all of them.",
    ),
    Trouble(
        "its tokenizer is …, and not byte-level BPE ('gpt2')",
        "The file has a tokenizer of another kind, which llmcl does not have.",
        "Use llama.cpp for this file.",
    ),
    Trouble(
        "its end token has id …, and … is expected",
        "Our end token is the last of the vocabulary; in this file another id is named.",
        "Do not change `tokenizer.ggml.eos_token_id`; export again.",
    ),
    Trouble(
        "the key … stands in it twice",
        "A file says each fact once; this one says it twice, perhaps differently.",
        "Export again. llama.cpp refuses such a file too.",
    ),
    Trouble(
        "the tensor … has offset …, and … is expected",
        "Each tensor begins where the one before it ends, rounded up to a multiple of 32. In this "
        "file one begins elsewhere, so its numbers would be those of a neighbor.",
        "Write the file with `write_gguf`; after an experiment with its bytes, write it anew. "
        "llama.cpp refuses such a file too.",
    ),
    Trouble(
        "it has … bytes more than its tensors need",
        "Behind the last tensor the file goes on, so its count of tensors is too small, or bytes "
        "were put into it. All its numbers may be read at the wrong place.",
        "Export again, or copy the file again. llama.cpp loads it without a word.",
    ),
    Trouble(
        "… is kept in …; llama.cpp needs every vector in F32",
        "Norms and biases are added to numbers of F32, and llama.cpp's process ends at the first "
        "token when they are of another type.",
        "Write the file with `write_gguf`, which keeps every vector in F32.",
    ),
    Trouble(
        "it has … tensors, too few for … blocks.",
        "The number of blocks in the header is larger than the tensors allow; the header is "
        "damaged.",
        "Export again.",
    ),
    Trouble(
        "the tensors are not those of a model of … blocks: ….",
        "Names are missing or unknown; the message lists the first three. Another number of "
        "blocks, or another naming, is the usual reason.",
        "Names are llama.cpp's, such as `blk.0.attn_qkv.weight`; lesson 12a has the table.",
    ),
    Trouble(
        "… and … do not fit the model",
        "The answer that llmcl keeps in its files, to notice later changes, belongs to another "
        "model.",
        "Export again rather than exchanging tensors in a file.",
    ),
    Trouble(
        "… has shape …; its sizes need …",
        "A tensor in the file has other sizes than its own header says.",
        "In the file a matrix lies (out, in) and its sizes are listed the other way round; lesson "
        "12a shows both.",
    ),
    Trouble(
        "… has weights that are not finite",
        "The file holds inf or nan. llama.cpp loads it without a word and answers nonsense.",
        "Export an earlier checkpoint.",
    ),
)
