"""Exact values of moves, from proofs and from a game's solver."""

import contextlib
import functools
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np

from seraphim.errors import GameError
from seraphim.game import Array, Game
from seraphim.game.solved import MoveValue, is_solved, solve
from seraphim.proof.known_moves import KnownMove, KnownMoves, read_moves

_SECONDS_BEFORE_PROOFS = 1.0  # for the solver: reading a large proof takes longer


class ExactResults:
    """What is known about the positions of a game; for one thread."""

    def __init__(self, module: ModuleType, game: Game, proofs: Sequence[Path]) -> None:
        """Prepare to read proofs, which must be of this game, when they are first needed."""
        self._module = module
        self._game = game
        self._paths = proofs

    @property
    def available(self) -> bool:
        """Whether there is a proof or a solver."""
        return bool(self._paths) or is_solved(self._module)

    def solve(self, state: Array, seconds: float) -> dict[int, MoveValue]:
        """Return the exact values of actions in an unfinished state int64 [W], as far as they are known.

        They come from the solver, which takes at most `seconds`. Where it does not find the best one within a second,
        they also come from the proofs, as far as these lead to the position.

        Raises:
            GameError: nothing is known; or see `seraphim.game.solved.solve`.
            RecordError: a proof is damaged, of another game, or does not prove what it claims.
        """
        if not self._paths:
            return solve(self._module, self._game, state, seconds)
        solved: dict[int, MoveValue] = {}
        if is_solved(self._module):
            with contextlib.suppress(GameError):  # it needs more time
                solved = solve(self._module, self._game, state, min(seconds, _SECONDS_BEFORE_PROOFS))
            if any(value.best for value in solved.values()):
                return solved
        proven: dict[int, tuple[int, int]] = {}
        for proof in self._proofs:
            proven |= self._proven(proof, state)
        if proven:
            return _join(solved, proven)
        if not is_solved(self._module):
            raise GameError("the proof does not lead to this position: go back to where it does")
        return solve(self._module, self._game, state, seconds)

    @functools.cached_property
    def _proofs(self) -> list[KnownMoves]:
        return [read_moves(self._module.__name__, self._game, path) for path in self._paths]

    def _proven(self, proof: KnownMoves, state: Array) -> dict[int, tuple[int, int]]:
        # Actions with their results for the player to move, and the plies to these at most.
        if _exact(proof.find(state), 0) is None:
            return {}
        mover = int(self._game.to_play(state[None])[0])
        values = {}
        for action in np.flatnonzero(self._game.legal(state[None])[0]).tolist():
            (after,) = self._game.step(state[None], np.array([action]))
            ended, results = self._game.outcome(after[None])
            if ended[0]:
                values[action] = int(np.sign(results[0])) * (1 - 2 * mover), 1
            elif (exact := _exact(proof.find(after), mover)) is not None:
                values[action] = exact[0], exact[1] + 1
        return values


def _join(solved: dict[int, MoveValue], proven: dict[int, tuple[int, int]]) -> dict[int, MoveValue]:
    # A proof that leads to a position has one of its best moves.
    values = proven | {
        action: (value.result, value.plies)
        for action, value in solved.items()
        if value.result is not None and value.plies is not None
    }
    most = max(result for result, _ in values.values())
    quickest = min(plies if most > 0 else -plies for result, plies in values.values() if result == most)
    return {
        action: MoveValue(
            result, result == most and (plies if most > 0 else -plies) == quickest, plies, proven=action not in solved
        )
        for action, (result, plies) in values.items()
    }


def _exact(found: Sequence[KnownMove], player: int) -> tuple[int, int] | None:
    # The result for a player and the plies to it, where the claims leave no other.
    for claim, _, plies in found:
        if claim.wins:
            return (1 if claim.player == player else -1), plies
    if len({claim.player for claim, _, _ in found}) == 2:
        return 0, max(plies for _, _, plies in found)
    return None
