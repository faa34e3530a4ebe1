"""Who thinks of what, and what comes of it: the words in which players and the shared search talk to each other."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from seraphim.errors import SeraphimError
from seraphim.game import Array
from seraphim.search.analysis import Finding


@dataclass(frozen=True)
class ThinkingLimits:
    """What thinking may take."""

    trees: int = 64
    """Positions that are searched at a time."""
    tree_nodes: int = 2**17
    """Most nodes of a tree, after which it gets no more readouts."""
    edges: int = 2**29
    """Room for edges in all trees together: 16 GiB of addresses, of which memory is what is in use alone."""
    megabytes: float = 512
    """Memory of all trees, about; where it is full, trees that rest are given up, then the largest thought ends."""
    patience: float = 1.0
    """Seconds that one waits for a tree before the longest of the thoughts that took as long ends early."""
    idle: float = 300.0
    """Seconds after which a tree that rests is given up."""
    news: float = 0.1
    """Seconds between two pieces of news of a thought, at least."""
    variation: int = 16
    """Most actions of a variation, apart from the candidate itself."""


class Line(NamedTuple):
    """A position, and how it was reached."""

    start: tuple[int, ...] | None  # W words of the first position, None for the initial one
    moves: tuple[int, ...]  # the actions from there on
    state: Array  # int64 [W]

    def follows(self, other: "Line") -> bool:
        """Return whether this position was reached by way of another one, or is the same."""
        return self.start == other.start and self.moves[: len(other.moves)] == other.moves


@dataclass(frozen=True)
class Thought:
    """What is known of a position, for the player to move."""

    line: Line
    finding: Finding
    readouts: int
    """Of this thought so far; `finding` counts those of earlier ones too."""
    seconds: float
    """Of this thought so far."""
    done: bool


Report = Callable[[Thought | SeraphimError], None]
"""Is told what is known: news, and at last a thought that is done, or the error that ended it. Must not raise."""


@dataclass(eq=False)
class Task:
    """A thought that was asked for."""

    line: Line
    readouts: int
    report: Report
    asked: float
    """Moment."""
    before: int = 0
    """Readouts that its tree had."""
    started: float = 0.0
    """Moment; 0 while it waits for a tree."""


@dataclass(eq=False)
class Player:
    """Somebody who thinks now and then."""

    tree: int | None = None
    """Its place in the search."""
    line: Line | None = None
    """Of the tree's root."""
    task: Task | None = None
    """Under way, or waiting for a tree."""
    next: Task | None = None
    """To be begun when that has ended."""
    used: float = 0.0
    """Moment when it last thought."""
    gone: bool = False
