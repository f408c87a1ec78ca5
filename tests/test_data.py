"""Reading texts, and the rows of inputs and targets that are made of them."""

import json
import os
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmcl.data import (
    IGNORED,
    Dialogue,
    batch,
    cut_documents,
    dialogue_text,
    pretrain_rows,
    prompt_text,
    read_dialogues,
    read_folder,
    read_sentences,
    recall_prompts,
    split_documents,
    tokenizer_texts,
    tune_rows,
    windows,
)
from llmcl.errors import DataError
from llmcl.resources import data_dir
from llmcl.tokenizer import END_TOKEN, ByteBPE, WordDictionary

SENTENCES = read_sentences(data_dir() / "pretrain.txt")
DIALOGUES = read_dialogues(data_dir() / "tune.jsonl")
TEXTS = tokenizer_texts(SENTENCES, DIALOGUES)
BPE = ByteBPE.train(TEXTS, 512)
WORDS = WordDictionary.train(TEXTS)
BOTH = pytest.mark.parametrize("tokenizer", [BPE, WORDS], ids=["bpe", "words"])


def write(tmp_path, data):
    path = tmp_path / "한글 text.txt"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


# ---- our own texts ----


def test_our_texts_are_as_many_and_as_short_as_promised():
    assert len(SENTENCES) == len(set(SENTENCES)) == 25 and len(DIALOGUES) == 13
    assert all(30 <= len(s) <= 45 and s.endswith(".") and s.isascii() for s in SENTENCES)
    for dialogue in DIALOGUES:
        assert 2 <= len(dialogue.assistant.split()) <= 8 and dialogue.assistant.endswith(".")
    assert len({dialogue.user.split()[0] for dialogue in DIALOGUES}) == 13
    for name in ("pretrain.txt", "tune.jsonl"):
        data = (data_dir() / name).read_bytes()
        assert data.endswith(b"\n") and b"\r" not in data and b"\n\n" not in data


@BOTH
def test_two_words_tell_every_sentence_from_the_others(tokenizer):
    prompts = recall_prompts(SENTENCES, tokenizer)
    assert prompts == recall_prompts(SENTENCES) and len(prompts) == 25
    assert [prompt for prompt, _ in prompts] == [" ".join(s.split()[:2]) for s in SENTENCES]
    for (prompt, rest), sentence in zip(prompts, SENTENCES, strict=True):
        assert prompt + rest == sentence
        assert tokenizer.encode(prompt) + tokenizer.encode(rest) == tokenizer.encode(sentence)


def test_every_row_is_short():
    rows = pretrain_rows(SENTENCES, BPE) + tune_rows(DIALOGUES, BPE)
    assert len(rows) == 25 + 26 and max(len(inputs) for inputs, _ in rows) <= 32


# ---- reading ----


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("last", [True, False])
def test_marks_and_line_ends_make_no_difference(mark, end, last, tmp_path):
    lines = ["The sun.", "", "  안녕\t하세요 👍 ", " \t", f"a {END_TOKEN}\u2028b"]
    data = mark + end.join(line.encode() for line in lines) + (end if last else b"")
    expected = ["The sun.", "안녕\t하세요 👍", f"a {END_TOKEN}\u2028b"]
    assert read_sentences(write(tmp_path, data)) == expected
    objects = [json.dumps({"user": text, "assistant": text}).encode() for text in expected]
    found = read_dialogues(str(write(tmp_path, mark + (end + end).join(objects) + end)))
    assert found == [Dialogue(text, text) for text in expected]


def test_white_space_and_line_breaks_in_a_dialogue(tmp_path):
    line = '{"assistant": " one\\r\\ntwo\\tthree\\n", "user": " why "}'
    assert read_dialogues(write(tmp_path, line)) == [Dialogue("why", "one\ntwo\tthree")]


BAD_TEXTS = {
    "empty": (b"", "has no text"),
    "only a mark": (b"\xef\xbb\xbf", "has no text"),
    "only blank lines": (b"\n \r\n\t\n", "has no text"),
    "cp949": ("The sun.\r\n\r\n달 sun".encode("cp949"), "line 3, byte 1: 0xB4 .* cp949"),
    "cut inside a character": (b"a\nbc \xed\x95", "line 2, byte 4: 0xED"),
    "UTF-16 with a mark": ("sun".encode("utf-16"), "line 1, byte 1: 0xFF"),
    "UTF-16 without": ("sun".encode("utf-16-le"), r"line 1, character 2: U\+0000"),
    "a null": (b"a\rb\rc\0", r"line 3, character 2: U\+0000"),
    "an escape": (b"ok\n\x1b[31mred", r"line 2, character 1: U\+001B"),
    "a form feed": (b"ok\n\x0c\n", r"line 2, character 1: U\+000C"),
    "a mark inside": ("a\n\ufeffb".encode(), r"line 2, character 1: U\+FEFF"),
    "next line": ("a\u0085b".encode(), r"line 1, character 2: U\+0085"),
}


@pytest.mark.parametrize(("data", "message"), BAD_TEXTS.values(), ids=BAD_TEXTS)
def test_bad_texts_are_named_with_their_line(data, message, tmp_path):
    path = write(tmp_path, data)
    for read in (read_sentences, read_dialogues):
        with pytest.raises(DataError, match=message) as error:
            read(path)
        assert str(error.value).startswith(str(path)) and "\n" not in str(error.value)


BAD_DIALOGUES = {
    "no JSON": ("User: hi", "column 1: Expecting value"),
    "cut": ('{"user": "a", "assistant": "b', "column 28: Unterminated"),
    "two objects": ('{"user": "a", "assistant": "b"} {}', "column 33: Extra data"),
    "a list": ('["a", "b"]', "no JSON object"),
    "a text": ('"a"', "no JSON object"),
    "missing": ('{"user": "a"}', '"assistant" is missing'),
    "another name": ('{"user": "a", "answer": "b"}', '"assistant" is missing'),
    "extra": ('{"user": "a", "assistant": "b", "system": "c"}', "'system' is a field too many"),
    "twice": ('{"user": "a", "user": "b", "assistant": "c"}', "'user' stands twice"),
    "a number": ('{"user": "a", "assistant": 7}', '"assistant" is 7;'),
    "null": ('{"user": null, "assistant": "b"}', '"user" is None;'),
    "empty": ('{"user": "", "assistant": "b"}', "\"user\" is '';"),
    "blank": ('{"user": "a", "assistant": " \\n"}', '"assistant" is'),
    "escaped null": ('{"user": "a\\u0000", "assistant": "b"}', r'"user", character 2: U\+0000'),
    "half a pair": ('{"user": "a", "assistant": "\\ud83d"}', r"character 1: U\+D83D"),
    "nested": ("[" * 100_000, "nested"),
    "a huge number": ('{"user": ' + "1" * 5000 + "}", "integer string conversion|missing"),
}


@pytest.mark.parametrize(("line", "message"), BAD_DIALOGUES.values(), ids=BAD_DIALOGUES)
def test_bad_dialogues_are_named_with_their_line(line, message, tmp_path):
    path = write(tmp_path, '{"user": "a", "assistant": "b"}\n\n' + line + "\n")
    with pytest.raises(DataError, match=message) as error:
        read_dialogues(path)
    assert str(error.value).startswith(f"{path}, line 3") and "\n" not in str(error.value)
    assert len(str(error.value)) - len(str(path)) < 300


def test_missing_files_and_folders(tmp_path):
    for read in (read_sentences, read_dialogues):
        with pytest.raises(DataError, match=r"is a folder; name a file in it\.$"):
            read(tmp_path)
        with pytest.raises(DataError, match=r"missing.txt does not exist"):
            read(tmp_path / "missing.txt")


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    def forbidden(*_):
        raise PermissionError(13, "Permission denied")

    path = write(tmp_path, "a")
    monkeypatch.setattr(os, "open", forbidden)
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        read_sentences(path)


# ---- asking back ----


@pytest.mark.parametrize(
    ("sentences", "prompts"),
    [
        (["a b c", "a d c"], ["a b", "a d"]),
        (["a b c d", "a b d c"], ["a b c", "a b d"]),
        (["The sun is hot.", "The sunny day ends."], ["The sun is", "The sunny"]),
        (["a  b\tc"], ["a  b"]),
        (["a b", "c d e"], ["a", "c d"]),
        (["alone", "a b c"], ["a b"]),
        (["a b c", "a b c"], ["a b", "a b"]),
        (["a b c", "a b c d e"], ["a b", "a b c d"]),
        (["a b", "a c"], ["a", "a"]),
        ([], []),
    ],
)
def test_recall_prompts_are_the_shortest_of_their_own(sentences, prompts):
    found = recall_prompts(sentences)
    assert [prompt for prompt, _ in found] == prompts
    assert [p + rest for p, rest in found] == [s for s in sentences if " " in s]


def test_words_that_look_the_same_to_a_dictionary_are_not_enough():
    sentences = ["One cat sleeps now.", "One dog sits now."]
    tokenizer = WordDictionary.train(["One sleeps sits now."])
    assert [prompt for prompt, _ in recall_prompts(sentences)] == ["One cat", "One dog"]
    found = recall_prompts(sentences, tokenizer)
    assert [prompt for prompt, _ in found] == ["One cat sleeps", "One dog sits"]


@given(st.lists(st.text(alphabet="ab ", max_size=9).map(str.strip), max_size=6))
def test_recall_prompts_agree_with_trying_every_one(sentences):
    slow = []
    for i, sentence in enumerate(sentences):
        words = [m.end() for m in re.finditer(r"\S+", sentence)]
        others = sentences[:i] + sentences[i + 1 :]
        own = [e for e in words[1:-1] if not any(o.startswith(sentence[:e]) for o in others)]
        if len(words) == 2:
            own = words[:1]
        if len(words) > 1:
            end = own[0] if own else words[-2]
            slow.append((sentence[:end], sentence[end:]))
    assert recall_prompts(sentences) == slow


# ---- rows ----


def test_targets_are_the_inputs_shifted_by_one():
    for (inputs, targets), sentence in zip(pretrain_rows(SENTENCES, BPE), SENTENCES, strict=True):
        assert BPE.decode(inputs) == sentence
        assert targets == [*inputs[1:], BPE.end_id]


@given(st.lists(st.integers(0, 99), min_size=2, max_size=40), st.integers(1, 12))
def test_windows_predict_every_token_once(tokens, context_length):
    rows = windows(tokens, context_length)
    assert [target for _, targets in rows for target in targets] == tokens[1:]
    assert [i for inputs, _ in rows for i in inputs] == tokens[:-1]
    lengths = [len(inputs) for inputs, _ in rows]
    assert all(n == context_length for n in lengths[:-1]) and 1 <= lengths[-1] <= context_length


def test_a_window_more_than_the_context_is_one_row():
    assert windows(range(9), 8) == [(list(range(8)), list(range(1, 9)))]
    assert [len(inputs) for inputs, _ in windows(range(10), 8)] == [8, 1]
    for tokens in ([], [5]):
        with pytest.raises(DataError, match=f"has {len(tokens)} tokens and a context of 8"):
            windows(tokens, 8)
    with pytest.raises(DataError, match="a context of 0"):
        windows([1, 2], 0)


def test_a_long_line_is_cut_and_never_joined_to_the_next():
    rows = pretrain_rows(["a b c d e", "f"], BPE, context_length=4)
    line = BPE.encode("a b c d e")
    assert len(line) > 4 and rows[0] == (line[:4], line[1:5])
    assert rows[-1] == (BPE.encode("f"), [BPE.end_id])
    assert [t for _, targets in rows for t in targets].count(BPE.end_id) == 2
    assert all(len(inputs) <= 4 for inputs, _ in rows)


def test_nothing_to_learn_is_an_error():
    with pytest.raises(DataError, match="0 sentences .* at least 1"):
        pretrain_rows([], BPE)
    with pytest.raises(DataError, match="is empty"):
        pretrain_rows(["a", ""], BPE)
    with pytest.raises(DataError, match="0 dialogues .* at least 1"):
        tune_rows([], BPE)
    with pytest.raises(DataError, match="'why' is empty"):
        tune_rows([Dialogue("why", "")], BPE)
    with pytest.raises(DataError, match="0 rows"):
        batch([], 0)


def test_prompt_and_dialogue_are_one_text():
    dialogue = Dialogue("hi", "Hello.")
    assert prompt_text("hi") == "User: hi\nAssistant:"
    assert dialogue_text(dialogue) == "User: hi\nAssistant: Hello."


@BOTH
def test_the_prompt_is_encoded_as_in_the_whole_dialogue(tokenizer):
    for dialogue in [*DIALOGUES, Dialogue("x?", "7 of 12."), Dialogue("x", '"Quoted" it is.')]:
        prompt = tokenizer.encode(prompt_text(dialogue.user))
        answer = tokenizer.encode(" " + dialogue.assistant)
        assert prompt + answer == tokenizer.encode(dialogue_text(dialogue))
        assert tokenizer.encode(prompt_text(dialogue.user) + " ")[: len(prompt)] == prompt


@BOTH
def test_only_answers_and_end_tokens_are_targets(tokenizer):
    rows = tune_rows(DIALOGUES, tokenizer)
    for n, (inputs, targets) in enumerate(rows):
        dialogue, space = DIALOGUES[n // 2], " " * (n % 2)
        prompt = tokenizer.encode(prompt_text(dialogue.user) + space)
        asked = len(prompt) - 1
        assert targets[:asked] == [IGNORED] * asked and IGNORED not in targets[asked:]
        assert targets[asked:-1] == inputs[asked + 1 :] and targets[-1] == tokenizer.end_id
        assert inputs[: asked + 1] == prompt
        assert space + tokenizer.decode(targets[asked:]).strip() == space + dialogue.assistant
        assert tokenizer.decode(inputs) == dialogue_text(dialogue)
    ends = [targets.count(tokenizer.end_id) for _, targets in rows]
    assert ends == [1] * 26
    if tokenizer is WORDS:
        assert all(tokenizer.unknown_id not in inputs for inputs, _ in rows)


def test_a_dialogue_longer_than_the_context_is_refused():
    longest = max(len(inputs) for inputs, _ in tune_rows(DIALOGUES, BPE))
    assert tune_rows(DIALOGUES, BPE, longest) == tune_rows(DIALOGUES, BPE)
    with pytest.raises(DataError, match=f"has {longest} tokens, and the context is {longest - 1}"):
        tune_rows(DIALOGUES, BPE, longest - 1)


@BOTH
def test_batches_are_padded_at_the_right(tokenizer):
    rows = pretrain_rows(SENTENCES, tokenizer) + tune_rows(DIALOGUES, tokenizer)
    ids, targets = batch(rows, tokenizer.end_id)
    longest = max(len(inputs) for inputs, _ in rows)
    assert ids.dtype == targets.dtype == np.int32 and ids.shape == targets.shape == (51, longest)
    for i, (inputs, wanted) in enumerate(rows):
        n = len(inputs)
        assert ids[i, :n].tolist() == inputs and targets[i, :n].tolist() == wanted
        assert (ids[i, n:] == tokenizer.end_id).all() and (targets[i, n:] == IGNORED).all()


def test_rows_are_the_same_every_time():
    assert tune_rows(DIALOGUES, BPE) == tune_rows(read_dialogues(data_dir() / "tune.jsonl"), BPE)


# ---- a folder of documents ----


def fill(folder, **files):
    for name, data in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return folder


def test_a_folder_is_read_with_the_folders_in_it(tmp_path):
    fill(
        tmp_path,
        b_txt=b"\xef\xbb\xbf\r\n\r\nSecond\r\n\r\n\r\n\r\n  line  \r\n",
        a__c_MD="# Title\n***\nOne\n * * *\n\n****\nTwo ** three\n",
        d_pdf=b"\xff\xfe",
        e_txt="\n \n",
        _hidden_txt="not read",
        한글__글_txt="한국어",
    )
    assert (tmp_path / ".hidden.txt").is_file()
    assert read_folder(tmp_path, least=1) == {
        "a/c.MD": ["# Title", "One", "Two ** three"],
        "b.txt": ["Second\n\n  line"],
        "한글/글.txt": ["한국어"],
    }
    assert list(read_folder(tmp_path, least=1)) == ["a/c.MD", "b.txt", "한글/글.txt"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, r"no \.txt or \.md file\. Save"),
        ({"a_pdf": "x", "b_docx": "x"}, r"no \.txt or \.md file; it has a\.pdf, b\.docx\. Save"),
        ({"a_txt": "Too small."}, "has 10 characters of text, and at least 10,000"),
        ({"a_txt": "\n"}, "has 0 characters of text"),
        ({"a_txt": "x\n" + "안".encode("cp949").decode("latin-1")}, "has 4 characters"),
        ({"a_txt": b"x\n\xbe\xc8"}, "a.txt, line 2, byte 1: 0xBE is not UTF-8"),
        ({"a_txt": b"\xff\xfeH\0i\0"}, "a.txt, line 1, byte 1: 0xFF is not UTF-8"),
        ({"a_txt": "a\0b"}, r"a.txt, line 1, character 2: U\+0000"),
    ],
)
def test_a_folder_that_cannot_be_used_is_told_why(tmp_path, files, message):
    with pytest.raises(DataError, match=message):
        read_folder(fill(tmp_path, **files))


def test_what_is_no_folder_is_told(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_folder(tmp_path / "nowhere")
    with pytest.raises(DataError, match="is a file; name the folder"):
        read_folder(write(tmp_path, "text"))


def test_long_documents_are_cut_where_it_hurts_least():
    assert cut_documents(["short", "one\n\ntwo three\n\nfour"], 16) == [
        "short", "one\n\ntwo three", "four",
    ]  # fmt: skip
    assert cut_documents(["line one\nline two"], 12) == ["line one", "line two"]
    assert cut_documents(["some words here"], 11) == ["some words", "here"]
    assert cut_documents(["x" * 25], 10) == ["x" * 10, "x" * 10, "x" * 5]
    with pytest.raises(DataError, match="pieces of 0"):
        cut_documents(["x"], 0)


@given(st.lists(st.text("ab \n", max_size=60), max_size=5), st.integers(1, 20))
def test_cutting_loses_nothing_but_white_space(documents, most):
    pieces = cut_documents(documents, most)
    assert all(0 < len(piece) <= most for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join("".join(documents).split())


@given(
    st.lists(st.sampled_from("abcdefghij"), min_size=2), st.floats(0.01, 0.99), st.integers(0, 9)
)
def test_a_split_keeps_everything_and_twins_together(documents, share, seed):
    different = len(set(documents))
    if different < 2:
        return
    train, held = split_documents(documents, share, seed)
    assert sorted(train + held) == sorted(documents)
    assert train and held and not set(train) & set(held)
    assert abs(len(set(held)) - share * different) <= 1
    assert (train, held) == split_documents(documents, share, seed)


@pytest.mark.parametrize(("documents", "share"), [([], 0.1), (["a", "a"], 0.5), (["a", "b"], 1.0)])
def test_what_cannot_be_split_is_told(documents, share):
    with pytest.raises(DataError, match="cannot be split"):
        split_documents(documents, share)
