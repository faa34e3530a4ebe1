"""Training of a Keras model on positions: the loss, the batches, the growing replay window, the figures.

Knows no game data files and no snapshots: `seraphim.training.trainer` connects them with this.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from seraphim.game import Symmetries
from seraphim.network import architectures
from seraphim.options import TrainingOptions
from seraphim.records.examples import Positions
from seraphim.records.schema import is_sparse
from seraphim.records.sparse import SparseRows
from seraphim.tracking.tensorboard import Log

LOG_EVERY = 100  # steps between two points in TensorBoard
STATISTICS_BATCHES = 32  # from which batch normalization's statistics are computed, at the end of a training
PREFETCH = 32  # batches prepared ahead; at least the steps per execution
MAX_PREFETCH_BYTES = 64 * 2**20


class Losses(NamedTuple):
    """Means over the steps of one training."""

    total: float  # value weighted, with L2
    policy: float  # cross-entropy, in nats; at least the entropy of the visit distributions
    value: float  # squared error


def window_size(generated: int, options: TrainingOptions) -> int:
    """Return the maximum number of positions to train on, the newest ones, when `generated` exist.

    All up to c; beyond that a power law, N = c·(1 + β·((generated/c)^α - 1)/α), by which KataGo keeps more of the past
    the longer it has run (Wu 2019, "Accelerating Self-Play Learning in Go", appendix C). Ours also has a maximum.
    """
    start, alpha, beta = options.window_start, options.window_exponent, options.window_growth
    growth = ((max(generated, start) / start) ** alpha - 1) / alpha
    return min(int(start * (1 + beta * growth)), options.max_window)


def prepare(model: Any, options: TrainingOptions, steps_per_execution: int = 1) -> None:
    """Compile a Keras model for `train`; an optimizer that it already has is kept with its state.

    The loss is the policy's cross-entropy, plus the weighted squared error of the value, plus the network's own L2; for
    the gradient of the value see `train`. The learning rate is a function of the optimizer's step count, so that an
    interruption does not change it.
    """
    tf = architectures.tensorflow()
    import keras

    # Weights, sums and losses stay in float32.
    tf.config.optimizer.set_experimental_options(
        {"auto_mixed_precision_onednn_bfloat16": options.precision == "bfloat16"}
    )
    optimizer = model.optimizer if model.compiled else _new_optimizer(options)
    model.compile(
        optimizer,
        loss={"policy": keras.losses.CategoricalCrossentropy(from_logits=True), "value": "mean_squared_error"},
        loss_weights={"policy": 1.0, "value": options.value_loss_weight},
        steps_per_execution=steps_per_execution,
        jit_compile=False,  # on a processor XLA is slower
    )
    half_life = options.learning_rate_half_life
    decay = {"decay_steps": half_life, "decay_rate": 0.5} if half_life else {"decay_steps": 1, "decay_rate": 1.0}
    optimizer.learning_rate = keras.optimizers.schedules.ExponentialDecay(options.learning_rate, **decay)
    if not optimizer.built:
        optimizer.build(model.trainable_variables)


def _new_optimizer(options: TrainingOptions) -> Any:
    import keras

    if options.optimizer == "sgd":
        return keras.optimizers.SGD(options.learning_rate, options.momentum, name="sgd")
    return keras.optimizers.Adam(options.learning_rate, name="adam")


class Batches:
    """Random batches of positions, for any number of trainings.

    TensorFlow traces the function that gathers a batch whenever it creates a dataset, which takes a tenth of a second
    and memory that is freed late: hence a single dataset, which reads the current positions from variables.
    """

    def __init__(
        self, observation_shape: Sequence[int], symmetries: Symmetries, options: TrainingOptions, seed: int
    ) -> None:
        """Create the dataset for the observation shape `O` and the symmetries of a game."""
        tf = architectures.tensorflow()
        self.options = options
        with tf.device("CPU"):  # where datasets are computed
            self._first = tf.Variable(0, dtype=tf.int64, trainable=False)
            # Flat: observations, values, weights of policies, weights of values, and policies or parts of sparse ones.
            self._columns = [
                tf.Variable(np.empty(0, dtype), shape=[None], trainable=False)
                for dtype in (np.uint8, np.float32, np.float32, np.float32, np.float32, np.int64, np.int32)
            ]
            cells, actions = (tf.constant(array, tf.int64) for array in symmetries)
        size, num_actions = options.batch_size, symmetries.actions.shape[1]
        self._ahead = batches_ahead(size, cells.shape[1], num_actions)

        def batch(index: Any) -> tuple[Any, Any, Any]:
            observations, values, policy_weights, value_weights, *policies = self._columns
            step = self._first + index
            count = tf.shape(value_weights, tf.int64)[0]
            rows = tf.random.stateless_uniform([size], [seed, 2 * step], 0, count, tf.int64)
            turns = tf.random.stateless_uniform([size], [seed, 2 * step + 1], 0, len(symmetries.actions), tf.int64)
            # Flat arrays and 64-bit indices: one gather both picks the positions and applies the symmetries.
            offsets = rows[:, None]
            seen = tf.gather(observations, offsets * cells.shape[1] + tf.gather(cells, turns))
            moves = tf.gather(actions, turns)
            if is_sparse(num_actions):
                policy = tf.gather(_dense_rows(rows, num_actions, *policies), moves, batch_dims=1)
            else:
                policy = tf.gather(policies[0], offsets * num_actions + moves)
            targets = {"policy": policy, "value": tf.gather(values, rows)[:, None]}
            weights = {"policy": tf.gather(policy_weights, rows), "value": tf.gather(value_weights, rows)}
            return tf.reshape(seen, [size, *observation_shape]), targets, weights

        no_autotune = tf.data.Options()
        no_autotune.autotune.enabled = False  # its thread may sleep for seconds, and the end of a dataset waits for it
        self._dataset = tf.data.Dataset.range(np.iinfo(np.int64).max).map(batch).with_options(no_autotune)

    @contextlib.contextmanager
    def of(self, positions: Positions) -> Iterator[Callable[[int, int], Any]]:
        """Yield a function `(first, steps)` that returns `steps` batches of these positions, from step `first` on.

        They are a `tf.data.Dataset` of `(observations uint8 [B, *O], {"policy": float32 [B, A], "value": float32
        [B, 1]}, weights)`: positions drawn with replacement, each under a random symmetry; `weights` holds float32 [B]
        for each target. It is valid until the next call of the function, and only inside the `with` block.
        """
        share = self.options.root_value_share
        values = (1 - share) * positions.values + share * positions.root_values
        policies = positions.policies
        if isinstance(policies, SparseRows):
            parts = [policies.values, policies.starts, policies.columns]
        else:
            parts = [policies.ravel(), np.empty(0, np.int64), np.empty(0, np.int32)]
        columns = positions.observations.ravel(), values, positions.policy_weights, positions.value_weights, *parts
        for variable, column in zip(self._columns, columns, strict=True):
            variable.assign(column)

        def batches(first: int, steps: int) -> Any:
            self._first.assign(first)
            return self._dataset.take(steps).prefetch(self._ahead)

        try:
            yield batches
        finally:
            for variable in self._columns:
                variable.assign(variable[:0])


def batches_ahead(size: int, cells: int, num_actions: int) -> int:
    """Return how many batches of `size` positions are prepared ahead: PREFETCH, or fewer if they are large."""
    return max(1, min(PREFETCH, MAX_PREFETCH_BYTES // (size * (cells + 4 * num_actions))))


def _dense_rows(rows: Any, num_actions: int, values: Any, starts: Any, columns: Any) -> Any:
    # Some rows of a `SparseRows`, as a tensor [B, A].
    tf = architectures.tensorflow()
    entries = tf.ragged.range(tf.gather(starts, rows), tf.gather(starts, rows + 1))
    places = tf.stack([entries.value_rowids(), tf.cast(tf.gather(columns, entries.values), tf.int64)], axis=1)
    return tf.scatter_nd(places, tf.gather(values, entries.values), [len(rows), num_actions])


def train(model: Any, positions: Positions, batches: Batches, log: Log | None = None, quiet: bool = False) -> Losses:
    """Train a model from `prepare` on random batches of the positions; return the means of the losses.

    A batch depends only on the positions, the seed and the model's step, so that a training that was interrupted, saved
    and loaded continues as if it had not been. At the end, the statistics of batch normalization are recomputed for the
    final weights.

    The input of the tanh that gives the value v learns by the gradient v - z, which is that of the cross-entropy of
    (1 + z) / 2 by (1 + v) / 2. The gradient of the squared error, 2·(v - z)·(1 - v²), would vanish where |v| is 1, and
    a value that the first steps drive there in all positions would never recover. A model without a tanh layer named
    "value" learns by the gradient of the squared error.
    """
    architectures.tensorflow()
    import keras

    first = current_step(model)
    intervals = _Intervals(log, first)
    log_intervals = keras.callbacks.LambdaCallback(on_train_batch_end=intervals.add, on_train_end=intervals.end)
    with batches.of(positions) as drawn:
        with _saturation_proof_gradient(model):
            steps = drawn(first, batches.options.steps)
            history = model.fit(steps, shuffle=False, verbose=0 if quiet else 1, callbacks=[log_intervals])
        architectures.recompute_batch_norm(model, (observations for observations, *_ in drawn(0, STATISTICS_BATCHES)))
    means = {name: values[0] for name, values in history.history.items()}
    return Losses(means["loss"], means["policy_loss"], means["value_loss"])


@contextlib.contextmanager
def _saturation_proof_gradient(model: Any) -> Iterator[None]:
    # In functions traced inside the block, the gradient through the value's tanh is halved instead of multiplied by
    # 1 - tanh². The saved model has plain tanh.
    tf = architectures.tensorflow()
    import keras

    layer: Any = next((layer for layer in model.layers if layer.name == "value"), None)
    if getattr(layer, "activation", None) is not keras.activations.tanh:
        yield
        return

    @tf.custom_gradient
    def tanh(logits: Any) -> tuple[Any, Callable[[Any], Any]]:
        return tf.tanh(logits), lambda gradient: 0.5 * gradient

    plain, layer.activation = layer.activation, tanh
    try:
        yield
    finally:
        layer.activation = plain


def current_step(model: Any) -> int:
    """Return the number of batches that a Keras model has been trained on."""
    return int(model.optimizer.iterations.numpy())


class _Intervals:
    # Turns Keras's means since the first batch into means over about LOG_EVERY batches, and logs them.
    def __init__(self, log: Log | None, first: int) -> None:
        self._log = log
        self._first = first
        self._done = self._logged = 0
        self._sums: dict[str, float] = {}
        self._logged_sums: dict[str, float] = {}

    def add(self, batch: int, logs: Mapping[str, float]) -> None:
        self._done = batch + 1
        self._sums = {name: mean * self._done for name, mean in logs.items()}
        if self._done - self._logged >= LOG_EVERY:
            self.end()

    def end(self, _: Any = None) -> None:
        count = self._done - self._logged
        if self._log is not None and count > 0:
            sums = {name: total - self._logged_sums.get(name, 0.0) for name, total in self._sums.items()}
            self._log.write(self._first + self._done, {f"training/{name}": sums[name] / count for name in sums})
        self._logged, self._logged_sums = self._done, self._sums
