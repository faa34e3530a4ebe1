"""Seraphim as a library: make models, let them learn, ask them about positions, let players meet.

What is here is re-exported by `seraphim`, and stable.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seraphim.errors import GameError, SettingsError
from seraphim.evaluation.match import MatchResult, default_plies, make_openings, play_match
from seraphim.evaluation.match_csv import Conditions
from seraphim.evaluation.tournament import Roster
from seraphim.game import Array, load_game
from seraphim.game.notation import label_in, labels_along
from seraphim.game.saved_games import read_position
from seraphim.game.solved import load_position_sets
from seraphim.inference import Inference, Runtime, load_inference
from seraphim.records.examples import Positions
from seraphim.records.window import read_window
from seraphim.search.analysis import LEAVES, Analysis
from seraphim.settings import default_settings
from seraphim.storage.models import ModelFolder
from seraphim.storage.shipped import find_model, own_model

if TYPE_CHECKING:
    from seraphim.training.loop import Goal, LearnResult

_BATCH = 256  # positions that the network gets at a time


@dataclass(frozen=True)
class Move:
    """A legal move, as a search sees it."""

    label: str
    visits: int
    share: float
    """Of all visits, 0 to 1."""
    prior: float
    """The network's probability."""
    value: float
    """Expected result for the player who makes the move, -1 to 1; 0 without visits."""
    proven: bool
    """Whether the value is exact."""
    variation: tuple[str, ...]
    """This move, and the most visited ones that follow."""


@dataclass(frozen=True)
class PositionAnalysis:
    """What a search found in a position. Prints as a table; a notebook shows it with the board."""

    board: str
    """The position in text."""
    value: float
    """Expected result for the player to move, -1 to 1."""
    proven: bool
    """Whether the value is exact."""
    best: str
    """The label of the move to play."""
    readouts: int
    moves: tuple[Move, ...]
    """All legal moves, the most visited first."""

    def __str__(self) -> str:
        """Return the moves as a table."""
        rows = [f"{'move':>6} {'visits':>8} {'share':>6} {'prior':>6} {'value':>7}  line"]
        rows += [
            f"{move.label:>6} {move.visits:>8,} {move.share:>6.0%} {move.prior:>6.0%} "
            f"{move.value:>+6.2f}{'=' if move.proven else ' '}  {' '.join(move.variation[:8])}"
            for move in self.moves
        ]
        exact = ", exact" if self.proven else ""
        return "\n".join([f"best {self.best}, value {self.value:+.2f}{exact}, {self.readouts:,} readouts", *rows])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("move", "visits", "prior", "value", "line"))
        rows = "".join(
            f"<tr><td><b>{escape(move.label)}</b></td>"
            f'<td><div style="background:#0c948855;width:{120 * move.share:.0f}px">{move.visits:,}</div></td>'
            f"<td>{move.prior:.0%}</td><td>{move.value:+.2f}{'=' if move.proven else ''}</td>"
            f"<td>{escape(' '.join(move.variation[:8]))}</td></tr>"
            for move in self.moves
        )
        return (
            f'<div style="display:flex;gap:2em"><pre>{escape(self.board)}</pre>'
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )


class Model:
    """A snapshot of a model, ready to be asked; see `load`."""

    def __init__(self, folder: ModelFolder, snapshot: str | None, runtime: Runtime, *, trust: bool) -> None:
        self._settings, path = folder.settings(), folder.choose(snapshot).path
        self.name, self.snapshot = folder.name, path.name
        self.game = load_game(self._settings.game)
        self._inference: Inference = load_inference(path, self.game, runtime, batch=LEAVES, trust=trust)

    def __repr__(self) -> str:
        """Return the name, the snapshot, the game and the runtime."""
        return f"<{self.name}/{self.snapshot}: {self.game.name} by {self._inference.description}>"

    def analyze(self, position: str | Array = "", readouts: int | None = None) -> PositionAnalysis:
        """Search an unfinished position.

        Args:
            position: moves such as `4453`, a drawn board, or a state int64 [W].
            readouts: of the search, by default the model's own number.

        Raises:
            GameError: it is no position, or the game is over in it.
        """
        state, game = self._state(position), self.game
        if not game.legal(state[None]).any():
            raise GameError(f"the game is over in this position:\n{game.render(state)}")
        options = replace(self._settings.search, root="puct", readouts=readouts or self._settings.search.readouts)
        analysis = Analysis(game, self._inference, options)
        analysis.start(state)
        spent = analysis.more(options.readouts)
        moves = tuple(
            Move(
                label=label_in(game, state, each.action),
                visits=each.visits,
                share=each.share,
                prior=each.prior,
                value=each.q,
                proven=each.proven,
                variation=tuple(labels_along(game, state, each.variation)),
            )
            for each in analysis.candidates()
        )
        best = label_in(game, state, analysis.best)
        return PositionAnalysis(game.render(state), analysis.value, analysis.proven, best, spent, moves)

    def play(self, position: str | Array = "", readouts: int | None = None) -> str:
        """Return the label of the move to play; arguments and errors as `analyze`."""
        return self.analyze(position, readouts).best

    def network(self, positions: Sequence[str | Array]) -> tuple[Array, Array]:
        """Return what the network says about positions, without a search.

        Args:
            positions: P unfinished positions, as `analyze` takes them.

        Returns:
            The probabilities of the actions, float32 [P, A], 0 where illegal; and the expected results for the player
            to move, float32 [P], -1 to 1.

        Raises:
            GameError: one is no position, or the game is over in it.
        """
        states = np.stack([self._state(each) for each in positions])
        legal = self.game.legal(states)
        if not legal.any(axis=1).all():
            raise GameError("the game is over in one of these positions")
        found = [
            self._inference.infer(self.game.observe(states[start : start + _BATCH]))
            for start in range(0, len(states), _BATCH)
        ]
        logits, values = (np.concatenate(column) for column in zip(*found, strict=True))
        logits = np.where(legal, logits, -np.inf)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32), values.astype(np.float32)

    def _state(self, position: str | Array) -> Array:
        if not isinstance(position, str):
            return np.asarray(position, np.int64)
        found = read_position(self._settings.game, position)
        (state,) = self.game.initial(1) if found.start is None else found.start[None]
        for action in found.actions:
            (state,) = self.game.step(state[None], np.array([action]))
        return state


def load(
    name: str,
    *,
    snapshot: str | None = None,
    folder: str | Path = ".",
    runtime: Runtime = "auto",
    trust: bool = False,
) -> Model:
    """Load a model.

    Args:
        name: of the folder `models/NAME`, in `folder` or among those that come with Seraphim.
        snapshot: one of the model's, by default its champion.
        folder: that holds `models/`.
        runtime: what runs the network.
        trust: load what is outside `models/` too; see docs/security.md.

    Raises:
        ModelError: there is no such model or snapshot, or it is damaged.
        SettingsError: the name is not valid, or the runtime is not installed.

    >>> import seraphim
    >>> model = seraphim.load("tictactoe")
    >>> round(model.analyze("b2 a2").value)  # the middle, then an edge: X wins
    1
    """
    return Model(find_model(Path(folder), name, trust), snapshot, runtime, trust=trust)


def new(
    name: str, game: str, *, preset: str = "", seed: int = 0, folder: str | Path = ".", **options: object
) -> ModelFolder:
    """Make a model with random weights, as `models/NAME`.

    Args:
        name: of the model.
        game: package or module of the game.
        preset: of the game's settings.
        seed: of the weights.
        folder: that holds `models/`.
        options: by the names of `seraphim.options`, in place of the game's settings: `filters=64`.

    Returns:
        Where it is.

    Raises:
        ModelError: it exists.
        SettingsError: there is no such option or preset, or a value is out of range.
        GameError: there is no such game.
    """
    from seraphim.training.trainer import bootstrap

    made = ModelFolder(Path(folder), name)
    bootstrap(made, load_game(game), default_settings(game, preset).override(options), seed)
    return made


def learn(
    name: str,
    *,
    hours: float | None = None,
    generations: int | None = None,
    goal: "Goal" = "network",
    seed: int = 0,
    folder: str | Path = ".",
    callback: Callable[[str], None] = print,
) -> "LearnResult":
    """Go on learning with a model, as `seraphim learn` does: self-play, training, a check, and again.

    Args:
        name: of the model in `models/`.
        hours: stop after the first generation that ends later.
        generations: stop after this number.
        goal: `network` stops when the network alone errs in no solved position of the game, `search` when a search of
            at most 100 readouts does not; `none` goes on.
        seed: of games and batches.
        folder: that holds `models/` and `gamedata/`.
        callback: receives each line of the report.

    Raises:
        ModelError: there is no such model in `folder`, or another program trains it.
        SettingsError: nothing would ever end it, or its settings contradict each other.
    """
    from seraphim.training.loop import Run, learn

    made = own_model(Path(folder), name)
    settings = made.settings()
    if hours is None and generations is None and (goal == "none" or not load_position_sets(settings.game)):
        raise SettingsError("this would never end: give hours or generations")
    run = Run(goal, generations, hours, seed, "auto", 0, None, quiet=True)
    return learn(made, settings, run, callback)


def read_games(name: str, max_positions: int = 100_000, *, folder: str | Path = ".") -> Positions:
    """Return the newest positions that a model's self-play wrote, as NumPy arrays, the games in succession.

    Args:
        name: of the model.
        max_positions: at most.
        folder: that holds `models/` and `gamedata/`.

    Raises:
        ModelError: there is no such model.
        RecordError: there are no games, or all of them are damaged.
    """
    made = ModelFolder(Path(folder), name)
    return read_window(made.game_data, load_game(made.settings().game), max_positions)[0]


def match(
    first: str,
    second: str,
    games: int = 100,
    *,
    game: str | None = None,
    readouts: int | None = None,
    seed: int = 0,
    folder: str | Path = ".",
) -> MatchResult:
    """Let two players meet, from random openings, each of which is played twice with the sides swapped.

    Args:
        first: a player as `seraphim arena` takes it, such as `connectfour`, `mcts:200` or `gtp:COMMAND`.
        second: another one.
        games: how many, an even number.
        game: package or module of the game, by default that of the players.
        readouts: of the models' searches, by default their own.
        seed: of the openings.
        folder: that holds `models/`.

    Returns:
        The result of the first player: `.score` in [0, 1], its 95 % `.interval`, `.tally`; prints as one line.

    Raises:
        SettingsError, ModelError, GameError: see `seraphim.evaluation.tournament`.

    >>> import seraphim
    >>> seraphim.match("minimax:9", "random", games=20, game="tictactoe").tally.losses
    0
    """
    conditions = Conditions(games, None, readouts, seed)
    roster = Roster(Path(folder), game, conditions)
    rules = load_game(roster.game_of([first, second]))
    one, other = (roster.entrants([name])[0].load() for name in (first, second))
    return play_match(rules, one, other, make_openings(rules, max(1, games // 2), default_plies(rules), seed))
