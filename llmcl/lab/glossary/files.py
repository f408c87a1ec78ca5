"""The file and the programs that open it."""

from .entry import Term

# A term to four lines or so, so that the list can be read through.
# fmt: off
TERMS = (
    Term("GGUF", "GGUF 파일 형식",
         "The file format of llama.cpp and of the programs built on it: settings, tokenizer and "
         "weights of a model in one file.",
         "00"),
    Term("little-endian", "리틀 엔디언(little-endian)",
         "The lowest byte of a number comes first: 258, which is 1·256 + 2, is stored as 02 01.",
         "12a"),
    Term("hex dump", "헥스 덤프(hex dump)",
         "The bytes of a file as pairs of hexadecimal digits, usually 16 to a line.",
         "12a"),
    Term("magic number", "매직 넘버(magic number)",
         "The first bytes of a file, which tell what kind of file it is. In GGUF they are the "
         "letters GGUF.",
         "12a"),
    Term("key-value pair", "키-값 쌍(key-value pair)",
         "A name, a type and a value: one setting of the model in the file, such as its number of "
         "heads. It has nothing to do with the keys and values of attention.",
         "12a"),
    Term("tensor table", "텐서 목록(tensor table)",
         "The part of a GGUF file that lists every tensor: name, dimensions, type, and where its "
         "numbers begin.",
         "12a"),
    Term("offset", "오프셋(offset)",
         "How many bytes from a starting point something begins. In GGUF a tensor's offset counts "
         "from the beginning of the numbers, not of the file.",
         "12a"),
    Term("alignment", "메모리 정렬(alignment)",
         "The rule that something begins only at multiples of a number, in GGUF 32 unless "
         "the file says otherwise. The gap before it is filled with zeros.",
         "12a"),
    Term("F32", "32비트 부동소수점(F32)",
         "The file's name for float32: four bytes a number.",
         "12a"),
    Term("F16", "반정밀도(half)",
         "A number in two bytes with 11 binary digits, about 3 decimal ones; the largest is "
         "65504.",
         "12a", also=("half", "float16")),
    Term("quantize", "양자화(quantization)",
         "To store weights as small whole numbers with a common scale. The file shrinks, and each "
         "weight moves a little.",
         "12a", also=("quantization",)),
    Term("Q8_0", "Q8_0 양자화 형식",
         "A way to quantize: 32 weights become 32 whole numbers from −127 to 127 and one scale in "
         "half, 34 bytes in all.",
         "12a", formula="scale = max|x| / 127; q = round(x / scale)"),
    Term("llama.cpp", "라마.cpp(llama.cpp)",
         "A program in C++ that runs language models from GGUF files on common machines. LM Studio "
         "and Ollama stand on it.",
         "12b"),
    Term("gap", "로짓 차이(gap)",
         "How far two rows of logits are apart, if one may be shifted as a whole, which softmax "
         "does not notice. With d as their differences:",
         "12b", formula="(max(d) − min(d)) / 2"),
    Term("band", "허용 범위(band)",
         "How large the gap may be before it counts as a fault. It was measured for each file "
         "type, with a reserve.",
         "12b"),
    Term("chat template", "채팅 템플릿(chat template)",
         "A small text with gaps, stored in the file, that turns questions and answers into the "
         "form the model was tuned on.",
         "12b"),
    Term("chat endpoint", "채팅 엔드포인트(chat endpoint)",
         "The address of a server that takes a conversation as JSON and gives the answer, here "
         "`/v1/chat/completions`.",
         "12b"),
    Term("silent fault", "조용한 오류(silent fault)",
         "A fault with no message: all shapes fit, the file loads and answers, and the numbers are "
         "wrong.",
         "12b"),
    Term("Modelfile", "모델파일(Modelfile)",
         "Ollama's recipe for a model: which GGUF file, which template, which settings.",
         "12b"),
)
