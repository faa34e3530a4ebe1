"""The runtime `auto`: measured once, kept beside the snapshots, and measured again when that no longer holds."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import random_states

from seraphim.errors import ModelError, SettingsError
from seraphim.game import Array
from seraphim.inference import Choice, Runtime, Uniform, choose_runtime, load_inference, loading, tensorflow
from seraphim.inference.choice import ADVANTAGE, Measurement, Situation, decide, fastest, measure
from seraphim.saving import load_model, save_snapshot
from seraphim.store import ModelFolder
from tictactoe.game import GAME

TITLES: dict[Runtime, str] = {"openvino": "OpenVINO", "litert": "LiteRT"}
SITUATION = Situation("a processor", 8, 1, "bfloat16", {"openvino": "1.0", "litert": "2.0"}, [3, 3, 2], 9, 1000)


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorflow, "gpu_is_likely", lambda: False)


@pytest.fixture
def snapshot(folder: ModelFolder) -> Path:
    return folder.champion().path


class Timed(Uniform):
    """Takes so many seconds for a call, and so many more for each position; the first call of a size takes longer."""

    def __init__(self, call: float, position: float = 0.0) -> None:
        super().__init__(GAME)
        self.sizes: list[int] = []
        self._call = call
        self._position = position

    def infer(self, observations: Array) -> tuple[Array, Array]:
        first = 0.0 if len(observations) in self.sizes else 0.004
        self.sizes.append(len(observations))
        end = time.perf_counter() + self._call + self._position * len(observations) + first
        while time.perf_counter() < end:
            pass
        return super().infer(observations)


def remembered(folder: Path) -> Any:
    return json.loads((folder / "runtime.json").read_text())


def decided(folder: Path, situation: Situation = SITUATION, litert_call: float = 0.00001) -> tuple[Choice, bool]:
    """Decide between runtimes of known speed; return the choice, and whether anything was measured."""
    models = {"openvino": Timed(0.0005), "litert": Timed(litert_call)}
    choice = decide(folder, situation, TITLES, models.__getitem__)
    return choice, bool(models["litert"].sizes)


# ---------------------------------------------------------------- what is chosen


@pytest.mark.parametrize(("litert", "chosen"), [(1.01, "openvino"), (0.99, "litert"), (9.0, "openvino")])
def test_the_first_runtime_is_chosen_unless_another_is_much_faster(litert: float, chosen: str) -> None:
    assert fastest(Measurement(1, {"openvino": 60.0, "litert": litert * 60 / ADVANTAGE})) == chosen


def test_the_reason_has_the_figures(tmp_path: Path) -> None:
    (choice, _), again = decided(tmp_path), decided(tmp_path)[0]
    assert choice.runtime == "litert"
    own, other = choice.reason.removeprefix("chosen for batches of 8: ").split(" µs for 8 positions, OpenVINO ")
    assert 9 < int(own) < 500 <= int(other.removesuffix(" µs"))
    assert again == choice


def test_the_reason_says_why_a_faster_one_was_not_chosen(tmp_path: Path) -> None:
    choice, _ = decided(tmp_path, litert_call=0.0003)
    assert choice.runtime == "openvino"
    assert choice.reason.endswith("µs (less than 3 times faster does not count)")


def test_a_measurement_is_the_time_of_a_call_without_its_preparation() -> None:
    measured = measure({"openvino": Timed(0.0005), "litert": Timed(0.0001)}, 8, [3, 3, 2])
    assert measured.positions == 8
    assert 500 <= measured.microseconds["openvino"] < 1000
    assert 100 <= measured.microseconds["litert"] < 300


def test_a_large_network_is_measured_on_few_positions_and_not_for_long() -> None:
    models: dict[Runtime, Timed] = {"openvino": Timed(0.0, 0.0002), "litert": Timed(0.0, 0.0005)}
    start = time.process_time()
    measured = measure(models, 256, [3, 3, 2])
    assert time.process_time() - start < 0.3
    assert measured.positions == 8
    assert max(models["litert"].sizes) == 8


# ---------------------------------------------------------------- what is kept


def test_a_choice_is_kept_and_read_back(tmp_path: Path) -> None:
    first, measured = decided(tmp_path)
    assert (first.runtime, measured) == ("litert", True)
    # LiteRT has become slow, but the choice stands: it decides which games are played.
    second, measured = decided(tmp_path, litert_call=0.005)
    assert (second, measured) == (first, False)


@pytest.mark.parametrize(
    "change",
    [
        {"processor": "another"},
        {"runtimes": {"openvino": "1.1", "litert": "2.0"}},
        {"precision": "float32"},
        {"threads": 2},
        {"batch": 1},
        {"observation_shape": [3, 3, 4]},
        {"num_actions": 10},
        {"network_bytes": 2000},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_choice_that_was_made_for_something_else_is_not_used(tmp_path: Path, change: dict[str, Any]) -> None:
    decided(tmp_path)
    choice, measured = decided(tmp_path, replace(SITUATION, **change), litert_call=0.005)
    assert (choice.runtime, measured) == ("openvino", True)
    assert decided(tmp_path, replace(SITUATION, **change)) == (choice, False)


def test_stale_choices_are_replaced_and_others_kept(tmp_path: Path) -> None:
    other_use, other_machine = replace(SITUATION, batch=256), replace(SITUATION, processor="another")
    updated = replace(SITUATION, runtimes={"openvino": "1.1", "litert": "2.0"})
    for situation in (SITUATION, other_use, other_machine, updated):
        assert decided(tmp_path, situation)[1]
    assert [entry["for"]["batch"] for entry in remembered(tmp_path)] == [256, 8, 8]
    assert remembered(tmp_path)[-1]["for"]["runtimes"]["openvino"] == "1.1"
    assert not decided(tmp_path, other_use)[1]
    assert decided(tmp_path)[1]


@pytest.mark.parametrize(
    "content",
    ["", "{", "\x00", "3", "{}", "[3]", '[{"for": 3}]', '[{"for": {}}]'],
)
def test_a_file_that_cannot_be_read_is_rewritten(tmp_path: Path, content: str) -> None:
    (tmp_path / "runtime.json").write_text(content)
    assert decided(tmp_path)[1]
    assert not decided(tmp_path)[1]


@pytest.mark.parametrize(
    "broken",
    [
        {"runtime": "tensorflow"},
        {"runtime": 3},
        {"microseconds": None},
        {"microseconds": {"litert": 1}},
        {"microseconds": {"litert": "fast", "openvino": 1}},
        {"positions": "many"},
    ],
)
def test_an_entry_that_makes_no_sense_is_rewritten(tmp_path: Path, broken: dict[str, Any]) -> None:
    decided(tmp_path)
    (tmp_path / "runtime.json").write_text(json.dumps([{**remembered(tmp_path)[0], **broken}]))
    assert decided(tmp_path)[1]
    assert len(remembered(tmp_path)) == 1
    assert not decided(tmp_path)[1]


def test_a_file_that_is_not_in_utf_8_is_rewritten(tmp_path: Path) -> None:
    (tmp_path / "runtime.json").write_bytes(b"\xff\xfe")
    assert decided(tmp_path)[1]
    assert not decided(tmp_path)[1]


def test_a_folder_that_cannot_be_written_to_is_no_error(tmp_path: Path) -> None:
    # A folder in the file's place does what a read-only one does, also where the tests run as root.
    (tmp_path / "runtime.json").mkdir()
    for _ in range(2):
        choice, measured = decided(tmp_path)
        assert (choice.runtime, measured) == ("litert", True)
    assert [path.name for path in tmp_path.iterdir()] == ["runtime.json"]


def test_a_folder_that_does_not_exist_is_no_error(tmp_path: Path) -> None:
    assert decided(tmp_path / "gone")[1]
    assert not list(tmp_path.iterdir())


def test_of_two_programs_that_measure_at_once_the_first_one_counts(tmp_path: Path) -> None:
    class Overtaken(Timed):
        def infer(self, observations: Array) -> tuple[Array, Array]:
            if not (tmp_path / "runtime.json").exists():
                decided(tmp_path)
            return super().infer(observations)

    models: dict[Runtime, Timed] = {"openvino": Overtaken(0.0001), "litert": Timed(0.0005)}
    assert decide(tmp_path, SITUATION, TITLES, models.__getitem__).runtime == "litert"
    assert [entry["runtime"] for entry in remembered(tmp_path)] == ["litert"]


# ---------------------------------------------------------------- with real runtimes


def test_auto_says_what_it_picked_and_why(snapshot: Path) -> None:
    description = load_inference(snapshot, GAME, batch=8).description
    title = TITLES[remembered(snapshot.parent)[0]["runtime"]]
    assert description.startswith(f"{title} ")
    assert "chosen for batches of 8: " in description
    assert load_inference(snapshot, GAME, batch=8).description == description


@pytest.mark.parametrize(("runtime", "title"), [("openvino", "OpenVINO"), ("litert", "LiteRT")])
def test_a_kept_choice_is_followed(snapshot: Path, runtime: str, title: str) -> None:
    chosen = choose_runtime(snapshot, GAME, batch=8)
    entry = {**remembered(snapshot.parent)[0], "runtime": runtime}
    (snapshot.parent / "runtime.json").write_text(json.dumps([entry]))
    assert load_inference(snapshot, GAME, batch=8).description.startswith(title)
    assert choose_runtime(snapshot, GAME, batch=8).runtime == runtime
    assert load_inference(snapshot, GAME, chosen).description.startswith(TITLES[chosen.runtime])


def test_a_retrained_model_keeps_its_runtime(folder: ModelFolder, snapshot: Path) -> None:
    load_inference(snapshot, GAME, batch=8)
    before = (folder.path / "runtime.json").read_text()
    model = load_model(snapshot)
    model.set_weights([weight + np.float32(0.1) for weight in model.get_weights()])
    newer = folder.publish(8, lambda path: save_snapshot(model, path))
    load_inference(newer.path, GAME, batch=8)
    assert (folder.path / "runtime.json").read_text() == before


def test_all_of_many_positions_at_a_time_are_the_same_use(snapshot: Path) -> None:
    for batch in (1024, 2000, 10**6):
        load_inference(snapshot, GAME, batch=batch)
    assert len(remembered(snapshot.parent)) == 1


def test_an_older_snapshot_is_run_by_openvino(snapshot: Path) -> None:
    (snapshot / "assets.extra" / "model.tflite").unlink()
    description = load_inference(snapshot, GAME, batch=1).description
    assert description.startswith("OpenVINO")
    assert description.endswith("the only runtime there is here")
    assert not (snapshot.parent / "runtime.json").exists()


def test_auto_takes_the_runtimes_that_are_installed(snapshot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"ai-edge-litert": "2.3.0"}
    monkeypatch.setattr(loading, "version", installed.get)
    assert load_inference(snapshot, GAME).description.startswith("LiteRT")
    installed.clear()
    with pytest.raises(SettingsError, match="nothing here runs a network: pip install openvino"):
        load_inference(snapshot, GAME)


@pytest.mark.parametrize("damaged", ["saved_model.pb", "assets.extra/model.tflite"])
def test_auto_tells_a_damaged_model(snapshot: Path, damaged: str) -> None:
    (snapshot / damaged).write_bytes(b"\x00garbage")
    with pytest.raises(ModelError, match="is damaged"):
        load_inference(snapshot, GAME)


def test_auto_tells_a_missing_model(tmp_path: Path) -> None:
    for load in (load_inference, choose_runtime):
        with pytest.raises(ModelError, match="holds no SavedModel"):
            load(tmp_path, GAME)


@pytest.mark.parametrize("seen", [True, False])
def test_tensorflow_is_chosen_where_it_sees_a_gpu(snapshot: Path, monkeypatch: pytest.MonkeyPatch, seen: bool) -> None:
    monkeypatch.setattr(tensorflow, "gpu_is_likely", lambda: True)
    monkeypatch.setattr(tensorflow, "sees_gpu", lambda: seen)
    assert (choose_runtime(snapshot, GAME) == ("tensorflow", "chosen because there is a GPU")) == seen
    assert load_inference(snapshot, GAME).description.startswith("TensorFlow") == seen


def test_whatever_is_chosen_gives_the_same_answers(snapshot: Path) -> None:
    observations = GAME.observe(random_states(GAME, 50, seed=1))
    exact, _ = load_inference(snapshot, GAME, "tensorflow").infer(observations)
    for batch in (1, 256):
        logits, _ = load_inference(snapshot, GAME, batch=batch).infer(observations)
        assert logits == pytest.approx(exact, abs=0.05)
