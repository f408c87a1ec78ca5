"""Loss, slopes, training, and how to find out what is wrong."""

from .entry import Term

# A term to four lines or so, so that the list can be read through.
# fmt: off
TERMS = (
    Term("loss", "손실(loss)",
         "One number that says how wrong a model is; training makes it small. Here it is minus the "
         "logarithm of the share of the right token, averaged.",
         "00", formula="−ln(share of the right token)"),
    Term("gradient", "경사(gradient)",
         "The slopes of the loss, one for each weight: how the loss moves when that weight moves a "
         "little. Korean texts also say 그래디언트.",
         "00"),
    Term("backward", "역방향 계산(backward pass)",
         "The way from the loss back to the weights, which computes the gradient. Each operation "
         "has one forward and one backward.",
         "00", also=("backward pass",)),
    Term("optimizer", "옵티마이저(optimizer)",
         "What changes the weights, once the gradient is known. AdamW is one.",
         "00"),
    Term("cross-entropy", "교차 엔트로피(cross-entropy)",
         "The loss of a language model: minus the logarithm of the right token's share, as a mean "
         "over all places that have a target.",
         "07", formula="ln Σ_j exp(x_j) − x_target"),
    Term("slope", "기울기(slope)",
         "How much a result moves when an input moves a little, divided by how far the input "
         "moved.",
         "07b"),
    Term("derivative", "도함수(derivative)",
         "The formula that gives the slope at every place. For x² it is 2x.",
         "07b"),
    Term("nudge", "미소 변화(nudge)",
         "To change one number a little and watch what moves.",
         "08a", also=("perturbation",)),
    Term("central difference", "중심 차분(central difference)",
         "A slope by measuring: one step up, one step down, the difference divided by the way "
         "between.",
         "08a", formula="(f(x + h) − f(x − h)) / (2h)"),
    Term("chain rule", "연쇄 법칙(chain rule)",
         "Steps one after the other have slopes that are multiplied; ways side by side have slopes "
         "that are added.",
         "08a", formula="dz/dx = dz/dy · dy/dx"),
    Term("backpropagation", "역전파(backpropagation)",
         "The chain rule walked from the loss to the first layer, each layer handing its slopes to "
         "the one before. One walk gives the whole gradient.",
         "08a", also=("backprop",)),
    Term("clear", "경사 초기화(clear)",
         "To set all gradients to 0 before the next step. Since backward adds to them, the old "
         "ones would count again.",
         "08a", also=("zero_grad",)),
    Term("share minus one-hot", "비율 − 원-핫(share minus one-hot)",
         "The slope of the loss in the logits: the model's share of each token, and 1 less for the "
         "right one. (As a mean over n places, divided by n.)",
         "08b", formula="softmax(x) − one_hot(target)"),
    Term("direction", "방향(direction)",
         "A change of all weights at once, at random. Two runs tell how the loss moves along it, "
         "which tests a whole gradient.",
         "08c", formula="(f(w + h·d) − f(w − h·d)) / (2h) ≈ gradient · d"),
    Term("vanish", "경사 소실(vanishing gradient)",
         "Slopes that become smaller from layer to layer on the way back, until the first layers "
         "learn nothing. Korean texts also say 기울기 소실.",
         "08c", also=("vanishing gradient",)),
    Term("localise", "오류 위치 찾기(localise)",
         "To find the part of a model in which a fault sits, before asking what the fault is.",
         "08c", also=("localize",)),
    Term("halving", "이분 탐색(bisection)",
         "To look in the middle, keep the half that has the fault, and go on there. 16 halves is "
         "found in 4 looks, because 2⁴ is 16.",
         "08c", also=("bisection", "binary search")),
    Term("gradient descent", "경사 하강법(gradient descent)",
         "Training in its plainest form: each weight takes a step against its slope.",
         "09", formula="w ← w − rate · gradient"),
    Term("learning rate", "학습률(learning rate)",
         "How long the steps of training are. Too small is slow, too large never arrives.",
         "09"),
    Term("momentum", "모멘텀(momentum)",
         "A running mean of the gradients, used in place of the last one, so that steps to and fro "
         "cancel and steps in one direction add up.",
         "09", formula="m ← β·m + (1 − β)·gradient"),
    Term("Adam", "아담(Adam)",
         "An optimizer that divides each weight's momentum by the usual size of its gradient, so "
         "that all weights move about equally far.",
         "09", formula="w ← w − rate · m / (√v + epsilon)"),
    Term("bias correction", "편향 보정(bias correction)",
         "Running means that begin at 0 are too small in the first steps; Adam divides by what is "
         "missing.",
         "09", formula="m / (1 − β^step)"),
    Term("weight decay", "가중치 감쇠(weight decay)",
         "Each step makes the weights a little smaller, so that only those stay large that the "
         "loss keeps asking for.",
         "09"),
    Term("AdamW", "AdamW 옵티마이저",
         "Adam with weight decay that acts on the weight itself and does not go through the "
         "running means.",
         "09", formula="w ← w − rate · (m / (√v + epsilon) + decay · w)"),
    Term("clipping", "경사 클리핑(gradient clipping)",
         "A gradient that is too long is shortened to a limit. By the global norm, all tensors "
         "shrink by the same factor, so the direction stays.",
         "09", also=("gradient clipping",), formula="g · min(1, limit / ‖g‖)"),
    Term("schedule", "학습률 스케줄(schedule)",
         "How the learning rate changes over the steps: up in the warm-up, then slowly down, here "
         "along a cosine.",
         "09"),
    Term("warm-up", "웜업(warm-up)",
         "The first steps of training, in which the learning rate climbs from near 0. (The lessons "
         "00a, 00b and 07b are called warm-ups for another reason.)",
         "09"),
    Term("epoch", "에포크(epoch)",
         "One pass over the whole training text.",
         "09"),
    Term("recall", "문장 재현(recall)",
         "How many of the training sentences the model finishes word for word from their "
         "beginnings. Recall in classification (재현율) is another thing.",
         "09"),
    Term("checkpoint", "체크포인트(checkpoint)",
         "A file with all that training needs to go on: weights, the optimizer's means, the step.",
         "09"),
    Term("resume", "학습 재개(resume)",
         "To go on from a checkpoint, so that the result is the same as without the break.",
         "09"),
    Term("fine-tuning", "미세 조정(파인튜닝)",
         "To train a model that can already do something a little longer, on other texts: here on "
         "questions and answers.",
         "10", also=("tuning",)),
    Term("teacher forcing", "교사 강요(teacher forcing)",
         "In training, every place reads the right tokens before it, and not what the model would "
         "have written.",
         "10"),
    Term("forgetting", "파국적 망각(catastrophic forgetting)",
         "What a model could do before gets lost while it learns something else, because no text "
         "speaks for it any more.",
         "10", also=("catastrophic forgetting",)),
    Term("mixing", "데이터 혼합(리플레이)",
         "Texts of the first training stand in the batch beside the new ones, against forgetting.",
         "10", also=("replay",)),
    Term("overfitting", "과적합(overfitting)",
         "The training text is learned by heart, and new text suffers: the training loss still "
         "falls while the validation loss rises.",
         "11"),
    Term("rank", "랭크(rank)",
         "One of several processes that work on one job, and its number, from 0. (The rank of a "
         "matrix is another thing.)",
         "14"),
    Term("data-parallel", "데이터 병렬 학습(data parallelism)",
         "Training by several processes that all hold the whole model. Each takes rows of its own, "
         "and they share one gradient.",
         "14", also=("data parallelism",)),
    Term("gradient accumulation", "경사 누적(gradient accumulation)",
         "To compute a large batch in small ones and to add up their gradients, each weighed by "
         "its targets, before one step is made.",
         "14"),
    Term("document", "문서(document)",
         "A text that stands on its own: a story, a letter, a chapter.",
         "15"),
    Term("held-out text", "검증 데이터(held-out text)",
         "Text that is put aside first and never trained on, to judge the model by.",
         "15", also=("validation set",)),
    Term("validation loss", "검증 손실(validation loss)",
         "The loss on the held-out text. It tells what the model can do with text that it never "
         "saw.",
         "15"),
    Term("early stopping", "조기 종료(early stopping)",
         "To stop training, or to keep the checkpoint, where the validation loss was lowest.",
         "15"),
    Term("model card", "모델 카드(model card)",
         "A page that goes with a model: what it was trained on, what was measured, what it cannot "
         "do, who may use it.",
         "15"),
    Term("symptom", "증상(symptom)",
         "What can be seen of a fault from outside. It seldom says where the fault is.",
         "16"),
    Term("probe", "탐침(probe)",
         "A small test that looks at one thing, with an answer that is known beforehand.",
         "16"),
    Term("rubric", "루브릭(채점 기준)",
         "The list of what each point is given for.",
         "16"),
)
