"""The page docs/your-own-game.md, as it is written: its code, its commands, and what it says that they print."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from browser import ROOT, Visitor, chromium, needs_chromium, serving
from playwright.sync_api import expect
from tutorials import Tutorial, assert_same_form, program_of, run

PAGE = Tutorial("docs/your-own-game.md")
COMMANDS, SAID = PAGE.commands, PAGE.said
# What is appended to the page's commands, so that they take seconds: fewer games, readouts and steps. Merged positions
# would be trained on in the order of their words, which differ between the two forms.
SHORTER = {
    "seraphim learn": "--generations=2 --games_per_generation=12 --readouts=6 --steps=4 --workers=1 "
    "--noaverage_positions",
    "seraphim arena": "--games=2 --readouts=6",
}
TYPED = {"seraphim play": "d2d3\nq\n"}  # what a person types
MODEL = "my-breakthrough"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files of the page, in place of a clone."""
    folder = tmp_path_factory.mktemp("clone")
    PAGE.write_files(folder)
    return folder


@pytest.fixture(scope="module")
def printed(folder: Path) -> dict[str, str]:
    """Return what each command of the page prints, but for the server's, run in their order."""
    texts = {}
    for command in COMMANDS:
        program = program_of(command)
        if program != "seraphim serve":
            done = run(folder, f"{command} {SHORTER.get(program, '')}", TYPED.get(program, ""))
            assert done.returncode == 0, f"{command}: {done.stderr}"
            texts[command] = done.stdout
    return texts


def test_the_page_has_the_files_and_commands_that_are_run_here() -> None:
    assert PAGE.files == ["breakthrough.py", "breakthrough_fast.py"]
    assert [program_of(command) for command in COMMANDS] == [
        "seraphim check-game",
        "seraphim learn",
        "seraphim arena",
        "seraphim play",
        "seraphim serve",
        "seraphim view",
        "seraphim check-game",
        "seraphim learn",
    ]
    assert len(SAID) == 4


def test_the_check_prints_what_the_page_says(printed: dict[str, str]) -> None:
    first, second = (command for command in COMMANDS if "check-game" in command)
    assert printed[first].startswith(SAID[first])  # the same seed plays the same games
    agreement, *_ = SAID[second].splitlines()
    assert agreement in printed[second].splitlines()
    assert_same_form(SAID[second], printed[second])


@pytest.mark.parametrize("program", ["seraphim learn", "seraphim arena"])
def test_other_programs_print_what_the_page_says(program: str, printed: dict[str, str]) -> None:
    command = next(command for command in SAID if program_of(command) == program)
    assert_same_form(SAID[command], printed[command])


def test_both_forms_play_the_same_games_and_learn_the_same(printed: dict[str, str]) -> None:
    learned = [re.findall(r"trained .*loss [^;]*", printed[command]) for command in COMMANDS if "learn" in command]
    assert len(learned[0]) == 2
    assert learned[0] == learned[1]


def test_the_mistake_that_the_page_shows_is_found_as_it_is_shown(tmp_path: Path) -> None:
    PAGE.write_files(tmp_path)
    fast = tmp_path / "breakthrough_fast.py"
    broken = fast.read_text().replace("        successors[row, 1 - player] &= ~target\n", "")
    assert broken != fast.read_text()
    fast.write_text(broken)
    done = run(tmp_path, "seraphim check-game breakthrough breakthrough_fast --solve=0")
    assert done.returncode == 1
    assert done.stderr in [block.text for block in PAGE.blocks if block.kind == "text"]


def test_the_terminal_plays_a_move(printed: dict[str, str]) -> None:
    text = printed[f"seraphim play {MODEL}"]
    assert "B plays" in text
    assert "│ a3│ b3│" in text  # empty cells say their names, as those of moves are too long


def test_the_viewer_shows_a_game(printed: dict[str, str]) -> None:
    text = printed[f"seraphim view {MODEL}"]
    assert re.search(r"^4( [WB·]){5} ", text, flags=re.MULTILINE), text
    assert "← played" in text


@pytest.fixture(scope="module")
def address(folder: Path, printed: dict[str, str]) -> Iterator[str]:
    """Return where the page's server answers."""
    with serving(folder, MODEL, PYTHONPATH=os.pathsep.join([str(ROOT), str(folder)])) as url:
        yield url


def test_the_server_analyses_the_game(address: str) -> None:
    body = json.dumps({"model": MODEL, "moves": [], "readouts": 20}).encode()
    with urlopen(Request(f"{address}api/analyze", body, {"Content-Type": "application/json"}), timeout=60) as answer:
        labels = {candidate["label"] for candidate in json.load(answer)["candidates"]}
    assert {"a2a3", "d2e3"} <= labels
    assert len(labels) == 13


@needs_chromium
def test_a_piece_is_moved_in_the_explorer_by_its_cell_and_then_where_it_goes(address: str) -> None:
    with chromium() as browser:
        visitor = Visitor(browser, address)
        page = visitor.open(f"#model={MODEL}")
        cell = {name: page.get_by_role("button", name=re.compile(f"^{name}: ")) for name in ("b3", "c2", "c3", "d3")}
        expect(cell["c2"]).to_have_attribute("aria-disabled", "false")
        page.locator("#metric").get_by_label("Visits", exact=True).check()
        expect(page.locator(".opinion")).to_have_count(5)  # one where pieces land
        assert 10 <= page.locator(".arrow").count() <= 13  # one for each of thirteen moves that the search looked at
        cell["c2"].click()
        expect(page.locator(".opinion")).to_have_count(3)
        expect(cell["c2"]).to_have_class("chosen")
        expect(page.locator(".targets .landing")).to_have_count(3)
        expect(cell["b3"]).to_have_class("landing")
        cell["c2"].click()  # the piece is let go
        expect(page.locator(".targets .landing, .targets .chosen")).to_have_count(0)
        cell["b3"].click()  # which three pieces may go to
        cell["c2"].click()
        expect(cell["b3"]).to_have_accessible_name("b3: W")
        expect(cell["c2"]).to_have_accessible_name("c2: empty")
        expect(page.locator(".targets .landing, .targets .chosen")).to_have_count(0)
        visitor.close()
        assert not visitor.trouble
