"""mctx: searches in JAX, here with the rules of pgx and a residual network as `seraphim.network` builds it.

Shape letters: `B` games, `A` actions, `O` shape of an observation.
"""

import time
from collections.abc import Callable
from typing import Any

from seraphim.inference import Precision
from seraphim.options import NetworkOptions

PRECISION: Precision = "float32"  # of the network
GAMES = 32  # B: concurrent games; on a processor more are not faster

Weights = dict[str, Any]


class SelfPlay:
    """Plays one of pgx's games against itself, many games at a time, each restarted when it ends."""

    def __init__(
        self,
        game: str,
        policy: str,
        readouts: int,
        network: NetworkOptions,
        games: int = GAMES,
        precision: Precision = PRECISION,
    ) -> None:
        """Compile everything, and play one move.

        Args:
            game: its name in pgx.
            policy: the search's name in mctx.
            readouts: simulations per move.
            network: size of the network.
            games: how many at a time.
            precision: of the network.
        """
        import jax
        import pgx

        environment = pgx.make(game)
        begin = jax.vmap(environment.init)
        self._readouts, self._games = readouts, games
        self._play_move = jax.jit(_move_player(environment, policy, readouts, network))
        self._key = jax.random.key(0)
        self._states = begin(jax.random.split(self._key, games))
        self._weights = random_weights(
            self._key, environment.observation_shape, environment.num_actions, network, precision
        )
        self._advance()

    def _advance(self) -> None:
        import jax

        self._key, key = jax.random.split(self._key)
        self._states = jax.block_until_ready(self._play_move(self._weights, self._states, key))

    def measure(self, seconds: float) -> float:
        """Return the readouts/s of as many moves as begin within `seconds`."""
        start, moves = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            self._advance()
            moves += self._games
        return moves * self._readouts / (time.perf_counter() - start)


def device() -> str:
    """Return the name of what JAX computes on."""
    import jax

    return str(jax.devices()[0].device_kind)


def _move_player(environment: Any, policy: str, readouts: int, network: NetworkOptions) -> Callable[..., Any]:
    # Returns a function of weights, states and a key that searches each state and plays a move.
    import jax
    import jax.numpy as jnp
    import mctx

    step, begin, search = jax.vmap(environment.step), jax.vmap(environment.init), getattr(mctx, policy)

    def look(weights: Weights, states: Any) -> tuple[Any, Any]:
        logits, values = evaluate(weights, states.observation, network)
        return jnp.where(states.legal_action_mask, logits, jnp.finfo(logits.dtype).min), values

    def readout(weights: Weights, _: Any, actions: Any, states: Any) -> tuple[Any, Any]:
        # Rewards and values are for the player to move, hence the negative discount; nothing follows a game's end.
        successors = step(states, actions)
        logits, values = look(weights, successors)
        output = mctx.RecurrentFnOutput(
            reward=jnp.take_along_axis(successors.rewards, states.current_player[:, None], axis=1)[:, 0],
            discount=jnp.where(successors.terminated, 0.0, -1.0),
            prior_logits=logits,
            value=jnp.where(successors.terminated, 0.0, values),
        )
        return output, successors

    def play_move(weights: Weights, states: Any, key: Any) -> Any:
        search_key, begin_key = jax.random.split(key)
        logits, values = look(weights, states)
        found = search(
            params=weights,
            rng_key=search_key,
            root=mctx.RootFnOutput(prior_logits=logits, value=values, embedding=states),
            recurrent_fn=readout,
            num_simulations=readouts,
            invalid_actions=~states.legal_action_mask,
        )
        successors = step(states, found.action)
        ended = successors.terminated | successors.truncated
        fresh = begin(jax.random.split(begin_key, len(ended)))
        return jax.vmap(lambda over, first, last: jax.tree.map(lambda a, b: jnp.where(over, a, b), first, last))(
            ended, fresh, successors
        )

    return play_move


def random_weights(
    key: Any,
    observation_shape: tuple[int, ...],
    num_actions: int,
    network: NetworkOptions,
    precision: Precision = PRECISION,
) -> Weights:
    """Return random kernels and zero biases."""
    import jax
    import jax.numpy as jnp

    rows, columns, planes = observation_shape
    cells, filters = rows * columns, network.filters
    size = (network.kernel_size, network.kernel_size)
    shapes: dict[str, tuple[int, ...]] = {"stem": (*size, planes, filters)}
    for block in range(network.blocks):
        shapes |= {f"block_{block}_a": (*size, filters, filters), f"block_{block}_b": (*size, filters, filters)}
    shapes |= {
        "policy_conv": (1, 1, filters, network.policy_filters),
        "value_conv": (1, 1, filters, network.value_filters),
        "policy": (cells * network.policy_filters, num_actions),
        "value_hidden": (cells * network.value_filters, network.value_width),
        "value": (network.value_width, 1),
    }
    keys = jax.random.split(key, len(shapes))
    kernels = {
        name: jax.nn.initializers.he_normal()(one, shape, jnp.float32)
        for one, (name, shape) in zip(keys, shapes.items(), strict=True)
    }
    return {
        name: (kernel.astype(precision), jnp.zeros(kernel.shape[-1], precision)) for name, kernel in kernels.items()
    }


def evaluate(weights: Weights, observations: Any, network: NetworkOptions) -> tuple[Any, Any]:
    """Return logits float32 [B, A] and values float32 [B] of observations bool [B, *O], in the dtype of the weights."""
    import jax
    import jax.numpy as jnp

    def convolve(planes: Any, name: str) -> Any:
        kernel, bias = weights[name]
        layout = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(planes, kernel, (1, 1), "SAME", dimension_numbers=layout) + bias

    def connect(inputs: Any, name: str) -> Any:
        kernel, bias = weights[name]
        return inputs @ kernel + bias

    hidden = jax.nn.relu(convolve(observations.astype(weights["stem"][0].dtype), "stem"))
    for block in range(network.blocks):
        inner = jax.nn.relu(convolve(hidden, f"block_{block}_a"))
        hidden = jax.nn.relu(convolve(inner, f"block_{block}_b") + hidden)
    policy, value = (
        jax.nn.relu(convolve(hidden, name)).reshape(len(observations), -1) for name in ("policy_conv", "value_conv")
    )
    value = jax.nn.relu(connect(value, "value_hidden"))
    logits, values = connect(policy, "policy"), jnp.tanh(connect(value, "value"))[:, 0]
    return logits.astype(jnp.float32), values.astype(jnp.float32)
