"""Training of a Keras model on positions: the loss, the batches, the steps, the growing replay window.

Knows no game data files and no snapshots: `seraphim.training.trainer` connects them with this.
"""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from seraphim.errors import SettingsError
from seraphim.game import Symmetries
from seraphim.machine import has_bfloat16
from seraphim.network import architectures
from seraphim.network.muon import muon
from seraphim.options import TrainingOptions, TrainingPrecision
from seraphim.records.examples import Positions
from seraphim.records.schema import is_sparse
from seraphim.records.sparse import SparseRows
from seraphim.tracking.tensorboard import Log

LOG_EVERY = 100  # steps between two points in TensorBoard
_MOMENTUM = 0.9  # of stochastic gradient descent (AGZ)
_WINDOW_EXPONENT, _WINDOW_GROWTH = 0.75, 0.4  # α and β of the window (KataGo)
_SECONDS_BETWEEN_UPDATES = 0.1  # of the progress bar; Ctrl-C takes effect then


class Losses(NamedTuple):
    """Means over the steps of one training, each position counted by its weight, which `average_positions` raises."""

    total: float  # weighted, with L2
    policy: float  # cross-entropy, in nats; at least the entropy of the visit distributions
    value: float  # squared error


def window_size(generated: int, options: TrainingOptions) -> int:
    """Return the maximum number of positions to train on, the newest ones, when `generated` exist.

    All up to c; beyond that a power law, N = c·(1 + β·((generated/c)^α - 1)/α), by which KataGo keeps more of the past
    the longer it has run (Wu 2019, "Accelerating Self-Play Learning in Go", appendix C). Ours also has a maximum.
    """
    start = options.window_start
    growth = ((max(generated, start) / start) ** _WINDOW_EXPONENT - 1) / _WINDOW_EXPONENT
    return min(int(start * (1 + _WINDOW_GROWTH * growth)), options.max_window)


def count_steps(new_positions: int, options: TrainingOptions) -> int:
    """Return after how many batches each new position has been drawn `samples_per_position` times, on average."""
    return max(1, round(options.samples_per_position * new_positions / options.batch_size))


@architectures.standard_keras()
def prepare(model: Any, options: TrainingOptions) -> None:
    """Give a Keras model its optimizer; one that it already has is kept with its state.

    The learning rate is a function of the optimizer's step count, so that an interruption does not change it.

    Raises:
        SettingsError: the model was made with another optimizer, or without averages of its weights, or with them.
    """
    import keras

    optimizer = model.optimizer if model.compiled else _new_optimizer(options)
    if (optimizer.name, optimizer.use_ema) != (options.optimizer, options.average_decay > 0):
        averages = "with averages of its weights" if optimizer.use_ema else "with average_decay 0"
        raise SettingsError(
            f"the model was made with optimizer {optimizer.name} and {averages}, not with optimizer "
            f"{options.optimizer} and average_decay {options.average_decay:g}: correct its settings.json"
        )
    model.compile(optimizer)  # saved with the model
    rate, steps, schedules = options.learning_rate, options.learning_rate_decay_steps, keras.optimizers.schedules
    if options.learning_rate_cycle:
        optimizer.learning_rate = schedules.CosineDecayRestarts(rate, options.learning_rate_cycle, t_mul=1.0)
    else:
        optimizer.learning_rate = schedules.InverseTimeDecay(rate, max(1, steps), decay_rate=float(steps > 0))
    optimizer.ema_momentum = options.average_decay
    if not optimizer.built:
        optimizer.build(model.trainable_variables)


def _new_optimizer(options: TrainingOptions) -> Any:
    import keras

    average = {"use_ema": options.average_decay > 0}
    if options.optimizer == "sgd":
        return keras.optimizers.SGD(options.learning_rate, _MOMENTUM, name="sgd", **average)
    if options.optimizer == "muon":
        return muon()(options.learning_rate, name="muon", **average)
    return keras.optimizers.Adam(options.learning_rate, name="adam", **average)


class Batches:
    """Random batches of positions, drawn by a function that TensorFlow compiles once for any number of trainings."""

    def __init__(
        self, observation_shape: Sequence[int], symmetries: Symmetries, options: TrainingOptions, seed: int
    ) -> None:
        """Draw batches of positions with observations of a shape `O`, under the symmetries of a game."""
        tf = architectures.tensorflow()
        self.options = options
        self._shape = observation_shape
        self._seed = seed
        # Flat: observations, values, weights of policies, weights of values, and policies or parts of sparse ones.
        self._columns = [
            tf.Variable(np.empty(0, dtype), shape=[None], trainable=False)
            for dtype in (np.uint8, np.float32, np.float32, np.float32, np.float32, np.int64, np.int32)
        ]
        self._cells, self._actions = (tf.constant(array, tf.int64) for array in symmetries)

    @contextlib.contextmanager
    def of(self, positions: Positions) -> Iterator[None]:
        """Let `draw` draw from these positions inside the `with` block."""
        share = self.options.root_value_share
        values = (1 - share) * positions.values + share * positions.root_values
        policies = positions.policies
        if isinstance(policies, SparseRows):
            parts = [policies.values, policies.starts, policies.columns]
        else:
            parts = [policies, np.empty(0, np.int64), np.empty(0, np.int32)]
        columns = positions.observations, values, positions.policy_weights, positions.value_weights, *parts
        for variable, column in zip(self._columns, columns, strict=True):
            variable.assign(column.ravel())
        try:
            yield
        finally:
            for variable in self._columns:
                variable.assign(variable[:0])

    def draw(self, step: Any) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        """Return the batch of a step, an int64 scalar: positions drawn with replacement, under random symmetries.

        It is `(observations uint8 [B, *O], targets, weights)`, with the targets `policy` float32 [B, A] and `value`
        float32 [B, V], and a weight float32 [B] for each.
        """
        tf = architectures.tensorflow()
        observations, values, policy_weights, value_weights, *policies = self._columns
        size, (turns, num_actions) = self.options.batch_size, self._actions.shape
        count = tf.shape(value_weights, tf.int64)[0]
        rows = tf.random.stateless_uniform([size], [self._seed, 2 * step], 0, count, tf.int64)
        drawn_turns = tf.random.stateless_uniform([size], [self._seed, 2 * step + 1], 0, turns, tf.int64)

        def turned(flat: Any, orders: Any) -> Any:
            # Flat arrays and 64-bit indices: one gather both picks the rows and puts their columns in another order.
            if turns == 1:
                return tf.gather(tf.reshape(flat, [count, orders.shape[1]]), rows)
            return tf.gather(flat, rows[:, None] * orders.shape[1] + tf.gather(orders, drawn_turns))

        seen = turned(observations, self._cells)
        if is_sparse(num_actions):
            policy = _dense_rows(rows, num_actions, *policies)
            policy = tf.gather(policy, tf.gather(self._actions, drawn_turns), batch_dims=1)
        else:
            policy = turned(policies[0], self._actions)
        targets = {"policy": policy, "value": tf.gather(tf.reshape(values, [count, -1]), rows)}
        weights = {"policy": tf.gather(policy_weights, rows), "value": tf.gather(value_weights, rows)}
        return tf.reshape(seen, [size, *self._shape]), targets, weights


def _dense_rows(rows: Any, num_actions: int, values: Any, starts: Any, columns: Any) -> Any:
    # Some rows of a `SparseRows`, as a tensor [B, A].
    tf = architectures.tensorflow()
    entries = tf.ragged.range(tf.gather(starts, rows), tf.gather(starts, rows + 1))
    places = tf.stack([entries.value_rowids(), tf.cast(tf.gather(columns, entries.values), tf.int64)], axis=1)
    return tf.scatter_nd(places, tf.gather(values, entries.values), [rows.shape[0], num_actions])


class TrainingSteps:
    """The training of a model from `prepare`, as one compiled loop over batches.

    On a GPU, XLA compiles what is done with a batch. It would compile the drawing of batches anew for each window.
    """

    def __init__(self, model: Any, batches: Batches, by_xla: bool | None = None) -> None:
        """Train `model` on what `batches` draws, compiled by XLA or not; None: if TensorFlow sees a GPU."""
        tf = architectures.tensorflow()
        self._model = model
        self._batches = batches
        self._by_xla = architectures.sees_gpu() if by_xla is None else by_xla
        # What it computes in: without bfloat16 in hardware oneDNN would emulate it, which takes 15 times as long.
        self.precision: TrainingPrecision = "float32"
        if self._by_xla or has_bfloat16():
            self.precision = batches.options.precision
        self._learn_compiled = tf.function(self._learn, autograph=False, jit_compile=True)
        scalar = tf.TensorSpec([], tf.int64)
        # A function of its own: in the loop's body bfloat16 would slow down Muon's small products.
        self._compiled_step = tf.function(self._step, input_signature=[scalar], autograph=False)
        self.run = tf.function(self._run, input_signature=[scalar, scalar], autograph=False)
        self._swap = tf.function(self._swap_averages, autograph=False)

    def train(self, positions: Positions, steps: int, log: Log | None = None, quiet: bool = False) -> Losses:
        """Train on random batches of the positions; return the means of the losses.

        The loss is the policy's cross-entropy, plus the weighted squared error of the value, plus the network's own L2;
        through a tanh the value learns by the gradient v - z, see `_saturation_proof_tanh`.
        A batch depends only on the positions, the seed and the model's step, so that a training that was interrupted,
        saved and loaded continues as if it had not been. Afterwards the model has the mean of its weights, if the
        optimizer averages them, and the optimizer has the last weights, from which the next training goes on.
        """
        import keras

        first = current_step(self._model)
        bar = keras.utils.Progbar(steps, verbose=0 if quiet else 1)
        totals, done, size = np.zeros(3), 0, 1
        logged, logged_totals = 0, totals
        self._exchange_averages()
        with self._batches.of(positions), _computing_in(self.precision):
            while done < steps:
                chunk = min(size, steps - done, LOG_EVERY - done % LOG_EVERY)
                started = time.perf_counter()
                sums = self.run(first + done, chunk).numpy()
                if time.perf_counter() - started < _SECONDS_BETWEEN_UPDATES / 2:
                    size = min(2 * size, LOG_EVERY)
                totals, done = totals + sums, done + chunk
                bar.update(done, list(zip(_NAMES, sums / chunk, strict=True)))
                if log is not None and (done % LOG_EVERY == 0 or done == steps):
                    means = (totals - logged_totals) / (done - logged)
                    log.write(first + done, dict(zip(_TAGS, means.tolist(), strict=True)))
                    logged, logged_totals = done, totals
        self._exchange_averages()
        return Losses(*(totals / steps).tolist())

    def _run(self, first: Any, steps: Any) -> Any:
        # The sums of the losses over some steps, float32 [3].
        tf = architectures.tensorflow()
        with architectures.standard_keras(), _activations_of_training(self._model):
            loop = tf.while_loop(
                lambda index, _: index < steps,
                lambda index, sums: (index + 1, sums + self._compiled_step(first + index)),
                (tf.constant(0, tf.int64), tf.zeros(len(_NAMES))),
                parallel_iterations=1,
            )
        return loop[1]

    def _step(self, step: Any) -> Any:
        batch = self._batches.draw(step)
        if not self._by_xla:
            return self._learn(*batch)
        is_rounded = self.precision == "bfloat16"
        with architectures.computed_in_bfloat16(self._model) if is_rounded else contextlib.nullcontext():
            return self._learn_compiled(*batch)

    def _learn(self, observations: Any, targets: dict[str, Any], weights: dict[str, Any]) -> Any:
        tf, model = architectures.tensorflow(), self._model
        with tf.GradientTape() as tape:
            outputs = model(observations, training=True)
            crosses = tf.nn.softmax_cross_entropy_with_logits(targets["policy"], outputs["policy"])
            policy = tf.reduce_mean(weights["policy"] * crosses)
            squares = tf.reduce_mean(tf.square(outputs["value"] - targets["value"]), axis=1)
            value = tf.reduce_mean(weights["value"] * squares)
            loss = tf.add_n([self._batches.options.policy_loss_weight * policy, value, *model.losses])
        variables = model.trainable_variables
        model.optimizer.apply(tape.gradient(loss, [variable.value for variable in variables]), variables)
        return tf.stack([loss, policy, value])

    def _exchange_averages(self) -> None:
        # Between trainings the model's weights are the averages, and the optimizer keeps those that training goes on
        # from. Before the first step there are no averages.
        if self._model.optimizer.use_ema and current_step(self._model) > 0:
            self._swap()

    def _swap_averages(self) -> None:
        tf, optimizer = architectures.tensorflow(), self._model.optimizer
        weights = self._model.trainable_variables
        averages = optimizer._model_variables_moving_average
        before = [tf.identity(each.value) for each in (*weights, *averages)]
        for variable, other in zip((*averages, *weights), before, strict=True):
            variable.assign(other)


_NAMES = ("loss", "policy_loss", "value_loss")
_TAGS = tuple(f"training/{name}" for name in _NAMES)


@contextlib.contextmanager
def _computing_in(precision: TrainingPrecision) -> Iterator[None]:
    # Functions called inside the block compute convolutions and products in this precision; weights, sums and losses
    # stay in float32. The option is TensorFlow's, for the whole process: other functions must not find it set.
    optimizer = architectures.tensorflow().config.optimizer
    optimizer.set_experimental_options({"auto_mixed_precision_onednn_bfloat16": precision == "bfloat16"})
    try:
        yield
    finally:
        optimizer.set_experimental_options({"auto_mixed_precision_onednn_bfloat16": False})


@contextlib.contextmanager
def _activations_of_training(model: Any) -> Iterator[None]:
    # Functions traced inside the block compute the same activations, but with other gradients, or faster.
    import keras

    plain = {layer: layer.activation for layer in model.layers if hasattr(layer, "activation")}
    for layer, activation in plain.items():
        if activation is keras.activations.silu:
            layer.activation = _fused_silu()
        elif activation is keras.activations.tanh and layer.name == "value":
            layer.activation = _saturation_proof_tanh()
    try:
        yield
    finally:
        for layer, activation in plain.items():
            layer.activation = activation


def _saturation_proof_tanh() -> Callable[[Any], Any]:
    # The input of the tanh that gives the value v learns by the gradient v - z, that of the cross-entropy of
    # (1 + z) / 2 by (1 + v) / 2. The gradient of the squared error, 2·(v - z)·(1 - v²), would vanish where |v| is 1,
    # and a value that the first steps drive there in all positions would never recover. Values by another
    # activation keep it.
    tf = architectures.tensorflow()

    @tf.custom_gradient
    def tanh(logits: Any) -> tuple[Any, Callable[[Any], Any]]:
        return tf.tanh(logits), lambda gradient: 0.5 * gradient

    return tanh


@functools.cache
def _fused_silu() -> Callable[[Any], Any]:
    # SiLU and its gradient, each in one pass over memory, by XLA: TensorFlow's operations take several.
    tf = architectures.tensorflow()
    fused = functools.partial(tf.function, autograph=False, jit_compile=True)

    @fused
    def forward(inputs: Any) -> Any:
        return inputs * tf.sigmoid(inputs)

    @fused
    def backward(inputs: Any, gradient: Any) -> Any:
        sigmoid = tf.sigmoid(inputs)
        return gradient * sigmoid * (1 + inputs * (1 - sigmoid))

    @tf.custom_gradient
    def silu(inputs: Any) -> tuple[Any, Callable[[Any], Any]]:
        return forward(inputs), lambda gradient: backward(inputs, gradient)

    return silu


def current_step(model: Any) -> int:
    """Return the number of batches that a Keras model has been trained on."""
    return int(model.optimizer.iterations.numpy())
