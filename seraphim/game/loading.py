"""What the module of a game offers; finds a game by its name, and the name of a game."""

import contextlib
import dis
import importlib
import inspect
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from importlib.metadata import entry_points
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Literal, NamedTuple, Protocol

from seraphim.errors import GameError, shown
from seraphim.game.interface import Array, Game
from seraphim.game.plain import PlainGame, PlainRules

FAMILIES = "seraphim.games"  # the group of entry points of packages that offer many games
_FORMER = "strong_position_sets", "test_position_sets", "strong_test_position_sets"  # names

_MOST_DOTS = 50  # in the name of a module; importing takes a call for each

AnyGame = str | Game | PlainGame
"""A game: the name of the package or module that offers it as `GAME`, or the game itself."""

# ---------------------------------------------------------------- what a module offers

Split = Literal["validation", "test"]
"""Which solved positions: those to choose models and options by, or others for the figures that are reported."""


class PositionSet(NamedTuple):
    """Unfinished positions, solved.

    A mistake is a move that gives the result away (the weak error), and where `plies` are known, a slower win or a
    faster loss as well (the strong error).
    """

    name: str
    states: Array  # int64 [P, W]
    action_values: Array  # float32 [P, A]: exact, for the player to move; NaN where illegal
    lines: Sequence[Sequence[int]] | None = None  # P: the actions from the initial position, if known
    sampled: bool = True  # whether they are drawn at random; else they are all there are, and shares of them are exact
    plies: Array | None = None  # float32 [P, A]: to the end under best play, the move included; NaN where illegal


class MoveResults(NamedTuple):
    """Results of moves under best play, for the player who makes the move."""

    results: Array  # float32 [..., A]: 1 a win, 0 a draw, -1 a loss; NaN where the move is illegal, or unknown
    plies: Array  # float32 [..., A]: plies to the end of the game, this move included; NaN where illegal, or unknown


class PerfectActions(Protocol):
    """The signature of `perfect_actions`."""

    def __call__(self, states: Array, seconds: float | None = None, /) -> Array:
        """Return which actions keep the exact result of unfinished states int64 [P, W], bool [P, A].

        A game that knows how long wins take may leave out slower wins and faster losses. `seconds` limits the time for
        each position; the answer is then the best that is known.
        """


@dataclass(frozen=True)
class ModuleFeatures:
    """The optional functions and names of a game's module."""

    position_sets: Callable[[Split], list[PositionSet]] | None
    """`position_sets(split)`: solved positions. Those of "validation" are to choose by: learning checks every champion
    on them. Where they are samples, those of "test" are others, for the figures that are reported; else there are none,
    an empty list. Learning never sees them; `seraphim.evaluation.position_lists` alone reads them."""
    perfect_actions: PerfectActions | None
    """`perfect_actions(states, seconds)`: a solver that returns the best actions; a player in matches."""
    action_results: Callable[[Array, float], MoveResults] | None
    """`action_results(state, seconds)`: results of the actions [A] in an unfinished state int64 [W], as far as they are
    found in the time; the explorer shows them."""
    state_from_board: Callable[[str], Array] | None
    """`state_from_board(text)`: the state int64 [W] that a drawing shows, written as `GAME.render` does; raises a
    GameError if it shows none."""
    settings: Mapping[str, Any]
    """`SETTINGS`: by section, the options whose defaults do not suit the game."""
    presets: Mapping[str, Mapping[str, Any]]
    """`PRESETS`: settings by name that stand in place of `SETTINGS`."""
    rules_js: Path | None
    """`rules.js` beside the module: where the rules in JavaScript are, or would be. For pages without a server."""


def module_features(module: ModuleType) -> ModuleFeatures:
    """Return the optional members of a game's module."""
    file = getattr(module, "__file__", None)
    return ModuleFeatures(
        position_sets=getattr(module, "position_sets", None),
        perfect_actions=getattr(module, "perfect_actions", None),
        action_results=getattr(module, "action_results", None),
        state_from_board=getattr(module, "state_from_board", None),
        settings=getattr(module, "SETTINGS", {}),
        presets=getattr(module, "PRESETS", {}),
        rules_js=None if file is None else Path(file).with_name("rules.js"),
    )


# ---------------------------------------------------------------- games by name


def load_game_module(name: AnyGame) -> ModuleType:
    """Import the package or module of a game, e.g. `tictactoe` or `mine.breakthrough`; it offers `GAME`.

    A name such as `openspiel:hex` is a game of a family: a function that is installed as an entry point of the group
    FAMILIES returns an object in place of the module. A game that no module offers gets a module of its own.

    Raises:
        GameError: there is no such module or family, or it offers no `GAME`.
    """
    if not isinstance(name, str):
        offered = _module_of(name)
        if offered is not None:
            return offered
        module = ModuleType(name.name)
        vars(module).update(GAME=name)
        return module
    cure = "name a package or module that offers GAME, such as tictactoe"
    family, colon, _ = name.partition(":")
    if colon:
        return _family(family)(name)
    if not all(part.isidentifier() for part in name.split(".")) or name.count(".") > _MOST_DOTS:
        raise GameError(f"{shown(name)} is not a game: {cure}")
    if name not in sys.modules:
        check_game_module(name)  # a settings.json may name any module there is
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # an import of the game itself failed
        raise GameError(f"there is no game {shown(name)}: {cure}") from error
    if not hasattr(module, "GAME"):
        raise GameError(f"module {name!r} offers no GAME: {cure}")
    return module


def load_game(name: AnyGame) -> Game:
    """Return the game of this name, or the game itself; a `PlainGame` as a `Game`.

    Raises:
        GameError: there is no such game.
    """
    game = load_game_module(name).GAME if isinstance(name, str) else name
    _check_is_game(game)
    return PlainRules(game) if isinstance(game, PlainGame) else game


def load_features(name: AnyGame) -> ModuleFeatures:
    """Return the optional members of the module that `load_game_module` finds.

    Raises:
        GameError: there is no such game, or it offers solved positions as older versions of Seraphim read them.
    """
    module = load_game_module(name)
    features = module_features(module)
    former = [name for name in _FORMER if hasattr(module, name)]
    if features.position_sets is not None and not inspect.signature(features.position_sets).parameters:
        former = ["position_sets"]
    if former:
        raise GameError(
            f"{module.__name__} offers {former[0]}(): offer position_sets(split) alone, which returns the sets of "
            "'validation' or 'test', with `plies` where a slower win is a mistake"
        )
    return features


def name_of(game: AnyGame) -> str:
    """Return the name by which `load_game` finds a game; of a game that no module offers, its own name."""
    if isinstance(game, str):
        return game
    module = _module_of(game)
    return game.name if module is None else module.__name__


def plain_form(name: str) -> str | None:
    """Return the name of the plain form that the package of a game offers, or None.

    Raises:
        GameError: there is no such game.
    """
    plain = f"{load_game_module(name).__name__.partition('.')[0]}.plain"
    return plain if _find(plain) else None


def is_same(one: AnyGame, other: AnyGame) -> bool:
    """Return whether two games, or names, mean the same rules.

    Raises:
        GameError: there is no such game.
    """
    games = [load_game_module(each).GAME for each in (one, other)]
    kinds = {type(game.plain if isinstance(game, PlainRules) else game) for game in games}
    return name_of(one) == name_of(other) and len(kinds) == 1


def module_name(game: AnyGame) -> str:
    """Return the name by which `load_game` finds a game, to be stored.

    Raises:
        GameError: no module offers the game.
    """
    if not isinstance(game, str) and _module_of(game) is None:
        raise GameError(
            f"{game.name!r} has no importable module with GAME, and files on disk refer to a game by its module: "
            "put the game into a file such as mygame.py that ends with GAME = ..., and import it from there"
        )
    return name_of(game)


def _module_of(game: Game | PlainGame) -> ModuleType | None:
    # The module, or that of a family, which offers a game as GAME. Of several the one that defines the game, or rather
    # the package around it, comes first. The program that runs is none: other processes cannot import it.
    _check_is_game(game)
    own = game.plain if isinstance(game, PlainRules) else game
    if ":" in game.name:
        with contextlib.suppress(GameError):
            module = load_game_module(game.name)
            return module if type(module.GAME) is type(own) else None
    defined, modules = f"{type(own).__module__}.", sys.modules.copy()
    offering = [name for name, each in modules.items() if getattr(each, "__dict__", {}).get("GAME") is own]
    others = [name for name in offering if modules[name] is not modules["__main__"]]
    named = sorted(others, key=lambda name: (not defined.startswith(f"{name}."), len(name)))
    return modules[named[0]] if named else None


def _check_is_game(game: object) -> None:
    members = ("name", "num_actions", "initial", "step")
    if isinstance(game, type) or not all(hasattr(game, member) for member in members):
        raise GameError(f"expected a game, or the name of a package or module that offers one, not {shown(game)}")


def _family(name: str) -> Callable[[str], ModuleType]:
    found = {point.name: point for point in entry_points(group=FAMILIES)}
    if name not in found:
        raise GameError(f"there is no family of games {name!r}: expected {' or '.join(sorted(found)) or 'none here'}")
    return found[name].load()


def check_game_module(name: str) -> None:
    """Check that a module that is named as a game mentions GAME, before it is imported.

    Raises:
        GameError: it does not.
    """
    spec = _find(name)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return  # it is missing, or has no source: importing it raises the error
    try:
        # Not by ast.parse, which fails at times in Python 3.11 while another thread calls it, as TensorFlow does.
        code = compile(Path(spec.origin).read_bytes(), spec.origin, "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError):
        return
    if not {"GAME", "*", "__getattr__"} & set(_stored_names(code)):
        raise GameError(f"module {name!r} offers no GAME: name a package or module that does, such as tictactoe")


def _find(name: str) -> ModuleSpec | None:
    # As the import system does, but without importing the parent packages.
    spec: ModuleSpec | None = None
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        path = spec.submodule_search_locations if spec else None
        if length > 1 and path is None:
            return None
        found = (finder.find_spec(".".join(parts[:length]), path) for finder in sys.meta_path)
        spec = next((each for each in found if each), None)
    return spec


def _stored_names(code: CodeType) -> Iterator[str]:
    # What a module may offer: its globals, __getattr__ among them, and * for all that another module offers.
    for before, each in itertools.pairwise(dis.get_instructions(code)):
        if each.opname in ("STORE_NAME", "STORE_GLOBAL"):
            yield each.argval
        elif each.opname == "IMPORT_NAME":
            yield from before.argval or ()
    for function in code.co_consts:
        if isinstance(function, CodeType):
            yield from _stored_names(function)
