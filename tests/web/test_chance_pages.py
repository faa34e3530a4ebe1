"""Games of chance, for one and for three on the explorer: with the real server, and as a site without one."""

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from browser import PHONE, ROOT, Visitor, box, needs_axe, needs_chromium, serving, violations
from playwright.sync_api import Browser, Page, expect

import seraphim
from seraphim.export import site
from seraphim.export.site import Chosen
from seraphim.game import load_game
from seraphim.game.notation import followers, parse_moves
from seraphim.storage.models import ModelFolder

pytestmark = [needs_chromium, pytest.mark.slow]

PIG = "roll,4,roll,6,hold,roll,5,roll,1"
TILES = "a1=2,b1=2,left,b1=4"
CUBE = "n2,R,U"
THREES = "b2,a1,d1,c2,a2,d2,a3,c1,c3"  # X must keep O from b1
BACKGAMMON = "X31,8/5"
expect.set_options(timeout=15_000)


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of data with a new model of backgammon."""
    root = tmp_path_factory.mktemp("untrained")
    command = [sys.executable, "bin/train.py", "backgammon", "--init", "--game=backgammon"]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "SERAPHIM_DATA": str(root)}, check=True, capture_output=True)
    return root


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, untrained: Path) -> Iterator[str]:
    """Return the address of a server of models that come with Seraphim, and of a new one."""
    root = tmp_path_factory.mktemp("served")
    shutil.copytree(untrained / "models", root / "models", symlinks=True)
    for name in ("pig", "twenty48-2x3", "cube", "threes"):
        shutil.copytree(ROOT / "models" / name, root / "models" / name, symlinks=True)
    for name in ("twenty48-2x3", "threes"):
        command = [sys.executable, "bin/generate_games.py", name, "--games=3", "--readouts=4", "--workers=1"]
        environment = {**os.environ, "SERAPHIM_DATA": str(root)}
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    with serving(root, "pig") as url:
        yield url


def moves_of(page: Page) -> list[str]:
    """The labels in the list of moves, without the marks of mistakes."""
    return [text.removesuffix("\n?").split("\n")[-1] for text in page.locator("#moves button").all_inner_texts()]


def legal(name: str, moves: list[str]) -> None:
    """Check that the rules allow moves and outcomes."""
    game = load_game(name)
    state = game.initial(1)
    for action in parse_moves(game, " ".join(moves)):
        assert followers(game, state)[0, action]
        state = game.step(state, np.array([action]))


def seen(page: Page) -> str:
    """The drawing of the position in text."""
    page.click("#share")
    drawing = page.input_value("#share-drawing")
    page.click("#share-dialog .close")
    return drawing


def test_the_page_rolls_the_die_and_shows_it(visitor: Visitor) -> None:
    page = visitor.open("#model=pig")
    expect(page.locator("#goal")).to_contain_text("You are Blue.")
    expect(page.locator("#status")).to_have_text("Blue to move")
    page.get_by_role("button", name="Roll the die").click()
    expect(page.locator("#moves button").nth(1)).to_be_visible()
    roll, outcome = moves_of(page)[:2]
    assert roll == "roll"
    assert outcome in "123456"
    pips = page.locator("#board svg.race circle")
    if page.locator("#moves button").count() == 2:
        expect(pips).to_have_count(int(outcome))
    expect(page.locator("#announcement")).to_have_text(re.compile(r"(Chance: [1-6]|Orange: (roll|hold)|Blue: roll)"))


def test_a_whole_game_of_pig_is_played_out(visitor: Visitor) -> None:
    page = visitor.open("#model=pig")
    page.select_option("#strength", "1")
    page.select_option("#player-0", "computer")
    for _ in range(150):
        if re.search("wins after", page.locator("#status").inner_text()):
            break
        page.wait_for_timeout(1000)
    expect(page.locator("#status")).to_have_text(re.compile(r"^(Blue|Orange) wins after \d+ moves$"))
    legal("pig", moves_of(page))


def test_a_real_roll_is_entered_by_hand_and_by_key(visitor: Visitor) -> None:
    page = visitor.open("#model=pig")
    page.select_option("#player-1", "human")
    page.locator("#rolls-choice").click()
    page.get_by_role("button", name="Roll the die").click()
    expect(page.locator("#status")).to_have_text("Chance moves")
    expect(page.locator(".others button")).to_have_count(6)
    expect(page.locator("#figures")).to_have_text("")
    page.get_by_role("button", name="5", exact=True).click()
    expect(page.locator("#status")).to_have_text("Blue to move")
    page.keyboard.press("1")  # the first of two moves
    expect(page.locator("#status")).to_have_text("Chance moves")
    page.keyboard.press("6")
    expect(page.locator("#moves button")).to_have_count(4)
    assert seen(page) == "player 0:   0  +11\nplayer 1:   0"
    page.get_by_role("button", name="hold").first.click()
    expect(page.locator("#status")).to_have_text("Orange to move")
    assert moves_of(page) == ["roll", "5", "roll", "6", "hold"]
    page.get_by_role("button", name="Roll the die").click()
    page.get_by_role("button", name="Roll", exact=True).click()  # the page rolls this one
    expect(page.locator("#moves button")).to_have_count(7)


def test_moves_are_taken_back_over_what_chance_did(visitor: Visitor) -> None:
    page = visitor.open(f"#model=pig&moves={PIG},roll")
    page.select_option("#player-1", "human")
    expect(page.locator("#status")).to_have_text("Chance moves")
    page.click("#undo")
    expect(page.locator("#status")).to_have_text("Blue to move")
    page.click("#undo")
    expect(page.locator("#status")).to_have_text("Orange to move")
    assert seen(page) == "player 0:  10\nplayer 1:   0  +5"
    page.click("#redo")
    expect(page.locator("#status")).to_have_text("Blue to move")
    page.click("#back")
    expect(page.locator("#pause")).to_have_text("Roll")  # it waits
    page.keyboard.press("3")
    expect(page.locator("#moves .branch")).to_have_count(1)
    assert moves_of(page).count("3") == 1


@pytest.mark.parametrize(
    ("model", "moves", "drawing"),
    [
        ("pig", PIG, "player 0:  10  +0\nplayer 1:   0"),
        ("twenty48-2x3", TILES, "  a b c\n1 4 4 ·\n2 · · ·\nscore 4"),
        ("cube", CUBE, None),
    ],
)
def test_a_link_has_the_outcomes(visitor: Visitor, model: str, moves: str, drawing: str | None) -> None:
    page = visitor.open(f"#model={model}&moves={moves}")
    expect(page.locator("#moves button")).to_have_count(len(moves.split(",")))
    assert moves_of(page) == moves.split(",")
    if drawing is not None:
        assert seen(page) == drawing
    page.click("#share")
    assert page.input_value("#share-moves") == moves.replace(",", " ")
    link = page.input_value("#share-link")
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator("#moves button")).to_have_count(len(moves.split(",")))


@pytest.mark.parametrize(
    ("model", "moves"), [("pig", "roll,7"), ("twenty48-2x3", "a1=2,a1=4"), ("cube", "n2,n2"), ("pig", "roll,hold")]
)
def test_what_chance_cannot_do_is_refused(visitor: Visitor, model: str, moves: str) -> None:
    page = visitor.open(f"#model={model}&moves={moves}")
    expect(page.locator("#notices")).to_contain_text("is not a move here")
    expect(page.locator("#name-0")).not_to_be_empty()


def test_tiles_slide_by_arrow_keys_to_the_end(visitor: Visitor) -> None:
    page = visitor.open("#model=twenty48-2x3")
    expect(page.locator("#status")).to_have_text("Your move")
    expect(page.locator("#second")).not_to_be_visible()
    expect(page.locator("#expectation")).to_have_attribute("aria-valuetext", re.compile(r"^0 so far, [\d.]+ expected$"))
    for turn in range(200):
        if "points after" in page.locator("#status").inner_text():
            break
        page.keyboard.press(["ArrowLeft", "ArrowDown", "ArrowRight", "ArrowUp"][turn % 4])
        page.wait_for_timeout(150)
    expect(page.locator("#status")).to_have_text(re.compile(r"^[\d,]+ points after \d+ moves$"))
    moves = moves_of(page)
    legal("twenty48:2x3", moves)
    assert page.locator("#status").inner_text().endswith(f" after {sum('=' not in each for each in moves)} moves")


def test_a_swipe_slides_the_tiles(visitor: Visitor) -> None:
    page = visitor.open(f"#model=twenty48-2x3&moves={TILES}")
    expect(page.locator("#status")).to_have_text("Your move")
    board = box(page.locator("#board"))
    page.mouse.move(board["x"] + board["width"] / 4, board["y"] + board["height"] / 2)
    page.mouse.down()
    page.mouse.move(board["x"] + board["width"] * 3 / 4, board["y"] + board["height"] / 2)
    page.mouse.up()
    expect(page.locator("#moves button").nth(5)).to_be_visible()
    assert moves_of(page)[4] == "right"


def test_a_saved_game_has_the_outcomes(visitor: Visitor) -> None:
    page = visitor.open("#model=pig")
    expect(page.locator("#status")).to_have_text("Blue to move")
    for text, said in [("game: pig\nA: roll 4 roll 0\n", "is not a move here"), ("game: pig\nA: roll 4 hold\n", "")]:
        page.click("#load")
        page.fill("#load-text", text)
        page.click("#load-dialog .primary")
        if said:
            expect(page.locator("#load-error")).to_contain_text(said)
            page.click("#load-dialog .close")
    expect(page.locator("#status")).to_have_text("Orange is waiting")
    assert moves_of(page) == ["roll", "4", "hold"]


def test_a_tile_is_entered_in_its_cell(visitor: Visitor) -> None:
    page = visitor.open("#model=twenty48-2x3&moves=a1=2,b1=2,left")
    expect(page.locator("#status")).to_have_text("Chance moves")
    page.get_by_role("button", name="c2: empty").click()
    expect(page.locator(".others button")).to_have_text(["c2=2", "c2=4"])
    page.get_by_role("button", name="c2=4").click()
    expect(page.locator("#moves button")).to_have_count(4)
    assert seen(page) == "  a b c\n1 4 · ·\n2 · · 4\nscore 4"


def test_the_cube_is_scrambled_and_solved(visitor: Visitor) -> None:
    page = visitor.open("#model=cube")
    expect(page.locator("#status")).to_have_text("Your move")
    scramble = moves_of(page)
    assert scramble[0] == f"n{len(scramble) - 1}"
    page.goto("about:blank")
    page.goto(f"{visitor.url}#model=cube&moves=n2,R,U")
    expect(page.locator("#status")).to_have_text("Your move")
    page.locator("#solution-choice").click()
    expect(page.locator("#candidates td.best")).to_have_text("best", timeout=60_000)
    page.get_by_role("button", name="U'", exact=True).first.click()
    expect(page.locator("#moves button")).to_have_count(4)
    page.get_by_role("button", name="R'", exact=True).first.click()
    expect(page.locator("#status")).to_have_text("−2 points after 2 moves")


def test_games_for_one_are_replayed_in_points(visitor: Visitor) -> None:
    page = visitor.open("history#model=twenty48-2x3")
    expect(page.locator("#replay-title")).to_have_text(re.compile(r"^Replay: [\d,]+ points$"))
    expect(page.locator("#values")).to_have_text(re.compile(r"^search: [\d.,]+ for Player$"))
    expect(page.locator("#explore")).not_to_be_visible()
    points = page.locator("#replay-title").inner_text().split()[1]
    expect(page.locator("#winner")).to_have_text("Result")
    assert page.locator("#games tbody tr").first.locator("td").first.inner_text() == points


def test_a_turn_of_backgammon_is_played_by_clicks(visitor: Visitor) -> None:
    page = visitor.open("#model=backgammon&moves=X31")
    page.select_option("#player-1", "human")
    for source, landing in [("Point 8: 3 × White", "Point 5: empty"), ("Point 6: 5 × White", "Point 5: 1 × White")]:
        page.get_by_role("button", name=source).click()
        page.get_by_role("button", name=landing).click()
        expect(page.get_by_role("button", name=landing)).to_have_count(0)
    expect(page.locator("#status")).to_have_text("Black to move")
    page.get_by_role("button", name="Roll the dice").first.click()
    expect(page.locator("#moves button")).to_have_count(5)
    assert moves_of(page)[:4] == ["X31", "8/5", "6/5", "roll"]
    legal("backgammon", moves_of(page))
    dice = moves_of(page)[4]
    pips = page.locator("#board svg.backgammon g.player-1[transform$=' 610)'] circle")
    expect(pips).to_have_count(sum(map(int, dice)) * (2 if dice[0] == dice[1] else 1))


def test_whole_turns_are_valued_without_readouts(visitor: Visitor, untrained: Path) -> None:
    page = visitor.open("#model=backgammon&moves=X31")
    found = seraphim.load("backgammon", folder=untrained).analyze("X31")
    expect(page.locator("#candidates tbody .chip")).to_have_text([move.label for move in found.moves])
    expect(page.locator("#figures")).to_contain_text(f"ends of turns: {found.readouts} · ")
    best = page.locator("#candidates tbody tr").first
    expect(best.locator(".variation")).to_have_attribute("title", " ".join(found.moves[0].variation))
    for pointless in ("#amount", "#candidates thead .visits", "#candidates thead .wide"):
        expect(page.locator(pointless)).to_be_hidden()
    strengths = page.locator("#strength option:not([hidden])")
    expect(strengths).to_have_text(["Beginner", "Strongest", "network alone"])
    page.goto("about:blank")  # what means nothing here is not kept from another model
    page = visitor.open("#model=threes")
    page.select_option("#strength", "400")
    page.locator("#metric label", has_text="Visits").click()
    page.select_option("#model", "backgammon")
    expect(page.locator("#strength")).to_have_value("6400")
    expect(page.locator("#metric input:checked")).to_have_value("off")
    page.select_option("#model", "threes")
    expect(page.locator("#strength")).to_have_value("400")
    expect(page.locator("#amount")).to_be_visible()
    page.goto("about:blank")
    page = visitor.open("#model=backgammon&moves=X31")
    page.select_option("#strength", "6400")
    page.select_option("#player-0", "computer")
    expect(page.locator("#moves button").nth(2)).to_be_visible()
    assert moves_of(page)[1] == found.best


def test_a_real_roll_of_two_dice_is_entered(visitor: Visitor) -> None:
    page = visitor.open(f"#model=backgammon&moves={BACKGAMMON},6/5,roll")
    page.select_option("#player-1", "human")
    expect(page.locator(".others button")).to_have_count(21)
    page.get_by_role("button", name="64", exact=True).click()
    expect(page.get_by_role("button", name="Dice of Black: 6")).to_be_visible()
    page.locator("#rolls-choice").click()
    page.click("#new")
    expect(page.locator(".others button")).to_have_count(30)
    page.get_by_role("button", name="O52", exact=True).click()  # Black begins
    expect(page.locator("#status")).to_have_text("Black to move")
    assert moves_of(page) == ["O52"]


def expected_of(page: Page) -> list[str | None]:
    """What the bars of three players say."""
    return [page.get_by_role("meter", name=f"result of {name}").get_attribute("aria-valuetext") for name in "XOZ"]


def test_three_players_are_seated_by_what_one_sees(visitor: Visitor) -> None:
    page = visitor.open(f"#model=threes&moves={THREES}")
    expect(page.locator(".seat strong")).to_have_text(["X", "O", "Z"])
    expect(page.locator(".seat.to-move strong")).to_have_text("X")
    expect(page.locator("#goal")).to_contain_text("You are X.")
    for name in ("O", "Z"):
        page.get_by_label(f"{name} is played by").select_option("human")
    page.get_by_role("button", name="b3: empty").click()
    expect(page.locator("#status")).to_have_text("O to move")
    expect(page.locator(".worth.proven")).to_have_text(["−0.50", "+1.00", "−0.50"])
    assert expected_of(page) == ["−0.50, exact", "+1.00, exact", "−0.50, exact"]
    page.get_by_role("button", name="b1: empty").click()
    expect(page.locator("#status")).to_have_text("O wins after 11 moves")
    assert [each.get_attribute("class") for each in page.locator("#moves button").all()][-3:] == [
        "move player-2",
        "move player-0 doubtful",
        "move player-1",
    ]
    assert seen(page) == "  a b c d\n1 O O O Z\n2 O X X Z\n3 X X Z ·"


def test_any_of_three_seats_is_played_by_the_computer(visitor: Visitor) -> None:
    page = visitor.open("#model=threes")
    page.get_by_label("Z is played by").select_option("human")
    page.get_by_role("button", name="c2: empty").click()  # X; then the computer plays O
    expect(page.locator("#status")).to_have_text("Z to move")
    page.keyboard.press("s")  # everyone takes the next seat
    expect(page.get_by_label("O is played by")).to_have_value("human")
    expect(page.get_by_label("Z is played by")).to_have_value("computer")
    page.get_by_label("X is played by").select_option("computer")
    page.get_by_label("O is played by").select_option("computer")
    expect(page.locator("#status")).to_have_text(re.compile(r"^([XOZ] wins|Draw) after \d+ moves$"), timeout=30_000)
    legal("threes", moves_of(page))


def test_the_values_of_all_players_are_shown_on_demand(visitor: Visitor) -> None:
    page = visitor.open(f"#model=threes&moves={THREES},b3")
    values = page.locator("#candidates tbody tr").first.locator("td").nth(2)
    expect(values).to_have_text("+1.00")
    page.locator("#each-choice").click()
    expect(page.locator("#candidates thead th").nth(3).locator("span")).to_have_text(["X", "O", "Z"])
    expect(values.locator("span")).to_have_text(["−0.50", "+1.00", "−0.50"])
    expect(values).to_have_class("proven")


def test_the_review_of_three_players_has_a_curve_for_each(visitor: Visitor) -> None:
    page = visitor.open(f"#model=threes&moves={THREES},b3,b1")
    page.click("#review")
    expect(page.locator("#worst h3")).to_have_text(["X’s worst moves", "O’s worst moves", "Z’s worst moves"])
    expect(page.locator("#worst button").first).to_have_text("move 10 b3 lost 0.50, better b1")
    expect(page.locator("#graph .curve")).to_have_count(3)
    expect(page.locator("#graph .curve-name")).to_have_text(["X", "O", "Z"])
    expect(page.locator("#graph")).to_have_attribute("aria-valuetext", "move 11, X −0.50, O +1.00, Z −0.50")


def test_another_game_has_its_own_seats_again(visitor: Visitor) -> None:
    page = visitor.open("#model=threes")
    expect(page.locator("#seats")).to_be_visible()
    page.select_option("#model", "pig")
    expect(page.locator("#name-1")).to_have_text("Orange")
    expect(page.locator("#seats")).not_to_be_visible()
    expect(page.locator("#expectation")).to_be_visible()


def test_games_for_three_are_replayed(visitor: Visitor) -> None:
    page = visitor.open("history#model=threes")
    expect(page.locator("#replay-title")).to_have_text(re.compile(r"^Replay: ([XOZ] wins|draw)$"))
    winner = page.locator("#games tbody tr").first.locator("td").first.inner_text()
    named = {"first": "X wins", "second": "O wins", "third": "Z wins", "draw": "draw"}[winner]
    expect(page.locator("#replay-title")).to_have_text(f"Replay: {named}")
    value = r"[−+]?\d\.\d\d"
    expect(page.locator("#values")).to_have_text(re.compile(rf"^search: X\s{value}, O\s{value}, Z\s{value}$"))
    expect(page.locator("#graph .curve")).to_have_count(3)
    page.click("#last")
    label = page.locator("#played").inner_text().split()[-1]
    page.click("#explore")
    expect(page.locator("#moves button").last).to_contain_text(label)


@needs_axe
@pytest.mark.parametrize(
    "path",
    [
        f"pig&moves={PIG},roll",
        f"backgammon&moves={BACKGAMMON}",
        f"twenty48-2x3&moves={TILES}",
        f"cube&moves={CUBE}",
        f"threes&moves={THREES}",
    ],
)
@pytest.mark.parametrize("device", [{"viewport": {"width": 1280, "height": 800}}, PHONE], ids=["desktop", "phone"])
def test_everyone_can_use_the_pages(visitor: Visitor, path: str, device: dict[str, object]) -> None:
    page = visitor.open(f"#model={path}", **device)
    expect(page.locator("#moves button").first).to_be_visible()
    page.wait_for_timeout(800)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# ---------------------------------------------------------------- without a server


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, untrained: Path) -> Iterator[str]:
    """Return the address of a site with these games."""
    root: Path = tmp_path_factory.mktemp("host")
    folders = [ModelFolder(ROOT, name) for name in ("pig", "twenty48-2x3", "cube", "threes")]
    folders.append(ModelFolder(untrained, "backgammon"))
    models = [Chosen(folder.name, folder.champion(), folder.settings()) for folder in folders]
    site.write_site(models, root / "site", site.find_library())
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/site/"
        server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and logs nothing."""

    def log_message(self, *_: object) -> None: ...


def test_a_site_plays_such_games(browser: Browser, exported: str) -> None:
    visitor = Visitor(browser, exported)
    page = visitor.open("#model=pig")
    expect(page.locator("#status")).to_have_text("Blue to move")
    expect(page.locator("#figures")).to_have_text(re.compile("readouts"))
    page.get_by_role("button", name="Roll the die").click()
    expect(page.locator("#moves button").nth(1)).to_be_visible()
    page.goto("about:blank")
    page.goto(f"{exported}#model=twenty48-2x3&moves={TILES}")
    expect(page.locator("#moves button")).to_have_count(4)
    page.keyboard.press("ArrowRight")
    expect(page.locator("#pause")).to_have_text("Pause")
    expect(page.locator("#moves button").nth(5)).to_be_visible()
    legal("twenty48:2x3", moves_of(page))
    page.goto("about:blank")
    page.goto(f"{exported}#model=cube&moves={CUBE}")
    expect(page.locator("#candidates tbody .chip").first).to_have_text("U'")
    page.goto("about:blank")
    page.goto(f"{exported}#model=threes&moves={THREES},b3")
    expect(page.locator(".worth.proven")).to_have_text(["−0.50", "+1.00", "−0.50"])
    expect(page.locator("#solution-choice")).not_to_be_visible()  # the server has a solver
    page.click("#move-now")
    expect(page.locator("#status")).to_have_text("O wins after 11 moves: you lose")
    page.goto("about:blank")
    page.goto(f"{exported}#model=backgammon&moves={BACKGAMMON}")
    expect(page.locator("#candidates tbody .chip")).to_have_count(4)
    page.get_by_role("button", name="Point 6: 5 × White").click()
    page.get_by_role("button", name="Point 5: 1 × White").click()
    expect(page.locator("#moves button").nth(4)).to_be_visible()  # the computer rolls
    assert moves_of(page)[:4] == ["X31", "8/5", "6/5", "roll"]
    legal("backgammon", moves_of(page))
    page.goto("about:blank")
    page.goto(f"{exported}#model=pig&moves=roll,7")
    expect(page.locator("#notices")).to_contain_text("Move 2 is 7, not a move here: expected one like 1")
    assert not visitor.trouble
    visitor.close()
