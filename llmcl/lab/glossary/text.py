"""From text to tokens, and from the model's numbers to text again."""

from .entry import Term

# A term to four lines or so, so that the list can be read through.
# fmt: off
TERMS = (
    Term("token", "토큰(token)",
         "A piece of text that has a number: a word, a part of one, or a single byte. A language "
         "model reads and writes nothing else.",
         "00"),
    Term("tokenizer", "토크나이저(tokenizer)",
         "What cuts text into tokens and puts tokens together to text again. A model works only "
         "with the one it was trained with.",
         "00"),
    Term("batch", "배치(batch)",
         "Several texts computed at once, one to a row of a table.",
         "00"),
    Term("byte", "바이트(byte)",
         "Eight bits, a number from 0 to 255. Files and texts are made of bytes.",
         "02"),
    Term("UTF-8", "UTF-8 인코딩",
         "The rule that turns the characters of all scripts into bytes: one for a Latin letter "
         "without an accent, three for a Korean syllable.",
         "02"),
    Term("dictionary", "단어 사전(dictionary)",
         "The plainest tokenizer: a list of words with a number each. A word that is not in it "
         "becomes `<unk>` and is lost.",
         "02"),
    Term("vocabulary", "어휘 집합(vocabulary)",
         "All tokens that a tokenizer knows. How many there are is written V.",
         "02"),
    Term("merge", "병합(merge)",
         "The rule that two tokens which stand side by side become one. A tokenizer's merges have "
         "an order, and are used in it.",
         "02"),
    Term("byte-pair encoding", "바이트 쌍 인코딩(BPE)",
         "A tokenizer that begins with single bytes and learns merges: again and again, the pair "
         "that stands most often in the text becomes a token. It loses nothing.",
         "02", also=("BPE", "byte-level BPE")),
    Term("tie", "동률(tie)",
         "Two pairs that stand in the text equally often. A rule must say which is merged first, "
         "or two machines learn different tokenizers.",
         "02"),
    Term("bigram", "바이그램(bigram)",
         "Two tokens side by side. A bigram model guesses the next token from the last one alone, "
         "by counting such pairs.",
         "02b"),
    Term("nat", "내트(nat)",
         "The unit of a loss that uses the natural logarithm. One nat is about 1.44 bits.",
         "02b"),
    Term("perplexity", "퍼플렉서티(perplexity)",
         "Among how many equally likely tokens a model seems to choose; in Korean also 혼란도. 1 "
         "is perfect, V is a blind guess.",
         "02b", formula="exp(loss)"),
    Term("smoothing", "평활화(smoothing)",
         "To add a little to every count, so that a pair which was never seen gets a small share "
         "and not zero.",
         "02b", formula="(count + a) / (total + a · V)"),
    Term("shift", "한 칸 밀기(shift)",
         "The target of each place is the input one place further on. It must be done once; done "
         "twice, a model learns to skip a token.",
         "02b"),
    Term("window", "윈도우(window)",
         "A piece of a long text, as many tokens as the model takes at once.",
         "07"),
    Term("padding", "패딩(padding)",
         "Filling behind a short row, so that all rows of a batch are equally long. It must not "
         "count in the loss.",
         "07", also=("pad",)),
    Term("dialogue", "대화(dialogue)",
         "A question and its answer, written in a fixed form, so that the model can tell who "
         "speaks.",
         "10"),
    Term("temperature", "온도(temperature)",
         "A number that the logits are divided by before softmax. Below 1 the likely tokens gain, "
         "above 1 the unlikely ones.",
         "11", formula="softmax(logits / temperature)"),
    Term("greedy", "그리디 디코딩(greedy)",
         "Always takes the token with the largest logit. The same prompt gives the same text.",
         "11", also=("greedy decoding",)),
    Term("top-k", "top-k 샘플링",
         "Keeps the k likeliest tokens and draws one of them by its share.",
         "11"),
    Term("top-p", "top-p 샘플링(뉴클리어스 샘플링)",
         "Keeps the likeliest tokens, as many as are needed to reach the share p together, and "
         "draws one of them.",
         "11", also=("nucleus",)),
    Term("cache", "캐시(cache)",
         "What is kept close by to spare work. In lesson 11 these are keys and values computed "
         "before; in lesson 13 a small, quick memory of the processor that holds what was read "
         "lately.",
         "11"),
    Term("key-value cache", "KV 캐시(key-value cache)",
         "The keys and values of all places so far, kept while a model writes. Each new token then "
         "costs one place and not the whole text.",
         "11", also=("KV cache",)),
    Term("stop rule", "정지 규칙(stop rule)",
         "What ends a text: the end token, a number of tokens, a certain text, or a full context.",
         "11"),
    Term("generalizing", "일반화(generalization)",
         "To be right about what was not in the training text, because a rule was learned and not "
         "only the examples.",
         "11", also=("generalization",)),
)
