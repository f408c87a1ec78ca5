"""Shapes, types and ids that do not fit an operation."""

from .entry import Trouble

TROUBLES = (
    Trouble(
        "…: … has the shape …; it must be ….",
        "The operation got its tensors, and one of them has other sizes than the rest ask for. "
        "The name before the colon is the operation, the next one the argument.",
        "Print the shapes before the call. A gradient has the shape of what it belongs to.",
    ),
    Trouble(
        "…: shapes … and … differ; they must be equal.",
        "The operation works number by number, and the kernels do not broadcast as NumPy does.",
        "Bring both to one shape first; lesson 00b shows how shapes stretch.",
    ),
    Trouble(
        "pair_counts: ids must be one row (n,), and are ….",
        "Pairs are counted along one line of ids. With two dimensions, the end of one row and the "
        "beginning of the next would look like a pair.",
        "Join the rows to one, with -1 between the texts.",
    ),
    Trouble(
        "embedding: ids must be (batch, time), and are ….",
        "The model always works on a batch, even if it holds one text.",
        "Wrap the list once more: `np.array([ids])` instead of `np.array(ids)`.",
    ),
    Trouble(
        "embedding: tables … and … must have rows of one width.",
        "A token's row and a place's row are added, so both have `d_model` numbers.",
        "Make both tables from one configuration.",
    ),
    Trouble(
        "unembedding: x … and the table … do not fit; they must be (..., C) and (V, C).",
        "Each vector is multiplied with every row of the token table, so their widths must be the "
        "same.",
        "Look whether x came out of another model, or the table was transposed.",
    ),
    Trouble(
        "matmul: two matrices are needed; the shapes are … and ….",
        "`matmul` takes matrices; a vector has one dimension and a batch has three.",
        "Reshape: `(1, n)` for a vector, `(batch * time, width)` for a batch.",
    ),
    Trouble(
        "matmul: (…, …) and (…, …) do not fit; … must equal ….",
        "In a product, the columns of the first matrix meet the rows of the second one by one.",
        "Write both shapes down with the inner numbers side by side. Often one matrix wants "
        "`transpose_a=True` or `transpose_b=True`.",
    ),
    Trouble(
        "linear: x …, w … and b … do not fit; they must be (..., K), (K, N) and (N,).",
        "Our weights lie (in, out): as many rows as x has columns. PyTorch and GGUF keep them the "
        "other way round.",
        "Transpose a weight that comes from elsewhere; the bias has one number for each column of "
        "w.",
    ),
    Trouble(
        "layer_norm: gamma … and beta … must be (…,).",
        "Each of a row's numbers has its own gamma and beta, so there are as many as x is wide.",
        "Take the ones of this layer; their length is `d_model`.",
    ),
    Trouble(
        "causal_softmax: scores need (rows, columns): ….",
        "A mask needs two directions: who asks and who is asked. You gave a single row.",
        "Give it as `(1, n)`.",
    ),
    Trouble(
        "causal_softmax: row … would see … columns of ….",
        "Row number `first + i` may look at that many places, and there are not so many columns. "
        "With a cache, `first` is the number of places before the new ones.",
        "Check `first`: it counts what is in the cache already.",
    ),
    Trouble(
        "attention: qkv must be (batch, time, 3 d_model): ….",
        "Query, key and value of every place lie side by side in one row.",
        "Keep the batch dimension, and hand over what the one linear layer made of x, unsplit.",
    ),
    Trouble(
        "attention: a width of … is not 3 times … equal heads.",
        "The width is divided by 3 (query, key, value) and then among the heads, without a rest.",
        "Choose `n_heads` so that it divides `d_model`; check that qkv has three parts.",
    ),
    Trouble(
        "attention: rows … to … do not lie in 0 to ….",
        "The rows that ask must be among those that are there. In generating, the cache has less "
        "in it than you said.",
        "`first` is the first new place, `length` the number of all places so far.",
    ),
    Trouble(
        "attention: shares must be (B, H, Q, length): ….",
        "There is one table of shares for every head of every text.",
        "Hand over the second result of `engine.attention`, as it is.",
    ),
    Trouble(
        "attention: the gradient needs (B, H, T, T): ….",
        "Backward works on whole texts; shares from generating with a cache have one row only.",
        "Run forward on the whole batch before backward.",
    ),
    Trouble(
        "fused_attention: log_sum must be (B, H, T): ….",
        "The fused kernel does not keep the shares, only one number a row, from which backward "
        "computes them anew.",
        "Hand over the second result of `engine.fused_attention`, as it is.",
    ),
    Trouble(
        "cross_entropy: targets … must be …, one for each row.",
        "Every row of logits is judged against one target.",
        "Targets have the shape of the inputs: (batch, time), without the vocabulary's dimension.",
    ),
    Trouble(
        "no target counts (all are -1), so there is no loss; give at least one.",
        '-1 (IGNORED) means "do not look here", and every place of this batch has it. The mean of '
        "nothing is no number.",
        "Look at the targets: in tuning, the answer's tokens must keep theirs. An answer that is "
        "cut off leaves none.",
    ),
    Trouble(
        "token ids must be whole numbers, and are ….",
        "An id is the number of a row. Half a row does not exist, so floating point numbers are "
        "refused even where they are whole.",
        "`ids.astype(np.int32)`. An empty list becomes float64 in NumPy; say `np.array([], int)`.",
    ),
    Trouble(
        "token id … at … is outside the vocabulary of …; encode the text with this model's own "
        "tokenizer.",
        "The table of embeddings has one row for each token, and this number points past its end. "
        "Unchecked, a device would read whatever lies there.",
        "Model and tokenizer must come from one run: load both with `load_model`, and do not mix "
        "two checkpoints.",
    ),
    Trouble(
        "… at … does not fit into 32 bits.",
        "Whole numbers go to the device as int32, from -2,147,483,648 to 2,147,483,647.",
        "Ids never come near. Look for a size in bytes or a time that slipped into the array.",
    ),
    Trouble(
        "… tokens do not fit into the context of …; give a shorter text, or keep its last tokens.",
        "There is one row of position numbers for each place, and the text is longer than the "
        "table.",
        "Cut the ids, as in `ids[-context:]`; the model then forgets the beginning.",
    ),
    Trouble(
        "… tokens do not fit into this model's context of …; give a shorter text.",
        "The model was trained with so many places and has no numbers for a later one. A "
        "conversation that grows meets this limit too.",
        "Keep the last tokens, ask a shorter question, or train with a longer `context_length` (a "
        "multiple of 256 for llama.cpp).",
    ),
    Trouble(
        "no place has a target, so there is no loss; give at least one sentence.",
        "The pair counts are judged on what follows what, and there was nothing to judge.",
        "Check that the list of rows is not empty, and that not every target is -1.",
    ),
    Trouble(
        "inputs … and targets … differ in shape.",
        "Every input token has exactly one target: the token that follows.",
        "Shift once, and cut both to the same length: `ids[:-1]` and `ids[1:]`.",
    ),
    Trouble(
        "the … … is no id of a vocabulary of … tokens.",
        "The table has a row and a column for each token, from 0 to the vocabulary's size less 1.",
        "Encode the text with the tokenizer whose `vocab_size` you gave; -1 is only a target.",
    ),
    Trouble(
        "operands could not be broadcast together with shapes …",
        "NumPy lines two shapes up from the right and stretches only a size of 1. Two other "
        "sizes in one place do not fit.",
        "Print both shapes. After a sum or maximum over a row, `keepdims=True` or `[:, None]` "
        "keeps the column (lesson 00b).",
        kind="other",
    ),
    Trouble(
        "has a mismatch in its core dimension",
        "NumPy's `@`: the columns of the first matrix are not as many as the rows of the second "
        "one.",
        "Print both shapes; the inner two numbers must be equal. Often one matrix wants `.T`.",
        kind="other",
    ),
    Trouble(
        "index … is out of bounds for axis … with size …",
        "NumPy was asked for a row or column that is not there. With size 5 the last one is 4.",
        "Look whether a count starts at 1, or an id belongs to another tokenizer. In a kernel "
        "nobody would have told you.",
        kind="other",
    ),
    Trouble(
        "FileNotFoundError",
        "Nothing lies at the path that the message ends with. A relative path starts where the "
        "program runs; for a notebook that is its own folder, notebooks/.",
        "`import os; print(os.getcwd())` shows where you are. On Windows put an r before the "
        'quotes, `r"…"`: otherwise `\\n` and `\\t` in a path are other letters.',
        kind="other",
    ),
)
