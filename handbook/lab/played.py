"""What the plays of all structures share: their requests, the looks of their parts, and how sentences name these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from zlib import crc32

from handbook.lab.scene import FAINT, MARGIN, Text, shorten


@dataclass(eq=False)
class PlayedRequest:
    """A request of the play. Tokens are ids, or words to be shown (a string is split); a word's id is its CRC-32.

    What it found and holds are blocks of a pool, or slots of a tree.
    """

    name: str
    tokens: Sequence[int | str] | str
    found: list[int] = field(default_factory=list)  # the blocks of its last look-up
    table: list[int] = field(default_factory=list)  # its block table: the blocks it holds, in the order of its tokens
    num_cached: int = 0  # tokens that it took from the cache
    status: str = "waiting"

    def __post_init__(self) -> None:
        tokens = self.tokens = self.tokens.split() if isinstance(self.tokens, str) else list(self.tokens)
        if not tokens:
            raise ValueError(
                f"PlayedRequest {self.name} has no tokens; a request needs at least one: give ids or words."
            )
        if wrong := [token for token in tokens if not isinstance(token, int | str)]:
            raise TypeError(f"PlayedRequest {self.name} has the token {wrong[0]!r}; tokens are ints or words.")
        self.ids = [token if isinstance(token, int) else crc32(token.encode()) >> 1 for token in tokens]
        self.words = [printable(str(token)) for token in tokens]


@dataclass(frozen=True)
class Look:
    """How a state of a part looks: a word, two colours and a border say the same."""

    label: str
    fill: str
    strong: str
    line: float
    dashed: bool = False


def label(top: float, string: str) -> Text:
    """The small line above a panel that begins at y = `top`."""
    return Text(MARGIN, top + 12, string, 12, fill=FAINT)


def printable(word: str) -> str:
    """Spaces and characters that have no picture become a middle dot."""
    return "".join(character if character.isprintable() and character != " " else "·" for character in word) or "·"


def clip(words: Sequence[str], size: float, width: float) -> str:
    """The words as one text of at most `width` px."""
    return shorten(" ".join(words)[: int(width / size * 2) + 2], size, width)  # a character takes half of size, or more


def count(number: int, what: str) -> str:
    """'1 block', '2 blocks'."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def each(what: str, numbers: Sequence[int], one: str, many: str) -> str:
    """'No block is', 'Block 3 is', 'Blocks 0, 1 and 3 are'."""
    if not numbers:
        return f"No {what} {one}"
    if len(numbers) == 1:
        return f"{what.capitalize()} {numbers[0]} {one}"
    return f"{what.capitalize()}s {', '.join(map(str, numbers[:-1]))} and {numbers[-1]} {many}"


def lower(sentence: str) -> str:
    """The sentence as it goes on after a colon."""
    return sentence[:1].lower() + sentence[1:]
