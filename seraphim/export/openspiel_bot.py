"""A model as a bot of OpenSpiel, which plays in OpenSpiel's own loops.

OpenSpiel gives a bot positions with their moves, and the bot plays these along by the rules that the model knows. So a
model of `openspiel:connect_four` can be a bot, and one of `connectfour` too: the rules are the same, and the actions
have the same numbers.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from seraphim.errors import GameError
from seraphim.game import Array, Game, random_actions
from seraphim.game.features import check_two_players
from seraphim.game.notation import label_in
from seraphim.game.openspiel import PREFIX, OpenSpielGame

_GAMES = 100  # random ones in which two forms of a game are compared


class Player(Protocol):
    """What plays; a `seraphim.Model` does."""

    game: Game

    def play(self, position: Array, readouts: int | None) -> str:
        """Return the label of the move to play in an unfinished state int64 [W]."""


def make_bot(model: Player, game: Any, readouts: int | None = None) -> Any:
    """Return a `pyspiel.Bot` that plays the best move of the model's search, for both sides and in any number of games.

    Args:
        model: a `seraphim.Model`.
        game: the `pyspiel.Game` to play: that of the model, or one with the same rules and the same actions.
        readouts: of each search, by default the model's own number.

    Raises:
        GameError: the model's game is another one, or one of chance or of one player. The bot raises it as well, for a
            position of another game, or one that does not follow from the game's initial position.
    """
    import pyspiel

    rules = model.game
    if not (rules.name.startswith(PREFIX) and str(pyspiel.load_game(rules.name.removeprefix(PREFIX))) == str(game)):
        theirs = OpenSpielGame(str(game))
        check_two_players(theirs)
        _check_same_rules(rules, theirs)
    check_two_players(rules)

    class Bot(pyspiel.Bot):  # type: ignore[misc]
        def step(self, position: Any) -> int:
            state = _to_state(rules, game, position)
            label = model.play(state, readouts)
            return next(each for each in position.legal_actions() if label_in(rules, state, each) == label)

        def step_with_policy(self, position: Any) -> tuple[list[tuple[int, float]], int]:
            action = self.step(position)
            return [(each, float(each == action)) for each in position.legal_actions()], action

        def get_policy(self, position: Any) -> list[tuple[int, float]]:
            return self.step_with_policy(position)[0]

        def provides_policy(self) -> bool:
            return True

        def restart_at(self, position: Any) -> None:
            pass  # a position brings its moves with it

    return Bot()


def _check_same_rules(ours: Game, theirs: Game) -> None:
    # Plays the same random games by both.
    def fail(difference: str) -> GameError:
        return GameError(
            f"a model of {ours.name} cannot play {theirs.name}, because {difference}: expected a model of "
            f"{theirs.name}, or of a game with the same rules whose actions have the same numbers"
        )

    if ours.num_actions != theirs.num_actions:
        raise fail(f"one has {ours.num_actions} actions and the other {theirs.num_actions}")
    random = np.random.default_rng(0)
    states = [game.initial(_GAMES) for game in (ours, theirs)]
    plies = 0
    while len(states[0]):
        seen = [_look(game, each) for game, each in zip((ours, theirs), states, strict=True)]
        for what, one, other in zip(_Look._fields, *seen, strict=True):
            if not np.array_equal(one, other):
                raise fail(f"after {plies} moves they can differ in the {what.replace('_', ' ')}")
        going = ~seen[0].end
        actions = random_actions(seen[0].legal_moves[going], random)
        states = [game.step(each[going], actions) for game, each in zip((ours, theirs), states, strict=True)]
        plies += 1


class _Look(NamedTuple):
    # What rules say of some states.
    legal_moves: Array
    end: Array
    player_to_move: Array  # 0 after the end of a game
    result: Array  # 0 before it


def _look(game: Game, states: Array) -> _Look:
    ended, results = game.outcome(states)
    players = np.where(ended, 0, game.to_play(states))
    return _Look(game.legal(states), ended, players, np.where(ended, results, 0))


def _to_state(rules: Game, game: Any, position: Any) -> Array:
    # The state int64 [W] of a position of OpenSpiel.
    if str(position.get_game()) != str(game):
        raise GameError(f"this bot plays {game}, not {position.get_game()}")
    states, replayed = rules.initial(1), game.new_initial_state()
    for action in position.history():
        if not rules.legal(states)[0, action]:
            break
        states = rules.step(states, np.array([action]))
        replayed.apply_action(action)
    legal = np.flatnonzero(rules.legal(states)[0]).tolist()
    if str(replayed) != str(position) or legal != sorted(position.legal_actions()):
        raise GameError(
            f"the bot cannot play here: {len(position.history())} moves from the initial position of {rules.name}, and "
            f"at most {rules.max_plies}, do not lead to this position:\n{position}"
        )
    return states[0]
