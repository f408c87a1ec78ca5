"""Tokens and tokenizers."""

from .entry import Trouble

TROUBLES = (
    Trouble(
        "a tokenizer reads text, and was given ….",
        "`encode` takes one text; you gave bytes, a list, or nothing.",
        '`data.decode("utf-8")` makes a text of bytes; for a list, encode each of its texts.',
    ),
    Trouble(
        "a tokenizer learns from a list of texts; put the one text in a list.",
        "A text is also a sequence in Python, of single characters, and each would become a text "
        "of its own.",
        "`ByteBPE.train([text], 512)` with the brackets.",
    ),
    Trouble(
        "U+… at position … is one half of a surrogate pair and no character; remove it from the "
        "text.",
        "Some programs store an emoji as two halves, and here one got lost, by cutting or by "
        "wrong reading. Alone it cannot be written in UTF-8.",
        'Read the text with `encoding="utf-8"`; or drop such halves: `text.encode("utf-8", '
        '"ignore").decode()`.',
    ),
    Trouble(
        "the token … holds …, which is not in GPT-2's byte alphabet.",
        "In files, tokens are written in an alphabet of 256 signs, one for each byte (`Ġ` is a "
        "space). A raw Korean letter or a space is not in it.",
        "Let `to_alphabet` write tokens; do not edit the list of merges by hand.",
    ),
    Trouble(
        "token id … is outside the vocabulary of … tokens; do the model and the tokenizer belong "
        "together?",
        "The model gave a number for which the tokenizer has no token: it was made with a larger "
        "vocabulary.",
        "Load both from one file with `load_model(path, engine)`.",
    ),
    Trouble(
        "a token id is a whole number, and not ….",
        "`decode` takes a list of ids. NumPy's float arrays and nested lists are none.",
        "`decode([int(i) for i in ids])`, and `ids[0]` if there is a batch dimension.",
    ),
    Trouble(
        "this is no tokenizer of ours; its format should be ….",
        "The JSON file is something else, for example Hugging Face's tokenizer.json, whose rules "
        "differ.",
        "Use the file that `tokenizer.save(path)` wrote.",
    ),
    Trouble(
        "this is a tokenizer of kind …, and … is wanted.",
        "A dictionary of words and byte-level BPE are read by different classes.",
        "`load_tokenizer(path)` looks which of the two it is.",
    ),
    Trouble(
        "a tokenizer of kind … has the fields …, and this one has ….",
        "Somebody added or removed something in the file, or another version wrote it.",
        "Make the tokenizer anew and save it again.",
    ),
    Trouble(
        "the tokenizer was changed after it was written: its fingerprint should be … and is …; "
        "make it anew.",
        "The fingerprint is a sum over all tokens. A single changed merge shifts every id after "
        "it, and a trained model would read other words.",
        "Take the original file, or make the tokenizer anew and train again with it.",
    ),
    Trouble(
        "… is damaged, or no tokenizer file; make the tokenizer anew.",
        "The file is no JSON, for example because the disk was full while it was written, or an "
        "editor changed it.",
        "Make it anew from the same texts; the result is the same to the byte.",
    ),
    Trouble(
        "a dictionary needs a list of words and true or false.",
        "The file's values have other types than a dictionary's: a text instead of a list, for "
        "instance.",
        "Make it with `WordDictionary.train(texts)`.",
    ),
    Trouble(
        "… is not one word, and cannot be in a dictionary.",
        "Text is first split by a fixed rule, so an entry that the rule splits would never be "
        "found again. A word has at most one space, in front.",
        "Split it into its words.",
    ),
    Trouble(
        "the token … stands in the dictionary twice.",
        "Two ids for one token: text could never become the second. llmcl's own markers count too.",
        "Remove one; `list(dict.fromkeys(words))` keeps the first of each.",
    ),
    Trouble(
        "the training text has no words; give it at least one sentence.",
        "The texts are empty, or all their words are single bytes, which are tokens already.",
        "Check that the list of texts has something in it.",
    ),
    Trouble(
        "vocab_size … leaves no room for words; it must be above ….",
        "Special tokens, and with `spell_unknown` the 256 bytes, take their places first.",
        "Choose a larger `vocab_size`, or leave it out: then every word has its place.",
    ),
    Trouble(
        "llama.cpp knows no … and would drop unknown words silently; make the dictionary with "
        "spell_unknown=True to export it.",
        "A dictionary with `<unk>` has no token for a word that it never saw, and llama.cpp "
        "leaves such words out of the text.",
        "`WordDictionary.train(texts, spell_unknown=True)`, then train the model with it: the ids "
        "differ.",
    ),
    Trouble(
        "byte-level BPE needs a list of merges, each a string.",
        "The file, or your call, gives the merges in another form, such as pairs.",
        'One string a merge, with a space between the two parts: `"t h"`.',
    ),
    Trouble(
        "merge …, …, does not join two earlier tokens into a new one; the list of merges is "
        "damaged.",
        "Merges build on each other, so their order counts. A line was removed, exchanged or "
        "added.",
        "Train the tokenizer anew rather than mending the list: all later ids have moved.",
    ),
    Trouble(
        "vocab_size is …; byte-level BPE needs 257 (256 bytes and the end token) to ….",
        "Every byte has a token of its own, so that no text is unknown; merges come on top. The "
        "upper limit keeps the table of counts in memory.",
        "512 is what the lessons use.",
    ),
    Trouble(
        "the tokenizer … is none of ours (gpt-2 or llama-bpe).",
        "The GGUF file names another rule for splitting text. With our rule its ids would come "
        "out differently.",
        "Only files that llmcl wrote can be read back; use llama.cpp for others.",
    ),
    Trouble(
        "the file's … tokens are not the ones that its merges make, followed by …; only files "
        "with our own tokenizer can be read.",
        "A vocabulary of ours follows from its merges: 256 bytes, one token a merge, the end "
        "token. Other makers put their own tokens in between.",
        "Read such a file with llama.cpp; llmcl reads what it wrote.",
    ),
)
