"""What can be told of a game without playing it: its members, the names of its actions, its symmetries."""

from typing import NoReturn

import numpy as np

from seraphim.errors import GameError
from seraphim.game import Game, PlainGame, Symmetries
from seraphim.game.conformance.finding import ContractError, kind_of

IDENTITY = 0  # the first symmetry
RULES = ("initial", "step", "legal", "to_play", "outcome", "observe")
MEMBERS = (
    *("name", "num_actions", "observation_shape", "state_words", "max_plies"),
    *RULES,
    *("symmetries", "render", "action_label", "parse_action"),
)


def check_presence(game: Game | PlainGame) -> None:
    """Check that a game has all it needs.

    Raises:
        GameError: it has not.
    """
    unwritten = [name for name in RULES if getattr(type(game), name, None) is getattr(PlainGame, name)]
    missing = [name for name in MEMBERS if name in unwritten or not hasattr(game, name)]
    if missing:
        raise GameError(f"{type(game).__name__} is no game: it lacks {', '.join(missing)}; see seraphim.game")


def check_members(game: Game) -> None:
    """Check that a game has all it needs, of the right kind.

    Raises:
        GameError: it has not.
    """
    check_presence(game)
    for name in ("num_actions", "state_words", "max_plies"):
        value = getattr(game, name)
        if not isinstance(value, int) or value < 1:
            _fail(game, f"{name} is an int of at least 1", f"it is {value!r}")
    shape = game.observation_shape
    if not isinstance(shape, tuple) or not all(isinstance(length, int) and length >= 1 for length in shape):
        _fail(game, "observation_shape is a tuple of ints of at least 1", f"it is {shape!r}")


def check_labels(game: Game) -> None:
    """Check that each action has a name of its own, which is understood.

    Raises:
        ContractError: one has not.
    """
    for action in range(game.num_actions):
        label = game.action_label(action)
        parsed = game.parse_action(label)
        if parsed != action:
            rule = "parse_action is the inverse of action_label"
            _fail(game, rule, f"action {action} has the label {label!r}, which is parsed as {parsed}")
    try:
        parsed = game.parse_action("?!")
    except GameError:
        return
    _fail(game, "parse_action raises a GameError for a text that names no action", f"'?!' gave {parsed!r}")


def checked_symmetries(game: Game) -> Symmetries:
    """Return the symmetries of a game, which are permutations, the identity first.

    Raises:
        ContractError: they are not.
    """
    symmetries = game.symmetries()
    for name, length in (("observations", int(np.prod(game.observation_shape))), ("actions", game.num_actions)):
        rows = np.asarray(getattr(symmetries, name))
        if rows.shape != (len(symmetries.actions), length) or not np.issubdtype(rows.dtype, np.integer):
            _fail(game, f"symmetries().{name} is int [S, {length}]", f"it is {kind_of(rows)}")
        for symmetry, row in enumerate(rows):
            if not np.array_equal(np.sort(row), np.arange(length)):
                _fail(game, f"each row of symmetries().{name} is a permutation", f"row {symmetry} is {row.tolist()}")
        if not np.array_equal(rows[IDENTITY], np.arange(length)):
            _fail(game, f"row 0 of symmetries().{name} is the identity", f"it is {rows[IDENTITY].tolist()}")
    return symmetries


def _fail(game: Game, rule: str, received: str) -> NoReturn:
    raise ContractError(f"{game.name} breaks the contract", rule, received)
