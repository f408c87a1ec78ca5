"""About a megabyte of short stories, made by a small grammar: the default text of lesson 15.

The world is a valley with twelve places, animals, things and weather. A story keeps its facts: who
it is about, one or several, where, what the weather does, and what follows from it. So there is
something to learn behind the words: agreement ("it was", "they were"), what an animal eats, which
thing the title promised, what frost does to water. Nobody in it is real.

The seed alone decides the bytes. Only Random.random() is used, whose numbers Python promises not
to change.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from random import Random

from ..errors import DataError

SIZE, SEED = 1_000_000, 15
BREAK = "\n***\n"  # between two stories of a file

# Animal: its plural, what it eats, and what it can do for others.
ANIMALS = {
    "badger": ("badgers", "roots", "dug under the wall"),
    "beaver": ("beavers", "bark", "pulled the branch aside"),
    "calf": ("calves", "milk", "pushed with its head"),
    "cat": ("cats", "cream", "jumped onto the beam"),
    "crow": ("crows", "cherries", "flew up to the roof"),
    "deer": ("deer", "young leaves", "leapt over the ditch"),
    "donkey": ("donkeys", "carrots", "carried the heavy stone away"),
    "duck": ("ducks", "pondweed", "swam to the other side"),
    "fox": ("foxes", "blackberries", "followed the scent"),
    "goat": ("goats", "thistles", "climbed onto the cart"),
    "goose": ("geese", "grass", "called as loudly as a horn"),
    "hedgehog": ("hedgehogs", "beetles", "crept through the hedge"),
    "hen": ("hens", "grain", "scratched in the straw"),
    "heron": ("herons", "small fish", "reached down with a long beak"),
    "mole": ("moles", "worms", "dug a tunnel"),
    "mouse": ("mice", "cheese", "slipped through the crack"),
    "otter": ("otters", "trout", "dived to the bottom"),
    "owl": ("owls", "moths", "looked down from above"),
    "ox": ("oxen", "hay", "pulled the cart out of the way"),
    "rabbit": ("rabbits", "clover", "ran ahead to look"),
    "robin": ("robins", "red berries", "hopped along the fence"),
    "sheep": ("sheep", "daisies", "pressed against the door"),
    "squirrel": ("squirrels", "nuts", "climbed the tree"),
    "swan": ("swans", "water lilies", "beat the air with two great wings"),
}
THINGS = (
    "acorn", "apple", "ball of wool", "basket", "bell", "blue feather", "boot", "brass key",
    "bucket", "button", "candle", "copper pot", "egg", "glass bead", "hammer", "iron ring",
    "jar of honey", "kite", "ladder", "lantern", "map", "old coin", "orange scarf", "paper boat",
    "rope", "round stone", "spoon", "straw hat", "tin whistle", "umbrella",
)  # fmt: skip
# What breaks, and can be mended with string.
MENDED = ("basket", "bucket", "kite", "ladder", "map", "paper boat", "rope", "straw hat",
          "umbrella")  # fmt: skip
# Place: how one is there, and three spots in it.
PLACES = {
    "barn": ("at the barn", "under the hay", "behind the ladder", "beside the old plow"),
    "bridge": ("at the bridge", "under the arch", "between the stones", "on the low wall"),
    "forest": ("in the forest", "under the roots", "beside the hollow tree", "among the ferns"),
    "garden": ("in the garden", "under the beans", "behind the shed", "among the cabbages"),
    "harbor": ("at the harbor", "under the nets", "behind the barrels", "beside the blue boat"),
    "hill": ("on the hill", "under the thorn bush", "behind the tall rock", "in the long grass"),
    "lake": ("by the lake", "under the pier", "among the reeds", "beside the flat stones"),
    "lighthouse": ("at the lighthouse", "under the stairs", "behind the oil cans", "by the door"),
    "meadow": ("in the meadow", "under the clover", "behind the haystack", "along the fence"),
    "mill": ("at the mill", "under the wheel", "behind the sacks", "beside the millstone"),
    "orchard": ("in the orchard", "under the pear tree", "behind the wall", "among the baskets"),
    "village": ("in the village", "under the bench", "behind the bakery", "beside the well"),
}
TIMES = ("One morning", "Early one day", "One afternoon", "One spring day", "One autumn day")


@dataclass(frozen=True)
class Weather:
    """What it does, what follows from it, how that feels, why it is so, and how it ends."""

    does: str
    effects: tuple[str, str, str]
    feel: str
    question: str
    reason: str
    over: str


WEATHERS = (
    Weather(
        "rain fell without a break",
        ("the path turned to mud", "the stream rose to its banks", "every roof dripped"),
        "wet", "Why is the ground so soft?", "Rain went into the earth, and wet earth is soft",
        "the rain stopped",
    ),
    Weather(
        "snow fell in large flakes",
        ("the path was gone", "the branches bent down", "every sound grew quiet"),
        "cold", "Why is the world so quiet?", "Fresh snow is full of air, and it swallows sounds",
        "the snow stopped",
    ),
    Weather(
        "a strong wind blew",
        ("the gate banged", "leaves flew over the wall", "the boats pulled at their ropes"),
        "tired", "Why do the clouds run?", "The wind pushes them, as it pushes the sails",
        "the wind dropped",
    ),
    Weather(
        "thick fog lay on the ground",
        ("nobody could see the road", "the trees looked like shadows", "all steps sounded far"),
        "lost", "Why is the air white?", "Fog is a cloud that lies on the ground",
        "the fog lifted",
    ),
    Weather(
        "the sun burned in a clear sky",
        ("the stones grew hot", "the puddles dried up", "the grass turned yellow"),
        "hot", "Where did the puddle go?", "The sun warmed the water, and it went into the air",
        "a cool evening came",
    ),
    Weather(
        "frost covered everything",
        ("the water in the trough turned to ice", "the ground was as hard as stone",
         "the grass broke under every step"),
        "cold", "Why is the water hard?", "Water turns to ice when it is very cold",
        "the ice melted",
    ),
    Weather(
        "a storm came over the hills",
        ("a branch broke off", "the lamp went out", "the shutters rattled"),
        "afraid", "Why does the thunder come late?", "Light is fast, and sound is slow",
        "the storm passed",
    ),
)  # fmt: skip

OPENINGS = (
    "{time} {does}, and {effect}.",
    "{time}, {does} {at}.",
    "It was a quiet day {at} until {does}. Soon {effect}.",
    "{Does} {at}, and {effect}.",
)
WHO = (
    "{A_hero} lived {spot}. {It} {was} {size}, and {its} favorite food was {food}.",
    "{A_hero} had {its} home {spot}. {Kind}.",
    "{A_hero} slept {spot} and woke up early. {It} {was} {size}, but not {shy}.",
    "There {was} {a_hero} who lived {spot}. {Kind}.",
)
PLOTS = {
    "lost": (
        "{Hero} had {a_thing} and took it everywhere. Now {effect2}, and {the_thing} was gone.",
        '"Where is {my} {thing}?" {it} asked. {It} looked {spot2}, and it was not there.',
        "{A_helper} came by. The {helper} {can}, and there was {the_thing}, {spot3}.",
        '"Thank you," said {hero}. "{Self_was} looking everywhere but {spot3}."',
    ),
    "hungry": (
        "{Hero} {was} hungry. But {effect2}, and there {were_food} to be found.",
        "{It} looked {spot2} and found only {a_thing}. Who would want {a_thing}?",
        '"{Self_am} hungry," said {hero} to {a_helper}. So the {helper} {can}.',
        "{Spot3} there {was_food} {food}, enough for all. The {helper} got {the_thing} for it.",
    ),
    "shelter": (
        "Then {effect2}. {Hero} {was} {feel} and looked for a better place.",
        "{Spot2} there was no room, because {a_helper} slept there with {a_thing}.",
        '"Come with me," said the {helper}. "There is enough room {spot3}." The {helper} {can}.',
        "There {hero} and the {helper} sat close together, with {the_thing} between them.",
    ),
    "broken": (
        "{Hero} had {a_thing} and {was} proud of it.",
        "Then {effect2}. {Hero} stumbled, and {the_thing} split.",
        '"{Self_am} sad," said {hero}. "Without {my} {thing} the day is long."',
        "{A_helper} heard it. The {helper} {can} and found a piece of string {spot2}.",
        "Together they mended {the_thing}. It was not as pretty as before, but it was stronger.",
    ),
    "why": (
        'Then {effect2}. "{question}" asked {hero}, and put {the_thing} down {spot2}.',
        '"I know it," said {a_helper}. "{reason}."',
        "{Hero} thought about it for a long time, while the {helper} {can}.",
        '"Now {self_know}," said {hero}. "{Self_give} you {my} {thing} for it."',
    ),
    "errand": (
        "{Hero} had to bring {a_thing} to {a_helper} who lived {spot2}. But {effect2}.",
        "{It} could not go the short way, so {it} took the long one and rested {spot3}.",
        "The {helper} heard {them} and {can}.",
        '"Here {self_am}," called {hero}, "and here is {the_thing}."',
        "The {helper} took {the_thing} and gave {them} {some_food} {food} for the way back.",
    ),
}
ENDINGS = (
    "When {over}, {hero} {was} happy again.",
    "In the end {over}. {Hero} went home and slept until noon.",
    "After that {over}, and {hero} and the {helper} were friends.",
    "At last {over}. {Hero} ate {food} and told nobody where {it} had been.",
    "Then {over}. The {helper} laughed, and {hero} laughed too.",
    "Soon {over}, and {the_thing} shone in the light.",
)


def story(rng: Random) -> tuple[str, str]:
    """(place, text) of one story: a title, and under it a paragraph of six to ten sentences."""
    place = _choose(rng, list(PLACES))
    plot = _choose(rng, list(PLOTS))
    words = _words(rng, place, plot)
    parts = [_choose(rng, OPENINGS), _choose(rng, WHO), *PLOTS[plot], _choose(rng, ENDINGS)]
    text = " ".join(_fill(part, words) for part in parts)
    return place, f"{_fill('{Title} and {the_thing}', words)}\n{text}"


def _choose(rng: Random, options):
    return options[int(rng.random() * len(options))]


def _words(rng: Random, place: str, plot: str) -> dict[str, str]:
    """What every slot of the templates stands for in one story."""
    animal, helper = _two(rng, list(ANIMALS))
    many = rng.random() < 0.4
    thing, weather = _choose(rng, MENDED if plot == "broken" else THINGS), _choose(rng, WEATHERS)
    at, *spots = PLACES[place]
    effect, effect2 = _two(rng, weather.effects)
    spot, spot2 = _two(rng, spots)
    (spot3,) = [s for s in spots if s not in (spot, spot2)]
    one_food = ANIMALS[animal][1] in ("bark", "cheese", "clover", "cream", "grain", "grass", "hay",
                                      "milk", "pondweed", "trout")  # fmt: skip
    were = "was" if one_food else "were"
    words = {
        "time": _choose(rng, TIMES), "at": at, "does": weather.does, "effect": effect,
        "effect2": effect2, "feel": weather.feel, "question": weather.question,
        "reason": weather.reason, "over": weather.over, "spot": spot, "spot2": spot2,
        "spot3": spot3, "food": ANIMALS[animal][1], "thing": thing, "the_thing": f"the {thing}",
        "a_thing": _a(thing), "helper": helper, "a_helper": _a(helper), "can": ANIMALS[helper][2],
        "size": _choose(rng, ("small", "young", "old", "large", "gentle")),
        "shy": _choose(rng, ("shy", "lazy", "foolish", "brave", "slow")),
        "were_food": f"{were} no {ANIMALS[animal][1]}",
        "was_food": were, "some_food": "a little" if one_food else "some",
    }  # fmt: skip
    return words | (_several(rng, animal) if many else _single(animal))


def _single(animal: str) -> dict[str, str]:
    return {
        "hero": f"the {animal}", "a_hero": _a(animal), "title": f"the {animal}", "was": "was",
        "it": "it", "them": "it", "its": "its", "my": "my", "self_am": "I am", "self_was": "I was",
        "self_know": "I know", "self_give": "I give",
        "kind": f"{_a(animal)} likes nothing better than {ANIMALS[animal][1]}",
    }  # fmt: skip


def _several(rng: Random, animal: str) -> dict[str, str]:
    plural, food = ANIMALS[animal][:2]
    count = _choose(rng, ("two", "three", "four"))
    return {
        "hero": f"the {plural}", "a_hero": f"{count} {plural}", "title": f"{count} {plural}",
        "was": "were", "it": "they", "them": "them", "its": "their", "my": "our",
        "self_am": "we are", "self_was": "we were", "self_know": "we know",
        "self_give": "we give",
        "kind": f"{plural} like nothing better than {food}",
    }  # fmt: skip


def _two(rng: Random, options):
    """Two different ones, in random order."""
    first = _choose(rng, options)
    return first, _choose(rng, [option for option in options if option != first])


def _a(noun: str) -> str:
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def _fill(template: str, words: dict[str, str]) -> str:
    """The template with its slots filled; a slot with a capital letter begins with one."""

    def word(match):
        name = match[1]
        if name in words:
            return words[name]
        found = words[name[0].lower() + name[1:]]
        return found[0].upper() + found[1:]

    return re.sub(r"\{(\w+)\}", word, template)


def texts(size: int = SIZE, seed: int = SEED) -> dict[str, str]:
    """File name -> text, one file a place, of `size` bytes or little more in all; pure ASCII."""
    rng, stories, total = Random(seed), {}, 0
    while total < size:
        place, text = story(rng)
        if text not in stories:
            stories[text] = place
            total += len(text) + len(BREAK)
    files = {place: [t for t, where in stories.items() if where == place] for place in PLACES}
    return {f"{place}.txt": BREAK.join(t) + "\n" for place, t in files.items() if t}


def write_stories(folder: str | os.PathLike, size: int = SIZE, seed: int = SEED) -> Path:
    """The folder, with the stories in it; files that are there already are left as they are.

    Raises DataError if the folder cannot be written.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts(size, seed).items():
            path, data = folder / name, text.encode("ascii")
            if not path.is_file() or path.read_bytes() != data:
                path.write_bytes(data)
    except OSError as error:
        raise DataError(
            f"the stories cannot be written to {folder} ({error.strerror}); choose another folder."
        ) from error
    return folder
