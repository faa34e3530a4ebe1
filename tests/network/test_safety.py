"""Models of unknown origin: the graph is not run, the archive is checked, and Seraphim's own models pass."""

import ast
import contextlib
import os
import shutil
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import keras
import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from archives import parts_of, with_config, write_parts
from tensorflow.core.protobuf import saved_model_pb2

from seraphim.errors import GameError, ModelError, SeraphimError
from seraphim.export.formats import convert
from seraphim.export.site import Chosen, Library, write_site
from seraphim.game import load_game
from seraphim.game.loading import check_game_module
from seraphim.inference import Runtime, load_inference, load_network
from seraphim.network import architectures, safety, saved_model
from seraphim.network.archive import read_archive
from seraphim.options import NetworkOptions
from seraphim.players.roster import Roster
from seraphim.storage.models import ModelFolder, Snapshot
from seraphim.training.trainer import Trainer
from tictactoe.game import GAME

ROOT = Path(__file__).parents[2]
RUNTIMES: list[Runtime] = ["auto", "openvino", "litert", "tensorflow"]


@pytest.fixture
def snapshot(folder: ModelFolder) -> Path:
    return folder.champion().path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Return where a malicious model writes, beginning with this name, if it is run."""
    (tmp_path / "target").mkdir()
    return tmp_path / "target/written"


# ---------------------------------------------------------------- SavedModels


def poison(snapshot: Path, target: Path) -> None:
    """Let a SavedModel write a file when TensorFlow runs it, by a function that it does not name.

    It calls a harmless function. TensorFlow's implementation selector takes another one in its place, because that has
    the same `api_implements` and prefers the device of the call.
    """
    file = snapshot / "saved_model.pb"
    model = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    library = model.meta_graphs[0].graph_def.library
    serve = next(each for each in library.function if "inference_serve" in each.signature.name)

    @tf.function(input_signature=[])
    def harmless() -> Any:
        return tf.constant(1)

    @tf.function(input_signature=[])
    def write() -> Any:
        tf.raw_ops.SaveV2(prefix=str(target), tensor_names=["a"], shape_and_slices=[""], tensors=[tf.constant(["b"])])
        return tf.constant(1)

    names = []
    for made, device in ((harmless, b"GPU"), (write, b"CPU")):
        function = library.function.add()
        function.CopyFrom(made.get_concrete_function().function_def)
        function.attr["api_implements"].s, function.attr["api_preferred_device"].s = b"same", device
        names.append(function.signature.name)
    place = "/job:localhost/replica:0/task:0/device:CPU:0"
    call = serve.node_def.add(name="extra", op="StatefulPartitionedCall", device=place)
    call.attr["f"].func.name = names[0]
    call.attr["Tin"].list.SetInParent()
    call.attr["Tout"].list.type.append(tf.int32.as_datatype_enum)
    returned = {output.partition(":")[0] for output in serve.ret.values()}
    for node in serve.node_def:
        if node.name in returned:
            node.input.append("^extra")
    file.write_bytes(model.SerializeToString())


def run_by_everything(snapshot: Path, settings: Any, out: Path) -> None:
    """Load a model in all ways; errors do not matter here."""
    observations = GAME.observe(GAME.initial(3))
    for runtime in RUNTIMES:
        for batch in (1, 256):
            with contextlib.suppress(SeraphimError):
                load_inference(snapshot, GAME, runtime, batch=batch).infer(observations)
    for form in ("tflite", "onnx"):
        with contextlib.suppress(SeraphimError):
            convert(snapshot, GAME, form)  # type: ignore[arg-type]
    with contextlib.suppress(SeraphimError):
        load_network(snapshot, GAME)
    with contextlib.suppress(SeraphimError):
        write_site([Chosen("name", Snapshot(snapshot, 0), settings)], out, Library("1.2.3", None))


@pytest.mark.parametrize("has_archive", [True, False])
def test_a_model_that_writes_files_when_tensorflow_runs_it_writes_none(
    folder: ModelFolder, snapshot: Path, tmp_path: Path, target: Path, has_archive: bool
) -> None:
    poison(snapshot, target)
    if not has_archive:
        (snapshot / saved_model.ARCHIVE).unlink()
    run_by_everything(snapshot, folder.settings(), tmp_path / "out")
    assert not list(target.parent.iterdir())


def test_tensorflow_runs_an_unchecked_saved_model_only_with_trust(snapshot: Path, target: Path) -> None:
    poison(snapshot, target)
    observations = GAME.observe(GAME.initial(3))
    # With an archive, it is not run even with trust.
    load_inference(snapshot, GAME, "tensorflow", trust=True).infer(observations)
    assert not list(target.parent.iterdir())
    (snapshot / saved_model.ARCHIVE).unlink()
    with pytest.raises(ModelError, match=r"TensorFlow cannot run .* because assets.extra/model.keras is missing"):
        load_inference(snapshot, GAME, "tensorflow")
    # The model is as malicious as the other tests assume.
    load_inference(snapshot, GAME, "tensorflow", trust=True).infer(observations)
    assert {file.suffix for file in target.parent.iterdir()} == {".index", ".data-00000-of-00001"}


def test_a_trusted_saved_model_without_an_archive_serves_and_is_exported(snapshot: Path) -> None:
    observations = GAME.observe(GAME.initial(3))
    expected = load_inference(snapshot, GAME, "tensorflow").infer(observations)
    (snapshot / saved_model.ARCHIVE).unlink()
    model = load_inference(snapshot, GAME, "tensorflow", trust=True)
    np.testing.assert_allclose(model.infer(observations)[0], expected[0], atol=1e-6)
    assert convert(snapshot, GAME, "tflite", trust=True)[1].logits < 1e-5
    with pytest.raises(ModelError, match="is missing"):
        convert(snapshot, GAME, "tflite")


class Evil(tf.Module):
    """Serves a network of tic-tac-toe, and does something else besides."""

    def __init__(self, deed: Callable[[], Any]) -> None:
        super().__init__()
        self.deed = deed

    @tf.function(input_signature=[tf.TensorSpec([None, *GAME.observation_shape], tf.uint8, name="observation")])
    def serve(self, observation):
        with tf.control_dependencies([self.deed()]):
            count = tf.shape(observation)[0]
            return {"policy": tf.zeros([count, GAME.num_actions]), "value": tf.zeros([count])}


DEEDS: dict[str, Callable[[Path], Any]] = {
    "WriteFile": lambda file: tf.io.write_file(str(file), "written"),
    "EagerPyFunc": lambda file: tf.py_function(lambda: file.write_text("written"), [], tf.int64),
    "PrintV2": lambda file: tf.print("printed", output_stream=f"file://{file}"),
    "SaveV2": lambda file: tf.raw_ops.SaveV2(
        prefix=str(file), tensor_names=["a"], shape_and_slices=[""], tensors=[tf.zeros([1])]
    ),
}


@pytest.mark.parametrize("operation", DEEDS)
def test_openvino_only_computes(operation: str, tmp_path: Path, target: Path) -> None:
    module = Evil(lambda: DEEDS[operation](target))
    tf.saved_model.save(module, str(tmp_path / "model"), signatures={saved_model.SIGNATURE: module.serve})
    for file in target.parent.iterdir():
        file.unlink()
    for runtime in RUNTIMES:
        with contextlib.suppress(SeraphimError):
            load_inference(tmp_path / "model", GAME, runtime).infer(GAME.observe(GAME.initial(3)))
    assert not list(target.parent.iterdir())


def test_litert_runs_no_operation_of_tensorflow(snapshot: Path, target: Path) -> None:
    module = Evil(lambda: tf.io.write_file(str(target), "written"))
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.serve.get_concrete_function()], module)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    content = converter.convert()
    assert "FlexWriteFile" in {each["op_name"] for each in Interpreter(model_content=content)._get_ops_details()}
    (snapshot / saved_model.LITERT).write_bytes(content)
    with pytest.raises(ModelError, match=r"assets.extra/model.tflite in .* is damaged"):
        load_inference(snapshot, GAME, "litert")
    assert not list(target.parent.iterdir())


def test_a_saved_model_and_an_archive_of_different_networks_are_refused(folder: ModelFolder) -> None:
    model = saved_model.load_model(folder.champion().path)

    def write(path: Path) -> None:
        saved_model.save_snapshot(model, path)
        model.set_weights([weight + np.float32(0.1) for weight in model.get_weights()])
        model.save(path / saved_model.ARCHIVE)

    snapshot = folder.publish(1, write, promote=lambda: True).path
    message = r"the SavedModel and assets.extra/model.keras in .* are different networks: promote another snapshot"
    for load in (
        lambda: load_inference(snapshot, GAME, "tensorflow"),
        lambda: convert(snapshot, GAME, "tflite"),
        lambda: convert(snapshot, GAME, "onnx"),
        lambda: Trainer(folder, GAME, folder.settings(), seed=0).model,
    ):
        with pytest.raises(ModelError, match=message):
            load()
    load_inference(snapshot, GAME, "openvino")


# ---------------------------------------------------------------- Keras archives


@pytest.mark.parametrize("name", ["tictactoe", "connectfour"])
def test_the_models_that_come_with_seraphim_pass(name: str) -> None:
    load_network(ModelFolder(ROOT, name).champion().path, load_game(name))


@pytest.mark.parametrize("options", [{}, {"activation": "leaky_relu"}, {"activation": "silu"}, {"kind": "mlp"}])
def test_networks_of_every_kind_pass(options: dict[str, str], tmp_path: Path) -> None:
    network = NetworkOptions(**{"blocks": 1, "filters": 4, "depth": 1, "width": 4, **options})  # type: ignore[arg-type]
    saved_model.save_snapshot(architectures.build(GAME, network, seed=0), tmp_path)
    load_network(tmp_path, GAME)


Load = Callable[[Path], object]


@pytest.fixture(params=["keras", "h5py"])
def load(request: pytest.FixtureRequest) -> Load:
    """Return a function that loads a snapshot's archive."""
    if request.param == "keras":
        return saved_model.load_model
    return lambda snapshot: read_archive(snapshot / saved_model.ARCHIVE)


def test_a_layer_of_code_is_refused(tmp_path: Path, load: Load) -> None:
    observation = keras.Input((3,))
    model = keras.Model(observation, keras.layers.Lambda(lambda x: x + 1)(observation))
    (tmp_path / saved_model.ARCHIVE).parent.mkdir()
    model.save(tmp_path / saved_model.ARCHIVE)
    with pytest.raises(ModelError, match="holds Lambda, __lambda__, which no network of Seraphim does: it is not loa"):
        load(tmp_path)


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
def test_objects_of_other_kinds_are_refused_wherever_they_stand(
    snapshot: Path, foreign: dict[str, object], load: Load
) -> None:
    with_config(snapshot, lambda config: config["config"]["layers"][1]["config"].update(activation=foreign))
    with pytest.raises(ModelError, match=f"holds {foreign['class_name']}, which"):
        load(snapshot)


def test_an_archive_without_a_network_is_refused(snapshot: Path, load: Load) -> None:
    parts = parts_of(snapshot / saved_model.ARCHIVE)
    for config in (b"[]", b"7", b"{}", b'{"module": "keras.optimizers", "class_name": "Adam", "config": {}}'):
        write_parts(snapshot / saved_model.ARCHIVE, {**parts, "config.json": config})
        with pytest.raises(ModelError, match=r"is damaged \(config.json describes no network\)"):
            load(snapshot)


def test_an_archive_cut_short_is_damaged(snapshot: Path, load: Load) -> None:
    file = snapshot / saved_model.ARCHIVE
    file.write_bytes(file.read_bytes()[:-30])
    with pytest.raises(ModelError, match="is damaged"):
        load(snapshot)


@pytest.mark.parametrize("entry", ["config.json", "model.weights.h5"])
def test_a_compressed_archive_is_not_unpacked(snapshot: Path, entry: str, load: Load) -> None:
    file = snapshot / saved_model.ARCHIVE
    write_parts(file, {**parts_of(file), entry: b" " * (100 << 20)}, zipfile.ZIP_DEFLATED)
    assert file.stat().st_size < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match="is damaged .*is compressed"):
            load(snapshot)
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


def test_a_configuration_of_many_megabytes_is_not_read(snapshot: Path, load: Load) -> None:
    file = snapshot / saved_model.ARCHIVE
    write_parts(file, {**parts_of(file), "config.json": b" " * (5 << 20)})
    with pytest.raises(ModelError, match=r"is damaged \(config.json has 5,242,880 bytes, at most"):
        load(snapshot)


def test_an_archive_with_entries_that_keras_does_not_write_is_refused(snapshot: Path, load: Load) -> None:
    file = snapshot / saved_model.ARCHIVE
    parts = parts_of(file)
    for other in ({**parts, "assets/layer/vocabulary": b""}, {**parts, "../elsewhere": b""}, {"config.json": b"{}"}):
        write_parts(file, other)
        with pytest.raises(ModelError, match="is damaged .it must hold config.json, metadata.json, model.weights.h5"):
            load(snapshot)
    write_parts(file, parts)
    with zipfile.ZipFile(file, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("config.json", b"{}")
    with pytest.raises(ModelError, match="is damaged .it must hold"):
        load(snapshot)


def test_a_network_larger_than_its_weights_is_not_built(snapshot: Path) -> None:
    def enlarge(config: dict[str, Any]) -> None:
        (policy,) = [each for each in config["config"]["layers"] if each["config"]["name"] == "policy"]
        policy["config"]["units"] = 1 << 40  # a kernel of 64 TiB

    with_config(snapshot, enlarge)
    with pytest.raises(ModelError, match=r"is damaged .*bytes of weights, but only .* are stored"):
        saved_model.load_model(snapshot)


def encrypt(content: bytes, entry: bytes) -> bytes:
    """Set the flag that says that an entry of a zip archive is encrypted, in both of its headers."""
    changed = bytearray(content)
    for signature, flags, name in ((b"PK\3\4", 6, 30), (b"PK\1\2", 8, 46)):
        start = content.find(signature)
        while content[start + name : start + name + len(entry)] != entry:
            start = content.index(signature, start + 1)
        changed[start + flags] |= 1
    return bytes(changed)


@pytest.mark.parametrize("entry", ["config.json", "model.weights.h5"])
def test_an_archive_that_says_it_is_encrypted_is_damaged(snapshot: Path, entry: str, load: Load) -> None:
    file = snapshot / saved_model.ARCHIVE
    file.write_bytes(encrypt(file.read_bytes(), entry.encode()))
    with pytest.raises(ModelError, match=f"is damaged .*{entry}.* is encrypted"):
        load(snapshot)


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:40] + b"?" * 9 + data[49:]])
def test_an_archive_whose_compressed_data_is_broken_is_damaged(
    snapshot: Path, damage: Callable[[bytes], bytes], load: Load
) -> None:
    file = snapshot / saved_model.ARCHIVE
    parts = parts_of(file)
    write_parts(file, {"config.json": parts.pop("config.json")}, zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(file) as archive:
        start = 30 + len("config.json")
        size = archive.infolist()[0].compress_size
    content = file.read_bytes()
    broken = damage(content[start : start + size]).ljust(size, b"\0")
    file.write_bytes(content[:start] + broken + content[start + size :])
    with pytest.raises(ModelError, match="is damaged"):
        load(snapshot)


def test_damage_anywhere_is_an_error_of_the_model_or_passes(snapshot: Path) -> None:
    # Checks all of zip's own bytes, and some of the configuration's.
    file = snapshot / saved_model.ARCHIVE
    content = file.read_bytes()
    config, directory = content.index(b"config.json"), content.index(b"PK\1\2")
    places = [*range(config - 30, config + 100), *range(directory, len(content))]
    for place in places:
        for mask in (0x01, 0x5A, 0x80):
            file.write_bytes(content[:place] + bytes([content[place] ^ mask]) + content[place + 1 :])
            with contextlib.suppress(ModelError):
                safety.check_archive(file)
                safety.bytes_of_weights(file)


def test_a_damaged_archive_is_loaded_or_an_error_of_the_model(snapshot: Path, load: Load) -> None:
    file = snapshot / saved_model.ARCHIVE
    content = file.read_bytes()
    for place in np.random.default_rng(0).integers(0, len(content), 10):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0x5A]) + content[place + 1 :])
        with contextlib.suppress(ModelError):
            load(snapshot)


# ---------------------------------------------------------------- modules of games


def test_a_module_that_is_not_a_game_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "above").mkdir()
    for name in ("deed.py", "above/__init__.py", "above/deed.py"):
        (tmp_path / name).write_text(f"open({str(tmp_path / 'done')!r}, 'w')\n")
    for name in ("deed", "above", "above.deed"):
        with pytest.raises(GameError, match=f"module '{name}' offers no GAME"):
            load_game(name)
    assert not (tmp_path / "done").exists()


def test_a_module_that_only_speaks_of_a_game_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "speaks.py").write_text("import tictactoe\nprint(tictactoe.GAME, ['GAME'], ('*',))")
    with pytest.raises(GameError, match="module 'speaks' offers no GAME"):
        load_game("speaks")
    assert "speaks" not in sys.modules


def test_a_game_is_found_while_another_thread_parses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Python 3.11 then raises this at times, which is too rare to wait for; TensorFlow parses functions in its threads.
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "parsed.py").write_text("from tictactoe import GAME")
    with monkeypatch.context() as patch:
        patch.setattr(ast, "parse", Mock(side_effect=SystemError("AST constructor recursion depth mismatch")))
        found = load_game("parsed")
    assert found is load_game("tictactoe")


SOURCES = [
    *("GAME = 7", "from tictactoe.game import GAME", "from tictactoe.game import *", "def GAME(): pass"),
    *("import tictactoe as GAME", "class GAME: pass", "if True:\n    GAME: int = 7", "def __getattr__(name): return 7"),
    "def offer():\n    global GAME\n    GAME = 7\noffer()",
]


@pytest.mark.parametrize("source", SOURCES)
def test_a_game_may_come_from_anywhere_in_its_module(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "offers.py").write_text(source)
    check_game_module("offers")


# ---------------------------------------------------------------- where models lie


@pytest.fixture
def elsewhere(root: Path, tmp_path: Path) -> Path:
    """Return a snapshot that lies outside the data root."""
    shutil.copytree(ModelFolder(root, "fresh").champion().path, tmp_path / "downloaded")
    return tmp_path / "downloaded"


def test_a_snapshot_from_elsewhere_needs_trust(root: Path, elsewhere: Path) -> None:
    with pytest.raises(ModelError, match=f"{elsewhere} lies outside .*if you trust the source, add --trust"):
        ModelFolder(root, "fresh").choose(str(elsewhere))
    assert ModelFolder(root, "fresh", trust=True).choose(str(elsewhere)).path == elsewhere
    # A path into models/ is as good as a name.
    champion = ModelFolder(root, "fresh").champion()
    assert ModelFolder(root, "fresh").choose(str(champion.path)) == champion
    (elsewhere / "saved_model.pb").unlink()
    with pytest.raises(ModelError, match="is not a snapshot: saved_model.pb is missing"):
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
    # The whole folder models/ may lie elsewhere.
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
        Roster(root, "tictactoe").entrants(names)
    entrants = Roster(root, "tictactoe", readouts=5, trust=True).entrants(names)
    assert [entrant.name for entrant in entrants] == names
    for entrant in entrants:
        assert GAME.legal(GAME.initial(2))[:, entrant.load()(GAME.initial(2))].all()


def test_the_programs_ask_for_trust(root: Path, elsewhere: Path) -> None:
    command = [
        sys.executable,
        "bin/evaluate.py",
        "fresh",
        f"--snapshot={elsewhere}",
        "--searches=0",
        "--max_positions=20",
    ]
    environment = os.environ | {"SERAPHIM_DATA": str(root)}
    refused = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"seraphim evaluate: {elsewhere} lies outside ")
    assert len(refused.stderr.splitlines()) == 1
    trusted = subprocess.run([*command, "--trust"], env=environment, capture_output=True, text=True, cwd=ROOT)
    assert (trusted.returncode, trusted.stderr) == (0, "")
    assert "fresh, downloaded: " in trusted.stdout
