"""The pages docs/game-of-dice.md and docs/puzzle.md, as they are written, but with less learning."""

import re
from pathlib import Path

import pytest
from tutorials import Tutorial, assert_same_form, program_of, run

SHORTER = {
    "docs/game-of-dice.md": {
        "seraphim learn": "--generations=2 --games_per_generation=100 --workers=1",
        "seraphim evaluate": "--searches=0,10 --max_positions=500",
    },
    "docs/puzzle.md": {
        "seraphim learn": "--generations=3 --games_per_generation=60 --workers=1",
        "seraphim evaluate": "--searches=0,10",
    },
}
TYPED = {"seraphim play": "2\nroll\n2\n6\nq\n"}  # what a person types
LARGER = "ROWS, COLUMNS, HARDEST = 3, 3, 31"

pytestmark = pytest.mark.slow


class Followed:
    """A page, a folder with its files, and what its commands print."""

    def __init__(self, page: str, folder: Path) -> None:
        self.page, self.folder, self.printed = Tutorial(page), folder, dict[str, str]()
        self.page.write_files(folder)
        for command in self.page.commands:
            if "8-puzzle" not in command and command not in self.printed:
                done = run(
                    folder,
                    f"{command} {SHORTER[page].get(program_of(command), '')}",
                    TYPED.get(program_of(command), ""),
                )
                assert done.returncode == 0, f"{command}: {done.stderr}"
                self.printed[command] = done.stdout

    def text_of(self, program: str) -> tuple[str, str]:
        """What the page says that a program prints, and what it prints."""
        command = next(command for command in self.page.said if program_of(command) == program)
        return self.page.said[command], self.printed[command]


@pytest.fixture(scope="module", params=SHORTER)
def followed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Followed:
    """Return a page that was followed."""
    return Followed(request.param, tmp_path_factory.mktemp("folder"))


def test_the_check_prints_what_the_page_says(followed: Followed) -> None:
    said, text = followed.text_of("seraphim check-game")
    assert text.startswith(said)  # the same seed plays the same games


def test_other_programs_print_what_the_page_says(followed: Followed) -> None:
    programs = {program_of(command) for command in followed.page.said} - {"seraphim check-game", "seraphim view"}
    assert programs >= {"seraphim learn", "seraphim evaluate"}
    for program in programs:
        assert_same_form(*followed.text_of(program))


def test_the_viewer_shows_games(followed: Followed) -> None:
    for text in followed.text_of("seraphim view"):
        assert re.search(r"^(player 0: +\d+|[\d·]( [\d·]){2}) .* █", text, flags=re.MULTILINE)
        assert re.search(r"^played +\w+ *$", text, flags=re.MULTILINE)


def test_the_page_shows_regrets(followed: Followed) -> None:
    said, text = followed.text_of("seraphim evaluate")
    assert re.search(r"regret, points +[\d.]+ +[\d.]+", said)
    assert re.search(r"regret, points +[\d.]+ +[\d.]+", text)


def test_the_small_puzzle_becomes_the_8_puzzle(tmp_path: Path) -> None:
    page = Tutorial("docs/puzzle.md")
    page.write_files(tmp_path)
    file = tmp_path / "puzzle.py"
    (line,) = (block.text for block in page.blocks if block.text.startswith(LARGER))
    code = re.sub("^ROWS, COLUMNS, HARDEST = .*\n", line, file.read_text(), flags=re.MULTILINE)
    assert code.count(LARGER) == 1
    file.write_text(f"{code}\nfound = [*distances().values()]\nprint(len(found), max(found), np.mean(found))\n")
    done = run(tmp_path, "python puzzle.py")
    positions, most, mean = done.stdout.split()
    assert (int(positions), int(most)) == (181_440, 31)
    assert float(mean) == pytest.approx(21.9724, abs=5e-5)
