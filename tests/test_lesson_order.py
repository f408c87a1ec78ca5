"""A lesson uses nothing that neither it nor an earlier lesson introduces.

The order of reading is the order of the numbers. A lesson's `introduces` (in its source's header)
lists the concepts it explains and the names of llmcl it uses first.

A watched concept may be used earlier only in prose, in a paragraph or a table's row that points
ahead: it names a later lesson ("lesson 04a", "lessons 03 to 07", a link to `04a_one_head.ipynb`, or
a row whose cell holds the number), which is the one that introduces the concept or one after it.
"""

import ast
import re

import nbformat
import pytest

from lesson_helpers import LESSONS, PLAN, about, code, number_of, prose
from notebook_builder import build

# concept: (how it looks in prose, how it looks in code; None: code is not looked at).
# Names that lesson 00 must use to show the whole road at once (n_heads, vocab_size) are left out.
WATCHED = {
    "all-reduce": (r"\ball-?reduce", r"\bAllreduce\b"),
    "data-parallel": (r"\bdata[- ]parallel", None),
    "AdamW": (r"\bAdamW\b", None),
    "alignment": (r"\balignments?\b", None),
    "atomic": (r"\batomics?\b", r"\batomic_\w+"),
    "attention": (r"\battention\b", r"\battention"),
    "backward": (r"\bbackward\b|\bbackprop", r"\bbackward\b|_backward\b"),
    "barrier": (r"\bbarriers?\b", r"\bbarrier\s*\("),
    "bias": (r"\bbias(es)?\b", r"\bbias\b"),
    "bigram": (r"\bbigrams?\b", r"\bbigrams?\b"),
    "BPE": (r"\bBPE\b", None),
    "buffer": (r"\bbuffers?\b", r"\bBuffer\("),
    "cache": (r"\bcaches?\b", r"\buse_cache\b"),
    "causal mask": (r"\bcausal\b|\bmask(s|ed|ing)?\b", r"\bcausal"),
    "central difference": (r"\bcentral differences?\b", r"\bcentral_difference"),
    "chain rule": (r"\bchain rule\b", None),
    "clipping": (r"\bclip(s|ped|ping)?\b", None),
    "command queue": (r"\bcommand queues?\b", r"\bCommandQueue\b"),
    "cross-entropy": (r"\bcross[- ]entropy\b", r"\bcross_entropy"),
    "embedding": (r"\bembed(s|dings?)?\b", r"\bembedding"),
    "epoch": (r"\bepochs?\b", r"\bepochs?\b"),
    "epsilon": (r"\bepsilon\b", r"\bepsilon\b|\beps\b"),
    "fine-tuning": (r"\bfine-tun", None),
    "forgetting": (r"\bforgetting\b", None),
    "GELU": (r"\bGELUs?\b", r"\bgelu"),
    "gradient": (r"\bgradients?\b", r"\bgrad(ient)?s?\b"),
    "head": (r"(?<!your )(?<!my )(?<!by )\bheads?\b", r"\b(split|join)_heads\b"),
    "layer norm": (r"\blayer[ -]norm", r"\blayer_norm"),
    "learning rate": (r"\blearning rates?\b", r"\blearning_rate\b"),
    "local memory": (r"\b__local\b|\blocal memory\b", r"\b__local\b"),
    "logits": (r"\blogits?\b", r"\blogits\b"),
    "merge": (r"\bmerg(e|es|ed|ing)\b", r"\bmerges?\b"),
    "overfitting": (r"\boverfit", None),
    "padding": (r"\bpadd(ed|ing)\b", r"\bpadding\b"),
    "perplexity": (r"\bperplexity\b", r"\bperplexity\b"),
    "quantize": (r"\bquanti[sz]", r"\bquantize"),
    "residual": (r"\bresiduals?\b", r"\bresidual"),
    "roofline": (r"\brooflines?\b", r"\broofline"),
    "softmax": (r"\bsoftmax\b", r"\bsoftmax"),
    "teacher forcing": (r"\bteacher[ -]forc", None),
    "temperature": (r"\btemperatures?\b", r"\btemperature\b"),
    "tied weights": (r"\btied\b", None),
    "tile": (r"\btil(e|es|ed|ing)\b", r"\bTILE\b"),
    "top-k": (r"\btop-k\b", r"\btop_k\b"),
    "top-p": (r"\btop-p\b", r"\btop_p\b"),
    "vocabulary": (r"\bvocabular(y|ies)\b", None),
    "weight decay": (r"\bweight decay\b", r"\bweight_decay\b"),
    "work-group": (r"\bwork-groups?\b", r"\bget_(local|group)_(id|size)\b"),
    "work-item": (r"\bwork-items?\b", r"\bget_global_id\b"),
}
ALIASES = {
    "__local": "local memory",
    "backprop": "backward",
    "byte-level bpe": "bpe",
    "heads": "head",
    "logit": "logits",
    "mask": "causal mask",
    "merges": "merge",
    "quantization": "quantize",
}
NUMBER = r"\d\d[a-z]?"
POINTERS = (
    rf"\b(?:lessons?|warm-ups?)\s+{NUMBER}(?:(?:,|\s|and|or|to|–)+{NUMBER})*\b",
    rf"\({NUMBER}_\w+\.ipynb",
    rf"^\|.*\|\s*{NUMBER}(?:(?:,|\s|and|or|to|–)+{NUMBER})*\s*(?=\|)",
)


def introduced(lesson):
    """The concepts that a lesson lists, by the names of the table above."""
    listed = [concept.lower() for concept in about(lesson)["introduces"]]
    return {ALIASES.get(concept, concept) for concept in listed}


def pointed_to(paragraph):
    """The numbers of the lessons that a paragraph names; a link to the glossary names none."""
    found = [m[0] for p in POINTERS for m in re.finditer(p, paragraph, re.IGNORECASE)]
    numbers = {n for text in found for n in re.findall(rf"(?<!\d){NUMBER}(?!\d)", text)}
    return {n for n in numbers if n < "9"}


def may_point(paragraph, here, first):
    """Whether a paragraph names a lesson after this one, and not before the one that explains."""
    return any(number > here and number >= first for number in pointed_to(paragraph))


def paragraphs(text):
    """The prose of a block: its paragraphs, and the rows of its tables one by one."""
    text = re.sub(r"```.*?```", " ", text, flags=re.DOTALL)
    for part in re.split(r"\n\s*\n", text):
        rows = [line for line in part.splitlines() if line.startswith("|")]
        yield from rows
        yield " ".join(line for line in part.splitlines() if line not in rows)


def programs(notebook):
    """Each cell's id with the code in it: code cells, and what is fenced in prose."""
    for cell in code(notebook):
        yield cell.id, cell.source
    for cell in prose(notebook):
        for fenced in re.findall(r"```.*?```", cell.source, re.DOTALL):
            yield cell.id, fenced


def too_early(notebook, here, known, first_lessons):
    """A sentence for every use of a watched concept that nobody has introduced yet."""
    faults = []
    for concept, (in_prose, in_code) in WATCHED.items():
        if concept.lower() in known:
            continue
        first = first_lessons.get(concept.lower(), "")
        place = f"lesson {first} does" if first else "no lesson does yet"
        say = f"uses {concept!r} before it is introduced ({place}); list it in this lesson's "
        say += "`introduces` and explain it"
        for cell in prose(notebook):
            for paragraph in paragraphs(cell.source):
                match = re.search(in_prose, paragraph, re.IGNORECASE)
                if match and not may_point(paragraph, here, first):
                    ahead = f"or name the later lesson in this paragraph: {paragraph[:70]!r}"
                    faults.append(f"{cell.id} {say}, {ahead}")
        for cell_id, text in programs(notebook) if in_code else ():
            match = re.search(in_code, text)
            if match:
                faults.append(f"{cell_id} {say}, or do without {match[0]!r} in its code")
    return faults


def llmcl_names(source):
    """What a cell takes from llmcl: `llmcl.tokenizer.ByteBPE`, `llmcl.lab.check`, …"""
    lines = [line for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))]
    found = set()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "llmcl":
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in ("lab", "llmcl"):
                found.add(f"llmcl.{'lab.' * (node.value.id == 'lab')}{node.attr}")
    return found


@pytest.fixture(params=LESSONS)
def lesson(request):
    return request.param


def up_to(lesson):
    return LESSONS[: LESSONS.index(lesson) + 1]


def test_the_numbers_give_the_order_of_reading():
    assert sorted(PLAN) == PLAN
    numbers = [number_of(name) for name in LESSONS]
    assert set(numbers) <= set(PLAN), "a lesson's file begins with a number of the plan"
    assert len(set(numbers)) == len(numbers), "two lessons have the same number"
    assert numbers == [number for number in PLAN if number in numbers]


def test_it_needs_only_what_came_before(lesson):
    earlier = up_to(lesson)[:-1]
    known = {number_of(name) for name in earlier}
    known |= {concept for name in earlier for concept in about(name)["introduces"]}
    missing = set(about(lesson)["needs"]) - known
    assert not missing, f"{lesson} needs {sorted(missing)}, which no earlier lesson introduces"


def test_it_takes_from_llmcl_only_what_was_introduced(lesson):
    known = {concept for name in up_to(lesson) for concept in about(name)["introduces"]}
    used = set().union(*(llmcl_names(c.source) for c in code(build.assemble(lesson, solved=True))))
    missing = sorted(used - known)
    assert not missing, f"list these in the `introduces` of {lesson}: {missing}"


def test_no_concept_is_used_before_it_is_introduced(lesson):
    known = set().union(*map(introduced, up_to(lesson)))
    first_lessons = {}
    for name in LESSONS:
        for concept in introduced(name):
            first_lessons.setdefault(concept, number_of(name))
    faults = too_early(build.assemble(lesson), number_of(lesson), known, first_lessons)
    assert not faults, "\n" + "\n".join(faults)


def test_what_it_introduces_stands_in_its_text(lesson):
    text = "\n".join(cell.source for cell in prose(build.assemble(lesson))).lower()
    for concept in about(lesson)["introduces"]:
        told = concept.startswith("llmcl.") or concept.lower() in text
        assert told, f"{lesson} introduces {concept!r}, and no prose of it says the word"


@pytest.mark.parametrize(
    ("paragraph", "numbers"),
    [
        ("Lesson 04a says why.", {"04a"}),
        ("Lessons 03 to 07 build it; see warm-up 00a and\nlesson 12.", {"03", "07", "00a", "12"}),
        ("See [the next one](04a_one_head.ipynb).", {"04a"}),
        ("| New words | [barrier](90_glossary.ipynb#barrier) |", set()),
        ("| model | `model.py` | 03 to 07 |", {"03", "07"}),
        ("| rows | 37 | the largest |", {"37"}),
        ("There are 12 heads and 53 columns.", set()),
    ],
)
def test_which_lessons_a_paragraph_points_to(paragraph, numbers):
    assert pointed_to(paragraph) == numbers


@pytest.mark.parametrize(
    ("text", "cell_type", "found"),
    [
        ("A barrier waits.", "markdown", True),
        ("Lesson 01b explains what a barrier is.", "markdown", False),
        ("Lesson 02 needs no barrier more than lesson 01b.", "markdown", False),
        ("As in lesson 00, a barrier waits.", "markdown", True),
        ("Before lesson 01a: a barrier waits.", "markdown", True),
        ("Lesson 01b is next.\n\nA barrier waits.", "markdown", True),
        ("| barrier | `groups.py` | 01b |", "markdown", False),
        ("```c\nbarrier(CLK_LOCAL_MEM_FENCE);\n```", "markdown", True),
        ("TEXT = 'barrier(0);'", "code", True),
        ("print('no barriers')", "code", False),
    ],
)
def test_a_concept_that_comes_too_early_is_found(text, cell_type, found):
    cell = nbformat.from_dict({"id": "00-x", "cell_type": cell_type, "source": text})
    notebook = nbformat.from_dict({"cells": [cell]})
    faults = too_early(notebook, "00a", set(), {"barrier": "01b"})
    assert bool(faults) == found
    assert all("00-x uses 'barrier' before" in fault for fault in faults)
    assert not too_early(notebook, "00a", {"barrier"}, {"barrier": "00"})
