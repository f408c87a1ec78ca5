"""What the model is built of."""

from .entry import Term

# A term to four lines or so, so that the list can be read through.
# fmt: off
TERMS = (
    Term("weights", "가중치(weights)",
         "The numbers in a model that training changes. They begin at random, and afterwards they "
         "are all that the model has learned.",
         "00", also=("parameters",)),
    Term("score", "점수(score)",
         "A number that says how well something fits: a token as the next one, or a key to a "
         "query. Softmax turns scores into shares.",
         "00"),
    Term("softmax", "소프트맥스(softmax)",
         "Turns a row of scores into shares between 0 and 1 that add up to 1. A larger score gets "
         "a larger share; adding the same number to all scores changes nothing.",
         "00", formula="exp(x_i) / Σ_j exp(x_j)"),
    Term("embedding", "임베딩(embedding)",
         "The row of learned numbers that stands for a token, or for a position.",
         "03"),
    Term("look-up", "조회(look-up)",
         "To fetch the row of a table whose number is given. It is the product with a one-hot row, "
         "without the multiplying.",
         "03"),
    Term("one-hot", "원-핫 인코딩(one-hot)",
         "A row that is 0 everywhere but for a single 1, at the place of an id.",
         "03"),
    Term("position", "위치(position)",
         "The number of a place in the text. It has an embedding of its own, because attention by "
         "itself does not see the order.",
         "03"),
    Term("channel", "채널(channel)",
         "One of the numbers that stand for one place of the text. How many there are is C, or "
         "`d_model`.",
         "03"),
    Term("attention", "어텐션(attention)",
         "Each place takes from the places before it, and from itself, what fits: a weighted "
         "average of their values, with shares made from scores.",
         "04a", formula="softmax(q kᵀ / √d) v"),
    Term("head", "헤드(head)",
         "One attention with queries, keys and values of its own. Several heads work side by side "
         "and look for different things.",
         "04a", also=("attention head",)),
    Term("query", "쿼리(query)",
         "What a place looks for, as a row of numbers.",
         "04a"),
    Term("key", "키(key)",
         "The label of a place, as a row of numbers. Queries are compared with it.",
         "04a"),
    Term("value", "값(value)",
         "What a place tells to those who attend to it, as a row of numbers.",
         "04a"),
    Term("share", "비율(share)",
         "A number from 0 to 1; all shares of a row add up to 1. The field calls it a probability, "
         "or in attention a weight.",
         "04a", also=("probability",)),
    Term("causal mask", "인과 마스크(causal mask)",
         "Sets the scores of later places to minus infinity before softmax, so that no place sees "
         "its future.",
         "04a", also=("mask",)),
    Term("leak test", "누출 검사(leak test)",
         "Changes a later token and asks that all earlier outputs stay the same to the last bit.",
         "04a"),
    Term("d_model", "모델 차원(d_model)",
         "How many numbers stand for one place throughout the model; also written C.",
         "04b", also=("n_embd",)),
    Term("n_heads", "헤드 수(n_heads)",
         "How many heads an attention layer has. It must divide `d_model`.",
         "04b"),
    Term("d_head", "헤드 차원(d_head)",
         "How many numbers a query, a key or a value of one head has.",
         "04b", formula="d_model / n_heads"),
    Term("split", "분할(split)",
         "Gives each head its channels: (T, C) becomes (heads, T, d_head), by a reshape and then a "
         "transpose.",
         "04b"),
    Term("join", "결합(join)",
         "The way back from a split: the results of all heads side by side in one row again.",
         "04b"),
    Term("output product", "출력 투영(output product)",
         "A matrix product behind the joined heads that mixes what they found.",
         "04b", also=("output projection",)),
    Term("bias", "편향(bias)",
         "A learned number that is added to each result of a matrix product, whatever the input "
         "is.",
         "04b"),
    Term("linear layer", "선형 층(linear layer)",
         "A matrix product with learned weights, and a bias added.",
         "05", also=("fully connected layer", "dense layer"), formula="y = x W + b"),
    Term("feed-forward", "피드포워드 층(feed-forward)",
         "Two linear layers with a bend such as GELU between them. Each place goes through by "
         "itself.",
         "05", also=("MLP",), formula="W₂ gelu(W₁ x + b₁) + b₂"),
    Term("d_ff", "피드포워드 차원(d_ff)",
         "The width between the two linear layers of a feed-forward, often four times `d_model`.",
         "05"),
    Term("ReLU", "렐루(ReLU)",
         "Negative numbers become 0, the others stay.",
         "05", formula="max(0, x)"),
    Term("GELU", "GELU 함수",
         "A bend like ReLU with a soft corner. It has an exact form with erf and a nearly equal "
         "one with tanh; a file must be run with the one it was trained with.",
         "05", formula="x · (1 + erf(x / √2)) / 2"),
    Term("tanh", "쌍곡탄젠트(tanh)",
         "A curve from −1 to 1 in the form of an S.",
         "05", formula="(eˣ − e⁻ˣ) / (eˣ + e⁻ˣ)"),
    Term("erf", "오차 함수(erf)",
         "A curve from −1 to 1. (1 + erf(x/√2)) / 2 is the share of a bell curve that lies below "
         "x.",
         "05", also=("error function",)),
    Term("layer norm", "층 정규화(layer norm)",
         "Brings each row to mean 0 and spread 1; then gamma and beta, which are learned, stretch "
         "and shift it.",
         "06", also=("layer normalization",),
         formula="gamma · (x − mean) / √(variance + epsilon) + beta"),
    Term("epsilon", "엡실론(epsilon)",
         "A tiny number added so that nothing is divided by 0: in layer norm inside the root, in "
         "Adam outside it.",
         "06"),
    Term("gamma", "감마(gamma)",
         "The learned number by which layer norm stretches a channel; it begins at 1. Frameworks "
         "call it the weight of the norm.",
         "06"),
    Term("beta", "베타(beta)",
         "The learned number by which layer norm shifts a channel; it begins at 0. In Adam, beta1 "
         "and beta2 say how much of the past is kept.",
         "06"),
    Term("residual", "잔차 연결(residual)",
         "What a layer finds is added to its input and does not replace it, so the input reaches "
         "the end, and slopes find the way back.",
         "06", also=("residual connection", "skip connection"), formula="x + f(x)"),
    Term("pre-norm", "사전 정규화(pre-norm)",
         "The norm stands at the entrance of each part, and the residual goes around both.",
         "06", formula="x + f(norm(x))"),
    Term("transformer block", "트랜스포머 블록(transformer block)",
         "Attention and feed-forward, each with its norm and its residual. A model is a stack of "
         "such blocks.",
         "06"),
    Term("logits", "로짓(logits)",
         "The model's scores for the next token, one for each token of the vocabulary, before "
         "softmax.",
         "07", also=("logit",)),
    Term("tied weights", "가중치 공유(weight tying)",
         "One table does two jobs: it holds the embeddings at the entrance and makes the logits at "
         "the exit. Its gradient is the sum of both.",
         "07", also=("weight tying",)),
)
