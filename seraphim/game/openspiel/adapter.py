"""A game of OpenSpiel as one of ours.

A game has OpenSpiel's name behind `openspiel:`, for instance `openspiel:hex(board_size=5)`. Its rules are called one
position at a time, which takes some microseconds each.
"""

import functools
import math
import re
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from seraphim.errors import GameError
from seraphim.game import CHANCE, Array, Board, Symmetries, identity_symmetry
from seraphim.game.notation import followers, label_in
from seraphim.game.openspiel.boards import PIECES, Pieces, read_board, read_diagram, rows_of_line
from seraphim.game.openspiel.cache import StateCache
from seraphim.game.openspiel.catalog import load, pyspiel_module

PREFIX = "openspiel:"
MOST_PLIES = 512  # of a game, where OpenSpiel allows more; a longer one is cut off
SPARE_PLIES = 128  # that a search may go beyond the last ply of such a game; later positions count as draws
HUNDREDTHS = 100  # the unit of planes whose numbers have fractions
OCTAVE = 16  # what twice as much adds to a number of a plane whose numbers grow
_SMALL = 15  # numbers of the sampled games that do not grow
CACHE_BYTES = 128 * 2**20  # of cached states, so that the rules need not replay games
_SAMPLES = 8  # random games in which fractions and large numbers are looked for
_SAMPLED_PLIES = 100


class OpenSpielGame:
    """A game of OpenSpiel; a state is the number of plies, and the actions that were played, several to a word.

    So two move orders into one position are two states. Player 0 moves first, even where OpenSpiel numbers the players
    otherwise, as in chess; the others follow in OpenSpiel's order. The observation is OpenSpiel's for the player to
    move, planes last, with one more plane or number that tells which player that is. Results, and what is banked where
    OpenSpiel has rewards, are OpenSpiel's returns as parts of the most that one can be, which is what `points` tells.
    """

    def __init__(self, name: str, cache_bytes: int = CACHE_BYTES) -> None:
        """Load a game by its name in OpenSpiel.

        Raises:
            GameError: there is no such game, or it is not supported here.
            NotInstalledError: OpenSpiel is not installed.
        """
        self._game = load(name)
        self.name = PREFIX + name
        self.num_actions = self._game.num_distinct_actions()
        self._seats = range(self._game.num_players())
        self.num_players = None if len(self._seats) == 2 else len(self._seats)
        # What a game is declared to be does not say what parameters make it, but this number does.
        self.num_chance_outcomes = self._game.max_chance_outcomes() or None
        longest = self._game.max_game_length() + self._game.max_chance_nodes_in_history()
        self.max_plies = min(longest, MOST_PLIES)
        self._horizon = min(longest, MOST_PLIES + SPARE_PLIES)  # plies that a state has room for
        self._cut_off = self._horizon < longest
        self._first = self._first_mover()
        self._bits = max(1, math.ceil(math.log2(max(self.num_actions, self.num_chance_outcomes or 0))))
        self._per_word = 63 // self._bits
        self.state_words = 1 + -(-self._horizon // self._per_word)
        self.cache = StateCache(cache_bytes)
        self._labels: dict[bytes, dict[int, str]] = {}
        self.uci_variant = name if name in ("breakthrough", "chess") else None  # not on boards of other sizes
        self._best_return = max(abs(self._game.min_utility()), abs(self._game.max_utility()))
        self.points = None if self._best_return == 1 else self._best_return
        self._has_rewards = self._game.get_type().reward_model.name == "REWARDS"
        self._planes = _planes(tuple(self._game.observation_tensor_shape()), self.num_players == 1)
        channels, *board = self._planes
        self.observation_shape = (*board, channels + 1) if board else (channels + 1,)
        self._scale, self._grow = self._sampled()
        self._pieces = PIECES.get(self._game.get_type().short_name)
        if self._pieces and not read_diagram(str(self._game.new_initial_state())).has_cell_names:
            self._pieces = None
        self.goal = self._pieces.goal if self._pieces else None

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled as the name."""
        return OpenSpielGame, (self.name.removeprefix(PREFIX),)

    def _turn_of(self, state: Any) -> int:
        # OpenSpiel's number of the player to move, or CHANCE, which is the same number there.
        player = int(state.current_player())
        if player == CHANCE and self.num_chance_outcomes is not None:
            return CHANCE
        if player not in self._seats and not state.is_terminal():
            reason = "has chance" if state.is_chance_node() else "is not played in turns"
            raise GameError(f"{self.name} is not supported: it {reason}")
        return player

    def _first_mover(self) -> int:
        # Where chance begins: the player to move if it always has its first outcome.
        state = self._game.new_initial_state()
        while self._turn_of(state) == CHANCE:
            state.apply_action(state.legal_actions()[0])
        return int(state.current_player())

    def _after(self, state: Any, action: int) -> Any:
        # The same state of OpenSpiel, after an action.
        state.apply_action(action)
        self._turn_of(state)
        return state

    def _sampled(self) -> tuple[Array, Array]:
        # The factor of each plane: HUNDREDTHS, if fractions are found in it. And whether its numbers grow, as scores
        # and tiles do, which is looked for where one player plays alone.
        random = np.random.default_rng(0)
        scale, most = np.ones(self._planes[0]), np.zeros(self._planes[0])
        for _ in range(_SAMPLES):
            state = self._game.new_initial_state()
            for _ in range(_SAMPLED_PLIES):
                if state.is_terminal():
                    break
                seen = self._tensor(state).reshape(len(scale), -1)
                scale[(seen != np.round(seen)).any(axis=1)] = HUNDREDTHS
                most = np.maximum(most, seen.max(axis=1))
                state.apply_action(int(random.choice(state.legal_actions())))
        return scale, (most > _SMALL) & (self.num_players == 1)

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
        return None if self._cut_off else self._is_game

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
            found = self._state(state)  # without legal actions, once the game has ended
            row[[] if state[0] >= self._horizon or found.is_chance_node() else found.legal_actions()] = True
        return legal

    def to_play(self, states: Array) -> Array:
        return np.array([self._mover(self._state(row), int(row[0])) for row in states], np.int8)

    def _mover(self, state: Any, plies: int) -> int:
        if state.is_chance_node():
            return CHANCE if plies < self._horizon else 0
        return 0 if state.is_terminal() else (int(state.current_player()) - self._first) % len(self._seats)

    @property
    def chances(self) -> Callable[[Array], Array] | None:
        """See `GameFeatures`: of games where chance moves."""
        return None if self.num_chance_outcomes is None else self._chances

    def _chances(self, states: Array) -> Array:
        chances = np.zeros((len(states), self.num_chance_outcomes or 0))
        for row, state in zip(chances, states, strict=True):
            found = self._state(state)
            if self._mover(found, int(state[0])) == CHANCE:
                outcomes, probabilities = zip(*found.chance_outcomes(), strict=True)
                row[list(outcomes)] = np.array(probabilities) / sum(probabilities)
        return chances

    @property
    def banked(self) -> Callable[[Array], Array] | None:
        """See `GameFeatures`: the rewards so far, of games that have some before the end."""
        return self._by_player if self._has_rewards else None

    def _by_player(self, states: Array) -> Array:
        return np.array([self._returns(self._state(row)) for row in states], np.float32)

    def _returns(self, state: Any) -> list[float]:
        # Of each player so far. A score can be more than OpenSpiel says that it can be.
        returns, seats = state.returns(), len(self._seats)
        found = (returns[(self._first + seat) % seats] / self._best_return for seat in self._seats)
        return [max(-1.0, min(1.0, each)) for each in found]

    def outcome(self, states: Array) -> tuple[Array, Array]:
        """Return whether games have ended, and results; where there is no room for more plies, what is banked or 0."""
        found = [self._state(row) for row in states]
        over = np.array([state.is_terminal() for state in found], np.bool_)
        ended, counts = over | (states[:, 0] >= self._horizon), over
        if self._has_rewards:
            counts = ended
        results = np.zeros((len(states), len(self._seats)), np.float32)
        for row in np.flatnonzero(counts):
            results[row] = self._returns(found[row])
        return ended, results if self.num_players else results[:, 0].copy()

    def observe(self, states: Array) -> Array:
        """Return the observations; planes with fractions are in hundredths, and those that grow in their logarithm."""
        observations = np.empty((len(states), *self.observation_shape), np.uint8)
        scale, grow = (each.reshape(-1, *[1] * (len(self._planes) - 1)) for each in (self._scale, self._grow))
        for observation, row in zip(observations, states, strict=True):
            state = self._state(row)
            tensor = self._tensor(state)
            seen = np.where(grow, OCTAVE * np.log2(1 + np.maximum(tensor, 0)), tensor * scale)
            observation[..., :-1] = np.moveaxis(np.clip(np.round(seen), 0, 255), 0, -1)
            observation[..., -1] = max(0, self._mover(state, int(row[0])))
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
        actions = [] if state.is_chance_node() else state.legal_actions()
        moves = {action: self._cells_of(state, action) for action in actions}
        return read_board(pieces, self._first, str(state), moves)

    def _cells_of(self, state: Any, action: int) -> str:
        # A legal action as text with the names of its cells.
        if self._game.get_type().short_name == "chess":
            return str(pyspiel_module().chess.action_to_move(action, state.board()).to_lan())
        return str(state.action_to_string(state.current_player(), action))

    def action_label(self, action: int) -> str:
        """Return the number of an action, because OpenSpiel's names for one depend on the position: `label_in`."""
        return str(action)

    def label_in(self, row: Array, action: int) -> str:
        """Return OpenSpiel's name for a legal action in a state int64 [W], as one word without commas.

        If another one has the same name there, the action's number is added. An outcome of dice is what they show.
        """
        key = row.tobytes()
        labels = self._labels.get(key)
        if labels is None:
            labels = _labels(self._state(row))
            self._labels = {key: labels}  # of one state, as calls come for one action after another
        return labels[action]

    chance_label = label_in

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
    # By legal action, or by outcome where chance moves.
    by_chance = state.is_chance_node()
    names = {action: state.action_to_string(state.current_player(), action) for action in state.legal_actions()}
    words = {action: _word(name, by_chance) for action, name in names.items()}
    count = Counter(words.values())
    return {action: word if count[word] == 1 else f"{word}#{action}" for action, word in words.items()}


def _word(name: str, by_chance: bool) -> str:
    # "X From (7, 1)" becomes X_From_(7.1). Of dice only what they show: "chance outcome 3 (roll: 31)" becomes 31.
    roll = re.search(r"\broll:? ([\d,]+)", name, re.IGNORECASE) if by_chance else None
    return "_".join(re.sub(r",\s*", ".", name if roll is None else roll[1]).split())


@functools.cache
def load_module(name: str) -> ModuleType:
    """Return a module with `GAME` and `SETTINGS` for `openspiel:NAME`.

    Raises:
        GameError: there is no such game, or it is not supported here.
    """
    try:
        module, game = ModuleType(name), OpenSpielGame(name.removeprefix(PREFIX))
        start = game.initial(1)[0]
        possible = followers(game, start[None])[0]
        if not possible.any():
            raise ValueError("the game is over where it begins")
        game.render(start)
        label_in(game, start, int(possible.argmax()))
    except (RuntimeError, ValueError, MemoryError) as error:  # of OpenSpiel, as on boards of more rows than letters
        name, reason = name.removeprefix(PREFIX), " ".join(str(error).split())
        raise GameError(f"OpenSpiel cannot play {name!r}, try other parameters: {reason}") from error
    vars(module).update(GAME=game, SETTINGS={"self_play": {"concurrent_games": 32}}, __file__=__file__)
    return module


def _planes(shape: tuple[int, ...], alone: bool) -> tuple[int, ...]:
    # The shape of an observation as planes: some games flatten the cells of a square board, those for one player have
    # one plane.
    if len(shape) == 2 and alone:
        return (1, *shape)
    if len(shape) == 2 and math.isqrt(shape[1]) ** 2 == shape[1]:
        return (shape[0], math.isqrt(shape[1]), math.isqrt(shape[1]))
    return shape if len(shape) == 3 else (math.prod(shape),)
