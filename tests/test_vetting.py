"""What is refused of models of unknown origin, before any of it is run; and that our own pass."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from seraphim import networks, saving, vetting
from seraphim.errors import GameError, ModelError
from seraphim.game import load_game
from seraphim.inference import load_inference
from seraphim.matchfile import Conditions
from seraphim.networks import NetworkOptions
from seraphim.store import ModelFolder
from seraphim.tournament import Field
from tictactoe.game import GAME

ROOT = Path(__file__).parents[1]


@pytest.fixture
def snapshot(folder: ModelFolder) -> Path:
    return folder.champion().path


def with_graph(snapshot: Path, change: Callable[[saved_model_pb2.SavedModel], object]) -> None:
    """Change a SavedModel by the library that TensorFlow itself reads it with."""
    model = saved_model_pb2.SavedModel.FromString((snapshot / "saved_model.pb").read_bytes())
    change(model)
    (snapshot / "saved_model.pb").write_bytes(model.SerializeToString())


# ---------------------------------------------------------------- SavedModels


@pytest.mark.parametrize("name", ["tictactoe", "connectfour"])
def test_the_models_that_come_with_seraphim_pass(name: str) -> None:
    champion = ModelFolder(ROOT, name).champion().path
    vetting.check_saved_model(champion)
    vetting.check_archive(champion / saving.ARCHIVE)


@pytest.mark.parametrize("options", [{}, {"activation": "leaky_relu"}, {"kind": "mlp"}])
def test_networks_of_every_kind_pass(options: dict[str, str], tmp_path: Path) -> None:
    network = NetworkOptions(**{"blocks": 1, "filters": 4, "depth": 1, "width": 4, **options})  # type: ignore[arg-type]
    saving.save_snapshot(networks.build(GAME, network, seed=0), tmp_path)
    vetting.check_saved_model(tmp_path)
    vetting.check_archive(tmp_path / saving.ARCHIVE)


class Evil(tf.Module):
    """Serves what a network of tic-tac-toe does, and does something else beside it."""

    def __init__(self, deed: Callable[[], None]) -> None:
        super().__init__()
        self.deed = deed

    @tf.function(input_signature=[tf.TensorSpec([None, *GAME.observation_shape], tf.uint8, name="observation")])
    def serve(self, observation):
        self.deed()
        count = tf.shape(observation)[0]
        return {"policy": tf.zeros([count, GAME.num_actions]), "value": tf.zeros([count])}


DEEDS = {
    "ReadFile": lambda file: tf.io.read_file(str(file)),
    "WriteFile": lambda file: tf.io.write_file(str(file), "written"),
    "EagerPyFunc": lambda file: tf.py_function(lambda: Path(file).write_text("written"), [], tf.int64),
    "PrintV2": lambda file: tf.print("printed"),
    "SaveV2": lambda file: tf.raw_ops.SaveV2(
        prefix=str(file), tensor_names=["a"], shape_and_slices=[""], tensors=[tf.zeros([1])]
    ),
}


@pytest.mark.parametrize("operation", DEEDS)
def test_a_graph_that_does_more_than_compute_is_refused_and_not_run(operation: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    module = Evil(lambda: DEEDS[operation](target))
    tf.saved_model.save(module, str(tmp_path / "model"), signatures={saving.SIGNATURE: module.serve})
    target.unlink(missing_ok=True)
    with pytest.raises(ModelError, match=f"holds .*{operation}.*, which no network of Seraphim does: it is not run"):
        load_inference(tmp_path / "model", GAME, "tensorflow")
    assert not list(tmp_path.glob("target*"))


def test_no_operation_is_overlooked(snapshot: Path) -> None:
    file = snapshot / "saved_model.pb"
    content = file.read_bytes()
    graph = saved_model_pb2.SavedModel.FromString(content).meta_graphs[0].graph_def
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    names = {node.op for node in nodes}
    assert len(names) > 15
    for name in names:

        def rename(model: saved_model_pb2.SavedModel, name: str = name) -> None:
            graph = model.meta_graphs[0].graph_def
            for node in [*graph.node, *(node for each in graph.library.function for node in each.node_def)]:
                node.op = "Unheard" if node.op == name else node.op

        file.write_bytes(content)
        vetting.check_saved_model(snapshot)
        with_graph(snapshot, rename)
        with pytest.raises(ModelError, match="holds Unheard, which"):
            vetting.check_saved_model(snapshot)


def saver_of(model: saved_model_pb2.SavedModel) -> str:
    functions = model.meta_graphs[0].graph_def.library.function
    return next(each.signature.name for each in functions if "traced_save" in each.signature.name)


def call_by_name(model: saved_model_pb2.SavedModel) -> None:
    functions = model.meta_graphs[0].graph_def.library.function
    serve = next(each for each in functions if "inference_serve" in each.signature.name)
    serve.node_def.add(op="PartitionedCall").attr["f"].func.name = saver_of(model)


def offer(model: saved_model_pb2.SavedModel) -> None:
    model.meta_graphs[0].object_graph_def.concrete_functions[saver_of(model)].SetInParent()


def make_gradient(model: saved_model_pb2.SavedModel) -> None:
    model.meta_graphs[0].graph_def.library.gradient.add(function_name="serve", gradient_func=saver_of(model))


@pytest.mark.parametrize("change", [call_by_name, offer, make_gradient])
def test_the_function_that_saves_may_not_be_called(snapshot: Path, change: Callable[..., None]) -> None:
    with_graph(snapshot, change)
    with pytest.raises(ModelError, match="holds MergeV2Checkpoints, SaveV2, ShardedFilename, which"):
        vetting.check_saved_model(snapshot)


@pytest.mark.parametrize(
    "change",
    [
        lambda model: model.meta_graphs.add(),
        lambda model: model.ClearField("meta_graphs"),
        lambda model: model.meta_graphs[0].ClearField("object_graph_def"),
    ],
)
def test_a_graph_that_tensorflow_would_load_in_another_way_is_refused(snapshot: Path, change: Callable) -> None:
    with_graph(snapshot, change)
    with pytest.raises(ModelError, match="is damaged"):
        vetting.check_saved_model(snapshot)


def test_damage_anywhere_is_an_error_of_the_model_or_passes(snapshot: Path) -> None:
    file = snapshot / "saved_model.pb"
    content = file.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(content), 150):
        for damaged in (content[:place], content[:place] + bytes([content[place] ^ 0x5A]) + content[place + 1 :]):
            file.write_bytes(damaged)
            with contextlib.suppress(ModelError):
                vetting.check_saved_model(snapshot)


# ---------------------------------------------------------------- Keras archives


def with_config(snapshot: Path, change: Callable[[dict], object]) -> None:
    file = snapshot / saving.ARCHIVE
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    config = json.loads(parts["config.json"])
    change(config)
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in {**parts, "config.json": json.dumps(config).encode()}.items():
            archive.writestr(name, content)


def test_a_layer_of_code_is_refused(tmp_path: Path) -> None:
    observation = keras.Input((3,))
    model = keras.Model(observation, keras.layers.Lambda(lambda x: x + 1)(observation))
    (tmp_path / saving.ARCHIVE).parent.mkdir()
    model.save(tmp_path / saving.ARCHIVE)
    with pytest.raises(ModelError, match="holds Lambda, __lambda__, which no network of Seraphim does: it is not loa"):
        saving.load_model(tmp_path)


@pytest.mark.parametrize(
    "foreign",
    [
        {"module": "os", "class_name": "function", "config": "system", "registered_name": "system"},
        {"module": "keras.utils", "class_name": "get_file", "config": {"origin": "http://localhost"}},
        {"module": "keras.layers", "class_name": "TFSMLayer", "config": {"filepath": "elsewhere"}},
        {"module": "keras.layers", "class_name": "StringLookup", "config": {"vocabulary": "/etc/passwd"}},
        {"module": "mine.layers", "class_name": "Dense", "config": {}},
        {"class_name": "Dense", "config": {}},
    ],
)
def test_objects_of_other_kinds_are_refused_wherever_they_stand(snapshot: Path, foreign: dict[str, object]) -> None:
    with_config(snapshot, lambda config: config["config"]["layers"][1]["config"].update(activation=foreign))
    with pytest.raises(ModelError, match=f"holds {foreign['class_name']}, which"):
        saving.load_model(snapshot)


def test_an_archive_cut_short_is_damaged(snapshot: Path) -> None:
    file = snapshot / saving.ARCHIVE
    file.write_bytes(file.read_bytes()[:-30])
    with pytest.raises(ModelError, match="is damaged"):
        saving.load_model(snapshot)


# ---------------------------------------------------------------- modules of games


def test_a_module_that_is_no_game_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "above").mkdir()
    for name in ("deed.py", "above/__init__.py", "above/deed.py"):
        (tmp_path / name).write_text(f"open({str(tmp_path / 'done')!r}, 'w')\n")
    for name in ("deed", "above", "above.deed"):
        with pytest.raises(GameError, match=f"module '{name}' offers no GAME"):
            load_game(name)
    assert not (tmp_path / "done").exists()


@pytest.mark.parametrize("source", ["GAME = 7", "from tictactoe.game import GAME", "from tictactoe.game import *"])
def test_a_game_may_come_from_anywhere_in_its_module(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "offers.py").write_text(source)
    vetting.check_game_module("offers")


# ---------------------------------------------------------------- where models lie


@pytest.fixture
def elsewhere(root: Path, tmp_path: Path) -> Path:
    """Return a snapshot that lies outside the data root."""
    shutil.copytree(ModelFolder(root, "fresh").champion().path, tmp_path / "downloaded")
    return tmp_path / "downloaded"


def test_a_snapshot_from_elsewhere_needs_trust(root: Path, elsewhere: Path) -> None:
    with pytest.raises(ModelError, match=f"{elsewhere} lies outside .*if you trust that person, add --trust"):
        ModelFolder(root, "fresh").choose(str(elsewhere))
    assert ModelFolder(root, "fresh", trust=True).choose(str(elsewhere)).path == elsewhere
    # A path to what lies in models/ is as good as a name.
    champion = ModelFolder(root, "fresh").champion()
    assert ModelFolder(root, "fresh").choose(str(champion.path)) == champion
    (elsewhere / "saved_model.pb").unlink()
    with pytest.raises(ModelError, match="is no snapshot: saved_model.pb is missing"):
        ModelFolder(root, "fresh", trust=True).choose(str(elsewhere))


def test_links_that_lead_out_of_models_need_trust(root: Path, tmp_path: Path) -> None:
    (root / "models/fresh").rename(tmp_path / "given")
    (root / "models/fresh").symlink_to(tmp_path / "given")
    for method in ("settings", "champion"):
        with pytest.raises(ModelError, match="lies outside"):
            getattr(ModelFolder(root, "fresh"), method)()
        getattr(ModelFolder(root, "fresh", trust=True), method)()
    with pytest.raises(ModelError, match="lies outside"):
        ModelFolder(root, "fresh").choose(ModelFolder(root, "fresh", trust=True).champion().name)
    # All of models/ may lie elsewhere.
    (root / "models").rename(tmp_path / "models")
    (root / "models").symlink_to(tmp_path / "models")
    (tmp_path / "models/fresh").unlink()
    (tmp_path / "given").rename(tmp_path / "models/fresh")
    assert ModelFolder(root, "fresh").champion().step == 0


def test_a_champion_that_leads_out_of_models_needs_trust(root: Path, tmp_path: Path) -> None:
    folder = ModelFolder(root, "fresh")
    champion = folder.champion().path
    champion.rename(tmp_path / champion.name)
    (folder.path / "champion").unlink()
    (folder.path / "champion").symlink_to(tmp_path / champion.name)
    with pytest.raises(ModelError, match="lies outside"):
        folder.champion()
    assert ModelFolder(root, "fresh", trust=True).champion().path == tmp_path / champion.name


def test_a_path_is_a_player_of_the_arena(root: Path, elsewhere: Path) -> None:
    names = [str(elsewhere), f"{elsewhere}:raw", "random"]
    with pytest.raises(ModelError, match="add --trust"):
        Field(root, "tictactoe", Conditions()).entrants(names)
    entrants = Field(root, "tictactoe", Conditions(readouts=5), trust=True).entrants(names)
    assert [entrant.name for entrant in entrants] == names
    for entrant in entrants:
        assert GAME.legal(GAME.initial(2))[:, entrant.load()(GAME.initial(2))].all()


def test_the_programs_ask_for_trust(root: Path, elsewhere: Path) -> None:
    command = [sys.executable, "bin/evaluate.py", "fresh", f"--snapshot={elsewhere}", "--searches=0", "--most=20"]
    environment = os.environ | {"SERAPHIM_DATA": str(root)}
    refused = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"evaluate.py: {elsewhere} lies outside ")
    assert len(refused.stderr.splitlines()) == 1
    trusted = subprocess.run([*command, "--trust"], env=environment, capture_output=True, text=True, cwd=ROOT)
    assert (trusted.returncode, trusted.stderr) == (0, "")
    assert "fresh, downloaded: " in trusted.stdout
