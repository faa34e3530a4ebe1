"""A game as an environment of PettingZoo, with its AEC interface, in which agents act one after the other.

It is made as PettingZoo's own board games are: observations have an action mask, and the reward comes with the end.
"""

from typing import Any

import numpy as np

from seraphim.errors import GameError, SettingsError, how_to_install
from seraphim.game import Array, Game, load_game
from seraphim.game.features import check_two_players
from seraphim.machine import needed

with needed(f"an environment needs {{}}: {how_to_install('pettingzoo')}"):
    import gymnasium
    from gymnasium import spaces
    from gymnasium.utils import EzPickle
    from pettingzoo import AECEnv
    from pettingzoo.utils import wrappers

RENDER_MODES = ("human", "ansi")


def env(game: str | Game, render_mode: str | None = None) -> Any:
    """Return a `GameEnv` as PettingZoo wraps its own: an illegal action ends the game, with a reward of -1.

    Args:
        game: the game, or its name, such as `connectfour` or `openspiel:chess`.
        render_mode: `human` prints the position after each move, `ansi` lets `render` return it as text.

    Raises:
        GameError: there is no such game, or it is one of chance, or of one player.
        SettingsError: there is no such mode.
    """
    made = wrappers.TerminateIllegalWrapper(GameEnv(game, render_mode), illegal_reward=-1)
    return wrappers.OrderEnforcingWrapper(wrappers.AssertOutOfBoundsWrapper(made))


class GameEnv(AECEnv, EzPickle):  # type: ignore[misc]
    """A game for two agents, `player_0` and `player_1`.

    An observation is a dictionary: `observation`, uint8 [*O], is the position as the player to move sees it, for both
    agents; `action_mask`, int8 [A], is 1 for the legal actions of the agent that is to act, and 0 for the other one.
    Rewards are 0 until the end; then each agent gets its result, in [-1, 1]. A game that is cut off is truncated.

    Nothing is drawn by chance, so a seed changes nothing.
    """

    def __init__(self, game: str | Game, render_mode: str | None = None) -> None:
        """Make the environment; see `env`."""
        EzPickle.__init__(self, game, render_mode)
        AECEnv.__init__(self)
        if render_mode not in (None, *RENDER_MODES):
            raise SettingsError(f"there is no render mode {render_mode!r}: expected {' or '.join(RENDER_MODES)}")
        self.game = load_game(game)
        check_two_players(self.game)
        self.render_mode = render_mode
        self.metadata = {"name": self.game.name, "render_modes": list(RENDER_MODES), "is_parallelizable": False}
        self.possible_agents = ["player_0", "player_1"]
        self.state_space = _integers(np.int64, (self.game.state_words,))
        self.observation_spaces = {
            agent: spaces.Dict(
                {
                    "observation": _integers(np.uint8, self.game.observation_shape),
                    "action_mask": spaces.Box(0, 1, (self.game.num_actions,), np.int8),
                }
            )
            for agent in self.possible_agents
        }
        self.action_spaces = {agent: spaces.Discrete(self.game.num_actions) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> spaces.Dict:
        """Return what an agent may observe."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """Return what an agent may do."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:  # noqa: ARG002
        """Begin a game."""
        self._states, self._plies = self.game.initial(1), 0
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self.agent_selection = self._to_act()

    def step(self, action: int | None) -> None:
        """Play an action of the agent that is to act; None once its game has ended.

        Raises:
            GameError: the action is not legal.
        """
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if action not in np.flatnonzero(self.game.legal(self._states)[0]):
            raise GameError(f"action {action} is not legal here: take one that `action_mask` has as 1")
        self._states = self.game.step(self._states, np.array([action]))
        self._plies += 1
        ended, results = self.game.outcome(self._states)
        result = float(results[0]) if ended[0] else 0.0
        self.rewards = dict(zip(self.agents, (result, 0.0 - result), strict=True))
        self.terminations = dict.fromkeys(self.agents, bool(ended[0]))
        self.truncations = dict.fromkeys(self.agents, self._plies >= self.game.max_plies and not ended[0])
        self._accumulate_rewards()
        self.agent_selection = self._to_act()
        if self.render_mode == "human":
            self.render()

    def _to_act(self) -> str:
        return self.possible_agents[int(self.game.to_play(self._states)[0])]

    def observe(self, agent: str) -> dict[str, Array]:
        """Return what an agent observes."""
        mask = self.game.legal(self._states)[0].astype(np.int8)
        if agent != self.agent_selection or self.truncations[agent]:
            mask[:] = 0
        return {"observation": self.game.observe(self._states)[0], "action_mask": mask}

    def state(self) -> Array:
        """Return the position as a state int64 [W] of the game, which a `seraphim.Model` takes."""
        return self._states[0].copy()

    def render(self) -> str | None:
        """Return the position as text, or print it."""
        if self.render_mode is None:
            gymnasium.logger.warn("You are calling render method without specifying any render mode.")
            return None
        text = self.game.render(self._states[0])
        if self.render_mode == "ansi":
            return text
        print(text)
        return None

    def close(self) -> None:
        """Do nothing: there is no window."""


def _integers(dtype: type[np.integer[Any]], shape: tuple[int, ...]) -> spaces.Box:
    limits = np.iinfo(dtype)
    return spaces.Box(limits.min, limits.max, shape, dtype)
