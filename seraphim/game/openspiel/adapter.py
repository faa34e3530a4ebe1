"""A game of OpenSpiel as one of ours.

A game has OpenSpiel's name behind `openspiel:`, for instance `openspiel:hex(board_size=5)`. Its rules are called one
position at a time, which takes some microseconds each.
"""

import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from seraphim.errors import GameError, NotInstalledError, how_to_install, shown
from seraphim.game import Array, Board, Symmetries, identity_symmetry
from seraphim.game.openspiel.boards import PIECES, Pieces, read_board, read_diagram, rows_of_line
from seraphim.game.openspiel.cache import StateCache

PREFIX = "openspiel:"
MOST_PLIES = 512  # of a game, where OpenSpiel allows more; a longer one is cut off
MOST_ACTIONS = 2**16  # that a search has room for
MOST_SIZE, MOST_LENGTH = 50, 9_999  # of a parameter, where its square bounds the cells; of one like `max_moves`
SPARE_PLIES = 128  # that a search may go beyond the last ply of such a game; later positions count as draws
HUNDREDTHS = 100  # the unit of planes whose numbers have fractions
CACHE_BYTES = 128 * 2**20  # of cached states, so that the rules need not replay games
_LONGEST_NUMBER = 4  # digits
_SAMPLES = 8  # random games in which fractions are looked for
_SAMPLED_PLIES = 100


class OpenSpielGame:
    """A game of OpenSpiel; a state is the number of plies, and the actions that were played, several to a word.

    So two move orders into one position are two states. Player 0 moves first, even where OpenSpiel numbers the players
    otherwise, as in chess. The observation is OpenSpiel's, planes last, with one more plane or number for the player to
    move.
    """

    def __init__(self, name: str, cache_bytes: int = CACHE_BYTES) -> None:
        """Load a game by its name in OpenSpiel.

        Raises:
            GameError: there is no such game, or it is not supported here.
            NotInstalledError: OpenSpiel is not installed.
        """
        self._game = _load(name)
        self.name = PREFIX + name
        self.num_actions = self._game.num_distinct_actions()
        longest = self._game.max_game_length()
        self.max_plies = min(longest, MOST_PLIES)
        self._horizon = min(longest, MOST_PLIES + SPARE_PLIES)  # plies that a state has room for
        self._first = self._turn_of(self._game.new_initial_state())
        self._bits = max(1, math.ceil(math.log2(self.num_actions)))
        self._per_word = 63 // self._bits
        self.state_words = 1 + -(-self._horizon // self._per_word)
        self.cache = StateCache(cache_bytes)
        self._labels: dict[bytes, dict[int, str]] = {}
        self.uci_variant = name if name in ("breakthrough", "chess") else None  # not on boards of other sizes
        self._best_return = max(abs(self._game.min_utility()), abs(self._game.max_utility()))
        self._planes = _planes(tuple(self._game.observation_tensor_shape()))
        channels, *board = self._planes
        self.observation_shape = (*board, channels + 1) if board else (channels + 1,)
        self._scale = self._fractions()
        self._pieces = PIECES.get(self._game.get_type().short_name)
        if self._pieces and not read_diagram(str(self._game.new_initial_state())).has_cell_names:
            self._pieces = None
        self.goal = self._pieces.goal if self._pieces else None

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled as the name."""
        return OpenSpielGame, (self.name.removeprefix(PREFIX),)

    def _turn_of(self, state: Any) -> int:
        # OpenSpiel's number of the player to move. What a game is declared to be does not say what parameters make it.
        player = int(state.current_player())
        if player not in (0, 1) and not state.is_terminal():
            reason = "has chance" if state.is_chance_node() else "is not played in turns by players 0 and 1"
            raise GameError(f"{self.name} is not supported: it {reason}")
        return player

    def _after(self, state: Any, action: int) -> Any:
        # The same state of OpenSpiel, after an action.
        state.apply_action(action)
        self._turn_of(state)
        return state

    def _fractions(self) -> Array:
        # The factor of each plane: HUNDREDTHS, if fractions are found in it.
        random = np.random.default_rng(0)
        scale = np.ones(self._planes[0])
        for _ in range(_SAMPLES):
            state = self._game.new_initial_state()
            for _ in range(_SAMPLED_PLIES):
                if state.is_terminal():
                    break
                seen = self._tensor(state)
                scale[(seen != np.round(seen)).reshape(len(seen), -1).any(axis=1)] = HUNDREDTHS
                state.apply_action(int(random.choice(state.legal_actions())))
        return scale

    def _tensor(self, state: Any) -> Array:
        # float64 [C, *board], from the point of view of the player to move.
        return np.array(state.observation_tensor(max(0, state.current_player()))).reshape(self._planes)

    def _actions(self, row: Array) -> list[int]:
        # The actions that led to a state.
        places = np.arange(int(row[0]))
        words = row[1 + places // self._per_word]
        return (words >> places % self._per_word * self._bits & (1 << self._bits) - 1).tolist()

    def _state(self, row: Array) -> Any:
        # The state of OpenSpiel, which must not be modified.
        key = row.tobytes()
        state = self.cache.find(key)
        if state is None:
            state = self._replayed(row)
            if state is None:
                raise GameError(f"these words are not a game of {self.name}: expected its moves, all of them legal")
            self.cache.keep(key, state, int(row[0]))
        return state

    def _replayed(self, row: Array) -> Any:
        # The state after the actions of a row; None if one is illegal, or the row holds more than them.
        if not 0 <= row[0] <= self._horizon:
            return None
        state, again = self._game.new_initial_state(), np.zeros_like(row)
        for action in self._actions(row):
            if action not in state.legal_actions():
                return None
            self._after(state, action)
            self._append(again, action)
        return state if np.array_equal(row, again) else None

    def _append(self, row: Array, action: int) -> None:
        place = int(row[0])
        row[1 + place // self._per_word] |= action << place % self._per_word * self._bits
        row[0] += 1

    @property
    def is_position(self) -> Callable[[Array], bool] | None:
        """See `GameFeatures`: whether a state is a game of legal moves; None where games are cut off.

        Positions after the cut-off would be so near to where `SPARE_PLIES` end that the draws there seemed exact.
        """
        return self._is_game if self._horizon == self._game.max_game_length() else None

    def _is_game(self, state: Array) -> bool:
        return self.cache.find(state.tobytes()) is not None or self._replayed(state) is not None

    def initial(self, batch: int) -> Array:
        return np.zeros((batch, self.state_words), np.int64)

    def step(self, states: Array, actions: Array) -> Array:
        successors = states.copy()
        for row, action in zip(successors, actions.tolist(), strict=True):
            state = self._after(self._state(row).clone(), action)
            self._append(row, action)
            self.cache.keep(row.tobytes(), state, int(row[0]))
        return successors

    def legal(self, states: Array) -> Array:
        legal = np.zeros((len(states), self.num_actions), np.bool_)
        for row, state in zip(legal, states, strict=True):
            actions = self._state(state).legal_actions()  # none, once the game has ended
            row[actions if state[0] < self._horizon else []] = True
        return legal

    def to_play(self, states: Array) -> Array:
        return np.array([self._mover(self._state(row)) for row in states], np.int8)

    def _mover(self, state: Any) -> int:
        return 0 if state.is_terminal() else int(state.current_player() != self._first)

    def outcome(self, states: Array) -> tuple[Array, Array]:
        """Return whether games have ended, and results: OpenSpiel's returns, divided by the highest of the game."""
        found = [self._state(row) for row in states]
        ended = np.array([state.is_terminal() for state in found], np.bool_)
        results = [state.returns()[self._first] / self._best_return if state.is_terminal() else 0.0 for state in found]
        return ended | (states[:, 0] >= self._horizon), np.array(results, np.float32)

    def observe(self, states: Array) -> Array:
        """Return the observations; planes with fractions are in hundredths."""
        observations = np.empty((len(states), *self.observation_shape), np.uint8)
        scale = self._scale.reshape(-1, *[1] * (len(self._planes) - 1))
        for observation, row in zip(observations, states, strict=True):
            state = self._state(row)
            seen = np.clip(np.round(self._tensor(state) * scale), 0, 255)
            observation[..., :-1] = np.moveaxis(seen, 0, -1)
            observation[..., -1] = self._mover(state)
        return observations

    def symmetries(self) -> Symmetries:
        """Return the identity: OpenSpiel knows no symmetries."""
        return identity_symmetry(self.observation_shape, self.num_actions)

    def render(self, state: Array) -> str:
        """Return OpenSpiel's text, with a drawing before it if the text is one line, as in chess."""
        return _drawn(str(self._state(state)))

    @property
    def board(self) -> Callable[[Array], Board] | None:
        """See `GameFeatures`: of the games whose pieces are known, where OpenSpiel names cells by letter and number."""
        return None if self._pieces is None else functools.partial(self._board, self._pieces)

    def _board(self, pieces: Pieces, row: Array) -> Board:
        state = self._state(row)
        moves = {action: self._cells_of(state, action) for action in state.legal_actions()}
        return read_board(pieces, self._first, str(state), moves)

    def _cells_of(self, state: Any, action: int) -> str:
        # A legal action as text with the names of its cells.
        if self._game.get_type().short_name == "chess":
            return str(_pyspiel().chess.action_to_move(action, state.board()).to_lan())
        return str(state.action_to_string(state.current_player(), action))

    def action_label(self, action: int) -> str:
        """Return the number of an action, because OpenSpiel's names for one depend on the position: `label_in`."""
        return str(action)

    def label_in(self, row: Array, action: int) -> str:
        """Return OpenSpiel's name for a legal action in a state int64 [W], as one word without commas.

        If another one has the same name there, the action's number is added.
        """
        key = row.tobytes()
        labels = self._labels.get(key)
        if labels is None:
            labels = _labels(self._state(row))
            self._labels = {key: labels}  # of one state, as calls come for one action after another
        return labels[action]

    def uci_in(self, row: Array, action: int) -> str:
        """Return the name of a legal action in UCI, in the games that have a `uci_variant`."""
        state = self._state(row)
        if self.uci_variant == "chess":
            return self._cells_of(state, action)
        # In UCI the first player moves upward. OpenSpiel marks a capture by a star.
        name = self._cells_of(state, action).rstrip("*")
        return re.sub(r"\d", lambda rank: str(9 - int(rank[0])), name)

    def parse_action(self, text: str) -> int:
        if not re.fullmatch(r"\s*[0-9]{1,9}\s*", text) or int(text) >= self.num_actions:
            raise GameError(f"{text.strip()!r} is not an action of {self.name}: expected 0 to {self.num_actions - 1}")
        return int(text)


def _drawn(text: str) -> str:
    # In such a line, rows have / between them, and a number stands for that many empty cells.
    rows = rows_of_line(text)
    if len(rows) == 1 or "\n" in text:
        return text
    return "\n".join([*(" ".join(re.findall(r"\+?.", row)) for row in rows), "", text])


def _labels(state: Any) -> dict[int, str]:
    # By legal action. "X From (7, 1)" becomes X_From_(7.1).
    names = {action: state.action_to_string(state.current_player(), action) for action in state.legal_actions()}
    words = {action: "_".join(re.sub(r",\s*", ".", name).split()) for action, name in names.items()}
    count = Counter(words.values())
    return {action: word if count[word] == 1 else f"{word}#{action}" for action, word in words.items()}


@functools.cache
def load_module(name: str) -> ModuleType:
    """Return a module with `GAME` and `SETTINGS` for `openspiel:NAME`.

    Raises:
        GameError: there is no such game, or it is not supported here.
    """
    try:
        module, game = ModuleType(name), OpenSpielGame(name.removeprefix(PREFIX))
        start = game.initial(1)[0]
        if not game.legal(start[None]).any():
            raise ValueError("the game is over where it begins")
        game.render(start)
        game.label_in(start, int(game.legal(start[None])[0].argmax()))
    except (
        RuntimeError,
        ValueError,
        MemoryError,
    ) as error:  # of OpenSpiel, as on boards of more rows than letters
        name, reason = name.removeprefix(PREFIX), " ".join(str(error).split())
        raise GameError(f"OpenSpiel cannot play {name!r}, try other parameters: {reason}") from error
    vars(module).update(GAME=game, SETTINGS={"self_play": {"concurrent_games": 32}}, __file__=__file__)
    return module


def playable_games() -> list[str]:
    """Return the names of all supported games of OpenSpiel that need no parameters."""
    pyspiel = _pyspiel()
    return [kind.short_name for kind in pyspiel.registered_games() if not _obstacle(pyspiel, kind)]


def _pyspiel() -> ModuleType:
    try:
        import pyspiel
    except ModuleNotFoundError as error:
        raise NotInstalledError(f"OpenSpiel is not installed: {how_to_install('openspiel')}") from error
    return pyspiel


def _load(name: str) -> Any:
    pyspiel = _pyspiel()
    known = {kind.short_name: kind for kind in pyspiel.registered_games()}
    short_name = name.partition("(")[0]
    if short_name not in known:
        raise GameError(f"OpenSpiel has no game {short_name!r}: expected one like openspiel:hex(board_size=5)")
    _check_parameters(name, known[short_name].parameter_specification)
    obstacle = _obstacle(pyspiel, known[short_name], needs_defaults=False)
    if obstacle:
        raise GameError(f"openspiel:{name} is not supported: it {obstacle}")
    try:
        game = pyspiel.load_game(name)
    except pyspiel.SpielError as error:
        raise GameError(f"OpenSpiel cannot load {name!r}: {str(error).splitlines()[0]}") from error
    if game.num_distinct_actions() > MOST_ACTIONS:
        raise GameError(f"openspiel:{name} is not supported: it has {game.num_distinct_actions():,} actions")
    if game.num_players() != 2:
        raise GameError(f"openspiel:{name} is not supported: it has {game.num_players()} players, not 2")
    return game


def _check_parameters(name: str, defaults: Mapping[str, Any]) -> None:
    # OpenSpiel's C++ crashes, or takes gigabytes, with some numbers that make no sense.
    numbers = dict(defaults)
    for parameter, value in re.findall(r"([a-z_]+)=([^,)]*)", name.partition("(")[2]):
        most = MOST_LENGTH if parameter.startswith("max_") else MOST_SIZE
        is_whole = re.fullmatch(r"\s*[-+]?\d+\s*", value)
        if is_whole and not (len(value) <= _LONGEST_NUMBER and 1 <= int(value) <= most):
            raise GameError(
                f"openspiel:{shown(name)[1:-1]}: expected {parameter} to be from 1 to {most:,}; leave it out for "
                "OpenSpiel's own number"
            )
        if any(len(number) > _LONGEST_NUMBER for number in re.findall(r"\d+", value)):
            raise GameError(f"openspiel:{shown(name)[1:-1]} is too large: expected numbers below 10,000")
        if is_whole:
            numbers[parameter] = int(value)
    if "dims" in numbers and numbers["size"] ** numbers["dims"] > MOST_SIZE**2:
        raise GameError(f"openspiel:{shown(name)[1:-1]} is too large: expected {MOST_SIZE**2:,} cells at most")


def _obstacle(pyspiel: ModuleType, kind: Any, needs_defaults: bool = True) -> str:
    # The reason why a kind of game is not supported; "" if it is.
    types = pyspiel.GameType
    requirements = (
        (kind.chance_mode == types.ChanceMode.DETERMINISTIC, "has chance"),
        (kind.information == types.Information.PERFECT_INFORMATION, "has hidden information"),
        (kind.dynamics == types.Dynamics.SEQUENTIAL, "is not played in turns"),
        (kind.utility == types.Utility.ZERO_SUM, "is not zero-sum"),
        (kind.min_num_players <= 2 <= kind.max_num_players, "is not for two players"),
        (kind.provides_observation_tensor, "has no observation for a network"),
        (kind.default_loadable or not needs_defaults, "needs parameters"),
    )
    return next((reason for holds, reason in requirements if not holds), "")


def _planes(shape: tuple[int, ...]) -> tuple[int, ...]:
    # The shape of an observation as planes: some games flatten the cells of a square board.
    if len(shape) == 2 and math.isqrt(shape[1]) ** 2 == shape[1]:
        return (shape[0], math.isqrt(shape[1]), math.isqrt(shape[1]))
    return shape if len(shape) == 3 else (math.prod(shape),)
