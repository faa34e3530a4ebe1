"""Moves as text: the labels of actions, and moves written and read.

An action has one label, or, in a game that offers `label_in(state, action)`, one in each position. An outcome of chance
is written and read as a move. Knows the rules of a game; knows no history.
"""

import re
from collections.abc import Sequence

import numpy as np

from seraphim.errors import GameError
from seraphim.game import CHANCE, Array, Game
from seraphim.game.features import features_of, has_chance, num_players

_CELL = re.compile(r"[A-Za-z][0-9]+|pass")
_CELLS = re.compile(f"({_CELL.pattern}){{2,}}")


def followers(game: Game, states: Array) -> Array:
    """Return what may follow each state, bool [B, max(A, K)]: the legal actions, or the outcomes that chance has."""
    legal, chances = game.legal(states), features_of(game).chances
    if chances is None:
        return legal
    possible = chances(states) > 0
    width = max(legal.shape[1], possible.shape[1])
    either = np.zeros((len(states), width), np.bool_)
    either[:, : legal.shape[1]] = legal
    either[:, : possible.shape[1]] |= possible
    return either


def first_choice(game: Game) -> Array:
    """Return the first state int64 [W] in which a player moves, where chance before it has its first outcomes.

    Raises:
        GameError: no player moves.
    """
    return first_position(game)[0]


def first_position(game: Game) -> Array:
    """Return a position in which a player makes the first move, int64 [1, W]: after the first outcomes of chance.

    Raises:
        GameError: no player moves.
    """
    states = game.initial(1)
    for _ in range(game.max_plies):
        if game.legal(states).any():
            return states
        possible = followers(game, states)
        if not possible.any():
            break
        states = game.step(states, possible.argmax(axis=1))
    raise GameError(f"{game.name}: no player moves after the first outcomes of chance: run seraphim check-game on it")


def banked_of(game: Game, states: Array) -> Array:
    """Return what player 0 already has of the result in some states [B, W], float64 [B]."""
    return banked_by_player(game, states)[:, 0]


def banked_by_player(game: Game, states: Array) -> Array:
    """Return what each player already has of the result in some states [B, W], float64 [B, P]."""
    banked = features_of(game).banked
    return np.zeros((len(states), num_players(game))) if banked is None else banked(states).astype(np.float64)


def labels_vary(game: Game) -> bool:
    """Return whether the label of an action depends on the position, as it does where chance moves."""
    return features_of(game).label_in is not None or has_chance(game)


def label_in(game: Game, state: Array, action: int) -> str:
    """Return the label of a legal action in a state int64 [W], or of an outcome where chance moves."""
    features = features_of(game)
    if features.chances is not None and game.to_play(state[None])[0] == CHANCE:
        return str(action) if features.chance_label is None else features.chance_label(state, action)
    return game.action_label(action) if features.label_in is None else features.label_in(state, action)


def labels_in(game: Game, states: Array, actions: Array) -> list[str]:
    """Return the label of each action [B] in its state [B, W]."""
    if not labels_vary(game):
        labels = {action: game.action_label(action) for action in np.unique(actions).tolist()}
        return [labels[action] for action in actions.tolist()]
    return [label_in(game, state, action) for state, action in zip(states, actions.tolist(), strict=True)]


def labels_along(game: Game, state: Array, actions: Sequence[int]) -> list[str]:
    """Return the labels of actions that are played one after the other from a state int64 [W]."""
    if not labels_vary(game):
        return [game.action_label(action) for action in actions]
    labels = []
    for action in actions:
        labels.append(label_in(game, state, action))
        state = game.step(state[None], np.array([action]))[0]
    return labels


def format_moves(game: Game, actions: Sequence[int], together: bool = True, start: Array | None = None) -> str:
    """Return moves as text, which `parse_moves` reads.

    Args:
        game: the rules.
        actions: the moves, one after the other.
        together: write labels of a single character without spaces between them (`4453`).
        start: the state int64 [W] before the first of them, by default the game's initial one.
    """
    labels = labels_along(game, game.initial(1)[0] if start is None else start, actions)
    return join_labels(labels, _labels(game), together and not labels_vary(game))


def join_labels(labels: Sequence[str], all_labels: Sequence[str], together: bool = False) -> str:
    """Return labels as one text: with commas if any of `all_labels` has a space or comma in it, else with spaces.

    With `together`, labels of a single character have nothing between them, if all have one.
    """
    if _have_separators(all_labels):
        return ", ".join(labels)
    return ("" if together and _are_single(all_labels) else " ").join(labels)


def parse_moves(game: Game, text: str, start: Array | None = None) -> list[int]:
    """Return the actions that a text names: labels with spaces or commas between them.

    If every label of the game is a single character, they may also stand together (`4453`); so may cells named by a
    letter and a number, and passes (`f5d6passc3`), unless together they are a label (`d2d3`). If a label has spaces or
    commas in it, labels must be written exactly as `action_label` does. Whether the moves are legal is not checked,
    unless labels vary.

    Args:
        game: the rules.
        text: the labels.
        start: the state int64 [W] before the first of the moves, by default the game's initial one.

    Raises:
        GameError: a part of the text names no action of the game.
    """
    vary, labels = labels_vary(game), _labels(game)
    if not vary and _have_separators(labels):
        return _parse_longest(game, text, labels)
    parts = [part for part in re.split(r"[\s,]+", text) if part]
    if not vary and _are_single(labels):
        parts = [character for part in parts for character in part]
    elif not vary:
        known = {label.lower() for label in labels}
        parts = [name for part in parts for name in _split_cells(part, known)]
    state, actions = game.initial(1)[0] if start is None else start, list[int]()
    for place, part in enumerate(parts, start=1):
        try:
            actions.append(parse_move(game, part, state) if vary else int(game.parse_action(part)))
        except GameError as error:
            raise GameError(f"move {place}: {error}") from error
        if vary:
            state = game.step(state[None], np.array(actions[-1:]))[0]
    return actions


def parse_move(game: Game, text: str, state: Array) -> int:
    """Return the action that a text names in a state int64 [W]. Whether it is legal is not checked, unless labels vary.

    Raises:
        GameError: the text names no action.
    """
    if not labels_vary(game):
        return int(game.parse_action(text))
    possible = np.flatnonzero(followers(game, state[None])[0]).tolist()
    labels = {label_in(game, state, action): action for action in possible}
    wanted = text.strip()
    found = {wanted} & set(labels) or {label for label in labels if label.lower() == wanted.lower()}
    if len(found) != 1:
        expected = f"one like {next(iter(labels))}" if labels else "none, as the game is over"
        raise GameError(f"{wanted!r} is not a move here: expected {expected}")
    return labels[found.pop()]


def _split_cells(part: str, known: set[str]) -> list[str]:
    return _CELL.findall(part) if _CELLS.fullmatch(part) and part.lower() not in known else [part]


def _parse_longest(game: Game, text: str, labels: list[str]) -> list[int]:
    # Takes the longest label that the rest of the text begins with.
    actions: list[int] = []
    rest = text.lstrip(" ,\t\n")
    while rest:
        fitting = [action for action, label in enumerate(labels) if label and rest.startswith(label)]
        if not fitting:
            raise GameError(
                f"move {len(actions) + 1}: {rest[:20]!r} begins with no action of {game.name}: "
                f"expected one like {labels[0]!r}"
            )
        actions.append(max(fitting, key=lambda action: len(labels[action])))
        rest = rest[len(labels[actions[-1]]) :].lstrip(" ,\t\n")
    return actions


def _labels(game: Game) -> list[str]:
    return [game.action_label(action) for action in range(game.num_actions)]


def _are_single(labels: Sequence[str]) -> bool:
    return all(len(label) == 1 for label in labels)


def _have_separators(labels: Sequence[str]) -> bool:
    return re.search(r"[\s,]", "".join(labels)) is not None
