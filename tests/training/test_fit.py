"""Training: losses against an oracle, batches that depend only on seed and step, resuming, the window, figures."""

import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from event_files import shown
from one_of_each import first_of

from seraphim.errors import SettingsError
from seraphim.game import Array, Symmetries
from seraphim.network import architectures, saved_model
from seraphim.network.muon import muon
from seraphim.options import Activation, NetworkOptions, Optimizer, TrainingOptions
from seraphim.records.examples import Positions
from seraphim.records.sparse import SparseRows, from_dense
from seraphim.tracking.tensorboard import ScalarLog
from seraphim.training import fit
from seraphim.training.averaging import averaged
from seraphim.training.fit import Batches, Losses, TrainingSteps, count_steps, window_size
from tictactoe.game import GAME

MLP = NetworkOptions("mlp", depth=2, width=16, value_width=8)
RESNET = NetworkOptions("resnet", blocks=1, filters=8, value_width=8)
KINDS = pytest.mark.parametrize("network", [MLP, RESNET], ids=["mlp", "resnet"])
# The examples as they are, in float32, by a constant learning rate.
PLAIN = TrainingOptions(precision="float32", root_value_share=0.0, average_positions=False, learning_rate_decay_steps=0)
OPTIONS = replace(PLAIN, batch_size=32, learning_rate=1e-3)
STEPS = 4
IDENTITY = Symmetries(*(rows[:1] for rows in GAME.symmetries()))


def batches(symmetries: Symmetries, options: TrainingOptions = OPTIONS, seed: int = 0) -> Batches:
    return Batches(GAME.observation_shape, symmetries, options, seed)


def drawn_from(positions: Positions, source: Batches, first: int = 0, steps: int = STEPS) -> list[Any]:
    tf = architectures.tensorflow()
    draw = tf.function(source.draw, autograph=False)  # in a graph, as training does
    with source.of(positions):
        return [draw(tf.constant(step, tf.int64)) for step in range(first, first + steps)]


def train(model: Any, positions: Positions, source: Batches, steps: int = STEPS, **options: Any) -> Losses:
    return TrainingSteps(model, source).train(positions, steps, quiet=True, **options)


def to_positions(observations: Array, policies: Array, values: Array, value_weights: Array | None = None) -> Positions:
    weights = np.ones(len(values), np.float32) if value_weights is None else value_weights
    given = {"observations": observations, "policies": policies, "values": values, "value_weights": weights}
    return Positions(*(given.get(name, np.ones(len(values), np.float32)) for name in Positions._fields))


def random_positions(count: int, seed: int = 0) -> Positions:
    rng = np.random.default_rng(seed)
    return to_positions(
        rng.integers(0, 2, (count, 3, 3, 2)).astype(np.uint8),
        rng.dirichlet(np.ones(9), count).astype(np.float32),
        rng.choice([-1.0, 0.0, 1.0], count).astype(np.float32),
    )


def with_many_actions(positions: Positions, num_actions: int = 1000) -> tuple[Positions, Positions]:
    """The positions with policies over many actions, dense and sparse; some are 0 although the action is legal."""
    rng = np.random.default_rng(0)
    legal = rng.random((len(positions.values), num_actions)) < 0.01
    policies = (rng.random(legal.shape) * (legal & (rng.random(legal.shape) < 0.7))).astype(np.float32)
    return positions._replace(policies=policies), positions._replace(policies=from_dense(policies, legal))


def prepared(network: NetworkOptions = MLP, options: TrainingOptions = OPTIONS) -> Any:
    model = architectures.build(GAME, network, seed=0)
    fit.prepare(model, options)
    return model


def variables(model: Any) -> dict[str, Array]:
    """Return the weights, and the optimizer's slots and step."""
    return {variable.path: variable.numpy() for variable in (*model.weights, *model.optimizer.variables)}


def assert_equal_bits(left: Any, right: Any) -> None:
    before, after = variables(left), variables(right)
    assert before.keys() == after.keys()
    for path in before:
        np.testing.assert_array_equal(before[path], after[path], err_msg=path)


def test_losses_are_cross_entropy_squared_error_and_penalty() -> None:
    # All positions are the same, so every batch is; one has a weight of 0 for its value.
    one = random_positions(1)
    positions = Positions(*(np.repeat(array, 8, axis=0) for array in one))
    options = replace(PLAIN, batch_size=16)
    model = prepared(options=options)
    outputs = model(one.observations)
    logits = outputs["policy"].numpy()[0].astype(np.float64)
    squares = sum(float((weight.numpy() ** 2).sum()) for weight in model.weights if weight.path.endswith("kernel"))
    policy = -(one.policies[0] * (logits - np.log(np.exp(logits).sum()))).sum()
    value = (outputs["value"].numpy()[0, 0] - one.values[0]) ** 2

    losses = train(model, positions, batches(IDENTITY, options), steps=1)
    assert losses.policy == pytest.approx(policy, rel=1e-5)
    assert losses.value == pytest.approx(value, rel=1e-5)
    assert losses.total == pytest.approx(policy + value + MLP.l2 * squares, rel=1e-5)


def test_a_value_that_is_one_everywhere_still_learns() -> None:
    # tanh(12) is 1 in float32, and its own gradient 0.
    positions = random_positions(64)._replace(values=-np.ones(64, np.float32))
    options = replace(PLAIN, batch_size=64, learning_rate=0.1)
    model = prepared(MLP, options)
    model.get_layer("value").bias.assign([12.0])
    assert (model(positions.observations)["value"].numpy() > 0.999).all()
    train(model, positions, batches(IDENTITY, options), steps=100)
    assert (model(positions.observations)["value"].numpy() < -0.9).all()


def test_positions_of_games_that_were_cut_off_do_not_train_the_value() -> None:
    some = random_positions(64)
    cut_off = some._replace(value_weights=np.zeros(64, np.float32))
    # The mean of equal weights would be rounded.
    model = prepared(NetworkOptions("mlp", depth=1, width=8, l2=0.0), replace(OPTIONS, average_decay=0))
    before = variables(model)
    losses = train(model, cut_off, batches(IDENTITY))
    after = variables(model)
    assert losses.value == 0
    for path in ("value/kernel", "value_hidden/kernel"):
        np.testing.assert_array_equal(before[path], after[path])
    assert (before["policy/kernel"] != after["policy/kernel"]).any()


def test_network_fits_a_few_positions() -> None:
    positions = random_positions(8)
    options = replace(PLAIN, learning_rate=1e-2, batch_size=64)
    model = prepared(NetworkOptions("mlp", depth=2, width=64, l2=0.0), options)
    training = TrainingSteps(model, batches(IDENTITY, options))
    first, _, last = (training.train(positions, steps, quiet=True) for steps in (1, 400, 1))
    entropy = -(positions.policies * np.log(positions.policies)).sum(axis=1).mean()
    assert first.policy > entropy + 0.2
    assert last.policy == pytest.approx(entropy, abs=0.2)  # of those that happen to be in the batch
    assert last.value < 0.02 < first.value
    outputs = model(positions.observations, training=False)
    np.testing.assert_allclose(architectures.tensorflow().nn.softmax(outputs["policy"]), positions.policies, atol=0.05)


def test_symmetries_move_observation_and_policy_together() -> None:
    # X · ·    The policy plays where the only stone is: so it must in every batch, wherever the stone went.
    # · · ·    The second position has its stone in the middle of a side, and a value that tells it from the first.
    observations = np.zeros((2, 3, 3, 2), np.uint8)
    observations[0, 0, 0, 0] = observations[1, 0, 1, 1] = 1
    policies = np.eye(9, dtype=np.float32)[[0, 1]]
    positions = to_positions(observations, policies, np.array([1.0, -1.0], np.float32))
    cells: dict[float, set[int]] = {1.0: set(), -1.0: set()}
    for seen, targets, _ in drawn_from(positions, batches(GAME.symmetries())):
        stones = seen.numpy().reshape(-1, 9, 2)
        played = targets["policy"].numpy().argmax(axis=1)
        np.testing.assert_array_equal(stones.sum(axis=2).argmax(axis=1), played)
        for value, cell in zip(targets["value"].numpy()[:, 0], played, strict=True):
            cells[float(value)].add(int(cell))
        np.testing.assert_array_equal(stones.sum(axis=1).argmax(axis=1), np.where(targets["value"][:, 0] > 0, 0, 1))
    assert cells == {1.0: {0, 2, 6, 8}, -1.0: {1, 3, 5, 7}}


def test_no_positions_stay_in_memory_after_a_training() -> None:
    tf, source = architectures.tensorflow(), batches(IDENTITY)
    assert drawn_from(random_positions(10), source, steps=1)
    with pytest.raises(tf.errors.InvalidArgumentError):
        source.draw(tf.constant(0, tf.int64))


def test_batches_hold_the_positions_as_they_are_under_the_identity() -> None:
    positions = random_positions(50)
    weights = np.arange(50, dtype=np.float32)  # tells which position it is
    positions = positions._replace(value_weights=weights)
    drawn = set()
    for seen, targets, weight in drawn_from(positions, batches(IDENTITY)):
        rows = weight["value"].numpy().astype(int)
        drawn.update(rows.tolist())
        np.testing.assert_array_equal(seen, positions.observations[rows])
        np.testing.assert_array_equal(targets["policy"], positions.policies[rows])
        np.testing.assert_array_equal(targets["value"], positions.values[rows][:, None])
        np.testing.assert_array_equal(weight["policy"], np.ones(32))
    assert len(drawn) > 40  # of 50, in 128 draws


def test_batches_of_sparse_policies_hold_the_same_as_those_of_dense_ones() -> None:
    rng = np.random.default_rng(1)
    cells, _ = GAME.symmetries()
    symmetries = Symmetries(cells, np.array([rng.permutation(1000) for _ in cells], np.int32))
    dense, sparse = with_many_actions(random_positions(50)._replace(value_weights=np.arange(50, dtype=np.float32)))
    turned: set[int] = set()
    for _, targets, weights in drawn_from(sparse, batches(symmetries)):
        rows = weights["value"].numpy().astype(int)
        assert targets["policy"].shape == (32, 1000)
        for row, policy in zip(rows, targets["policy"].numpy(), strict=True):
            turns = [(dense.policies[row][actions] == policy).all() for actions in symmetries.actions]
            assert any(turns)
            turned.add(turns.index(True))
    assert len(turned) == len(cells)


def test_batches_depend_only_on_seed_and_step() -> None:
    positions = random_positions(500)

    def drawn(seed: int, first: int, steps: int) -> list[bytes]:
        options = replace(PLAIN, batch_size=8)
        found = drawn_from(positions, batches(GAME.symmetries(), options, seed), first, steps)
        return [targets["policy"].numpy().tobytes() for _, targets, _ in found]

    whole = drawn(seed=1, first=0, steps=6)
    assert len(set(whole)) == 6
    assert drawn(seed=1, first=0, steps=6) == whole
    assert drawn(seed=1, first=4, steps=2) == whole[4:]
    assert not set(drawn(seed=2, first=0, steps=6)) & set(whole)


@pytest.mark.parametrize(
    ("network", "optimizer", "average_decay", "decay"),
    first_of(2, [RESNET, MLP], ["muon", "adam", "sgd"], [0.9, 0.0], ["decay_steps", "cycle"]),
)
def test_training_that_was_saved_and_loaded_continues_as_if_never_stopped(
    network: NetworkOptions, optimizer: Optimizer, average_decay: float, decay: str, tmp_path: Path
) -> None:
    positions = random_positions(100)
    options = replace(OPTIONS, optimizer=optimizer, average_decay=average_decay, **{f"learning_rate_{decay}": 3})
    source = batches(GAME.symmetries(), options, seed=3)
    model = prepared(network, options)
    train(model, positions, source, steps=10)

    stopped = prepared(network, options)
    train(stopped, positions, source, steps=5)
    saved_model.save_snapshot(stopped, tmp_path / "snapshot")
    resumed = saved_model.load_model(tmp_path / "snapshot")
    fit.prepare(resumed, options)
    assert fit.current_step(resumed) == 5
    train(resumed, positions, source, steps=5)
    assert fit.current_step(resumed) == 10
    assert_equal_bits(model, resumed)


@pytest.mark.parametrize(("activation", "hidden"), [("tanh", "relu"), ("softsign", "relu"), ("tanh", "silu")])
def test_sgd_follows_the_gradient_with_momentum(activation: str, hidden: Activation) -> None:
    one = random_positions(1)  # the same in every batch
    positions = Positions(*(np.repeat(array, 8, axis=0) for array in one))
    options = replace(PLAIN, optimizer="sgd", learning_rate=0.1, average_decay=0, batch_size=8)
    network = NetworkOptions("mlp", depth=1, width=8, activation=hidden, l2=0.0)
    model, tf = prepared(network, options), architectures.tensorflow()
    model.get_layer("value").activation = getattr(tf.keras.activations, activation)
    step = dict.fromkeys(variables(model), 0.0)
    training = TrainingSteps(model, batches(IDENTITY, options))
    for _ in range(3):
        before = variables(model)
        with tf.GradientTape() as tape:
            outputs = model(one.observations, training=True)
            crosses = tf.nn.softmax_cross_entropy_with_logits(one.policies, outputs["policy"])
            value, result = outputs["value"][0, 0], one.values[0]
            if activation == "tanh":
                wins, won = (1 + value) / 2, (1 + result) / 2  # as probabilities
                loss = crosses[0] - won * tf.math.log(wins) - (1 - won) * tf.math.log(1 - wins)
            else:
                loss = crosses[0] + (value - result) ** 2
        weights = model.trainable_variables
        gradients = tape.gradient(loss, [weight.value for weight in weights])
        training.train(positions, 1, quiet=True)
        for weight, gradient in zip(weights, gradients, strict=True):
            step[weight.path] = 0.9 * step[weight.path] - 0.1 * gradient.numpy()
            np.testing.assert_allclose(weight.numpy(), before[weight.path] + step[weight.path], atol=1e-5)


def test_muon_steps_along_the_nearest_orthogonal_matrix_from_patches_to_filters() -> None:
    # The kernels of a convolution and of a dense layer, by a singular value decomposition. Keras's iteration leaves
    # the singular values between 0.7 and 1.2.
    tf = architectures.tensorflow()
    rng = np.random.default_rng(0)
    kernels = [tf.keras.Variable(np.zeros(shape, np.float32)) for shape in ((3, 3, 4, 8), (24, 16))]
    optimizer = muon()(0.01)
    optimizer.build(kernels)
    gradients = [rng.normal(size=kernel.shape).astype(np.float32) for kernel in kernels]
    optimizer.apply([tf.constant(gradient) for gradient in gradients], kernels)
    for kernel, gradient in zip(kernels, gradients, strict=True):
        matrix = gradient.reshape(-1, gradient.shape[-1])
        left, _, right = np.linalg.svd(matrix, full_matrices=False)
        step = -kernel.numpy().reshape(matrix.shape) / (0.01 * 0.2 * np.sqrt(max(matrix.shape)))
        singular = np.diag(left.T @ step @ right.T)
        np.testing.assert_allclose(left.T @ step @ right.T, np.diag(singular), atol=1e-3)
        assert ((singular > 0.6) & (singular < 1.3)).all()


def test_biases_and_the_last_layers_of_both_heads_learn_by_adam() -> None:
    model = prepared(RESNET, replace(OPTIONS, optimizer="muon"))
    by_adam = {
        variable.path.split("/", 1)[1].removesuffix("_velocity").replace("_", "/")
        for variable in model.optimizer.variables
        if "velocity" in variable.path
    }
    others = {weight.path.replace("_", "/") for weight in model.trainable_variables} - by_adam
    assert others == {
        f"{layer}/kernel" for layer in ("stem", "block/0/a", "block/0/b", "policy/conv", "value/conv", "value/hidden")
    }


def test_the_mean_of_the_weights_plays_and_training_goes_on_from_the_last() -> None:
    positions, decay = random_positions(100), 0.7
    changed = 3  # the step before which the decay is changed
    plain, averaged_weights = (replace(OPTIONS, average_decay=each) for each in (0.0, decay))
    last, mean = prepared(MLP, plain), prepared(MLP, averaged_weights)
    expected = dict[str, Any]()
    trainings = [TrainingSteps(model, batches(IDENTITY, plain)) for model in (last, mean)]
    for step in range(6):
        if step == changed:
            decay = 0.4
            fit.prepare(mean, replace(OPTIONS, average_decay=decay))
            trainings[1] = TrainingSteps(mean, batches(IDENTITY, plain))
        for training in trainings:
            training.train(positions, 1, quiet=True)
        for weight in last.trainable_variables:
            before = expected.get(weight.path, weight.numpy())
            expected[weight.path] = decay * before + (1 - decay) * weight.numpy() if step else weight.numpy()
    for weight in mean.trainable_variables:
        np.testing.assert_allclose(weight.numpy(), expected[weight.path], atol=1e-6)


def test_the_averages_of_batch_normalization_follow_the_batches_of_training() -> None:
    model = prepared(replace(RESNET, normalization="batch"))
    before = {weight.path: weight.numpy() for weight in model.weights if "moving" in weight.path}
    train(model, random_positions(32), batches(IDENTITY), steps=1)
    after = {weight.path: weight.numpy() for weight in model.weights if weight.path in before}
    assert before
    for path, values in after.items():  # by a share of what the batch has, which differs from 0 and 1
        assert (values != before[path]).any(), path


def test_steps_follow_from_the_new_positions() -> None:
    options = replace(PLAIN, batch_size=100, samples_per_position=4)
    assert [count_steps(new, options) for new in (1, 100, 1000, 1010)] == [1, 4, 40, 40]


def test_the_learning_rate_falls_with_the_steps() -> None:
    options = replace(PLAIN, learning_rate=0.5, batch_size=8, learning_rate_decay_steps=2)
    model = prepared(MLP, options)
    sizes = [float(model.optimizer.learning_rate)]
    training = TrainingSteps(model, batches(IDENTITY, options))
    for _ in range(2):
        training.train(random_positions(10), 3, quiet=True)
        sizes.append(float(model.optimizer.learning_rate))
    np.testing.assert_allclose(sizes, [0.5, 0.5 / 2.5, 0.5 / 4], rtol=1e-6)


def test_the_learning_rate_begins_anew_after_each_cycle() -> None:
    options = replace(PLAIN, learning_rate=0.5, batch_size=8, learning_rate_cycle=4, learning_rate_decay_steps=3)
    model = prepared(MLP, options)
    training, sizes = TrainingSteps(model, batches(IDENTITY, options)), [float(model.optimizer.learning_rate)]
    for _ in range(9):
        training.train(random_positions(10), 1, quiet=True)
        sizes.append(float(model.optimizer.learning_rate))
    expected = [0.25 * (1 + np.cos(np.pi * (step % 4) / 4)) for step in range(10)]
    np.testing.assert_allclose(sizes, expected, rtol=1e-6)


def test_changed_learning_rate_counts_for_a_loaded_model(tmp_path: Path) -> None:
    saved_model.save_snapshot(prepared(), tmp_path / "snapshot")
    model = saved_model.load_model(tmp_path / "snapshot")
    options = replace(PLAIN, batch_size=32, learning_rate=1e-20)
    fit.prepare(model, options)
    before = variables(model)
    train(model, random_positions(10), batches(IDENTITY, options), steps=1)
    np.testing.assert_array_equal(before["policy/kernel"], variables(model)["policy/kernel"])


@pytest.mark.parametrize("changed", [{"optimizer": "adam"}, {"average_decay": 0.0}])
def test_a_loaded_model_is_not_trained_by_another_optimizer(changed: dict[str, Any], tmp_path: Path) -> None:
    saved_model.save_snapshot(prepared(), tmp_path / "snapshot")
    model, options = saved_model.load_model(tmp_path / "snapshot"), replace(OPTIONS, **changed)
    with pytest.raises(SettingsError, match="made with optimizer muon and with averages"):
        fit.prepare(model, options)
    fit.prepare(model, OPTIONS)


def test_bfloat16_is_for_the_training_alone() -> None:
    # Products of float32 numbers that bfloat16 does not hold.
    options = replace(OPTIONS, precision="bfloat16", average_decay=0)
    model, exact = prepared(MLP, options), prepared(MLP, replace(options, precision="float32"))
    for each, precision in ((model, options), (exact, replace(options, precision="float32"))):
        train(each, random_positions(100), batches(IDENTITY, precision))
    tf = architectures.tensorflow()
    trained = [each.get_layer("policy").kernel.numpy() for each in (model, exact)]
    assert np.abs(trained[0] - trained[1]).max() < 0.05  # not always 0: only where the processor has bfloat16
    factors = np.random.default_rng(0).normal(size=(2, 64, 64)).astype(np.float32)
    product = tf.function(lambda left, right: tf.nn.relu(tf.matmul(left, right)))(*factors).numpy()
    np.testing.assert_allclose(product, np.maximum(factors[0] @ factors[1], 0), atol=1e-4)


def test_training_on_another_window_traces_nothing_again() -> None:
    training = TrainingSteps(prepared(), batches(GAME.symmetries()))
    for count in (100, 50, 150, 1):
        training.train(random_positions(count), STEPS, quiet=True)
        assert training.run.experimental_get_tracing_count() == 1


def test_a_training_leaves_no_reference_cycles() -> None:
    # Reference cycles are freed late in a program with a million objects.
    training = TrainingSteps(prepared(), batches(GAME.symmetries()))
    training.train(random_positions(100), STEPS, quiet=True)
    gc.collect()
    gc.disable()
    try:
        for count in (50, 150, 1):
            training.train(random_positions(count), STEPS, quiet=True)
        assert gc.collect() < 100
    finally:
        gc.enable()


@pytest.mark.slow
def test_memory_is_flat_over_many_trainings_and_snapshots(tmp_path: Path) -> None:
    model, positions = prepared(replace(MLP, activation="relu")), random_positions(100)
    training = TrainingSteps(model, batches(GAME.symmetries()))

    def generation() -> None:
        training.train(positions, STEPS, quiet=True)
        saved_model.save_snapshot(model, tmp_path / "snapshot")
        saved_model.load_model(tmp_path / "snapshot")

    def megabytes() -> float:
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6

    for _ in range(10):
        generation()
    before = megabytes()
    for _ in range(25):
        generation()
    assert megabytes() - before < 25


def test_progress_bar_is_shown_unless_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    training = TrainingSteps(prepared(), batches(IDENTITY))
    training.train(random_positions(10), STEPS, quiet=True)
    assert capfd.readouterr() == ("", "")
    training.train(random_positions(10), STEPS)
    printed = capfd.readouterr()
    assert "4/4" in printed.out
    assert "policy_loss" in printed.out
    assert printed.err == ""


def test_losses_are_logged_at_the_steps_of_all_trainings(tmp_path: Path) -> None:
    log, model, positions = ScalarLog(tmp_path), prepared(), random_positions(100)
    training = TrainingSteps(model, batches(IDENTITY, replace(PLAIN, batch_size=4)))
    means = [training.train(positions, 250, log, quiet=True) for _ in range(2)]
    points = shown(tmp_path)["training/policy_loss"]
    assert [step for step, _ in points] == [100, 200, 250, 350, 450, 500]
    values = [value for _, value in points]
    # Each point is the mean over the steps since the previous one, so the points average to the means of the training.
    for part, mean in ((values[:3], means[0]), (values[3:], means[1])):
        assert np.average(part, weights=[100, 100, 50]) == pytest.approx(mean.policy, rel=1e-4)
    assert shown(tmp_path).keys() == {"training/loss", "training/policy_loss", "training/value_loss"}


def test_window_holds_everything_up_to_its_start_size() -> None:
    options = replace(PLAIN, window_start=1000)
    assert [window_size(generated, options) for generated in (0, 1, 999, 1000)] == [1000] * 4


def test_window_grows_at_the_rate_of_the_power_law() -> None:
    # dN/dT = β (T/c)^(α-1): integrate that from the start, step by step.
    options = replace(PLAIN, window_start=1000)
    generated = np.arange(1000, 100_000) + 0.5
    expected = 1000 + (0.4 * (generated / 1000) ** (0.75 - 1)).sum()
    assert window_size(100_000, options) == pytest.approx(expected, abs=2)


def test_window_grows_slower_than_the_game_data_up_to_its_maximum() -> None:
    options = replace(PLAIN, window_start=1000, max_window=1500)
    sizes = [window_size(generated, options) for generated in range(0, 20_000, 100)]
    assert sizes == sorted(sizes)
    assert sizes[-1] == 1500
    assert all(size <= max(1000, generated) for size, generated in zip(sizes, range(0, 20_000, 100), strict=True))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("learning_rate", 0.0),
        ("optimizer", "adagrad"),
        ("batch_size", 0),
        ("steps", -1),
        ("samples_per_position", 0.0),
        ("max_snapshots", 0),
    ],
)
def test_options_out_of_range_are_refused(name: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=f"^{name} must be .*, not {value!r}$"):
        TrainingOptions(**{name: value})


def test_the_value_learns_a_mixture_of_outcome_and_search() -> None:
    some = random_positions(50)._replace(root_values=np.linspace(-1, 1, 50).astype(np.float32))
    for share in (0.0, 0.3, 1.0):
        options = replace(PLAIN, batch_size=64, root_value_share=share)
        (batch,) = drawn_from(some, batches(IDENTITY, options), steps=1)
        seen, targets = batch[0].numpy(), batch[1]["value"].numpy()[:, 0]
        expected = (1 - share) * some.values + share * some.root_values
        for row in range(64):
            equal = (some.observations == seen[row]).all(axis=(1, 2, 3))
            assert min(abs(expected[equal] - targets[row])) < 1e-6


def test_equal_positions_are_merged_with_mean_targets_and_a_larger_weight() -> None:
    some = random_positions(6)
    states = np.array([[1, 0], [2, 0], [1, 0], [1, 0], [3, 5], [1, 0]])
    some = some._replace(
        states=states,
        root_values=np.arange(6, dtype=np.float32),
        policy_weights=np.array([1, 1, 0, 1, 0, 1], np.float32),
        value_weights=np.array([1, 1, 1, 1, 0, 0], np.float32),
    )
    one = averaged(some)
    assert one.states.tolist() == [[1, 0], [2, 0], [3, 5]]
    equal = [0, 2, 3, 5]
    assert one.root_values.tolist() == [np.mean(equal), 1, 4]
    assert one.policies[0] == pytest.approx(some.policies[[0, 3, 5]].mean(axis=0))  # those with a policy weight
    assert one.values[0] == pytest.approx(some.values[[0, 2, 3]].mean())  # those with a value weight
    assert one.policies[1].tolist() == some.policies[1].tolist()
    assert one.policy_weights == pytest.approx([3 / 4 * 3, 1, 0])  # 1 + log2(4) times the mean
    assert one.value_weights == pytest.approx([3 / 4 * 3, 1, 0])
    assert one.observations.tolist() == some.observations[[0, 1, 4]].tolist()


def test_sparse_policies_are_averaged_like_dense_ones() -> None:
    rng = np.random.default_rng(2)
    some = random_positions(60)._replace(
        states=rng.integers(0, 20, (60, 1)), policy_weights=rng.choice([0.0, 0.5, 1.0], 60).astype(np.float32)
    )
    dense, sparse = map(averaged, with_many_actions(some))
    assert isinstance(sparse.policies, SparseRows)
    np.testing.assert_allclose(sparse.policies.dense(), dense.policies, rtol=1e-6)
    for name in ("values", "policy_weights", "value_weights", "states"):
        np.testing.assert_array_equal(getattr(sparse, name), getattr(dense, name))


def test_distinct_positions_are_unchanged() -> None:
    some = random_positions(40)._replace(states=np.stack([np.arange(40), np.zeros(40, np.int64)], axis=1))
    for before, after in zip(some, averaged(some), strict=True):
        np.testing.assert_allclose(before, after, rtol=1e-6)


@pytest.mark.parametrize("network", [MLP, pytest.param(RESNET, marks=pytest.mark.slow)], ids=["mlp", "resnet"])
def test_a_processor_without_bfloat16_computes_in_float32(
    network: NetworkOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit, "has_bfloat16", lambda: False)
    positions, models = random_positions(64), []
    for precision in ("float32", "bfloat16"):
        options = replace(PLAIN, batch_size=64, precision=precision)  # type: ignore[arg-type]
        models.append(prepared(network, options))
        training = TrainingSteps(models[-1], batches(IDENTITY, options), by_xla=False)
        assert training.precision == "float32"
        training.train(positions, STEPS, quiet=True)
    assert_equal_bits(*models)


@pytest.mark.parametrize("has_it", [True, False])
def test_a_training_tells_the_precision_that_it_computes_in(has_it: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "has_bfloat16", lambda: has_it)
    for precision in ("float32", "bfloat16"):
        options = replace(PLAIN, precision=precision)  # type: ignore[arg-type]
        source = batches(IDENTITY, options)
        assert TrainingSteps(prepared(), source, by_xla=False).precision == (precision if has_it else "float32")
        assert TrainingSteps(prepared(), source, by_xla=True).precision == precision


@pytest.mark.slow
def test_bfloat16_learns_what_float32_learns() -> None:
    positions = random_positions(64)
    losses = []
    for precision in ("float32", "bfloat16"):
        options = replace(PLAIN, batch_size=64, steps=60, precision=precision)  # type: ignore[arg-type]
        model = prepared(replace(RESNET, activation="relu"), options)
        losses.append([train(model, positions, batches(IDENTITY, options)).total for _ in range(2)])
        assert all(weight.dtype == "float32" for weight in model.weights)
    assert losses[1] == pytest.approx(losses[0], rel=0.05)
    assert losses[1][1] < 0.9 * losses[1][0]


@pytest.mark.parametrize(
    ("network", "precision"),
    first_of(1, [MLP, replace(RESNET, activation="silu"), RESNET], ["float32", "bfloat16"]),
)
def test_what_xla_compiles_learns_what_tensorflow_alone_does(network: NetworkOptions, precision: Any) -> None:
    positions = random_positions(64)
    losses, weights = [], []
    for by_xla in (False, True):
        options = replace(PLAIN, batch_size=64, learning_rate=1e-3, precision=precision if by_xla else "float32")
        model = prepared(network, options)
        config = model.get_config()
        training = TrainingSteps(model, batches(GAME.symmetries(), options), by_xla)
        losses.append(training.train(positions, STEPS, quiet=True))
        weights.append(np.concatenate([weight.numpy().ravel() for weight in model.weights]))
        assert all(weight.dtype == "float32" for weight in model.weights)
        assert model.get_config() == config
    tolerance = 1e-4 if precision == "float32" else 1e-2
    assert losses[1] == pytest.approx(losses[0], rel=tolerance)
    assert weights[1] == pytest.approx(weights[0], abs=tolerance)
    assert precision == "float32" or losses[1] != losses[0]
