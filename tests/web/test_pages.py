"""The explorer and the history page in a real browser, against the real server."""

import io
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import games
import numpy as np
import pytest
from browser import PHONE, ROOT, Visitor, box, needs_axe, needs_chromium, serving, violations
from PIL import Image
from playwright.sync_api import Browser, Page, Response, Route, WebSocket, WebSocketRoute, expect

import connectfour
import seraphim
import tictactoe
from seraphim.game import Game, PlainRules, load_game
from seraphim.game.notation import label_in
from seraphim.options import RecordOptions
from seraphim.records.examples import GameRecord, encode
from seraphim.records.writer import GameWriter
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder
from seraphim.training.trainer import bootstrap

pytestmark = [needs_chromium, pytest.mark.slow]

PATHS = [
    "#model=connectfour&moves=44353321",
    "#model=fresh&moves=b2",
    "history#model=connectfour",
    "history#model=fresh",
    "history#model=heap",
]
BREAKTHROUGH = "openspiel:breakthrough(rows=10,columns=5)"  # too high for a board; moves name what they capture, too
MODELS = {
    "stones": "othello",
    "hexagons": "hex",
    "swapping": "hex:7,swap",
    "pieces": "openspiel:chess",
    "crossings": "openspiel:go(board_size=9)",
    "men": "openspiel:checkers",
}
BOARDS = [
    "fresh&moves=b2,a1",
    "connectfour&moves=44",
    "stones",
    "hexagons&moves=d4,c5",
    "pieces",
    "men",
    "crossings&moves=73,5",
]
ENDED = re.compile(r"(wins|Draw) after \d+ moves")
expect.set_options(timeout=15_000)


@pytest.fixture(scope="module")
def address(_fresh_root: Path, small_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a server: the shipped model, a small one with games, and one of a game without a board."""
    root = tmp_path_factory.mktemp("served")
    shutil.copytree(_fresh_root, root, dirs_exist_ok=True, symlinks=True)
    shutil.copytree(ROOT / "models/connectfour", root / "models/connectfour", symlinks=True)
    heap = PlainRules(games.GAME)
    bootstrap(ModelFolder(root, "heap"), heap, replace(small_settings, game="games"), seed=1)
    with GameWriter(ModelFolder(root, "heap").game_data, RecordOptions()) as writer:
        writer.add(encode(heap, random_game(heap, 1)))
    for name, game in MODELS.items():
        bootstrap(ModelFolder(root, name), load_game(game), replace(small_settings, game=game), seed=1)
    breakthrough = load_game(BREAKTHROUGH)
    bootstrap(ModelFolder(root, "named"), breakthrough, replace(small_settings, game=BREAKTHROUGH), seed=1)
    with GameWriter(ModelFolder(root, "named").game_data, RecordOptions()) as writer:
        writer.add(encode(breakthrough, random_game(breakthrough, 1)))
    with GameWriter(ModelFolder(root, "fresh").game_data, RecordOptions()) as writer:
        for number in range(20):
            writer.add(encode(tictactoe.GAME, random_game(tictactoe.GAME, number)))
    with serving(root, "connectfour", PYTHONPATH=f"{ROOT}{os.pathsep}{ROOT / 'tests/support'}") as url:
        yield url


def random_game(game: Game, number: int) -> GameRecord:
    """A game by random moves, with random policies."""
    random = np.random.default_rng(number)
    states, actions, policies = [game.initial(1)], [], []
    while not game.outcome(states[-1])[0][0]:
        legal = game.legal(states[-1])[0]
        policies.append(random.dirichlet(np.ones(len(legal))) * legal)
        policies[-1] /= policies[-1].sum()
        actions.append(random.choice(np.flatnonzero(legal)))
        states.append(game.step(states[-1], np.array(actions[-1:])))
    return GameRecord(
        game_id=f"game-{number}",
        states=np.concatenate(states[:-1]),
        actions=np.array(actions),
        policies=np.array(policies, np.float32),
        root_values=random.uniform(-1, 1, len(actions)).astype(np.float32),
        result=float(game.outcome(states[-1])[1][0]),
    )


def status(page: Page) -> str:
    return page.locator("#status").inner_text()


def analyzed(page: Page, readouts: int = 400) -> None:
    """Wait until the current position has at least this many readouts and the engine is idle."""
    expect(page.locator("#figures")).to_have_text(re.compile(r"\d+ readouts"))
    expect(page.locator("#figures")).not_to_have_class(re.compile("busy"))
    assert number(page) >= readouts or "exact" in page.locator("#figures").inner_text()


def shown(page: Page) -> None:
    """Wait until a page, either of the two, is complete."""
    if "history" in page.url:
        expect(page.locator("#tiles")).not_to_be_empty()
        expect(page.locator("#total")).not_to_be_empty()
    else:
        analyzed(page)


def number(page: Page) -> int:
    """The readouts that are shown."""
    found = re.match(r"([\d,]+) readouts", page.locator("#figures").inner_text())
    return int(found[1].replace(",", "")) if found else 0


def settled_number(page: Page) -> int:
    """The readouts shown once the engine's last update after a stop has arrived."""
    before = -1
    while (now := number(page)) != before:
        before = now
        page.wait_for_timeout(500)
    return now


def shared(page: Page) -> dict[str, str]:
    """What the dialog to share a position offers."""
    page.click("#share")
    found = {name: page.input_value(f"#share-{name}") for name in ("link", "moves", "drawing")}
    page.click("#share-dialog .close")
    return found


def choose(page: Page, **options: str) -> None:
    """Choose in selects, by id; `_` stands for `-`."""
    for name, value in options.items():
        page.select_option(f"#{name.replace('_', '-')}", value)


def priors(page: Page) -> dict[str, str]:
    """The prior of each move in the table."""
    rows = page.locator("#candidates tbody tr").all()
    return {row.locator("button").inner_text(): row.locator("td").first.inner_text() for row in rows}


def priors_of_the_server(page: Page, url: str, model: str, moves: list[int]) -> dict[str, str]:
    answer = page.request.post(f"{url}api/analyze", data={"model": model, "moves": moves, "readouts": 400}).json()
    return {each["label"]: percent(each["prior"]) for each in answer["candidates"]}


def focused(page: Page) -> str:
    """The text of what has the focus, or its name where it has no text."""
    return page.evaluate("(({textContent, ariaLabel}) => ariaLabel ?? textContent)(document.activeElement)")


def choose_metric(page: Page, name: str) -> None:
    """Choose the numbers on the board."""
    page.locator("#metric").get_by_label(name, exact=True).check()


def two_people(page: Page) -> None:
    choose(page, player_0="human", player_1="human")


def replay(game: Game, moves: list[str]) -> str:
    """The status that the page should show for a finished game, by the rules."""
    states = game.initial(1)
    for move in moves:
        assert not game.outcome(states)[0][0]
        states = game.step(states, np.array([game.parse_action(move)]))
    ended, results = game.outcome(states)
    assert ended[0]
    names = {
        1.0: {"connectfour": "Red wins", "tictactoe": "X wins"},
        -1.0: {"connectfour": "Yellow wins", "tictactoe": "O wins"},
    }
    return f"{names[float(results[0])][game.name] if results[0] else 'Draw'} after {len(moves)} moves"


# ---------------------------------------------------------------- the first visit


@pytest.mark.parametrize(
    ("model", "names", "goal"),
    [
        ("connectfour", ["Red", "Yellow"], "Connect four of your discs in a row: across, down or diagonally."),
        ("hexagons", ["Blue", "Orange"], "Connect the two sides of the board in your color."),
        ("stones", ["Black", "White"], "Enclose your opponent's discs in a line to turn them over: most discs win."),
        ("fresh", ["X", "O"], "Get three of your marks in a row."),
    ],
)
def test_the_first_visit_says_the_goal_and_who_one_is_and_keeps_numbers_away(
    visitor: Visitor, model: str, names: list[str], goal: str
) -> None:
    page = visitor.open(f"#model={model}")
    analyzed(page)
    assert [page.locator(f"#name-{player}").inner_text() for player in (0, 1)] == names
    expect(page.locator("#goal")).to_have_text(f"{goal} You are {names[0]}.")
    assert page.locator("#board .opinion").count() == 0
    assert [page.locator(f"#discs-{player}").inner_text() for player in (0, 1)] == ["2" * (model == "stones")] * 2
    assert page.locator("#strength option:checked").inner_text() == "Beginner"
    expect(page.locator("#engine")).not_to_be_visible()
    page.click("#swap")
    expect(page.locator("#goal")).to_have_text(f"{goal} You are {names[1]}.")
    page.click("#help")
    expect(page.locator("#engine")).to_be_visible()


def test_the_history_leads_back_to_the_game(visitor: Visitor) -> None:
    page = visitor.open("#model=hexagons&moves=d4")
    analyzed(page)
    page.click("#to-history")
    expect(page.locator("#title")).to_have_text("Learning history of hexagons")
    page.click("#to-explorer")
    expect(page.locator("#moves button")).to_have_count(1)
    assert shared(page)["moves"] == "d4"


def test_another_game_is_begun_by_the_user_in_its_own_colors(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour")
    analyzed(page)
    page.click("#flip")
    page.click("#swap")
    expect(page.locator("#player-0")).to_have_value("computer")
    choose(page, model="stones")
    expect(page.locator("#name-0")).to_have_text("Black")
    expect(page.locator("#player-0")).to_have_value("human")
    expect(page.locator("#goal")).to_contain_text("You are Black.")


def test_a_game_without_a_goal_says_none(visitor: Visitor) -> None:
    page = visitor.open("#model=named")
    two_people(page)
    expect(page.locator("#status")).to_have_text("First to move")
    expect(page.locator("#goal")).not_to_be_visible()


def test_a_page_that_loads_looks_as_if_it_loads(visitor: Visitor) -> None:
    page = visitor.context().new_page()
    waiting: list[WebSocketRoute] = []
    page.route_web_socket("**/api/engine", lambda route: waiting.append(route))  # noqa: PLW0108  # nobody answers
    page.goto(f"{visitor.url}#model=connectfour")
    expect(page.locator("#status")).to_have_text("Loading …")
    expect(page.locator("#expectation")).to_have_class("expectation unknown")
    assert page.locator("#explorer").evaluate("(element) => element.inert")
    assert [page.locator(f"#name-{player}").inner_text() for player in (0, 1)] == ["", ""]
    assert box(page.locator("#board"))["height"] > 300  # room for the board, which pushes nothing down


def test_a_beginner_plays_otherwise_each_time(visitor: Visitor) -> None:
    page = visitor.open("#model=fresh")
    played = set()
    for _ in range(3):
        choose(page, player_0="computer", player_1="computer", strength="0")
        expect(page.locator("#status")).to_have_text(ENDED)
        played.add(shared(page)["moves"])
        page.click("#new")
    assert len(played) > 1


def test_analysis_is_a_switch(visitor: Visitor) -> None:
    page = visitor.open("#model=fresh")
    choose_metric(page, "Visits")
    analyzed(page)
    analysis = page.get_by_role("switch", name="Analysis")
    expect(analysis).to_be_checked()
    expect(page.locator("#board .opinion")).to_have_count(9)
    page.keyboard.press("a")
    expect(analysis).not_to_be_checked()
    expect(page.locator("#board .opinion")).to_have_count(9)  # what was found stays
    two_people(page)
    page.keyboard.press("5")
    expect(page.locator("#nothing")).to_have_text("Switch the analysis on to see what the model thinks of each move.")
    expect(page.locator("#board .opinion")).to_have_count(0)
    expect(page.locator("#candidates tbody tr")).to_have_count(0)
    analysis.check()
    expect(page.locator("#board .opinion")).to_have_count(8)


@pytest.mark.parametrize("device", [{"viewport": {"width": 1280, "height": 900}}, {**PHONE}])
def test_few_moves_are_listed_and_the_others_on_demand(visitor: Visitor, device: dict[str, Any]) -> None:
    page = visitor.open("#model=hexagons&moves=d4", **device)
    review = page.locator("#course-title")
    before = box(review)["y"]
    analyzed(page)
    rows = page.locator("#candidates tbody tr")
    expect(rows).to_have_count(10)
    page.get_by_role("button", name="38 more").click()
    expect(rows).to_have_count(48)
    assert box(review)["y"] - before < device["viewport"]["height"]
    page.get_by_role("button", name="Fewer").click()
    expect(rows).to_have_count(10)


# ---------------------------------------------------------------- playing


def test_another_program_plays_on_the_page(browser: Browser, small_settings: Settings, tmp_path: Path) -> None:
    path = os.pathsep.join([os.environ["PATH"], "/usr/games"])  # where Debian puts games
    if not shutil.which("gtp-rhino", path=path):
        pytest.skip("not installed: apt install grhino")
    for name, game in (("stones", "othello"), ("marks", "tictactoe")):
        bootstrap(ModelFolder(tmp_path, name), load_game(game), replace(small_settings, game=game), seed=1)
    othello = load_game("othello")
    diagram = othello.render(othello.step(othello.initial(1), np.array([othello.parse_action("d3")]))[0])
    with serving(tmp_path, "stones", "--engine=gtp:gtp-rhino --level=1", PATH=path) as url:
        visitor = Visitor(browser, url)
        page = visitor.open("#model=stones")
        expect(page.locator("#player-1 option")).to_have_text(["You", "Computer", "GTP GRhino"])
        choose(page, player_1="program")
        for turn in range(2):
            page.locator(".targets button:not([aria-disabled=true])").first.click()
            expect(page.locator("#moves button").nth(2 * turn + 1)).to_be_visible()
            expect(page.locator("#status")).to_have_text("Black to move")
        analyzed(page)
        choose(page, player_0="computer", strength="10")  # the model against the program
        expect(page.locator("#moves button").nth(9)).to_be_visible()
        choose(page, player_0="human")
        page.click("#load")
        page.fill("#load-text", diagram)
        page.click("#load-dialog .primary")
        expect(page.locator("#pause")).to_have_text("Resume")
        page.click("#pause")
        said = "GTP GRhino follows games from the initial position only: begin a new game"
        expect(page.locator("#notices")).to_contain_text(said)
        expect(page.locator("#status")).to_have_text("GTP GRhino is waiting")
        expect(page.locator("#pause")).to_have_text("Resume")
        choose(page, model="marks")
        expect(page.locator("#player-1 option")).to_have_text(["You", "Computer"])
        expect(page.locator("#player-1")).to_have_value("computer")
        assert not visitor.trouble
        visitor.close()


def test_moves_are_labeled_as_in_their_position(visitor: Visitor) -> None:
    # A game without a board, and with actions that are numbers to us.
    game = load_game(BREAKTHROUGH)
    page = visitor.open("#model=named")
    two_people(page)
    played: list[str] = []
    state = game.initial(1)
    for _ in range(3):
        actions = np.flatnonzero(game.legal(state)[0])
        labels = [label_in(game, state[0], action) for action in actions.tolist()]
        expect(page.locator("#board button")).to_have_text(labels)
        page.locator("#board button", has_text=labels[0]).first.click()
        played.append(f"Move {len(played) + 1}: {labels[0]}")
        expect(page.locator("#moves button")).to_have_text(played)
        state = game.step(state, actions[:1])
    analyzed(page)
    variation = [label_in(game, state[0], action) for action in np.flatnonzero(game.legal(state)[0]).tolist()]
    assert set(page.locator("#candidates button").all_inner_texts()) <= set(variation)
    link, moves = shared(page)["link"], shared(page)["moves"]
    assert [f"Move {place}: {move}" for place, move in enumerate(moves.split(), start=1)] == played
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator("#moves button")).to_have_text(played)


def test_a_whole_game_is_played_by_mouse(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour")
    choose(page, strength="10")
    for turn in range(21):
        expect(page.locator("#status")).to_have_text(re.compile("Red to move| after "))
        if ENDED.search(status(page)):
            break
        page.locator(".targets button:not([aria-disabled=true])").first.click()
        expect(page.locator("#moves button").nth(2 * turn)).to_be_visible()
    expect(page.locator("#status")).to_have_text(ENDED)
    said, _, verdict = status(page).partition(": ")
    assert said == replay(connectfour.GAME, list(shared(page)["moves"]))
    assert verdict == {"Red": "you win!", "Yel": "you lose", "Dra": ""}[said[:3]]


def test_a_whole_game_is_played_by_touch_on_a_phone(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour&moves=44444435", **PHONE)
    two_people(page)
    for column in (3, 5, 3, 5, 3):
        page.locator(".targets button").nth(column - 1).tap()
    expect(page.locator("#status")).to_have_text("Red wins after 13 moves")
    assert page.locator(".winning").count() == 4


def test_a_whole_game_is_played_by_arrows_and_enter_on_a_phone(visitor: Visitor) -> None:
    page = visitor.open("#model=fresh", **PHONE)
    two_people(page)
    expect(page.locator("#status")).to_have_text("X to move")
    page.locator(".targets button[tabindex='0']").focus()  # the middle
    ways = "", "Up", "Left", "Down Down Right Right", "Up", "Left Left"
    for count, way in enumerate(ways, start=1):
        for arrow in way.split():
            page.keyboard.press(f"Arrow{arrow}")
        page.keyboard.press("Enter")
        expect(page.locator("#moves button")).to_have_count(count)
    assert shared(page)["moves"] == "b2,b1,a1,c3,c2,a2"


def test_a_whole_game_is_played_by_digits(visitor: Visitor) -> None:
    page = visitor.open("#model=fresh")
    two_people(page)
    page.locator("#new").focus()
    for digit in "52937":
        page.keyboard.press(digit)
        expect(page.locator("#moves button")).to_have_count("52937".index(digit) + 1)
    assert shared(page)["moves"] == "b2,b1,c3,c1,a3"


def test_the_computer_plays_itself_to_the_end_after_a_pause(visitor: Visitor) -> None:
    page = visitor.open("#model=fresh")
    choose(page, strength="10", player_1="computer", player_0="computer")
    page.click("#pause")
    expect(page.locator("#status")).to_contain_text("is waiting")
    page.click("#pause")
    expect(page.locator("#status")).to_have_text(ENDED)
    assert status(page) == replay(tictactoe.GAME, shared(page)["moves"].split(","))


def test_switching_sides_lets_the_computer_begin(visitor: Visitor) -> None:
    page = visitor.open("#model=fresh")
    choose(page, strength="10")
    page.click("#swap")
    expect(page.locator("#status")).to_have_text("O to move")
    expect(page.locator("#moves button")).to_have_count(1)


def let_the_computer_think(page: Page) -> None:
    """Make a move, and wait until the computer has thought about its own for longer than it must wait."""
    choose(page, strength="25600")
    expect(page.locator("#status")).to_have_text("Red to move")
    page.keyboard.press("4")
    expect(page.locator("#figures")).to_have_text(re.compile(r"^[\d,]{5,} readouts"))
    page.wait_for_timeout(600)


def test_the_best_move_so_far_is_played_once(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour")
    let_the_computer_think(page)
    page.click("#move-now")
    expect(page.locator("#moves button")).to_have_count(2)
    expect(page.locator("#status")).to_have_text("Red to move")
    analyzed(page)
    expect(page.locator("#moves button")).to_have_count(2)


@pytest.mark.parametrize("text", ["", "1 2 3"], ids=["new", "loaded"])
def test_another_game_replaces_one_in_which_the_computer_thinks(visitor: Visitor, text: str) -> None:
    page = visitor.open("#model=connectfour")
    let_the_computer_think(page)
    if text:
        page.click("#load")
        page.fill("#load-text", text)
        page.click("#load-form .primary")
    else:
        page.click("#new")
    moves = [int(label) - 1 for label in text.split()]
    expect(page.locator("#moves button")).to_have_count(len(moves))
    expect(page.locator(".piece")).to_have_count(len(moves))
    analyzed(page)
    assert priors(page) == priors_of_the_server(page, visitor.url, "connectfour", moves)
    assert shared(page)["moves"] == text.replace(" ", "")


def test_a_new_game_is_searched_though_the_old_one_was_asked_for_meanwhile(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour&moves=4435")
    two_people(page)
    analyzed(page)
    page.evaluate(
        """() => {
          document.getElementById('new').click();
          document.getElementById('amount').value = '1600';
          document.getElementById('amount').dispatchEvent(new Event('change'));
        }"""
    )
    expect(page.locator("#moves button")).to_have_count(0)
    analyzed(page, 1600)
    assert priors(page) == priors_of_the_server(page, visitor.url, "connectfour", [])


def test_swapped_colors_swap_the_names(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour")
    expect(page.locator("#status")).to_have_text("Red to move")
    color = "() => getComputedStyle(document.getElementById('turn-dot')).backgroundColor"
    red = page.evaluate(color)
    page.click("#flip")
    expect(page.locator("#status")).to_have_text("Yellow to move")
    assert page.evaluate(color) != red


def test_a_disc_drops_only_if_animations_are_allowed(visitor: Visitor) -> None:
    running = "() => document.querySelector('#board').getAnimations({subtree: true}).length"
    for motion, moves in (("no-preference", True), ("reduce", False)):
        page = visitor.open("#model=connectfour", reduced_motion=motion)
        two_people(page)
        page.locator(".targets button").nth(3).click()
        expect(page.locator(".piece")).to_have_count(1)
        assert bool(page.evaluate(running)) is moves


def test_a_game_without_a_board_is_played_by_buttons(visitor: Visitor) -> None:
    page = visitor.open("#model=heap&moves=take 3,take 3,take 3")
    two_people(page)
    expect(page.locator("pre.drawing")).to_have_text("(6, 1)")
    page.get_by_role("group", name="Board").get_by_text("take 3").click()
    expect(page.locator("pre.drawing")).to_have_text("(3, 0)")
    page.get_by_role("group", name="Board").get_by_text("take 3").click()
    expect(page.locator("#status")).to_have_text("First wins after 5 moves")


def test_on_any_grid_a_piece_is_moved_by_its_two_cells(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour")
    played = page.evaluate(
        """async () => {
          const {BoardView} = await import('./board/board.js');
          const {loadStyle} = await import('./board/styles.js');
          const cells = Array.from({length: 6}, () => Array(6).fill(-1));
          [cells[5][0], cells[5][1]] = [0, 0];
          const targets = {3: [[4, 0], [5, 0]], 7: [[4, 1], [5, 0]], 9: [[4, 1], [5, 1]]};
          const board = {rows: 6, columns: 6, cells, marks: ['w', 'b'], targets};
          const shown = {board, text: '', to_play: 0, line: [], labels: {3: 'a2', 7: 'axb2', 9: 'b2'}};
          const played = [];
          const view = new BoardView(document.createElement('div'), (action) => played.push(action));
          const names = ['w', 'b'];
          const style = await loadStyle(board);
          const setting = {style, names, playable: true, animate: false, last: null, initial: shown};
          view.show(shown, setting);
          const buttons = view.element.querySelectorAll('button');
          for (const cell of [30, 25, 31, 24]) buttons[cell].click();
          return [view.element.querySelector('svg').classList.value, buttons.length, played];
        }"""
    )
    assert played == ["drawing grid", 36, [7, 3]] or played == ["drawing grid", 36, [7, 9, 3]]


def test_stones_are_flipped_and_a_player_passes(visitor: Visitor) -> None:
    page = visitor.open("#model=stones&moves=d3,c3,e6,d2,d1,e1,b2", reduced_motion="no-preference")
    two_people(page)
    expect(page.locator("#status")).to_have_text("White to move")
    expect(page.locator(".piece.player-0")).to_have_count(9)
    page.evaluate(
        """() => {
          const animate = Element.prototype.animate;
          window.animated = [];
          Element.prototype.animate = function (frames, timing) {
            if (this.closest('.piece')) window.animated.push(String(frames[0].transform));
            return animate.call(this, frames, timing);
          };
        }"""
    )
    page.get_by_role("button", name="c1: empty").click()
    expect(page.locator("#status")).to_have_text("Black must pass")
    expect(page.locator(".piece.player-1")).to_have_count(4)
    assert page.evaluate("() => window.animated.sort()") == ["scale(0.6)", "scaleX(0)", "scaleX(1)"]
    page.get_by_role("button", name="Pass", exact=True).click()
    expect(page.locator("#status")).to_have_text("White to move")
    expect(page.get_by_role("button", name="Pass", exact=True)).to_have_count(0)
    expect(page.locator(".piece")).to_have_count(12)
    assert shared(page)["moves"].endswith(",c1,pass")


def test_legal_cells_are_hinted_at_where_they_are_few_unless_numbers_are_there(visitor: Visitor) -> None:
    page = visitor.open("#model=stones&moves=d3")
    two_people(page)
    expect(page.locator("#board .hint")).to_have_count(3)
    choose_metric(page, "Visits")
    expect(page.locator("#board .opinion")).to_have_count(3)
    expect(page.locator("#board .hint")).to_have_count(0)


def test_hexagons_are_played_where_they_are_drawn(visitor: Visitor) -> None:
    page = visitor.open("#model=hexagons")
    two_people(page)
    expect(page.locator(".drawing.hexagons path.square")).to_have_count(49)
    for cell, player in (("a1", 0), ("g1", 1), ("c6", 0), ("g7", 1)):
        button = page.get_by_role("button", name=f"{cell}: empty")
        place = box(button)
        button.click()
        expect(page.get_by_role("button", name=f"{cell}: {('Blue', 'Orange')[player]}")).to_be_visible()
        disc = box(page.locator(f".piece.player-{player} .disc").last)
        assert abs(place["x"] + place["width"] / 2 - disc["x"] - disc["width"] / 2) < 1.5
        assert abs(place["y"] + place["height"] / 2 - disc["y"] - disc["height"] / 2) < 1.5


def test_pieces_are_swapped_by_a_button(visitor: Visitor) -> None:
    page = visitor.open("#model=swapping")
    two_people(page)
    swap = page.get_by_role("button", name="Swap pieces", exact=True)
    expect(page.locator(".drawing.hexagons")).to_be_visible()
    expect(swap).to_have_count(0)
    page.get_by_role("button", name="a3: empty").click()
    swap.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="c1: Orange")).to_be_visible()
    expect(page.get_by_role("button", name="a3: empty")).to_be_visible()
    expect(page.locator(".piece:not(.faint)")).to_have_count(1)
    expect(page.locator("#status")).to_have_text("Blue to move")
    expect(swap).to_have_count(0)
    assert shared(page)["moves"] == "a3,swap-pieces"
    expect(page.locator("#moves button")).to_have_text(["Move 1: a3", "Move 2: swap-pieces"])
    page.get_by_role("button", name="a3: empty").click()
    expect(page.locator(".piece:not(.faint)")).to_have_count(2)
    again = visitor.open("#model=swapping&moves=a3,swap-pieces,a3")
    expect(again.locator(".piece.player-1")).to_have_count(1)
    expect(again.locator(".piece.player-0")).to_have_count(1)


def test_a_disc_that_turns_never_vanishes(visitor: Visitor) -> None:
    page = visitor.open("#model=stones&moves=d3,c3,c4,c5,b4", reduced_motion="no-preference")
    two_people(page)
    expect(page.locator("#status")).to_have_text("White to move")
    page.evaluate(
        """() => {
          window.least = [];
          const visible = ({transform}) => Math.abs(new DOMMatrix(transform).a) > 0.001;
          const count = () => {
            const cells = new Set();
            for (const piece of document.querySelectorAll('#board .piece'))
              if (visible(getComputedStyle(piece.firstElementChild))) cells.add(piece.getAttribute('transform'));
            window.least.push(cells.size);
            requestAnimationFrame(count);
          };
          document.querySelectorAll('.piece').length === 9 && count();
        }"""
    )
    page.get_by_role("button", name="a5: empty").click()
    expect(page.locator(".piece.player-1")).to_have_count(6)
    expect(page.locator(".piece")).to_have_count(10)
    counts = page.evaluate("least")
    assert len(counts) > 10
    assert min(counts) >= 9


def squares(page: Page, *names: str) -> None:
    """Click cells of a board, by their names."""
    for name in names:
        page.get_by_role("button", name=re.compile(f"^{name}: ")).click()


def test_chess_is_played_by_clicks_on_its_squares(visitor: Visitor) -> None:
    page = visitor.open("#model=pieces")
    two_people(page)
    expect(page.locator(".drawing.pieces .figure")).to_have_count(32)
    expect(page.locator("#status")).to_have_text("White to move")
    squares(page, "e2", "e4", "d7", "d5", "e4", "d5")
    expect(page.locator("#moves button")).to_have_text(["Move 1: e4", "Move 2: d5", re.compile("^Move 3: exd5")])
    expect(page.locator(".piece")).to_have_count(31)
    mark, cell = box(page.locator(".last-cell")), box(page.locator(".targets button").nth(27))
    assert box(page.get_by_role("button", name="d5: ♙")) == cell
    assert abs(mark["x"] + mark["width"] / 2 - cell["x"] - cell["width"] / 2) < 2
    page.click("#flip")
    expect(page.locator("#status")).to_have_text("White to move")


def test_a_pawn_is_promoted_by_a_button(visitor: Visitor) -> None:
    page = visitor.open("#model=pieces")
    two_people(page)
    for number, move in enumerate("e2e4 d7d5 e4d5 g8f6 d5d6 f6d5 d6c7 b8c6".split(), start=1):
        squares(page, move[:2], move[2:])
        expect(page.locator("#moves button")).to_have_count(number)
    squares(page, "c7", "d8")
    expect(page.locator(".others button")).to_have_count(4)
    page.get_by_role("button", name="cxd8=N", exact=True).click()
    expect(page.get_by_role("button", name="d8: ♘")).to_be_visible()
    expect(page.locator(".others button")).to_have_count(0)


def test_go_is_played_on_crossings_and_by_passes(visitor: Visitor) -> None:
    page = visitor.open("#model=crossings")
    two_people(page)
    expect(page.locator("#status")).to_have_text("Black to move")
    squares(page, "j9")
    expect(page.get_by_role("button", name="j9: Black")).to_be_visible()
    for count in (2, 3):
        page.get_by_role("button", name="Pass", exact=True).click()
        expect(page.locator("#moves button")).to_have_count(count)
    expect(page.locator("#status")).to_have_text(re.compile("(Black|White) wins after 3 moves"))


def test_a_text_that_is_a_grid_is_drawn(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour")
    expect(page.locator(".drawing.rack")).to_be_visible()
    drawn = page.evaluate(
        """async (texts) => {
          const {drawText} = await import('./board/styles/text.js');
          return texts.map((text) => {
            const [image] = drawText(text);
            if (image.tagName !== 'svg') return null;
            const count = (what) => image.querySelectorAll(what).length;
            const names = [...image.querySelectorAll('.edge-name')].map(({textContent}) => textContent);
            return [count('.square'), count('.piece'), names.join('')];
          });
        }""",
        [render(name) for name in DRAWN],
    )
    assert dict(zip(DRAWN, drawn, strict=True)) == DRAWN


DRAWN = {  # squares, pieces, and the names at the edge
    "clobber": [30, 30, "54321abcdef"],
    "connect_four": [42, 0, ""],
    "gomoku(size=9)": [81, 0, ""],
    "lines_of_action": [64, 24, "87654321abcdefgh"],
    "othello": [64, 4, "12345678abcdefgh"],
    "xiangqi": [90, 32, ""],
    "antichess": [64, 32, ""],
    "tic_tac_toe": [9, 0, ""],
    "hex(board_size=5)": None,  # rows are shifted
    "chinese_checkers": None,
    "dots_and_boxes": None,
    "nine_mens_morris": None,
    "ultimate_tic_tac_toe": None,  # nine grids
    "nim": None,
    "twixt": None,
}


def render(name: str) -> str:
    game = load_game(f"openspiel:{name}")
    return game.render(game.initial(1)[0])


def test_a_page_loads_only_the_style_of_its_board(visitor: Visitor) -> None:
    page = visitor.open("#model=stones")
    expect(page.locator(".drawing.stones")).to_be_visible()
    files = "() => performance.getEntriesByType('resource').map(({name}) => name.match(/styles\\/(.*)\\.js/)?.[1])"
    assert [name for name in page.evaluate(files) if name] == ["stones"]
    choose(page, model="hexagons")
    expect(page.locator(".drawing.hexagons")).to_be_visible()
    assert [name for name in page.evaluate(files) if name] == ["stones", "hexagons"]


# ---------------------------------------------------------------- the search


def test_the_board_shows_the_selected_metric(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour&moves=44")
    analyzed(page)
    rows = page.locator("#candidates tbody tr")
    cells = [row.locator("th, td").all_inner_texts() for row in rows.all()]
    for metric, column in (("prior", 1), ("q", 3), ("visits", 2)):
        page.check(f"#metric input[value={metric}]")
        on_board = page.locator(".opinion .main").all_text_contents()
        in_table = [row[column].replace("\n", "").split(" · ")[-1].removesuffix(" ✓") for row in cells]
        assert sorted(on_board) == sorted(in_table), metric
    page.check("#metric input[value=off]")
    expect(page.locator(".opinion")).to_have_count(0)


def test_the_table_shows_the_servers_numbers(visitor: Visitor) -> None:
    page = visitor.open("#model=fresh&moves=b2,a1")
    analyzed(page)
    assert priors(page) == priors_of_the_server(page, visitor.url, "fresh", [4, 0])


def test_pointing_at_a_candidate_shows_its_variation_on_the_board(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour&moves=44")
    analyzed(page)
    best = page.locator("#candidates tbody tr").first
    variation = [best.locator("button").inner_text(), *best.locator(".variation").text_content().split()]
    best.hover()
    expect(page.locator(".step-number")).to_have_text([str(number) for number in range(1, len(variation) + 1)])
    expect(page.locator(".opinion")).to_have_count(0)
    page.mouse.move(0, 0)
    expect(page.locator(".step-number")).to_have_count(0)


def test_a_search_until_stopped_goes_on_until_stopped(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour")
    choose(page, amount="Infinity")
    expect(page.locator("#figures")).to_have_text(re.compile(r"^\d\d,\d{3} readouts"))
    page.click("#analyze")
    expect(page.locator("#figures")).not_to_have_class(re.compile("busy"))
    stopped = settled_number(page)
    page.check("#metric input[value=q]")
    page.locator("#candidates tbody tr").last.hover()
    assert number(page) == stopped > 10_000


def test_a_search_is_not_repeated_after_a_move(visitor: Visitor) -> None:
    page = visitor.context().new_page()
    messages: list[tuple[str, str]] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framesent", lambda text: messages.append(("sent", json.loads(text)["type"])))
        socket.on("framereceived", lambda text: messages.append(("received", json.loads(text)["type"])))

    page.on("websocket", listen)
    page.goto(f"{visitor.url}#model=connectfour")
    two_people(page)
    choose(page, amount="Infinity")
    for count, move in enumerate("4453", start=1):
        expect(page.locator("#figures")).to_have_text(re.compile(r"\d,\d{3} readouts"))
        messages.clear()
        page.keyboard.press(move)
        expect(page.locator("#moves button")).to_have_count(count)
        expect(page.locator("#figures")).to_have_text(re.compile(r"readouts"))
        begin, end = messages.index(("sent", "position")), messages.index(("received", "position"))
        assert ("sent", "think") not in messages[begin:end]


def test_exact_results_are_those_of_the_solver(visitor: Visitor) -> None:
    page = visitor.open("#model=fresh&moves=b2,b1")
    page.check("#solution")
    (solved,) = tictactoe.position_sets()
    (place,) = np.flatnonzero((solved.states == [1 << 4, 1 << 1]).all(axis=1))
    names = {1.0: "win", 0.0: "draw", -1.0: "loss"}
    values = solved.action_values[place]
    expected = {
        tictactoe.GAME.action_label(int(action)): names[float(values[action])]
        for action in np.flatnonzero(~np.isnan(values))
    }
    expect(page.locator("g.solution")).to_have_count(len(expected))
    shown = {
        row.locator("button").inner_text(): row.locator("td.solution-cell").inner_text()
        for row in page.locator("#candidates tbody tr").all()
    }
    assert {move: text.split()[0] for move, text in shown.items()} == expected


def test_exact_results_are_not_promised_in_a_game_without_a_solver(visitor: Visitor) -> None:
    page = visitor.open("#model=fresh&moves=b2,a2")
    page.check("#solution")
    expect(page.locator("g.solution")).to_have_count(7)
    choose(page, model="hexagons")
    expect(page.locator(".drawing.hexagons")).to_be_visible()
    expect(page.locator("#solution-note")).to_be_empty()
    page.keyboard.press("t")  # means nothing here
    expect(page.locator("#solution-note")).to_be_empty()
    choose(page, model="fresh")
    expect(page.locator("g.solution")).to_have_count(9)


def test_exact_results_follow_the_analysis_of_a_game(visitor: Visitor) -> None:
    page = visitor.open("#model=fresh&moves=b2,a1,a2,c2,b1")
    analyzed(page)
    page.evaluate("document.getElementById('review').click(); document.getElementById('solution').click()")
    expect(page.locator("#solution-note")).to_have_text("Solving …")
    expect(page.locator("g.solution")).to_have_count(4)
    expect(page.locator("#review")).to_have_text("Analyze game")
    expect(page.locator("#solution-note")).to_be_empty()


def test_analyze_game_analyzes_every_position(visitor: Visitor) -> None:
    page = visitor.open("#model=fresh&moves=b2,a1,a2,c2,b1")
    choose(page, amount="100")
    page.click("#review")
    expect(page.locator("#graph .curve")).to_have_attribute("d", re.compile(r"^M( ?[\d.]+ [\d.]+( L)?){6}$"))
    expect(page.locator("#review")).to_have_text("Analyze game")
    expect(page.locator("#graph")).to_have_attribute("aria-valuenow", "5")


BLUNDERS = "a1,b1,c3,a3,b2"  # of both sides; X wins


def listed_worst(page: Page) -> list[list[str]]:
    """The moves that the page lists as the worst of each side."""
    expect(page.locator("#worst h3")).to_have_count(2)
    return [side.locator("button").all_inner_texts() for side in page.locator("#worst > div").all()]


def test_an_analyzed_game_lists_the_worst_moves_of_a_review(visitor: Visitor) -> None:
    page = visitor.open(f"#model=fresh&moves={BLUNDERS}")
    expect(page.locator("#graph")).to_have_attribute("aria-valuenow", "5")
    expect(page.locator("#worst")).to_be_empty()
    page.click("#review")
    review = seraphim.Model("tictactoe").review(BLUNDERS.replace(",", " "))
    expected = [
        [f"move {each.ply} {each.label} lost {each.lost:.0%}" for each in review.worst(side)] for side in (0, 1)
    ]
    assert [[text.split(", better ")[0] for text in side] for side in listed_worst(page)] == expected
    assert [len(side) for side in expected] == [1, 2]
    expect(page.locator("#worst")).to_contain_text("Each lost at least 20% of a win")
    assert page.locator("#moves .doubt").count() == len(review.mistakes)
    expect(page.get_by_role("status").filter(has_text="The worst moves of each side are listed.")).to_have_count(1)


def test_the_end_of_an_analyzed_game_is_solved_backward(visitor: Visitor) -> None:
    page, told = visitor.context().new_page(), []
    page.on("websocket", lambda socket: socket.on("framesent", lambda text: told.append(json.loads(text))))
    page.goto(f"{visitor.url}#model=fresh&moves={BLUNDERS}")
    page.click("#review")
    listed_worst(page)
    places = [len(each["moves"]) if each["type"] == "position" else each["type"] for each in told]
    solved = [at for at, place in enumerate(places) if place == "solve"]
    asked = [[place for place in places[:at] if isinstance(place, int)][-1] for at in solved]
    assert asked
    assert asked == [4, 3, 2, 1, 0][: len(asked)]  # fewer on a slow machine


def test_a_worst_move_is_gone_to_by_mouse_and_by_keyboard(visitor: Visitor) -> None:
    page = visitor.open(f"#model=fresh&moves={BLUNDERS}")
    page.click("#review")
    (first,), (second, _) = listed_worst(page)
    page.locator("#worst").get_by_role("button", name=first).click()
    expect(page.locator("#graph")).to_have_attribute("aria-valuenow", first.split()[1])
    assert page.locator("#worst [aria-current='true']").all_inner_texts() == [first]
    button = page.locator("#worst").get_by_role("button", name=second)
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#graph")).to_have_attribute("aria-valuenow", second.split()[1])
    choose(page, amount="1600")  # which draws the list again, if need be
    button.focus()
    analyzed(page)
    expect(button).to_be_focused()
    assert page.locator("#worst [aria-current='true']").all_inner_texts() == [second]


def test_the_worst_moves_are_those_of_the_game_that_is_shown(visitor: Visitor) -> None:
    page = visitor.open(f"#model=fresh&moves={BLUNDERS}")
    page.click("#review")
    listed = listed_worst(page)
    two_people(page)
    page.click("#back")
    assert listed_worst(page) == listed
    page.get_by_role("button", name="a2: empty").click()  # another game from here on
    expect(page.locator("#worst")).to_be_empty()
    page.click("#review")
    assert [len(side) for side in listed_worst(page)] == [2, 2]
    page.click("#moves button:has-text('b2')")
    expect(page.locator("#worst")).to_be_empty()  # the last line that was analyzed is the other one
    page.click("#review")
    assert listed_worst(page) == listed
    page.click("#new")
    expect(page.locator("#worst")).to_be_empty()


def test_what_a_review_does_is_said_even_if_the_game_is_over(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour&moves=444373534725356")
    choose(page, amount="10000")
    page.click("#review")
    expect(page.locator("#status")).to_have_text(re.compile("Analyzing move [0-9]+ of 15 …"))
    page.click("#review")
    expect(page.locator("#status")).to_have_text("Red wins after 15 moves: you win!")
    expect(page.locator("#worst")).to_be_empty()


def test_a_lost_connection_is_noticed_and_the_search_goes_on(visitor: Visitor) -> None:
    context = visitor.context()
    routes: list[WebSocketRoute] = []
    page = context.new_page()

    def through(route: WebSocketRoute) -> None:
        route.connect_to_server()
        routes.append(route)

    page.route_web_socket("**/api/engine", through)
    page.goto(f"{visitor.url}#model=connectfour&moves=4435")
    choose(page, amount="100000")
    expect(page.locator("#figures")).to_have_text(re.compile(r"^\d,\d{3} readouts"))
    before = number(page)
    page.route_web_socket("**/api/engine", lambda route: route.close())
    routes[-1].close()
    expect(page.locator("#connection")).to_be_visible()
    page.route_web_socket("**/api/engine", through)
    expect(page.locator("#connection")).to_be_hidden()
    expect(page.locator("#figures")).to_have_class(re.compile("busy"))
    expect(page.locator("#figures")).to_have_text(re.compile(r"^\d{2,3},\d{3} readouts"))
    assert number(page) > before
    assert shared(page)["moves"] == "4435"


def test_a_connection_that_was_closed_as_idle_opens_again_when_it_is_needed(visitor: Visitor) -> None:
    context = visitor.context()
    routes: list[WebSocketRoute] = []
    page = context.new_page()

    def through(route: WebSocketRoute) -> None:
        route.connect_to_server()
        routes.append(route)

    page.route_web_socket("**/api/engine", through)
    page.goto(f"{visitor.url}#model=connectfour&moves=4435")
    two_people(page)
    analyzed(page)
    routes[-1].close(code=4000)
    page.wait_for_timeout(1000)
    assert len(routes) == 1
    expect(page.locator("#connection")).to_be_hidden()
    page.keyboard.press("4")
    expect(page.locator("#moves button")).to_have_count(5)
    analyzed(page)
    assert len(routes) == 2
    assert shared(page)["moves"] == "44354"


def test_a_page_for_which_there_is_no_room_asks_less_and_less_often(visitor: Visitor) -> None:
    context = visitor.context()
    # Time passes quickly on this page, which notes for how long it wants to wait.
    context.add_init_script(
        """const later = window.setTimeout;
        window.waits = [];
        window.setTimeout = (then, wait) => (window.waits.push(wait), later(then, wait / 50));
        Math.random = () => 0.5;"""
    )
    page = context.new_page()
    refused = 0

    def refuse(route: WebSocketRoute) -> None:
        nonlocal refused
        refused += 1
        route.send(json.dumps({"id": None, "type": "error", "message": "server at capacity: try again later"}))
        route.close(code=1013)

    page.route_web_socket("**/api/engine", refuse)
    page.goto(f"{visitor.url}#model=connectfour&moves=4435")
    while refused < 8:
        page.wait_for_timeout(50)
    connecting = [wait for wait in page.evaluate("waits") if wait <= 5000]
    assert connecting[:6] == [250, 500, 1000, 2000, 4000, 5000]
    expect(page.locator("#connection")).to_be_visible()
    expect(page.locator("#announcement")).to_be_empty()
    page.route_web_socket("**/api/engine", lambda route: route.connect_to_server() and None)
    expect(page.locator("#connection")).to_be_hidden()
    analyzed(page)
    assert shared(page)["moves"] == "4435"


def test_two_tabs_do_not_disturb_each_other(visitor: Visitor) -> None:
    context = visitor.context()
    tabs = []
    for moves in ("444", "1234567"):
        tab = context.new_page()
        tab.goto(f"{visitor.url}#model=connectfour&moves={moves}")
        choose(tab, player_0="human", player_1="human", amount="10000")
        tabs.append(tab)
    for tab in tabs:
        tab.keyboard.press("7")
    for tab, moves in zip(tabs, ("4447", "12345677"), strict=True):
        tab.bring_to_front()
        expect(tab.locator("#moves button")).to_have_count(len(moves))
        expect(tab.locator("#figures")).to_have_text(re.compile(r"^\d\d?,\d{3} readouts"))
        assert shared(tab)["moves"] == moves


# ---------------------------------------------------------------- the game


def test_undo_also_takes_back_the_computers_answer(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour")
    choose(page, strength="10")
    expect(page.locator("#status")).to_have_text("Red to move")
    page.keyboard.press("4")
    expect(page.locator("#moves button")).to_have_count(2)
    expect(page.locator("#status")).to_have_text("Red to move")
    page.keyboard.press("u")
    expect(page.locator(".piece")).to_have_count(0)
    expect(page.locator("#status")).to_have_text("Red to move")
    page.keyboard.press("r")
    expect(page.locator(".piece")).to_have_count(2)


def test_an_alternative_move_makes_a_branch(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour&moves=4435")
    two_people(page)
    page.click("#back")
    page.keyboard.press("2")
    expect(page.locator("#moves .branch button")).to_have_text(re.compile("^Move 4: 2"))
    page.get_by_role("button", name=re.compile("^Move 4 : 5")).click()
    assert shared(page)["moves"] == "4435"
    page.get_by_role("button", name=re.compile("^Move 4 : 2")).click()
    assert shared(page)["moves"] == "4432"
    page.click("#remove")
    expect(page.locator("#moves button")).to_have_count(4)
    assert shared(page)["moves"] == "4435"
    expect(page.locator("#graph")).to_have_attribute("aria-valuenow", "3")


def test_a_move_made_before_the_position_arrives_is_played(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour&moves=4435")
    two_people(page)
    page.evaluate(
        "document.querySelector('#back').click();"
        "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '2', bubbles: true}))"
    )
    expect(page.locator("#moves .branch button")).to_have_text(re.compile("^Move 4: 2"))


def test_the_graph_leads_to_each_position(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour&moves=44353321")
    expect(page.locator(".piece")).to_have_count(8)
    graph = box(page.locator("#graph"))
    page.mouse.click(graph["x"] + 52 + (graph["width"] - 62) * 3 / 8, graph["y"] + 40)
    expect(page.locator(".piece")).to_have_count(3)
    page.locator("#graph").press("ArrowRight")
    expect(page.locator(".piece")).to_have_count(4)
    page.locator("#graph").press("Home")
    expect(page.locator(".piece")).to_have_count(0)


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("4 4 3", "443"),
        (connectfour.GAME.render(connectfour.position_from_moves("1122")), "1122"),
        ("......./......./......./......./...O.../..XX...", "443"),
    ],
    ids=["moves", "as drawn at a terminal", "as a line"],
)
def test_moves_and_board_diagrams_are_loaded(visitor: Visitor, text: str, moves: str) -> None:
    page = visitor.open("#model=connectfour")
    page.click("#load")
    page.fill("#load-text", text)
    page.click("#load-form .primary")
    expect(page.locator("#load-dialog")).to_be_hidden()
    assert shared(page)["drawing"] == connectfour.GAME.render(connectfour.position_from_moves(moves))


def test_invalid_input_to_load_shows_an_error_and_keeps_the_game(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour&moves=4435")
    page.click("#load")
    page.fill("#load-text", "44x")
    page.click("#load-form .primary")
    expect(page.locator("#load-error")).to_have_text(re.compile(r"^Move 3.*'x'.*\.$"))
    page.keyboard.press("Escape")
    assert shared(page)["moves"] == "4435"


@pytest.mark.parametrize(
    ("model", "load", "keys"), [("connectfour", "4435", "7"), ("fresh", "b2 a1", "3"), ("fresh", ".X./.O./X..", "1")]
)
def test_a_shared_link_shows_the_same_position_elsewhere(visitor: Visitor, model: str, load: str, keys: str) -> None:
    page = visitor.open(f"#model={model}")
    two_people(page)
    page.click("#load")
    page.fill("#load-text", load)
    page.click("#load-form .primary")
    expect(page.locator("#load-dialog")).to_be_hidden()
    page.keyboard.press(keys)
    count = len(load) + 1 if load == "4435" else 3 + ("." in load)
    expect(page.locator(".piece")).to_have_count(count)
    found = shared(page)
    other = visitor.open(found["link"].removeprefix(visitor.url))
    expect(other.locator(".piece")).to_have_count(count)
    assert shared(other) == found
    page.click("#load")
    page.fill("#load-text", found["link"].replace(f"&moves={found['moves']}", f"&moves={found['moves']}&ply=0"))
    page.click("#load-form .primary")
    expect(page.locator("#graph")).to_have_attribute("aria-valuenow", "0")


def test_an_invalid_link_shows_an_error(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour&moves=4444444")
    expect(page.locator(".notice")).to_contain_text("Move 7, 4, is not legal")
    page = visitor.open("#model=nobody")
    expect(page.locator(".notice")).to_contain_text("no model “nobody”")
    expect(page.locator("#status")).to_have_text("Red to move")


def test_another_model_and_snapshot_can_be_chosen(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour&moves=44")
    choose(page, model="fresh")
    expect(page.locator("#status")).to_have_text("X to move")
    expect(page.locator(".drawing.lines")).to_be_visible()
    snapshots = page.locator("#snapshot option").all_inner_texts()
    assert snapshots == ["champion", "step 0"]
    page.keyboard.press("Escape")
    page.select_option("#snapshot", index=1)
    expect(page).to_have_url(re.compile("&snapshot="))  # until then, the page shows what it showed before
    analyzed(page)
    assert "&snapshot=" in shared(page)["link"]


# ---------------------------------------------------------------- the history page


def test_a_self_play_game_is_replayed_with_its_policy(visitor: Visitor) -> None:
    page = visitor.open("history#model=fresh")
    expect(page.locator("#games tbody tr").first).to_have_class("chosen")
    summary = page.request.get(f"{visitor.url}api/models/fresh/games?limit=16").json()
    assert summary["total"] == 20
    page.locator("#games tbody tr").nth(2).click()
    expect(page.locator("#games tbody tr").nth(2)).to_have_class("chosen")
    identity = summary["games"][2]["game_id"]
    game = page.request.get(f"{visitor.url}api/models/fresh/games/{identity}").json()
    page.click("#forward")
    second = game["positions"][1]
    expect(page.locator("#played")).to_contain_text(f"plays {second['label']}")
    expect(page.locator(".piece")).to_have_count(sum(mark >= 0 for row in second["board"]["cells"] for mark in row))
    expected = sorted(percent(share) for share in second["policy"].values() if share)
    assert sorted(page.locator(".opinion .main").all_text_contents()) == expected
    page.click("#older")
    expect(page.locator("#range")).to_have_text("17–20")


class Delay:
    """Holds back the answers to the requests of a page for one address, until they are let through."""

    def __init__(self, page: Page, address: str) -> None:
        self._page, self._held = page, list[Route]()
        page.route(address, lambda route: self._held.append(route))  # noqa: PLW0108  # Playwright marks the handler

    def end(self) -> None:
        (held,) = self._held
        with self._page.expect_event("requestfinished", lambda request: request.url == held.request.url):
            held.continue_()
        self._page.wait_for_timeout(200)  # for what the page does with the answer


def test_the_games_are_those_of_the_model_chosen_last(visitor: Visitor) -> None:
    page = visitor.open("history#model=fresh")
    expect(page.locator("#total")).to_have_text("20 stored")
    delay = Delay(page, "**/api/models/named/games?*")
    choose(page, model="named")
    expect(page.locator("#title")).to_have_text("Learning history of named")
    choose(page, model="fresh")
    expect(page.locator("#games tbody tr").first).to_have_class("chosen")
    delay.end()
    expect(page.locator("#total")).to_have_text("20 stored")
    expect(page.locator("#games tbody tr")).to_have_count(16)


@pytest.mark.parametrize("next_model", [None, "connectfour"])
def test_the_game_that_is_replayed_is_the_one_chosen_last(visitor: Visitor, next_model: str | None) -> None:
    page = visitor.open("history#model=fresh")
    rows = page.locator("#games tbody tr")
    expect(rows.first).to_have_class("chosen")
    delay = Delay(page, f"**/games/{rows.nth(1).get_attribute('data-game')}")
    rows.nth(1).click()
    if next_model:
        choose(page, model=next_model)
        expect(page.locator("#total")).to_contain_text("none stored")
        delay.end()
        expect(page.locator("#replay")).to_be_hidden()
    else:
        rows.nth(2).click()
        expect(rows.nth(2)).to_have_class("chosen")
        delay.end()
        expect(rows.nth(2)).to_have_class("chosen")


def percent(share: float) -> str:
    shown = int(100 * share + 0.5)
    return f"{shown}%" if shown else "<1%"


def test_a_self_play_game_opens_in_the_explorer_at_its_position(visitor: Visitor) -> None:
    page = visitor.open("history#model=fresh")
    page.click("#forward")
    page.click("#forward")
    count = page.locator(".piece").count()
    page.click("#explore")
    expect(page.locator("#model")).to_have_value("fresh")
    expect(page.locator(".piece")).to_have_count(count)
    expect(page.locator("#graph")).to_have_attribute("aria-valuenow", "2")


def test_learning_curves_are_drawn_with_their_values(visitor: Visitor) -> None:
    page = visitor.open("history#model=connectfour")
    curves = page.request.get(f"{visitor.url}api/models/connectfour/curves").json()["series"]
    plot = page.locator(".plot", has_text="Error rate with search")
    names = [name.removeprefix("searched_mistakes/") for name in curves if name.startswith("searched_mistakes/")]
    expect(plot.locator(".key")).to_have_text(names)
    plot.locator(".canvas").focus()
    page.keyboard.press("End")
    for name in names:
        share = 100 * curves[f"searched_mistakes/{name}"][-1][1]
        expect(plot.locator(".tip")).to_contain_text(f"{name}{share:.3g}%")
    plot.locator(".key").first.click()
    expect(plot.locator("g.series")).to_have_count(len(names) - 1)
    path = plot.locator("g.series path").first.get_attribute("d")
    plot.locator(".scale").click()
    expect(plot.locator("g.series path").first).not_to_have_attribute("d", path or "")
    expect(page.locator("#total")).to_contain_text("none stored")


def test_strength_is_one_curve_with_its_interval(visitor: Visitor) -> None:
    page = visitor.open("history#model=connectfour")
    curves = page.request.get(f"{visitor.url}api/models/connectfour/curves").json()["series"]
    elo, low, high = (f"{curves[f'strength/{part}'][-1][1]:,.0f}" for part in ("elo", "low", "high"))
    plot = page.locator(".plot", has_text="Strength")
    expect(plot.locator(".keys")).to_have_text("Eloshaded: 95% interval")
    expect(plot.locator("g.series")).to_have_count(1)
    drawn = box(plot.locator(".band"))
    line = box(plot.locator("g.series path").last)
    assert drawn["y"] < line["y"]
    assert drawn["y"] + drawn["height"] > line["y"] + line["height"]
    plot.locator(".canvas").focus()
    page.keyboard.press("End")
    expect(plot.locator(".tip")).to_contain_text(f"Elo{elo} ({low} to {high})")


def test_zero_is_labeled_on_a_logarithmic_axis(visitor: Visitor) -> None:
    plot = visitor.open("history#model=connectfour").locator(".plot", has_text="Error rate with search")
    expect(plot.locator(".scale")).to_have_attribute("aria-pressed", "true")
    expect(plot.locator(".y-name")).to_have_text(["0%", "2%", "5%", "10%"])
    zero, two = (box(plot.locator(".grid").nth(place)) for place in range(2))
    assert zero["y"] > two["y"] + 20


def given(visitor: Visitor, **series: list[list[float]]) -> Page:
    """The history page of a model whose curves are these, by name; `__` stands for `/`."""
    page = visitor.context().new_page()
    named = {name.replace("__", "/"): points for name, points in series.items()}
    page.route("**/api/models/fresh/curves", lambda route: route.fulfill(json={"steps": [], "series": named}))
    page.goto(f"{visitor.url}history#model=fresh")
    return page


@pytest.mark.parametrize(
    ("seconds", "said", "axis"),
    [
        (0.2, "under 1 s", "seconds"),
        (5.91, "6 s", "seconds"),
        (125, "2 min 5 s", "minutes"),
        (599.7, "10 min", "minutes"),
        (735, "12 min", "minutes"),
        (12_000, "3 h 20 min", "hours"),
        (86_400, "24 h", "hours"),
    ],
)
def test_times_have_units_that_a_person_says(visitor: Visitor, seconds: float, said: str, axis: str) -> None:
    learned = {"learning__seconds": [[3, seconds / 2], [6, seconds]], "training__loss": [[3, 1.5], [6, 0.99967]]}
    page = given(visitor, **learned)
    expect(page.locator("#tiles div", has_text="training time")).to_have_text(f"training time{said}")
    expect(page.locator("#tiles div", has_text="final loss")).to_have_text("final loss1.00")
    page.check("#axis [value=time]")
    expect(page.locator(".plot .canvas")).to_have_attribute("aria-label", f"Losses, by {axis}")


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (None, "This model has no learning curves yet: seraphim learn writes them."),
        ([[3, 1.5]], "No curve has two points yet: each generation of seraphim learn adds one."),
        ([[3, 1.5], [6, 1.25]], None),
    ],
)
def test_curves_that_are_missing_say_what_writes_them(
    visitor: Visitor, loss: list[list[float]] | None, said: str | None
) -> None:
    page = given(visitor, **({"training__loss": loss} if loss else {}))
    expect(page.locator("#plots > *")).to_have_count(1)
    expect(page.locator(".nothing")).to_have_text([said] if said else [])


def test_a_game_without_a_board_is_replayed_without_buttons_of_moves(visitor: Visitor) -> None:
    page = visitor.open("history#model=heap")
    moves = page.locator("#board .targets button")
    expect(moves).to_have_text(["take 1", "take 2", "take 3"])
    assert moves.first.evaluate("(move) => getComputedStyle(move).borderStyle") == "none"
    expect(page.locator(".replay .legend")).to_have_text(re.compile("^ *Curve: "), use_inner_text=True)
    choose(page, model="fresh")
    expect(page.locator(".replay .legend")).to_have_text(re.compile("^Board: .* Curve: "), use_inner_text=True)


def test_the_history_of_another_model_than_the_linked_one_says_so(visitor: Visitor) -> None:
    page = visitor.open("history#model=nobody")
    expect(page.locator(".notice")).to_contain_text("There is no model “nobody” here: this is connectfour.")
    expect(page.locator("#title")).to_have_text("Learning history of connectfour")
    expect(page.locator("#model")).to_have_value("connectfour")


# ---------------------------------------------------------------- accessibility and speed


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_wider_than_a_phone(visitor: Visitor, path: str) -> None:
    page = visitor.open(path, **PHONE)
    shown(page)
    if "fresh&" in path:
        page.check("#solution")
        expect(page.locator("g.solution")).to_have_count(8)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    beyond = "[...document.querySelectorAll('.panel')].filter((panel) => panel.scrollWidth > panel.clientWidth).length"
    assert page.evaluate(beyond) == 0


@pytest.mark.parametrize("path", BOARDS)
def test_pieces_stand_out_and_edges_are_legible_on_a_phone(visitor: Visitor, path: str) -> None:
    page = visitor.open(f"#model={path}", **{**PHONE, "viewport": {"width": 390, "height": 844}})
    expect(page.locator("#board svg.drawing")).to_be_visible()
    expect(page.locator(".piece.player-1")).not_to_have_count(0)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for found in page.evaluate(CONTRASTS):
            assert found["contrast"] >= 3, f"{scheme}: {found}"
    sizes = page.evaluate(
        """() => [...document.querySelectorAll('#board .edge-name, #board .rack-label')].map((name) =>
          parseFloat(getComputedStyle(name).fontSize) * name.getScreenCTM().a)"""
    )
    assert len(sizes) >= 6
    assert min(sizes) >= 10


CONTRASTS = """() => {
  const context = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
  const luminance = (color) => {
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    const linear = [...context.getImageData(0, 0, 1, 1).data].slice(0, 3)
      .map((each) => each / 255).map((each) => (each > 0.04 ? ((each + 0.055) / 1.055) ** 2.4 : each / 12.92));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const color = (selector, property) => {
    const element = document.querySelector(`#board ${selector}`);
    return element ? getComputedStyle(element)[property] : null;
  };
  const page = getComputedStyle(document.documentElement).backgroundColor;
  const image = document.querySelector('#board .drawing').classList;
  const grounds = image.contains('rack') || image.contains('lines') ? [page]
    : image.contains('crossings') ? [color('.frame', 'fill')]
    : [color('.square', 'fill'), color('.square.odd', 'fill') ?? color('.square', 'fill')];
  const found = [];
  for (const player of [0, 1]) {
    const of = (part, property) => color(`.piece.player-${player} ${part}`, property);
    const shown = [of('.disc', 'fill'), of('.figure', 'fill'), of('.figure', 'stroke'), of('.stroke', 'stroke')];
    if (image.contains('crossings')) shown.push(of('.disc', 'stroke'));
    if (image.contains('rack')) shown.push(of('.disc-ridge', 'stroke'));
    for (const ground of grounds) {
      const most = Math.max(...shown.filter((each) => each && each !== 'none').map((each) => contrast(each, ground)));
      found.push({what: `player ${player} on ${ground}`, contrast: most});
    }
  }
  if (image.contains('hexagons'))
    found.push({what: 'lines', contrast: contrast(color('.square', 'stroke'), color('.square', 'fill'))});
  return found;
}"""


def test_the_focus_begins_at_a_legal_cell_in_the_middle(visitor: Visitor) -> None:
    for model, name in (("stones", "f5: empty"), ("fresh", "b2: empty"), ("hexagons", "d4: empty")):
        page = visitor.open(f"#model={model}")
        two_people(page)
        expect(page.locator(".targets button[tabindex='0']")).to_have_count(1)
        expect(page.locator(".targets button[tabindex='0']")).to_have_attribute("aria-label", name)


def test_an_illegal_cell_says_so(visitor: Visitor) -> None:
    page = visitor.open("#model=stones")
    two_people(page)
    page.get_by_role("button", name="a1: empty").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#announcement")).to_have_text("a1 is not legal")
    page = visitor.open("#model=connectfour&moves=444444")
    two_people(page)
    page.locator(".targets button").nth(3).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#announcement")).to_have_text("Column 4 is not legal")


@needs_axe
@pytest.mark.parametrize("path", PATHS)
def test_axe_finds_nothing_wrong(visitor: Visitor, path: str) -> None:
    page = visitor.open(path)
    shown(page)
    assert violations(page) == []


@needs_axe
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("board", BOARDS)
def test_axe_finds_nothing_wrong_with_any_board(visitor: Visitor, board: str, width: int) -> None:
    page = visitor.open(f"#model={board}", viewport={"width": width, "height": 900})
    choose_metric(page, "Visits")
    analyzed(page)
    page.click("#analyze")
    assert violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("board", BOARDS)
def test_numbers_and_players_stand_out(visitor: Visitor, board: str, scheme: str) -> None:
    page = visitor.open(f"#model={board}", color_scheme=scheme)
    for metric in ("Prior", "Visits", "Q"):
        choose_metric(page, metric)
        analyzed(page)
        texts = page.locator("#board .opinion text").evaluate_all(
            """(texts) => texts.map((text) => {
              const [{x, y, width, height}, {fill, stroke}] = [text.getBoundingClientRect(), getComputedStyle(text)];
              text.style.visibility = 'hidden';
              const [color, halo] = [fill, stroke].map((each) => each.match(/[0-9.]+/g)?.map(Number) ?? [0, 0, 0, 0]);
              return [text.textContent, x + width / 2, y + height / 2, color, halo];
            })"""
        )
        assert texts
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        low = []
        for text, x, y, color, halo in texts:
            share = halo[3] if len(halo) == 4 else 1  # of the color around the letters, over what is behind
            ground = share * np.array(halo[:3]) + (1 - share) * np.array(picture.getpixel((x, y)))
            if contrast(color, ground) < 4.5:
                low.append((text, color, ground))
        assert low == []
    grounds = page.evaluate(
        """() => ['--outline', '--panel', '--page'].map((name) => {
          document.documentElement.style.color = `var(${name})`;
          return getComputedStyle(document.documentElement).color.match(/[0-9.]+/g).map(Number);
        })"""
    )
    assert min(contrast(grounds[0], ground) for ground in grounds[1:]) >= 3  # around the dots and the bar


def contrast(one: Any, other: Any) -> float:
    """The contrast of two colors, each of 0 to 255, by the Web Content Accessibility Guidelines."""
    linear = [
        [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in np.array(color[:3]) / 255]
        for color in (one, other)
    ]
    low, high = sorted(float(np.dot([0.2126, 0.7152, 0.0722], each)) for each in linear)
    return (high + 0.05) / (low + 0.05)


@needs_axe
def test_axe_finds_nothing_wrong_with_dialogs_and_what_comes_up(visitor: Visitor) -> None:
    page = visitor.open("#model=fresh&moves=b2,a1,a2,c2,b1")
    two_people(page)
    page.check("#solution")
    page.click("#review")
    expect(page.locator("g.solution")).to_have_count(4)
    page.keyboard.press("9")
    page.evaluate("document.getElementById('connection').hidden = false")
    assert violations(page) == []
    for name in ("load", "share", "help"):
        page.click(f"#{name}")
        assert violations(page) == [], name
        page.keyboard.press("Escape")


@needs_axe
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_wrong_with_the_worst_moves(visitor: Visitor, width: int) -> None:
    page = visitor.open(f"#model=fresh&moves={BLUNDERS}", viewport={"width": width, "height": 900})
    page.click("#review")
    listed_worst(page)
    page.locator("#worst button").first.click()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_moves_are_announced_to_screen_readers(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour")
    two_people(page)
    page.keyboard.press("4")
    expect(page.get_by_role("status").filter(has_text="Red: 4. Yellow to move")).to_have_count(1)
    expect(page.get_by_role("button", name="Column 4, from the bottom: Red, 5 free")).to_have_count(1)


def test_the_focus_stays_on_a_move_of_a_game_without_a_board(visitor: Visitor) -> None:
    page = visitor.open("#model=heap")
    two_people(page)
    page.get_by_role("group", name="Board").get_by_text("take 3").focus()
    for count in range(1, 4):
        page.keyboard.press("Enter")
        expect(page.locator("#moves button")).to_have_count(count)
        assert focused(page) == "take 3"


def test_the_focus_goes_to_a_move_if_its_own_is_over(visitor: Visitor) -> None:
    page = visitor.open("#model=named")
    two_people(page)
    page.locator("#board button").nth(1).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#moves button")).to_have_count(1)
    assert focused(page) == page.locator("#board button").first.inner_text()


def test_the_focus_stays_on_pass_and_then_returns_to_the_board(visitor: Visitor) -> None:
    page = visitor.open("#model=stones&moves=d3,c3,e6,d2,d1,e1,b2,c1")
    two_people(page)
    page.get_by_role("button", name="Pass", exact=True).focus()
    page.keyboard.press("f")  # which draws everything again
    expect(page.locator("#flip")).to_have_attribute("aria-pressed", "true")
    assert focused(page) == "Pass"
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Pass", exact=True)).to_have_count(0)
    assert focused(page) == page.locator(".targets button[tabindex='0']").get_attribute("aria-label")


def test_the_focus_stays_in_the_list_of_moves(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour&moves=44")
    two_people(page)
    first = page.locator("#moves button").first
    first.focus()
    page.keyboard.press("3")
    expect(page.locator("#moves button")).to_have_count(3)
    expect(first).to_be_focused()


def test_keyboard_shortcuts_can_be_disabled(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour")
    expect(page.locator("#status")).to_have_text("Red to move")
    page.click("#help")
    page.uncheck("#shortcuts")
    page.click("#help-dialog .close")
    page.keyboard.press("4")
    page.reload()
    expect(page.locator("#status")).to_have_text("Red to move")
    page.keyboard.press("4")
    page.locator(".targets button").nth(2).click()
    expect(page.locator("#moves button").first).to_have_text(re.compile("^Move 1: 3"))


def test_cached_files_are_not_requested_again(visitor: Visitor) -> None:
    page = visitor.open("#model=connectfour")
    expect(page.locator("#status")).to_have_text("Red to move")
    asked: list[str] = []
    page.on("response", lambda response: asked.append(response.url) if not from_cache(response) else None)
    page.goto(f"{visitor.url}history#model=connectfour")
    shown(page)
    page.goto(f"{visitor.url}#model=connectfour")
    expect(page.locator("#status")).to_have_text("Red to move")
    again = [url for url in asked if "/static/" in url and re.search(r"/(board|dom|format|plot)\.", url)]
    assert sorted(url.rpartition("/")[2] for url in again) == ["plot.js"]  # which the first page does not have


def from_cache(response: Response) -> bool:
    return response.request.timing["requestStart"] < 0


def test_the_first_paint_takes_less_than_a_second(visitor: Visitor) -> None:
    for path in ("", "history"):
        page = visitor.open(path)
        expect(page.locator(".panel").first).to_be_visible()
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        assert paint < 1000, path
