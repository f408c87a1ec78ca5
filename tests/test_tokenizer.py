"""Words and bytes: nothing lost that should not be, and the same ids as an independent library."""

import errno
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, models, pre_tokenizers
from tokenizers import Tokenizer as HuggingFace

from llmcl import reference
from llmcl.data import read_dialogues, read_sentences, tokenizer_texts
from llmcl.engine import get_engine
from llmcl.errors import LlmclError, TokenizerError
from llmcl.resources import data_dir
from llmcl.tokenizer import (
    END_TOKEN,
    GPT2_SPLIT,
    WORD_SPLIT,
    ByteBPE,
    StreamDecoder,
    WordDictionary,
    load_tokenizer,
    merge_pair,
    tokenizer_from_dict,
    tokenizer_from_gguf,
)
from llmcl.tokenizer_base import BYTE_ORDER, BYTE_TOKENS, NO_MERGE

TEXTS = tokenizer_texts(
    read_sentences(data_dir() / "pretrain.txt"), read_dialogues(data_dir() / "tune.jsonl")
)
BPE = ByteBPE.train(TEXTS, 512)
WORDS = WordDictionary.train(TEXTS)
SPELLED = WordDictionary.train(TEXTS, spell_unknown=True)
ALL = pytest.mark.parametrize("tokenizer", [BPE, WORDS, SPELLED], ids=["bpe", "words", "spelled"])
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"  # five code points, 18 bytes

STRINGS = TEXTS + [
    "", " ", "  ", "\n", "\n\n", "\t", " \n ", "\r\n", " " * 1000, "a  b", "a--b", " x", "x ",
    "hello", " hello", "\nhello", "zebra quokka", "THE SUN WARMS", "I'm, you're, it's, DON'T",
    "12345 1 22", "²", "½", "Ⅷ", "x² + ½ = Ⅷ", "_a_", "안녕하세요. 반갑습니다", "한👍é", FAMILY,
    f"family {FAMILY}!", "e\u0301 combining", "日本語", "Ω?", "\u201ccurly\u201d 'straight'",
    "\ufeffmark", "\x00\x01\x1c \x1d", "a\u00a0b\u3000c\u2028d", END_TOKEN, f"a{END_TOKEN} b",
    "<unk>", "User: hi\nAssistant:", "User: hi\nAssistant: ", "user:", "a\t\tb\n\n\nc  \n d",
]  # fmt: skip
# Short texts in which the split rule has much to decide.
TANGLED = st.text(alphabet=list(" \t\n\r'stlREea1²½Ⅷ한é.!<|>\u00a0\u200d\x1c👍"), max_size=24)


def hugging_face(tokenizer, merges, **options):
    """The tokenizer as Hugging Face's library does it, from its tokens and merges alone."""
    ids = {token: i for i, token in enumerate(tokenizer.tokens)}
    return HuggingFace(models.BPE(ids, [tuple(merge.split(" ")) for merge in merges], **options))


@pytest.fixture(scope="module")
def their_bpe():
    theirs = hugging_face(BPE, BPE.merges)
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    return theirs


def slow_train(texts, vocab_size):
    """BPE training in plain Python: lists, dictionaries, one piece at a time."""
    pieces = [
        [BYTE_ORDER.index(byte) for byte in piece.encode()]
        for text in texts
        for piece in GPT2_SPLIT.findall(text)
    ]
    tokens, merges = list(BYTE_TOKENS), []
    while len(tokens) < vocab_size - 1:
        counts = Counter(pair for piece in pieces for pair in zip(piece, piece[1:], strict=False))
        if not counts:
            break
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        for piece in pieces:
            i = 0
            while i + 1 < len(piece):
                if (piece[i], piece[i + 1]) == best:
                    piece[i : i + 2] = [len(tokens)]
                i += 1
        merges.append(f"{tokens[best[0]]} {tokens[best[1]]}")
        tokens.append(tokens[best[0]] + tokens[best[1]])
    return merges


# ---- byte-level BPE: training ----


def test_vocabulary_is_bytes_then_merges_then_the_end_token():
    assert BPE.vocab_size == 512 and len(BPE.merges) == 255 and len(set(BPE.tokens)) == 512
    assert BPE.tokens[:256] == BYTE_TOKENS and BYTE_TOKENS[0] == "!" and "Ġ" in BYTE_TOKENS
    assert sorted(BYTE_ORDER) == list(range(256))
    assert set(BYTE_TOKENS) == set(pre_tokenizers.ByteLevel.alphabet())
    assert BPE.tokens[-1] == END_TOKEN and BPE.end_id == 511
    assert BPE.token_types == [1] * 511 + [3]
    assert BPE.tokens[256:-1] == [merge.replace(" ", "") for merge in BPE.merges]
    assert BPE.tokens[BPE.encode("The sun")[1]] == "Ġsun"


def test_every_engine_counts_to_the_same_merges():
    slow = slow_train(TEXTS, 400)
    assert ByteBPE.train(TEXTS, 400).merges == slow
    for engine in (reference.Engine(np.float32), get_engine()):
        assert ByteBPE.train(TEXTS, 400, engine).merges == slow


@settings(max_examples=60)
@given(st.lists(st.text(alphabet="aab c", max_size=30), max_size=4))
def test_training_agrees_with_plain_python_on_runs_and_ties(texts):
    assert ByteBPE.train(texts, 290).merges == slow_train(texts, 290)


@pytest.mark.parametrize("text", ["abab cdcd", "cdcd abab"])
def test_ties_go_to_the_lowest_pair(text):
    assert ByteBPE.train([text], 259).merges == ["a b", "c d"]


def test_no_merge_crosses_a_piece():
    tokenizer = ByteBPE.train(["a b a b a b, a b\n\na b"] * 3, 300)
    for token in tokenizer.tokens[256:-1]:
        assert "Ġ" not in token[1:] and not re.search("[ab],|,[ab]|b.*a", token)
    texts = ["of the ", "of the "]  # "of" ends the one text, and begins no pair with the next
    assert ByteBPE.train(texts, 400).merges == slow_train(texts, 400)


def test_a_small_text_gives_a_smaller_vocabulary():
    tokenizer = ByteBPE.train(["aa bb"], 512)
    assert tokenizer.merges == ["a a", "b b", "Ġ bb"] and tokenizer.vocab_size == 260
    for texts in ([], [""], ["a"], ["a b"[:1]]):
        nothing = ByteBPE.train(texts, 512)
        assert nothing.vocab_size == 257
        assert nothing.decode(nothing.encode("한 x")) == "한 x"


@pytest.mark.parametrize("size", [0, 256, 8193, 300.0, "512", None])
def test_impossible_vocabulary_sizes_are_refused(size):
    with pytest.raises(TokenizerError, match=re.escape(repr(size))):
        ByteBPE.train(TEXTS, size)


def test_the_texts_must_be_a_list_of_texts():
    for train in (lambda t: ByteBPE.train(t, 300), WordDictionary.train):
        with pytest.raises(TokenizerError, match="in a list"):
            train("one text")
        with pytest.raises(TokenizerError, match="NoneType"):
            train(["a", None])


@given(st.lists(st.integers(-1, 2), max_size=40), st.integers(0, 2), st.integers(0, 2))
def test_merge_pair_replaces_from_the_left(ids, a, b):
    slow, i = [], 0
    while i < len(ids):
        found = ids[i : i + 2] == [a, b]
        slow.append(9 if found else ids[i])
        i += 2 if found else 1
    assert merge_pair(np.array(ids, np.int32), (a, b), 9).tolist() == slow


# ---- byte-level BPE: encoding ----


def test_ids_equal_hugging_faces(their_bpe):
    for text in STRINGS:
        assert BPE.encode(text) == their_bpe.encode(text, add_special_tokens=False).ids, repr(text)


@settings(max_examples=300)
@given(TANGLED)
def test_ids_equal_hugging_faces_on_tangled_text(their_bpe, text):
    assert BPE.encode(text) == their_bpe.encode(text, add_special_tokens=False).ids


@settings(max_examples=200)
@given(st.text())
def test_bytes_lose_nothing(text):
    for tokenizer in (BPE, SPELLED):
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text and tokenizer.decode_bytes(ids) == text.encode()
        assert all(0 <= i < tokenizer.end_id for i in ids)


@pytest.mark.parametrize("text", STRINGS)
def test_known_strings_come_back(text):
    assert BPE.decode(BPE.encode(text)) == text
    assert SPELLED.decode(SPELLED.encode(text)) == text


def test_merges_cannot_spell_the_end_token():
    merges = [f"{END_TOKEN[:i]} {END_TOKEN[i]}" for i in range(1, len(END_TOKEN))]
    assert ByteBPE(merges[:-1]).vocab_size == 256 + len(merges)
    with pytest.raises(TokenizerError, match="does not join"):
        ByteBPE(merges)


@ALL
def test_text_cannot_make_the_end_token(tokenizer):
    for text in STRINGS:
        assert tokenizer.end_id not in tokenizer.encode(text)
    tokenizer = type(tokenizer).train([END_TOKEN + " <unk>"] * 3, 300)
    assert tokenizer.end_id not in tokenizer.encode(END_TOKEN)
    assert tokenizer.decode(tokenizer.encode(END_TOKEN)) == END_TOKEN
    assert tokenizer.decode([*tokenizer.encode("<"), tokenizer.end_id]) == tokenizer.decode(
        tokenizer.encode("<")
    )


def test_a_new_line_is_always_a_token_of_white_space():
    text = "one\n\ntwo\n three\nUser: hi\nAssistant: yes\n"
    newlines = [BPE.token_bytes(i).count(b"\n") for i in BPE.encode(text)]
    assert sum(newlines) == text.count("\n") == 6


@ALL
def test_nothing_in_gives_nothing_out(tokenizer):
    assert tokenizer.encode("") == [] and tokenizer.decode([]) == ""
    for text in (" ", "\n", " " * 1000):
        assert tokenizer.encode(text)


@ALL
def test_what_is_no_text_is_refused(tokenizer):
    for value in (None, 7, b"bytes", ["a"]):
        with pytest.raises(TokenizerError, match="reads text"):
            tokenizer.encode(value)
    with pytest.raises(TokenizerError, match=r"U\+D83D at position 3"):
        tokenizer.encode("ab \ud83d")


@pytest.mark.parametrize("tokenizer", [BPE, WORDS], ids=["bpe", "words"])
def test_foreign_ids_are_named(tokenizer):
    for value in (-1, tokenizer.vocab_size, np.int32(99999)):
        with pytest.raises(TokenizerError, match=f"id {value} is .* of {tokenizer.vocab_size} tok"):
            tokenizer.decode([0, value])
    for value in (1.0, "a", None, [1], np.array([1, 2])):
        with pytest.raises(TokenizerError, match="whole number"):
            tokenizer.decode([value])
    assert tokenizer.decode(np.array(tokenizer.encode("The sun"), np.int32)) == "The sun"


# ---- streaming ----


def stream(tokenizer, ids):
    decoder = StreamDecoder(tokenizer)
    return [*(decoder.push(i) for i in ids), decoder.finish()]


@pytest.mark.parametrize("text", ["한👍é", FAMILY, "The sun 안녕", ""])
def test_unfinished_characters_are_held_back(text):
    ids = BPE.encode(text)
    for cut in range(len(ids) + 1):
        pieces = stream(BPE, ids[:cut])
        assert "".join(pieces) == BPE.decode(ids[:cut])
        assert text.startswith("".join(pieces[:-1])) and "\ufffd" not in "".join(pieces[:-1])
    assert stream(BPE, ids)[-1] == ""


@given(st.binary(max_size=12))
def test_streaming_equals_decoding_for_any_bytes(data):
    ids = [BYTE_ORDER.index(byte) for byte in data]
    assert "".join(stream(BPE, ids)) == BPE.decode(ids) == data.decode("utf-8", "replace")
    assert BPE.decode_bytes(ids) == data


def test_a_stream_can_begin_again():
    decoder = StreamDecoder(BPE)
    half = BPE.encode("한")[:1]
    assert decoder.push(half[0]) == "" and decoder.finish() == "\ufffd"
    assert "".join(decoder.push(i) for i in BPE.encode("sun")) == "sun"
    assert "".join(stream(WORDS, WORDS.encode("The sun"))) == "The sun"


# ---- the dictionary of words ----


def test_dictionary_counts_words_then_sorts_them():
    tokenizer = WordDictionary.train(["The sun and the moon.", "The sea."])
    assert tokenizer.tokens == [
        "<unk>", ".", "The", "Ġand", "Ġmoon", "Ġsea", "Ġsun", "Ġthe", END_TOKEN,
    ]  # fmt: skip
    assert tokenizer.token_types == [2, *[1] * 7, 3]
    assert tokenizer.unknown_id == 0 and tokenizer.end_id == 8
    assert tokenizer.encode("The sea and the sun.") == [2, 5, 3, 7, 6, 1]


@pytest.mark.parametrize("text", ["?", "Ω", "안녕", "zebra", "  ", "\n\n", "\t", FAMILY])
def test_unknown_words_become_unk(text):
    ids = WORDS.encode(text) if text != "?" else WordDictionary.train(["a"]).encode(text)
    assert ids and set(ids) == {0} and WORDS.decode(ids) == "<unk>" * len(ids)


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ("The sun warms the land and the sea.", "The sun warms the land and the sea."),
        ("The zebra warms the sea.", "The<unk> warms the sea."),
        ("THE sun", "<unk> sun"),
        ("sun", "<unk>"),
        ("The   sun", "The<unk> sun"),
        ("The sun\n\nThe sea", "The sun<unk>The sea"),
        (" Whales", "<unk>"),
        ("a--b", "<unk><unk><unk>"),
        ("<unk>", "<unk><unk>"),
    ],
)
def test_what_the_dictionary_loses(text, decoded):
    assert WORDS.decode(WORDS.encode(text)) == decoded


def test_dictionary_knows_its_own_texts():
    for text in TEXTS:
        assert 0 not in WORDS.encode(text) and WORDS.decode(WORDS.encode(text)) == text


def test_a_limited_dictionary_leaves_out_the_rarest():
    small = WordDictionary.train(TEXTS, 40)
    assert small.vocab_size == 40 and small.words == WORDS.words[:38]
    assert 0 in small.encode(TEXTS[0])
    for size, spell in ((2, False), (257, True)):
        with pytest.raises(TokenizerError, match=f"{size} leaves no room"):
            WordDictionary.train(TEXTS, size, spell_unknown=spell)
    with pytest.raises(TokenizerError, match="no words"):
        WordDictionary.train(["", ""])


def test_spelled_dictionary_equals_hugging_faces():
    theirs = hugging_face(SPELLED, [], ignore_merges=True)
    theirs.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(WORD_SPLIT.pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])  # fmt: skip
    assert SPELLED.unknown_id is None and len(set(SPELLED.tokens)) == SPELLED.vocab_size
    for text in STRINGS:
        assert SPELLED.encode(text) == theirs.encode(text, add_special_tokens=False).ids, text


def test_only_a_spelled_dictionary_can_be_exported():
    left, right = SPELLED.merges[0].split(" ")
    assert left in SPELLED.tokens and left + right not in SPELLED.tokens
    with pytest.raises(TokenizerError, match="spell_unknown=True"):
        _ = WORDS.merges


# ---- files ----


@ALL
def test_saved_and_loaded_is_the_same(tokenizer, tmp_path):
    path = tmp_path / "토큰 tokens.json"
    tokenizer.save(path)
    first = path.read_bytes()
    for again in (type(tokenizer).load(path), load_tokenizer(str(path))):
        assert type(again) is type(tokenizer) and again.tokens == tokenizer.tokens
        assert again.token_types == tokenizer.token_types
        assert again.fingerprint() == tokenizer.fingerprint()
        assert all(again.encode(text) == tokenizer.encode(text) for text in STRINGS)
        again.save(path)
        assert path.read_bytes() == first
    assert os.listdir(tmp_path) == [path.name]
    copy = tokenizer_from_dict(json.loads(json.dumps(tokenizer.to_dict())))
    assert copy.to_dict() == tokenizer.to_dict()


def test_fingerprints_tell_tokenizers_apart():
    smaller, other = ByteBPE.train(TEXTS, 511), ByteBPE.train([*TEXTS, "xqxqxq"], 512)
    others = [BPE, WORDS, SPELLED, smaller, other]
    prints = [tokenizer.fingerprint() for tokenizer in others]
    assert len(set(prints)) == len(others) and all(re.fullmatch("[0-9a-f]{16}", p) for p in prints)
    assert ByteBPE.train(TEXTS, 512).fingerprint() == BPE.fingerprint()


def changed(**new):
    return json.dumps(BPE.to_dict() | new)


FOREIGN = {
    "empty": "",
    "truncated": json.dumps(BPE.to_dict())[:-40],
    "not JSON": "The sun warms the land.",
    "nested": "[" * 100_000,
    "a list": "[1, 2]",
    "another program's": '{"version": "1.0", "model": {"type": "BPE"}}',
    "another format": changed(format="llmcl-tokenizer-9"),
    "another kind": changed(kind="sentences"),
    "a field too many": changed(extra=1),
    "a field too few": json.dumps({k: v for k, v in BPE.to_dict().items() if k != "merges"}),
    "merges no list": changed(merges="a b"),
    "merges no strings": changed(merges=[1, 2]),
    "a merge of the unknown": changed(merges=["a bc"]),
    "a merge of three": changed(merges=["a b", "a b c"]),
    "a merge twice": changed(merges=["a b", "a b"]),
    "a merge of one": changed(merges=["a"]),
    "a merge that was changed": changed(merges=[*BPE.merges[:-1], "q z"]),
    "words no list": json.dumps(WORDS.to_dict() | {"words": "sun"}),
    "two words in one": json.dumps(WORDS.to_dict() | {"words": ["two words"]}),
    "a word twice": json.dumps(WORDS.to_dict() | {"words": ["sun", "sun"]}),
    "an empty word": json.dumps(WORDS.to_dict() | {"words": [""]}),
    "a number as a word": json.dumps(WORDS.to_dict() | {"words": [1]}),
    "half a character": json.dumps(WORDS.to_dict() | {"words": ["\ud83d"]}),
    "neither true nor false": json.dumps(WORDS.to_dict() | {"spell_unknown": 1}),
    "a byte as a word": json.dumps(SPELLED.to_dict() | {"words": ["a"]}),
}


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
def test_damaged_and_foreign_files_are_refused(text, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(text, encoding="utf-8")
    for load in (load_tokenizer, ByteBPE.load, WordDictionary.load):
        with pytest.raises(TokenizerError) as error:
            load(path)
        message = str(error.value)
        assert message.count(str(path)) == 1 and message.endswith(".") and "\n" not in message


def test_missing_files_folders_and_bytes_are_refused(tmp_path):
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    for name in ("missing.json", "", "bytes.json"):
        with pytest.raises(TokenizerError, match=re.escape(str(tmp_path / name))):
            load_tokenizer(tmp_path / name)
    with pytest.raises(TokenizerError, match="'words' is wanted"):
        BPE.save(tmp_path / "bpe.json")
        WordDictionary.load(tmp_path / "bpe.json")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_save_keeps_the_old_file(step, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "tokenizer.json"
    WORDS.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(os, step, full)
    with pytest.raises(TokenizerError, match="No space left on device"):
        BPE.save(path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == [path.name]


def test_saving_into_a_missing_folder_is_one_sentence(tmp_path):
    with pytest.raises(TokenizerError, match="cannot write .*No such file"):
        BPE.save(tmp_path / "missing" / "tokenizer.json")


# ---- GGUF, and other machines ----


@pytest.mark.parametrize("tokenizer", [BPE, SPELLED, ByteBPE([])], ids=["bpe", "spelled", "bytes"])
def test_a_gguf_files_lists_give_the_tokenizer_back(tokenizer):
    merges = tokenizer.merges or NO_MERGE
    again = tokenizer_from_gguf(tokenizer.pre, list(tokenizer.tokens), list(merges))
    assert again.to_dict() == tokenizer.to_dict()
    for pre, tokens, joins in (
        ("qwen2", tokenizer.tokens, merges),
        (tokenizer.pre, tokenizer.tokens[:-1], merges),
        (tokenizer.pre, [*tokenizer.tokens[:-2], "日", END_TOKEN], merges),
        (tokenizer.pre, tokenizer.tokens, [*merges, "q z"]),
        (tokenizer.pre, [], []),
    ):
        with pytest.raises(TokenizerError):
            tokenizer_from_gguf(pre, tokens, joins)


ELSEWHERE = """
import sys
from llmcl.data import read_dialogues, read_sentences, tokenizer_texts
from llmcl.resources import data_dir
from llmcl.tokenizer import ByteBPE, WordDictionary, load_tokenizer
texts = tokenizer_texts(
    read_sentences(data_dir() / "pretrain.txt"), read_dialogues(data_dir() / "tune.jsonl")
)
ByteBPE.train(texts, 512).save(sys.argv[1])
print(load_tokenizer(sys.argv[1]).fingerprint(), WordDictionary.train(texts).fingerprint())
"""


@pytest.mark.parametrize("seed", ["0", "1", "2"])
def test_no_locale_hash_seed_or_folder_changes_anything(seed, tmp_path):
    root = Path(__file__).parent.parent
    result = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", "-X", "utf8=0", "-c", ELSEWHERE, "t.json"],
        cwd=tmp_path,
        env=os.environ | {
            "PYTHONHASHSEED": seed, "PYTHONPATH": str(root), "LC_ALL": "C",
            "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "cp949",
        },
        capture_output=True,
        text=True,
        encoding="cp949",
        timeout=60,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [BPE.fingerprint(), WORDS.fingerprint()]
    # The regex package asks for the locale's encoding and ignores it; our own files must not.
    ours = [line for line in result.stderr.splitlines() if line.startswith(str(root / "llmcl"))]
    assert ours == []


def test_tokenizer_errors_are_ours():
    assert issubclass(TokenizerError, LlmclError)
