"""The notebooks: what is stored in them, and that they run."""

import configparser
import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MOST_BYTES = 300_000  # of a file, so that code hosts show it
EXTRAS = ("train", "arena")  # which notebooks need
# What each of them must come to, in what its cells print.
FINDINGS = {
    "learn-tic-tac-toe": [r"after learning:  0\b"],
    "look-inside-a-search": [r"-1 -1 -1 \+1 -1 -1 -1"],
    "prove-a-small-game": ["the first player wins: [0-9,]+ positions, [0-9,]+ moves", "forged.proof.* proves nothing"],
    "your-own-game": ["domineering keeps the contract", "score (9.|100).*distinct\n.*score [5-9]"],
}


def read(path: Path) -> NotebookNode:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def outputs(notebook: NotebookNode) -> list[NotebookNode]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def pictures(notebook: NotebookNode) -> int:
    return sum("image/png" in output.get("data", {}) for output in outputs(notebook))


def printed(notebook: NotebookNode) -> str:
    return "".join(output.text for output in outputs(notebook) if output.output_type == "stream")


def check_what_it_shows(path: Path, notebook: NotebookNode) -> None:
    assert all(output.output_type != "error" for output in outputs(notebook))
    assert "WARNING" not in printed(notebook)
    assert pictures(notebook) >= 3
    for finding in FINDINGS[path.stem]:
        assert re.search(finding, printed(notebook)), f"{finding} is not in:\n{printed(notebook)}"


def test_each_notebook_is_listed() -> None:
    assert [path.stem for path in NOTEBOOKS] == sorted(FINDINGS)
    index = (ROOT / "notebooks/README.md").read_text()
    assert all(f"({path.name})" in index for path in NOTEBOOKS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_stored_was_run_to_the_end_and_is_small(path: Path) -> None:
    notebook = read(path)
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    check_what_it_shows(path, notebook)
    assert path.stat().st_size < MOST_BYTES
    assert str(Path.home()) not in path.read_text()
    assert "/tmp" not in path.read_text()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_says_how_to_install_and_installs_nothing(path: Path) -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    assert set(EXTRAS) <= set(setup["options.extras_require"])
    wheel = f"seraphim_zero-{setup['metadata']['version']}-py3-none-any.whl"
    first, *others = read(path).cells
    assert first.cell_type == "markdown"
    assert f'`%pip install "./{wheel}[{",".join(EXTRAS)}]"`' in first.source
    assert "`make setup`" in first.source
    assert not [cell.source for cell in others if re.search(r"\b(pip|conda|uv|apt)\b", cell.source)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_lead_somewhere(path: Path) -> None:
    texts = [cell.source for cell in read(path).cells if cell.cell_type == "markdown"]
    links = re.findall(r"\]\(([^)#]+)", "\n".join(texts))
    assert links
    for link in links:
        assert (path.parent / link).exists(), link


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The kernel has a process of its own, and puts its files into folders of its own.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    notebook = read(path)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=600, resources=resources, coalesce_streams=True).execute()
    check_what_it_shows(path, notebook)
