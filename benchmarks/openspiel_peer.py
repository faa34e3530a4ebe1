"""OpenSpiel's search in C++, with random playouts and on one thread."""

import time

_MEGABYTES = 1000  # for a tree: never reached


class Bot:
    """Plays one of OpenSpiel's games against itself with its C++ `MCTSBot`."""

    def __init__(self, game: str, readouts: int, cpuct: float) -> None:
        """Prepare to play.

        Args:
            game: its name in OpenSpiel.
            readouts: simulations per move.
            cpuct: the weight of exploration.
        """
        import pyspiel

        self._game = pyspiel.load_game(game)
        self._readouts = readouts
        evaluator = pyspiel.RandomRolloutEvaluator(n_rollouts=1, seed=1)
        self._bot = pyspiel.MCTSBot(
            self._game,
            evaluator,
            uct_c=cpuct,
            max_simulations=readouts,
            max_memory_mb=_MEGABYTES,
            solve=False,
            seed=1,
            verbose=False,
            child_selection_policy=pyspiel.ChildSelectionPolicy.PUCT,
        )

    def measure(self, seconds: float) -> float:
        """Return the readouts/s of as many games as begin within `seconds`."""
        start, moves = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            state = self._game.new_initial_state()
            while not state.is_terminal():
                state.apply_action(self._bot.step(state))
                moves += 1
        return moves * self._readouts / (time.perf_counter() - start)
