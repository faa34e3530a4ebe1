"""The runtime `jax`: it computes what the processor's runtimes do, and says which networks it does not know."""

import functools
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from reference import random_states

from connectfour.game import GAME as CONNECT_FOUR
from seraphim.errors import ModelError, NotInstalledError, SettingsError
from seraphim.game import Array, Game
from seraphim.inference import jax, load_inference
from seraphim.inference.interface import FIXED_SIZES, fixed_size
from seraphim.network.architectures import build
from seraphim.network.saved_model import ARCHIVE, save_snapshot
from seraphim.options import NetworkOptions, SearchOptions, SelfPlayOptions
from seraphim.selfplay.games import SelfPlay
from seraphim.storage.models import ModelFolder
from tictactoe.game import GAME

ROOT = Path(__file__).parents[2]
NETWORKS = {
    "mlp": NetworkOptions("mlp", depth=2, width=16, value_width=8),
    "leaky mlp": NetworkOptions("mlp", depth=1, width=16, value_width=8, activation="leaky_relu"),
    "resnet": NetworkOptions("resnet", blocks=2, filters=16, value_width=8),
    "resnet with silu": NetworkOptions("resnet", blocks=1, filters=16, value_width=8, activation="silu"),
    "resnet with batch norm": NetworkOptions("resnet", blocks=2, filters=16, value_width=8, normalization="batch"),
}


def scattered(model: Any) -> Any:
    """The model with random biases, batch norms and zero weights, which are the same everywhere in a new one."""
    generator = np.random.default_rng(0)
    for weight in model.weights:
        if np.ptp(weight.numpy()) == 0:
            least, most = (0.8, 1.2) if weight.numpy().any() else (-0.1, 0.1)
            weight.assign(generator.uniform(least, most, weight.shape))
    return model


# Together the others have all kinds of layers.
RARE = [pytest.param(name, marks=pytest.mark.slow) for name in ("mlp", "resnet")]
COMMON = [name for name in NETWORKS if name not in ("mlp", "resnet")]
# For tests of what no kind of layer decides.
ONE_OF_THEM = pytest.mark.parametrize(
    "snapshot",
    ["resnet with batch norm", *(pytest.param(name, marks=pytest.mark.slow) for name in list(NETWORKS)[:-1])],
    indirect=True,
)


@pytest.fixture(scope="module", params=[*COMMON, *RARE])
def snapshot(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot of a network of each kind that Seraphim builds.

    The seed is one whose outputs are small: bfloat16 rounds in proportion to what it adds up, and a test allows 0.01.
    """
    path = tmp_path_factory.mktemp("snapshots") / "snapshot"
    save_snapshot(scattered(build(CONNECT_FOUR, NETWORKS[request.param], seed=2)), path)
    return path


def observations(game: Game, number: int) -> Array:
    return game.observe(random_states(game, number, seed=1))


def test_it_equals_openvino_in_float32(snapshot: Path) -> None:
    seen = observations(CONNECT_FOUR, 100)
    expected = load_inference(snapshot, CONNECT_FOUR, "openvino", "float32").infer(seen)
    found = load_inference(snapshot, CONNECT_FOUR, "jax", "float32").infer(seen)
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.dtype, ours.shape) == (np.float32, theirs.shape)
        assert ours == pytest.approx(theirs, abs=1e-5)


def test_it_is_close_to_that_in_bfloat16(snapshot: Path) -> None:
    seen = observations(CONNECT_FOUR, 100)
    expected = load_inference(snapshot, CONNECT_FOUR, "openvino", "float32").infer(seen)
    model = load_inference(snapshot, CONNECT_FOUR, "jax", "bfloat16")
    assert "JAX" in model.description and "bfloat16" in model.description
    assert_close(model.infer(seen), expected)


def probabilities(logits: Array) -> Array:
    weights: Array = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def assert_close(found: tuple[Array, Array], expected: tuple[Array, Array]) -> None:
    """Logits by their largest, probabilities and values differ by at most 0.01, but they differ."""
    assert not np.array_equal(found[0], expected[0])
    assert found[0] == pytest.approx(expected[0], abs=1e-2 * float(np.abs(expected[0]).max()))
    assert probabilities(found[0]) == pytest.approx(probabilities(expected[0]), abs=1e-2)
    assert found[1] == pytest.approx(expected[1], abs=1e-2)


@ONE_OF_THEM
def test_it_plays_the_same_games_in_float32(snapshot: Path) -> None:
    def games(runtime: Any) -> list[tuple[str, list[int]]]:
        inference = load_inference(snapshot, CONNECT_FOUR, runtime, "float32")
        player = SelfPlay(
            CONNECT_FOUR,
            inference,
            SearchOptions(readouts=20, solver=False),
            SelfPlayOptions(8, random_plies=0),
            "same",
        )
        return sorted((game.game_id, game.actions.tolist()) for game in islice(player.play(iter(range(8))), 8))

    assert games("jax") == games("openvino")


@ONE_OF_THEM
def test_champions_of_a_model_share_their_programs(snapshot: Path) -> None:
    first, second = (load_inference(snapshot, CONNECT_FOUR, "jax") for _ in range(2))
    for model in (first, second):
        model.infer(observations(CONNECT_FOUR, 3))
    assert first._network == second._network
    assert hash(first._network) == hash(second._network)


@pytest.mark.parametrize("runtime", ["jax", "tensorflow"])
def test_threads_may_share_a_model(folder: ModelFolder, runtime: Any) -> None:
    model = load_inference(folder.champion().path, GAME, runtime)
    seen = observations(GAME, 200)
    parts = [seen[start : start + 40] for start in range(0, 200, 10)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(model.infer, parts))
    for part, found in zip(parts, together, strict=True):
        for ours, alone in zip(found, model.infer(part), strict=True):
            assert ours == pytest.approx(alone, abs=1e-6)


def test_batches_are_of_few_sizes() -> None:
    sizes = [fixed_size(number) for number in range(1, FIXED_SIZES[-1] + 1)]
    assert all(size >= number for number, size in enumerate(sizes, 1))
    assert sorted(set(sizes)) == list(FIXED_SIZES)


@pytest.fixture
def without_others(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a process that cannot import TensorFlow, Keras, OpenVINO and LiteRT."""
    names = ("tensorflow", "keras", "openvino", "ai_edge_litert")
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules.update(dict.fromkeys({names}))\n")
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}


COMPUTE = """
import sys, numpy as np
from connectfour.game import GAME
from pathlib import Path
from seraphim.inference import load_inference
folder, snapshot = map(Path, sys.argv[1:])
seen = np.load(folder / "seen.npy")
for precision in ("float32", "bfloat16"):
    logits, values = load_inference(snapshot, GAME, "jax", precision).infer(seen)
    np.savez(folder / precision, logits=logits, values=values)
"""


@ONE_OF_THEM
def test_it_needs_no_other_runtime(snapshot: Path, tmp_path: Path, without_others: dict[str, str]) -> None:
    seen = observations(CONNECT_FOUR, 100)
    np.save(tmp_path / "seen.npy", seen)
    subprocess.run([sys.executable, "-c", COMPUTE, tmp_path, snapshot], env=without_others, check=True)
    expected = load_inference(snapshot, CONNECT_FOUR, "openvino", "float32").infer(seen)
    found = {each: np.load(tmp_path / f"{each}.npz") for each in ("float32", "bfloat16")}
    exact, rounded = ((each["logits"], each["values"]) for each in found.values())
    assert exact[0] == pytest.approx(expected[0], abs=1e-4)
    assert probabilities(exact[0]) == pytest.approx(probabilities(expected[0]), abs=1e-5)
    assert exact[1] == pytest.approx(expected[1], abs=1e-5)
    assert_close(rounded, expected)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("generate_games.py fresh --games=4 --workers=1", marks=pytest.mark.slow),
        "arena.py fresh random --games=2",
    ],
)
def test_programs_need_no_other_runtime(command: str, root: Path, without_others: dict[str, str]) -> None:
    program, *arguments = command.split()
    done = subprocess.run(
        [sys.executable, ROOT / "bin" / program, *arguments, "--runtime=jax"],
        env=without_others | {"SERAPHIM_DATA": str(root)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def other_model(layer: Any) -> Any:
    """A network for tic-tac-toe with a hidden layer of the caller's choice."""
    import keras

    observation = keras.Input(GAME.observation_shape, dtype="uint8", name="observation")
    hidden = keras.layers.Flatten()(layer(keras.layers.Rescaling(1.0)(observation)))
    dense = keras.layers.Dense
    outputs = {"policy": dense(9, name="policy")(hidden), "value": dense(1, "tanh", name="value")(hidden)}
    return keras.Model(observation, outputs)


def twice(layer: Any) -> Any:
    return lambda tensor: layer(layer(tensor))


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (lambda layers: layers.MaxPooling2D(name="odd"), "'odd' is a MaxPooling2D: choose --runtime=openvino"),
        (lambda layers: layers.Conv2D(4, 3, strides=2, name="odd"), r"'odd' is a Conv2D with strides=\(2, 2\)"),
        (lambda layers: layers.Conv2D(4, 3, activation="elu", name="odd"), "'odd' is a Conv2D with activation='elu'"),
        (lambda layers: layers.ReLU(6.0, name="odd"), "'odd' is a ReLU with max_value=6.0"),
        (lambda layers: twice(layers.Dense(2, name="odd")), "'odd' is used 2 times"),
    ],
)
def test_a_network_that_it_does_not_know_is_reported(tmp_path: Path, layer: Any, message: str) -> None:
    import keras

    save_snapshot(other_model(layer(keras.layers)), tmp_path / "snapshot")
    with pytest.raises(SettingsError, match=f"JAX cannot run .*, because its layer {message}"):
        load_inference(tmp_path / "snapshot", GAME, "jax")


def test_a_snapshot_without_an_archive_is_reported(folder: ModelFolder) -> None:
    path = folder.champion().path
    (path / ARCHIVE).unlink()
    with pytest.raises(ModelError, match=r"assets.extra/model.keras is missing: choose another runtime"):
        load_inference(path, GAME, "jax")


def test_a_missing_package_is_reported(folder: ModelFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(NotInstalledError, match=r"jax needs the package jax: pip install -e '.\[gpu\]'"):
        load_inference(folder.champion().path, GAME, "jax")


def test_jax_on_the_processor_sees_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "gpu_is_likely", lambda: True)
    if jax._jax().default_backend() != "gpu":
        assert not jax.sees_gpu()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("small") / "snapshot"
    save_snapshot(scattered(build(GAME, NETWORKS["mlp"], seed=2)), path)
    return path


USED = """
import sys
from pathlib import Path
import numpy as np
from seraphim.errors import SeraphimError
from seraphim.game import load_game
from seraphim.inference import jax
game = load_game("tictactoe")
try:
    model = jax.JaxModel(Path(sys.argv[1]), game, "float32")
    print(*(np.round(output, 3).tolist() for output in model.infer(game.observe(game.initial(3)))))
except SeraphimError as error:
    print(type(error).__name__, error)
"""


RARE_VARIABLES = [
    *(("TRANSFER_GUARD", "disallow"), ("NUMPY_DTYPE_PROMOTION", "strict"), ("ENABLE_X64", "1")),
    *(("DISABLE_JIT", "1"), ("DEBUG_NANS", "1"), ("CHECK_TRACER_LEAKS", "1")),
]


@functools.cache
def used(snapshot: Path, variable: str = "SERAPHIM", value: str = "") -> str:
    command = [sys.executable, "-c", USED, str(snapshot)]
    done = subprocess.run(command, env=os.environ | {variable: value}, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *(("JAX_TRANSFER_GUARD", "disallow_explicit"), ("JAX_NUMPY_RANK_PROMOTION", "raise")),
        *(pytest.param(f"JAX_{variable}", value, marks=pytest.mark.slow) for variable, value in RARE_VARIABLES),
    ],
)
def test_it_computes_the_same_however_jax_is_configured(small: Path, variable: str, value: str) -> None:
    assert used(small, variable, value) == used(small)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        *(("JAX_PLATFORMS", "cuda"), ("JAX_ENABLE_X64", "maybe")),
        pytest.param("JAX_PLATFORMS", "nonsense", marks=pytest.mark.slow),
        pytest.param("JAX_TRANSFER_GUARD", "nonsense", marks=pytest.mark.slow),
    ],
)
def test_a_configuration_of_no_use_is_one_sentence(small: Path, variable: str, value: str) -> None:
    (line,) = used(small, variable, value).splitlines()
    assert line.startswith("SettingsError JAX does not start (")
    assert line.endswith("): set its environment variables (JAX_*) otherwise, or choose another runtime")


def test_a_gpu_is_not_looked_for_where_jax_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "gpu_is_likely", lambda: True)
    fails = SimpleNamespace(default_backend=Mock(side_effect=RuntimeError("Unknown backend")))
    monkeypatch.setattr(jax, "_jax", lambda: fails)
    assert not jax.sees_gpu()
