"""What tests/mutants.py changes, who must notice, and what nobody can notice, with the reason."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The numbers that kernels compute with, in contrast to those that they count and address with.
VALUES = (
    r"(?:scale|r|rstd|m|d|g|v|s|x|clip|weight|shrink|share|slope|factor|correction\d|take\d|gamma"
    r"|beta|gx_mean|g_mean|xhat|up|dot|dp|p|q|b|right|line|CUBE|TWO_ROOT|decay|largest|most|top"
    r"|log_\w+|logs|sum|pull|branch|mean|plus|bias|delta)\b(?:\[[^]]*\])?"
)
# The name of a mistake, the pattern of the code that it changes, and what takes its place.
KERNEL_RULES = (
    ("guard off by one", r"(?<=if \()(\w+) >= (\w+)", r"\1 > \2"),
    ("guard off by one", r"(?<=\|\| )(\w+) >= (\w+)", r"\1 > \2"),
    ("guard off by one", r"(?<=if \()(\w+) < (\w+)(?=\)| &&)", r"\1 <= \2"),
    ("barrier removed", r"barrier\(CLK_LOCAL_MEM_FENCE\);", ";"),
    ("index swapped", r"\[(\w+) \* (\w+) \+ (\w+)\]", r"[\3 * \2 + \1]"),
    ("index swapped", r"\[(\w+)\]\[(\w+)\]", r"[\2][\1]"),
    ("= for +=", r"(?<!; \w) \+= (?!.*\) ?[^;]*$)", " = "),
    ("+= for =", r"(?<=\]) = (?=[^=])", " += "),
    ("+ for -", r"(?<=[\w)\]]) - (?=[\w(])", " + "),
    ("n for n - 1", r"(?<=\w)( - 1|(?<!/ 8) \+ 1)\b(?!\.)", ""),
    ("n - 1 for n", r"/ (C|count|total)\b", r"/ (\1 - 1)"),
    ("bound off by one", r"(?<=; )(\w+) < (\w+)(?=;)", r"\1 < \2 - 1"),
    ("bound one too far", r"(?<=; )(\w+) < (\w+)(?=;)", r"\1 <= \2"),
    ("stride forgotten", r"(?<=; )(\w+) \+= [\w *]+(\(\d\))?\)(?= |$)", r"\1 += 1)"),
    ("mask by one", r"(?<=\w) <= (?=\w)", " < "),
    ("mask by one", r"(?<=[\w)]) > (?=row\b|i0\b|i\b|\(float)", " >= "),
    ("smaller for larger", r"\bfmax\(", "fmin("),
    ("larger for smaller", r"\bmin\(", "max("),
    ("a sum that begins at 1", r" = 0\.0f(?=[;,])", " = 1.0f"),
    ("a maximum that begins at 0", r"= -INFINITY(?=[;,])", "= 0.0f"),
    ("a term dropped", rf" [-+] {VALUES}( \* {VALUES})*(?=[;)])", ""),
    ("a factor dropped", rf" \* {VALUES}(?=[;,)]| [-+*/] )", ""),
    ("epsilon outside the root", r"sqrt\((\w+ / C) \+ epsilon\)", r"(sqrt(\1) + epsilon)"),
    ("epsilon inside the root", r"\(sqrt\((.*?)\) \+ epsilon\)", r"sqrt(\1 + epsilon)"),
    ("decay on the wrong part", r"< n_decay \?", ">= n_decay ?"),
    ("clip always", r"norm > max_norm \? max_norm / norm : 1\.0f", "max_norm / norm"),
    ("clip never", r"norm > max_norm \? max_norm / norm : 1\.0f", "1.0f"),
    ("or for and", r" && ", " || "),
    ("the other dimension", r"get_(global|local|group)_id\(0\)", r"get_\1_id(1)"),
    ("the other dimension", r"get_(global|local|group)_id\(1\)", r"get_\1_id(0)"),
    ("the id inside the group", r"get_global_id\(", "get_local_id("),
    ("the other part of qkv", r"(?<=[-+] )2 \* C\b", "C"),
)
PYTHON_RULES = (
    ("+ for -", r"(?<=[\w)\]]) - (?=[\w(])", " + "),
    ("- for +", r"(?<=[\w)\]]) \+ (?=[\w(])", " - "),
    ("a transpose forgotten", r"transpose_([ab])=True", r"transpose_\1=False"),
    ("= for +=", r"\+= ", "= "),
    ("the other side", r"\bdy\b(?=\)$)", "dx"),
    ("a branch dropped", r"self\.engine\.residual\((\w+), (\w+)\)", r"\1"),
    ("a branch dropped", r"self\.engine\.residual\((\w+), (\w+)\)", r"\2"),
    ("a branch dropped", r"\bplus=(x|plus)\b|(?<=, )plus(?=\)$)", "None"),
    ("not added", r"add=True|int\(add\)", "0"),
    ("scale of the width", r"\bd\*\*-0\.5", "(n_heads * d)**-0.5"),
    ("scale forgotten", r"\bd\*\*-0\.5", "1.0"),
    ("rounded down", r"-\(-(\w+) // ([\w.]+)\)", r"(\1 // \2)"),
    ("the wrong part decays", r"\bnot decays\(", "decays("),
    ("the wrong part decays", r"(?<!not )(?<!def )\bdecays\(", "not decays("),
    ("the wrong part decays", r'"norm" not in', '"norm" in'),
    ("everything decays", r'"norm" not in name', "True"),
    ("everything decays", r'name != "position_embd.weight"', "True"),
    ("the other beta", r"\bbeta1(?=[,*)]|$)", "beta2"),
    ("the other beta", r"\bbeta2(?=[,*)]|$)", "beta1"),
    ("not corrected", r"\*\*step\b", ""),
    ("off by one", r"(?<=[\w)]) <= (?=\w)", " < "),
    ("off by one", r"(?<=[\w)]) >= (?=\w)", " > "),
    ("off by one", r"(?<=[\w)]) > (?=\w)", " >= "),
    ("off by one", r"(?<=[\w)]) < (?=\w)", " <= "),
    ("off by one", r"(?<=[\w)])( \+ 1)(?=[,)]|$)", ""),
    ("larger for smaller", r"\bmin\(", "max("),
    ("smaller for larger", r"\bmax\(", "min("),
    ("a factor dropped", r" \* [\w.]+(?=[,);]|$)", ""),
    ("sizes exchanged", r"\b(m|rows|b|v|k), (n|c|t|k|rows)\b(?!,? =)", r"\2, \1"),
    ("values exchanged", r"\b(m|x|dy|loss|value|mean), (v|dy|w|norm|rstd)\b(?!,? =)", r"\2, \1"),
    ("the start forgotten", r"\bfirst\b(?=[,)])(?!=)", "0"),
    ("the start forgotten", r"\brow=first\b", "row=0"),
    ("the order forgotten", r"\breversed\(([\w.]+)\)", r"\1"),
    ("a call dropped", r"(?<=        )(self\.|x\.|engine\.|qkv\.|model\.)[\w.]+\(.*\)$", "pass"),
    ("or for and", r" and ", " or "),
    ("and for or", r" or ", " and "),
    ("condition reversed", r"\bif (?!not\b|TYPE)(.*):$", r"if not (\1):"),
)
LOOP = "        for w, grad, m, v, n_decay in groups:\n"
EACH = """\
        parts = (self.model.parameters, self.model.gradients, self.m, self.v)
        groups = (
            (*(part[name] for part in parts), self.model.parameters[name].size * decays(name))
            for name in self.model.names
        )
"""
# Mistakes of several lines: file, name, what stands there, what takes its place.
BY_HAND = (
    ("llmcl/optimizer.py", "clip each tensor", LOOP,
     f"{EACH}{LOOP}            status = engine.global_norm([grad], loss, s.max_norm, step)\n"),
    ("llmcl/optimizer.py", "clip each tensor, and report the norm of all",
     f"{LOOP}            engine.adamw(\n                w, grad, m, v, status, rate",
     f"{EACH}{LOOP}            own = engine.global_norm([grad], loss, s.max_norm, step)\n"
     "            engine.adamw(\n                w, grad, m, v, own, rate"),
    ("llmcl/optimizer.py", "the flag is not handed on", "step, self.status",
     "step, None"),
    ("llmcl/optimizer.py", "steps not counted", "self.steps, self.status = step, status",
     "self.status = status"),
    ("llmcl/layers.py", "the output kept for the input", "self.saved = (x, mean, rstd)",
     "self.saved = (y, mean, rstd)"),
    ("llmcl/layers.py", "the output kept for the input",
     """        self.saved = (wide,)
        return self.down.forward(self.engine.gelu(wide), plus)""",
     """        wide = self.engine.gelu(wide)
        self.saved = (wide,)
        return self.down.forward(wide, plus)"""),
    ("llmcl/layers.py", "the norm after the branch",
     "x = self.attention.forward(self.attn_norm.forward(x), cache, first, plus=x)",
     "x = self.attn_norm.forward(self.attention.forward(x, cache, first, plus=x))"),
    ("llmcl/ops/adamw.py", "1 - beta in float32", "rate, 1 - beta1, 1 - beta2, epsilon",
     "rate, 1 - beta1, float(__import__('numpy').float32(1) - __import__('numpy').float32(beta2)), "
     "epsilon"),
    ("kernels/layer_norm.cl", "one pass: mean of squares - square of mean",
     """        const float d = in[c] - m;
        squares += d * d;
    }
""", """        squares += in[c] * in[c];
    }
    squares -= C * m * m;
"""),
    ("kernels/cross_entropy.cl", "divided by all rows", "loss[0] = sum / count;",
     "loss[0] = sum / rows;"),
    ("kernels/cross_entropy.cl", "the id 0 taken for padding", "if (target < 0) return;",
     "if (target <= 0) return;"),
    ("kernels/attention.cl", "keys for values", "v = qkv + b * T * 3 * C + 2 * C + c;",
     "v = qkv + b * T * 3 * C + C + c;"),
    ("kernels/embedding.cl", "the position of the batch", "const int t = place % T;",
     "const int t = place / T;"),
)  # fmt: skip
# The tests that look at a file, where they are not those of the operation of the same name.
TESTS = {
    "llmcl/layers.py": [
        "tests/model/test_layers.py",
        "tests/test_train.py",
        "tests/model/test_model.py",
    ],
    "llmcl/model.py": [
        "tests/model/test_model.py",
        "tests/model/test_generate.py",
        "tests/model/test_optimizer.py",
    ],
    "llmcl/optimizer.py": ["tests/model/test_optimizer.py"],
    "llmcl/train.py": ["tests/test_train.py"],
    "llmcl/ops/linear.py": ["tests/ops/test_linear.py", "tests/ops/test_matmul.py"],
    "kernels/matmul.cl": ["tests/ops/test_linear.py", "tests/ops/test_matmul.py"],
    "kernels/matmul_gpu.cl": ["tests/ops/test_linear.py", "tests/ops/test_matmul.py"],
}
PYTHON = [
    "llmcl/layers.py", "llmcl/model.py", "llmcl/optimizer.py", "llmcl/train.py",
    *(f"llmcl/ops/{name}.py" for name in (
        "adamw", "attention", "cross_entropy", "embedding", "fill", "fused_attention", "gelu",
        "global_norm", "layer_norm", "linear", "pair_counts", "residual", "softmax")),
]  # fmt: skip
# (Compiling everything for a GPU's kernels on a CPU takes too long to be done for each mutant.)
EVERY_KERNEL = [
    "tests/ops/test_every_kernel.py", "--deselect=tests/ops/test_every_kernel.py::"
    "test_a_gpu_s_kernels_are_right_as_the_compiler_optimizes_them",
]  # fmt: skip
WHOLE_STEP = ["tests/model/test_model.py"]
# The operations that use a kernel file, for the strict device; else those of the file's name.
USED_BY = {
    "column_sum": "^linear_backward",
    "transpose": "linear|unembedding|matmul",
    "matmul": "linear|unembedding|matmul",
    "softmax": "softmax|^attention",
    "global_norm": "global_norm|sum_squares",
    "linear": "linear|unembedding|matmul",
    "embedding": "embedding",
}
# Mutants that change no result, by a pattern of their names, and why.
EQUIVALENT: tuple[tuple[str, str], ...] = (
    (r"kernels/.*: (mask by one: .*\+ (8|4|COLUMNS) <= .* -> .*\+ (8|4|COLUMNS) < .*"
     r"|guard off by one: .* i0 >= n_decay\).* -> .*|guard off by one: if \(V >= 8\).*)",
     "the last full vector goes number by number, which gives the same"),
    (r"kernels/cross_entropy\.cl: stride forgotten: .* larger = fmax.*",
     "the largest of vectors that overlap is the same"),
    (r"kernels/softmax_gpu\.cl: stride forgotten: .* most = fmax.*",
     "every item looks at more columns; the largest of all is the same"),
    (r"kernels/(softmax_gpu\.cl: stride forgotten: .* dscores\[row.*"
     r"|layer_norm_gpu\.cl: stride forgotten: .* y\[row \* C \+ c\] = .*"
     r"|layer_norm_gpu\.cl: stride forgotten: for \(int c = id; c < C; c \+= size\) -> .*"
     r"|cross_entropy_gpu\.cl: stride forgotten: for \(int v = .*"
     r"|cross_entropy\.cl: stride forgotten: for \(; v \+ 8 <= V; v \+= 8\) -> .*"
     r"|matmul\.cl: stride forgotten: for \(; [pr] \+ 8 <= .*"
     r"|fused_attention_gpu\.cl: stride forgotten: .*D_WIDE.* n \+= WIDTH\).*)",
     "the same numbers are written to the same places again"),
    (r"kernels/embedding_gpu\.cl: the other dimension: .*\*flag = 0;",
     "every item, not only the first, writes the same 0"),
    (r"kernels/embedding_gpu\.cl: stride forgotten: .* before \|= .*",
     "every item looks at more of the places before; whether one is found is the same"),
    (r"kernels/fused_attention(_gpu)?\.cl: larger for smaller: "
     r"(for \(int j0 = 0; j0 <=? |const int seen = ).*",
     "the keys behind the last one that a row sees are masked"),
    (r"kernels/fused_attention\.cl: guard off by one: if \([ij]0 >= [QT] .* -> if \([ij]0 > .*",
     "an item whose rows all lie past the end reads the last row and writes nothing"),
    (r"llmcl/ops/global_norm\.py: larger for smaller: local = .*",
     "a larger group, which the device allows, for the same sum"),
    (r"kernels/(adamw|column_sum|residual|gelu|layer_norm)\.cl: guard off by one: "
     r"if \((i0?|c0|col0) >= [nC].*",
     "behind the end of everything no vector is left, and the loop over single numbers is empty"),
    (r"kernels/(cross_entropy_gpu\.cl: a sum that begins at 1: float largest = .*"
     r"|fused_attention\.cl: a sum that begins at 1: lanes largest = .*"
     r"|fused_attention_gpu\.cl: a sum that begins at 1: (total\[r\]|.* R \* E; .* sum\[n\]) = .*"
     r"|fused_attention\.cl: a sum that begins at 1: for .* heard\[e\] = 0\.0f; -> .*)",
     "what was there before the first score is multiplied by exp(-inf), which is 0"),
    (r"kernels/(cross_entropy|global_norm)\.cl: .*: if \(get_global_id\(0\) > 0\) return; -> "
     r"if \(get_(global_id\(1|local_id\(0)\) > 0\) return;"
     r"|kernels/(cross_entropy|global_norm)_gpu\.cl: .*: if \(get_group_id\(0\) > 0\) return; -> "
     r"if \(get_group_id\(1\) > 0\) return;"
     r"|kernels/cross_entropy_gpu\.cl: .*: if \(get_local_id\(0\) == 0\) loss\[0\] .*",
     "every item that goes on writes the same"),
    (r"kernels/cross_entropy\.cl: \+= for =: (log_sum|row_loss)\[row\] = l.*",
     "the place holds 0"),
    (r"kernels/embedding\.cl: guard off by one: if \(c0 >= C \|\| v >= V\) .*",
     "no column is left there, and no token has that number"),
    (r"llmcl/ops/embedding\.py: rounded down: kernel\(\(-\(-c // width\), v\).*",
     "width is c or 1, so nothing is left over"),
    (r"kernels/(fused_attention_gpu|matmul_gpu)\.cl: bound off by one: "
     r"for \(int \w = 0; \w < (R|S|count|ITEM_[MN]); \w \+= 4\).*",
     "the bound is a multiple of four"),
    (r"kernels/(layer_norm\.cl: bound off by one: for \(int c = 0; c < whole; c \+= 8\).*"
     r"|matmul\.cl: bound off by one: for \(int \w+ = 0; \w+ < (8|COLUMNS); \w+ \+= [248]\).*"
     r"|fused_attention_gpu\.cl: bound off by one: .* p0 < TILE; p0 \+= DEPTH\).*)",
     "the bound is a multiple of the step"),
    (r"kernels/fused_attention_gpu\.cl: bound one too far: .* c < E; \+\+c\).*",
     "channel E of an item lies behind the head and is not stored"),
    (r"kernels/matmul\.cl: bound one too far: for \(int col = 0; col < COLUMNS; \+\+col\).*",
     "the number too many is written over, or nobody reads it"),
    (r"kernels/matmul\.cl: bound one too far: for \(int row = first; row < last; row \+= ROWS\).*",
     "a block of no rows stores nothing"),
    (r"kernels/matmul\.cl: bound one too far: for \(int p0 = 0; p0 < k; p0 \+= DEPTH\).*",
     "a pass of no steps writes back what is there"),
    (r"llmcl/optimizer\.py: off by one: if step <= self\.warmup: .*",
     "the decay begins with the rate that the warm-up ends with"),
    (r"kernels/matmul\.cl: (a sum that begins at 1: \*y = 0\.0f;"
     r"|\+= for =: .* \(\(float \*\)y\)\[i\] = x\[i\];) .*",
     "y holds 0, and its lanes behind the last column are not stored"),
    (r"kernels/fused_attention_gpu\.cl: .*: .*D_WIDE \+ ITEMS - 1\) / ITEMS; .* -> "
     r".*D_WIDE \+ ITEMS( \+ 1)?\) / ITEMS; .*",
     "what lies past the last row is not staged"),
    (r"kernels/fused_attention_gpu\.cl: guard off by one: if \(p < DEPTH\) .*",
     "the rows of every tile in use divide evenly, so nobody comes to the end"),
    (r"kernels/(fused_attention\.cl: \+ for -: for \(int j0 = 0; j0 <= min\(.*\) - 1; .*"
     r"|fused_attention\.cl: bound one too far: for \(int i0 = j0; i0 < T; .*"
     r"|fused_attention_gpu\.cl: bound one too far: for \(int j0 = 0; j0 < seen; .*"
     r"|fused_attention_gpu\.cl: bound one too far: for \(int i0 = j0; i0 < T; .*)",
     "the keys or rows behind the last one that counts are masked"),
    (r"kernels/(matmul\.cl: bound one too far: for \(int start = 0; start < k; start \+= TILE\).*"
     r"|fused_attention_gpu\.cl: bound one too far: .* e0 < D_HEAD; e0 \+= DEPTH\).*)",
     "what lies behind the last tile is taken for zeros"),
    (r"kernels/embedding_gpu\.cl: bound one too far: for \(int start = place; .*",
     "nobody finds the token behind the last place"),
    (r"kernels/matmul\.cl: n for n - 1: typedef float tile.*",
     "the column that nobody uses is there for speed alone"),
)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of a file; line 0: a change of several lines."""

    file: str
    line: int
    rule: str
    before: str
    after: str

    @property
    def name(self) -> str:
        """What EQUIVALENT and the report call it; without the number, which edits move."""
        return f"{self.file}: {self.rule}: {self.before} -> {self.after}"

    @property
    def reason(self) -> str:
        """Why it changes nothing, or ""."""
        return next((why for name, why in EQUIVALENT if re.fullmatch(name, self.name)), "")

    def applied(self, text: str) -> str:
        """The file's text with the change."""
        if not self.line:
            assert text.count(self.before) == 1, self.name
            return text.replace(self.before, self.after)
        lines = text.splitlines(keepends=True)
        changed = lines[self.line - 1].replace(self.before, self.after)
        assert changed != lines[self.line - 1], self.name
        lines[self.line - 1] = changed
        return "".join(lines)


def mutants(file: str) -> Iterator[Mutant]:
    """Every mutant of a file, in the order of its lines; comments and messages are left alone."""
    kernel = file.endswith(".cl")
    rules, comment = (KERNEL_RULES, "//") if kernel else (PYTHON_RULES, "#")
    docstring, seen = False, set()
    for number, line in enumerate((ROOT / file).read_text(encoding="utf-8").splitlines(), 1):
        quotes = 0 if kernel else line.count('"""')
        inside, docstring = docstring or quotes > 0, docstring != (quotes == 1)
        code = line.split(comment)[0].rstrip().removesuffix("\\").rstrip()
        if inside or "#" in code or "__kernel" in code or re.match(r"\s*(f?\"|import|from)", code):
            continue
        for rule, pattern, put in rules:
            for found in re.finditer(pattern, code):
                if code[: found.start()].count('"') % 2:  # in the words of a message
                    continue
                new = code[: found.start()] + found.expand(put) + code[found.end() :]
                if new.strip() != code.strip() and (number, new) not in seen:
                    seen.add((number, new))
                    yield Mutant(file, number, rule, code.strip(), new.strip())
    for other, rule, before, after in BY_HAND:
        if other == file:
            yield Mutant(file, 0, rule, before, after)


def tests_of(file: str) -> list[list[str]]:
    """The tests that must reject a mutant of a file: its own first, then wider ones."""
    if file in TESTS and "/ops/" not in file and file.endswith(".py"):
        return [TESTS[file]]
    own = f"tests/ops/test_{Path(file).stem.removesuffix('_gpu')}.py"
    first = TESTS.get(file, [own] if (ROOT / own).exists() else EVERY_KERNEL)
    return [first, EVERY_KERNEL, *([WHOLE_STEP] if file.endswith(".py") else [])]


def operations_of(file: str) -> str:
    """A pattern of the operations that the strict device runs for a file of kernels or launches."""
    name = Path(file).stem.removesuffix("_gpu")
    return USED_BY.get(name, f"^{name}") if file.endswith(".cl") or "/ops/" in file else ""
