"""The folder that a model hub expects: what it holds, and its card."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import seraphim
from seraphim.errors import FileError, ModelError
from seraphim.export.hub import write_hub
from seraphim.network.saved_model import ARCHIVE, LITERT
from seraphim.storage.models import ModelFolder

ROOT = Path(__file__).parents[2]

pytest.importorskip("tf2onnx")


def metadata(card: str) -> dict[str, Any]:
    """The front matter of a card: JSON below keys, which a line begins with."""
    front = re.fullmatch(r"---\n(.*?)\n---\n.*", card, re.DOTALL)
    assert front
    pairs = re.findall(r"^([\w-]+): (.*(?:\n .*)*)", front[1], re.MULTILINE)
    return {key: json.loads(value) for key, value in pairs}


def test_a_folder_for_a_hub_is_read_back_and_finds_the_same(folder: ModelFolder, tmp_path: Path) -> None:
    folder.champion().annotate({"all/positions": 8, "all/raw_mistakes": 3, "all/searched_mistakes": 1})
    parity = write_hub(folder, folder.champion(), tmp_path / "deep/hub")
    assert parity.positions == 1000
    assert [path.name for path in tmp_path.glob("deep/*")] == ["hub"]
    names = "README.md settings.json snapshot.json saved_model.pb variables/variables.index model.onnx".split()
    for name in [*names, ARCHIVE, LITERT]:
        assert (tmp_path / "deep/hub" / name).is_file(), name
    model = seraphim.load(tmp_path / "deep/hub")
    own = seraphim.load(folder.path)
    assert model.settings == own.settings
    assert (model.name, model.step) == ("hub", own.step)
    for position in ("", "b2", "a1 b2 c3"):
        assert model.analyze(position) == own.analyze(position)


def test_the_card_has_the_metadata_of_a_hub_and_the_figures_of_the_snapshot(
    folder: ModelFolder, tmp_path: Path
) -> None:
    folder.champion().annotate({"all/positions": 8, "all/raw_mistakes": 3, "all/searched_mistakes": 1})
    folder.champion().annotate({"few/positions": 0, "half/positions": 4, "half/raw_mistakes": 1})
    write_hub(folder, folder.champion(), tmp_path / "hub")
    card = (tmp_path / "hub/README.md").read_text()
    found = metadata(card)
    assert (found["library_name"], found["license"]) == ("seraphim", "unknown")
    assert found["pipeline_tag"] == "reinforcement-learning"
    assert {"alphazero", "tictactoe"} < set(found["tags"])
    ((name, results),) = [(each["name"], each["results"]) for each in found["model-index"]]
    assert name == folder.name
    assert [(each["dataset"]["type"], each["task"]["type"]) for each in results] == [
        ("tictactoe/all", "reinforcement-learning")
    ]
    assert {each["type"]: each["value"] for each in results[0]["metrics"]} == {
        "raw_mistakes": 37.5,
        "searched_mistakes": 12.5,
    }
    assert folder.champion().name in card
    assert "curve.png" not in card


def test_the_snippet_of_the_card_runs(
    folder: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_hub(folder, folder.champion(), tmp_path / "hub")
    (code,) = re.findall(r"^```python\n(.*?)^```", (tmp_path / "hub/README.md").read_text(), re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SERAPHIM_DATA", raising=False)
    exec(code, {})
    assert capsys.readouterr().out.startswith("best ")


def test_a_model_that_ships_brings_its_license_its_curve_and_its_own_card(tmp_path: Path) -> None:
    shipped = ModelFolder(ROOT, "connectfour")
    write_hub(shipped, shipped.champion(), tmp_path / "hub")
    card = (tmp_path / "hub/README.md").read_text()
    assert metadata(card)["license"] == "apache-2.0"
    assert len(metadata(card)["model-index"][0]["results"]) == 6
    assert "](curve.png)" in card
    assert (tmp_path / "hub/curve.png").read_bytes() == (shipped.path / "curve.png").read_bytes()
    assert (tmp_path / "hub/MODEL.md").read_text() == (shipped.path / "README.md").read_text()


def test_what_exists_is_not_replaced(folder: ModelFolder, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    for out in (tmp_path / "mine", tmp_path / "mine/thesis.txt"):
        with pytest.raises(FileError, match="exists: name another folder with --out"):
            write_hub(folder, folder.champion(), out)
    assert (tmp_path / "mine/thesis.txt").read_text() == "years of work"


def test_a_snapshot_without_an_archive_is_refused(folder: ModelFolder, tmp_path: Path) -> None:
    (folder.champion().path / ARCHIVE).unlink()
    with pytest.raises(ModelError, match=r"has no assets.extra/model.keras, without which nobody could check it"):
        write_hub(folder, folder.path and next(iter(folder.folders())), tmp_path / "hub")
    assert not (tmp_path / "hub").exists()
