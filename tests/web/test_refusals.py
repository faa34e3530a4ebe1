"""What pages do when something is refused, and that no work is lost: in a real browser, against the real server."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser import ROOT, Visitor, needs_axe, needs_chromium, serving, violations
from playwright.sync_api import Page, Route, WebSocketRoute, expect

from seraphim.game import load_game
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder
from seraphim.training.trainer import bootstrap

pytestmark = [needs_chromium, pytest.mark.slow]

GONE = "00000001-20200101T000000Z"  # a snapshot that training has removed
WIDTHS = [390, 620, 1280]
expect.set_options(timeout=15_000)


@pytest.fixture(scope="module")
def address(_fresh_root: Path, small_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a server with a model of each drawing, and two of one game."""
    root = tmp_path_factory.mktemp("served")
    shutil.copytree(_fresh_root, root, dirs_exist_ok=True, symlinks=True)
    shutil.copytree(ROOT / "models/connectfour", root / "models/connectfour", symlinks=True)
    for name, game in (("stones", "othello"), ("hexagons", "hex"), ("twin", "tictactoe")):
        bootstrap(ModelFolder(root, name), load_game(game), replace(small_settings, game=game), seed=1)
    with serving(root, "connectfour") as url:
        yield url


def moves(page: Page) -> list[str]:
    """The moves of the tree, branches included, in the order of the list; without marks of doubt."""
    return [text.split(":")[-1].strip(" ?") for text in page.locator("#moves button").all_text_contents()]


def analyzed(page: Page) -> None:
    """Wait until the analysis of the current position is over."""
    expect(page.locator("#figures")).to_have_text(re.compile(r"\d+ readouts"))
    expect(page.locator("#figures")).not_to_have_class(re.compile("busy"))


def two_people(page: Page) -> None:
    for player in ("player-0", "player-1"):
        page.select_option(f"#{player}", "human")


def load(page: Page, text: str) -> None:
    page.click("#load")
    page.fill("#load-text", text)
    page.click("#load-form .primary")


def refuse(url: str, times: int, page: Page) -> None:
    """Answer the first requests for an address of the server as it does when there are too many."""
    left = times

    def answer(route: Route) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            route.fallback()
        else:
            route.fulfill(status=429, json={"error": "too many requests: wait 0.10 s"})

    page.route(url, answer)


def forgive(visitor: Visitor) -> None:
    """Forget what the browser says of such an answer."""
    visitor.trouble[:] = [each for each in visitor.trouble if "status of 429" not in each]


class Wire:
    """The page's connection: notes what is sent, and answers some messages in place of the server."""

    def __init__(self, page: Page) -> None:
        self.routes: list[WebSocketRoute] = []
        self.sent: list[Any] = []
        self.answer: Callable[[WebSocketRoute, Any], bool] = lambda route, message: False
        page.route_web_socket("**/api/engine", self._connect)

    def _connect(self, route: WebSocketRoute) -> None:
        server = route.connect_to_server()
        self.routes.append(route)

        def pass_on(text: str | bytes) -> None:
            message = json.loads(text)
            self.sent.append(message)
            if not self.answer(route, message):
                server.send(text)

        route.on_message(pass_on)

    def refuse_once(self, kind: str) -> None:
        """Answer the next message of a kind with an error."""

        def answer(route: WebSocketRoute, message: Any) -> bool:
            if message["type"] != kind:
                return False
            self.answer = lambda route, message: False
            route.send(json.dumps({"id": message["id"], "type": "error", "message": "no: try again later"}))
            return True

        self.answer = answer


# ---------------------------------------------------------------- drawings


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "link",
    [
        "connectfour&moves=4444352",
        "fresh&moves=b2,a1,c3",
        "fresh&moves=a1,b1,a2,b2,a3",
        "stones&moves=d3,c3",
        "hexagons&moves=a1,b2,c3",
    ],
)
def test_every_part_of_every_drawing_has_a_box(visitor: Visitor, link: str, width: int) -> None:
    page = visitor.open(f"#model={link}", viewport={"width": width, "height": 900})
    expect(page.locator("#moves button").first).to_be_visible()
    parts = ".drawing :is(path, circle, rect, line, text)"
    expect(page.locator(parts)).not_to_have_count(0)
    # In one call, as an analysis draws anew.
    hidden = page.evaluate(
        "(parts) => [...document.querySelectorAll(parts)]"
        ".filter((part) => !part.getClientRects().length).map((part) => part.outerHTML)",
        parts,
    )
    assert hidden == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if "hexagons" in link:
        borders = page.locator("path.border")
        colors = borders.evaluate_all("(paths) => paths.map((path) => getComputedStyle(path).stroke)")
        assert colors[0] == colors[1] != colors[2] == colors[3]


@pytest.mark.parametrize("link", ["connectfour&moves=4435", "fresh&moves=b2", "stones", "hexagons&moves=a1"])
def test_drawings_are_styled_by_their_own_sheet_only(visitor: Visitor, link: str) -> None:
    page = visitor.open(f"#model={link}")
    analyzed(page)
    foreign = page.evaluate(
        """() => {
          const rulesOf = (parent) => [...parent.cssRules].flatMap((rule) =>
            rule.selectorText ? [rule.selectorText] : rule.cssRules ? rulesOf(rule) : []);
          const sheets = [...document.styleSheets].filter(({href}) => !href.endsWith('/board.css'));
          const found = new Set();
          for (const part of document.querySelectorAll('.drawing, .drawing *'))
            for (const selector of sheets.flatMap(rulesOf))
              if (!selector.startsWith('*') && part.matches(selector)) found.add(`${selector}: ${part.outerHTML}`);
          return [...found];
        }"""
    )
    assert foreign == []


# ---------------------------------------------------------------- the first request


def test_a_link_to_a_snapshot_that_is_gone_shows_the_champion(visitor: Visitor) -> None:
    page = visitor.context().new_page()
    page.clock.install()
    page.goto(f"{visitor.url}#model=fresh&snapshot={GONE}&moves=b2,a1")
    expect(page.locator(".notice")).to_contain_text(f"has no snapshot '{GONE}'")
    expect(page.locator("#moves button")).to_have_count(2)
    expect(page.locator("#snapshot")).to_have_value("")
    page.clock.fast_forward(60_000)
    expect(page.locator(".notice")).to_contain_text(f"has no snapshot '{GONE}'")  # until the user goes on
    two_people(page)
    page.keyboard.press("9")
    expect(page.locator("#moves button")).to_have_count(3)
    expect(page.locator(".notice")).to_have_count(0)


@pytest.mark.parametrize("path", ["#model=fresh&moves=b2", "history#model=fresh"])
def test_a_list_of_models_that_is_refused_can_be_asked_for_again(visitor: Visitor, path: str) -> None:
    page = visitor.context().new_page()
    refuse("**/api/models", 2, page)
    page.goto(visitor.url + path)
    for _ in range(2):
        expect(page.locator(".notice")).to_contain_text("Too many requests: wait 0.10 s.")
        assert page.get_by_role("button", name="Dismiss").count() == 0  # it is the only way on
        page.get_by_role("button", name="Try again").click()
    expect(page.locator("#model")).to_have_value("fresh")
    expect(page.locator(".notice")).to_have_count(0)
    forgive(visitor)
    if "history" in path:
        expect(page.locator("#title")).to_have_text("Learning history of fresh")
    else:
        expect(page.locator("#moves button")).to_have_count(1)


def test_learning_curves_that_are_refused_can_be_asked_for_again(visitor: Visitor) -> None:
    page = visitor.context().new_page()
    refuse("**/curves", 1, page)
    page.goto(f"{visitor.url}history#model=connectfour")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#plots .plot").first).to_be_visible()
    forgive(visitor)
    expect(page.locator(".notice")).to_have_count(0)


def test_a_history_that_cannot_be_loaded_shows_nothing_of_another_model(visitor: Visitor) -> None:
    page = visitor.context().new_page()
    page.goto(f"{visitor.url}history#model=connectfour")
    expect(page.locator("#plots .plot")).not_to_have_count(0)
    page.route("**/api/**", lambda route: route.abort())
    page.select_option("#model", "hexagons")
    expect(page.locator(".notice")).to_contain_text("Cannot reach the server: is seraphim serve still running?")
    expect(page.locator("#title")).to_have_text("Learning history of hexagons")
    expect(page.locator("#plots")).to_have_text("Nothing is loaded.")
    for empty in ("#tiles", "#total", "#range", "#games tbody"):
        expect(page.locator(empty)).to_be_empty()
    page.check("#axis [value=games]")
    expect(page.locator("#plots")).to_have_text("Nothing is loaded.")
    page.unroute("**/api/**")
    visitor.trouble[:] = [each for each in visitor.trouble if "net::ERR_FAILED" not in each]
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#plots")).to_contain_text("no learning curves yet")
    expect(page.locator("#tiles")).to_contain_text("games stored")
    expect(page.locator(".notice")).to_have_count(0)


@pytest.mark.parametrize("choice", ["button", "menu"])
def test_a_page_whose_first_request_is_refused_can_try_again_or_open_another_model(
    visitor: Visitor, choice: str
) -> None:
    page = visitor.context().new_page()
    wire = Wire(page)
    wire.answer = lambda route, message: bool(
        message["type"] == "open"
        and route.send(json.dumps({"id": message["id"], "type": "error", "message": "no room"})) is None
    )
    page.goto(f"{visitor.url}#model=fresh&moves=b2")
    expect(page.locator(".notice")).to_contain_text("No room.")
    expect(page.locator("#status")).to_have_text("Nothing is loaded.")
    expect(page.locator("#expectation")).to_have_class(re.compile("unknown"))
    asked = len(wire.sent)
    assert asked <= 3  # the link, its model, and the first model
    page.wait_for_timeout(1500)
    assert len(wire.sent) == asked
    expect(page.locator("#model option")).to_have_count(5)
    wire.answer = lambda route, message: False
    if choice == "button":
        page.get_by_role("button", name="Try again").click()
        expect(page.locator("#moves button")).to_have_count(1)
    else:
        page.select_option("#model", "twin")
    expect(page.locator(".drawing.lines")).to_be_visible()
    expect(page.locator(".notice")).to_have_count(0)
    analyzed(page)


def test_a_snapshot_that_is_gone_by_now_leaves_what_is_shown(visitor: Visitor) -> None:
    page = visitor.context().new_page()
    wire = Wire(page)
    page.goto(f"{visitor.url}#model=fresh&moves=b2,a1")
    two_people(page)
    analyzed(page)
    wire.refuse_once("open")
    page.select_option("#snapshot", index=1)
    expect(page.locator(".notice")).to_contain_text("No: try again later.")
    expect(page.locator("#snapshot")).to_have_value("")
    page.keyboard.press("9")
    expect(page.locator("#moves button")).to_have_count(3)
    analyzed(page)


# ---------------------------------------------------------------- requests that are refused


def test_a_text_that_is_too_long_is_refused_in_the_dialog(visitor: Visitor) -> None:
    page = visitor.context().new_page()
    wire = Wire(page)
    page.goto(f"{visitor.url}#model=connectfour&moves=4435")
    two_people(page)
    analyzed(page)
    for size in (70_000, 1_200_000):
        load(page, size * "4")
        expect(page.locator("#load-error")).to_have_text(re.compile("^This is too long: .* at most 65,536 can be sent"))
        page.keyboard.press("Escape")
    page.keyboard.press("2")
    expect(page.locator("#moves button")).to_have_count(5)
    analyzed(page)
    assert len(wire.routes) == 1


def test_a_request_that_ends_each_connection_is_given_up(visitor: Visitor) -> None:
    page = visitor.context().new_page()
    wire = Wire(page)

    def end(route: WebSocketRoute, message: Any) -> bool:
        if message["type"] == "load":
            route.close(code=1009)
        return message["type"] == "load"

    page.goto(f"{visitor.url}#model=connectfour&moves=4435")
    two_people(page)
    analyzed(page)
    wire.answer = end
    load(page, "4 4")
    expect(page.locator("#load-error")).to_contain_text("The connection to the engine was lost each time")
    assert sum(message["type"] == "load" for message in wire.sent) == 3
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    expect(page.locator("#moves button")).to_have_count(5)
    analyzed(page)
    assert len(wire.routes) == 4


def test_messages_stand_in_the_dialog_that_is_open(visitor: Visitor) -> None:
    page = visitor.context().new_page()
    wire = Wire(page)
    page.goto(f"{visitor.url}#model=connectfour&moves=4435")
    two_people(page)
    page.select_option("#amount", "Infinity")
    expect(page.locator("#figures")).to_have_class(re.compile("busy"))
    wire.refuse_once("think")
    page.click("#help")  # while the search goes on, until its next part is asked for
    notice = page.locator("dialog[open] .notice")
    expect(notice).to_contain_text("No: try again later.")
    page.route_web_socket("**/api/engine", lambda route: route.close())
    wire.routes[-1].close()
    expect(page.locator("dialog[open] #connection")).to_be_visible()
    notice.get_by_role("button", name="Dismiss").click()
    expect(notice).to_have_count(0)
    page.click("#help-dialog .close")
    expect(page.locator("body > #connection")).to_be_visible()


def test_a_move_that_the_engine_refuses_is_asked_for_again_by_the_user_only(visitor: Visitor) -> None:
    page = visitor.context().new_page()
    wire = Wire(page)
    page.goto(f"{visitor.url}#model=fresh")
    analyzed(page)
    wire.refuse_once("think")
    page.keyboard.press("5")
    expect(page.locator("#status")).to_have_text("O is waiting")
    expect(page.locator("#nothing")).to_have_text("No: try again later.")
    asked = len(wire.sent)
    page.wait_for_timeout(1500)
    assert len(wire.sent) == asked
    page.click("#pause")  # which says Resume
    expect(page.locator("#status")).to_have_text("X to move")
    expect(page.locator("#moves button")).to_have_count(2)
    expect(page.locator("#nothing")).to_be_empty()


def test_exact_results_that_are_refused_can_be_asked_for_again(visitor: Visitor) -> None:
    page = visitor.context().new_page()
    wire = Wire(page)
    page.goto(f"{visitor.url}#model=fresh&moves=b2,a2")
    analyzed(page)
    wire.refuse_once("solve")
    page.check("#solution")
    expect(page.locator("#solution-note")).to_have_text("no: try again later")
    page.uncheck("#solution")
    page.check("#solution")
    expect(page.locator("g.solution")).to_have_count(7)


# ---------------------------------------------------------------- work that is replaced


def with_branches(visitor: Visitor, link: str = "#model=connectfour&moves=4435") -> Page:
    """A page with a game that has a branch, and with an analysis of the last position of the line."""
    page = visitor.open(link)
    two_people(page)
    page.select_option("#amount", "1600")
    analyzed(page)
    page.click("#back")
    page.keyboard.press("2")
    expect(page.locator("#moves .branch button")).to_have_count(1)
    analyzed(page)
    expect(page).not_to_have_url(visitor.url + link)  # which changes with a delay
    return page


def new_by_key(page: Page) -> None:
    page.keyboard.press("n")


def loaded_text(page: Page) -> None:
    load(page, "7 7")


def loaded_link(page: Page) -> None:
    load(page, f"{page.url.partition('#')[0]}#model=fresh&moves=b2")


def changed_fragment(page: Page) -> None:
    page.evaluate("location.hash = '#model=connectfour&moves=1'")


def other_game(page: Page) -> None:
    page.select_option("#model", "fresh")


REPLACED = [new_by_key, loaded_text, loaded_link, changed_fragment, other_game]


@pytest.mark.parametrize("way", ["notice", "tool", "key"])
@pytest.mark.parametrize("act", REPLACED)
def test_a_game_that_is_replaced_can_be_brought_back(visitor: Visitor, act: Callable[..., None], way: str) -> None:
    page = with_branches(visitor)
    before = moves(page)
    readouts = page.locator("#figures").inner_text().split()[0]
    act(page)
    expect(page.locator(".notice")).to_be_visible()
    assert moves(page) != before
    if way == "notice":
        page.locator(".notice").get_by_role("button", name="Undo").click()
    else:
        while page.locator("#first").is_enabled():
            page.click("#first")
            page.wait_for_timeout(50)
        page.click("#undo") if way == "tool" else page.keyboard.press("u")
    expect(page.locator("#moves button")).to_have_text([re.compile(rf"\b{move}\??$") for move in before])
    expect(page.locator("#model")).to_have_value("connectfour")
    expect(page.locator("#figures")).to_have_text(re.compile(rf"^{readouts} readouts"))  # not analyzed anew
    expect(page).to_have_url(re.compile("model=connectfour&moves=4432$"))
    page.keyboard.press("7")
    expect(page.locator(".piece")).to_have_count(5)
    analyzed(page)


def test_analyses_of_a_model_come_back_with_it(visitor: Visitor) -> None:
    page = with_branches(visitor, "#model=fresh&moves=b2,a1,c3")
    before = moves(page)
    priors = page.locator("#candidates tbody td:nth-child(2)").all_text_contents()
    page.select_option("#model", "twin")
    expect(page.locator(".notice")).to_contain_text("Opened twin.")
    assert moves(page) == before
    analyzed(page)
    page.locator(".notice").get_by_role("button", name="Undo").click()
    expect(page.locator("#model")).to_have_value("fresh")
    expect(page.locator("#candidates tbody td:nth-child(2)")).to_have_text(priors)
    assert moves(page) == before


def test_two_new_games_do_not_lose_the_game_before_them(visitor: Visitor) -> None:
    page = with_branches(visitor)
    before = moves(page)
    for _ in range(3):
        page.keyboard.press("n")
        expect(page.locator("#moves button")).to_have_count(0)
    page.keyboard.press("u")
    expect(page.locator("#moves button")).to_have_count(len(before))


def test_a_new_game_that_was_taken_back_before_it_began_stays_away(visitor: Visitor) -> None:
    page = with_branches(visitor)
    before = moves(page)
    new_by_key(page)
    expect(page.locator("#moves button")).to_have_count(0)
    keys = "for (const key of 'nu') document.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}))"
    page.evaluate(keys)  # at once: the engine has not answered yet
    expect(page.locator("#moves button")).to_have_count(len(before))
    page.wait_for_timeout(500)
    assert moves(page) == before


def test_a_game_that_is_brought_back_replaces_one_that_can_be_brought_back(visitor: Visitor) -> None:
    page = with_branches(visitor)
    loaded_text(page)
    for count in (5, 2, 5):
        page.locator(".notice").get_by_role("button", name="Undo").click()
        expect(page.locator("#moves button")).to_have_count(count)


def test_a_deleted_branch_can_be_put_back(visitor: Visitor) -> None:
    page = with_branches(visitor)
    before = moves(page)
    page.click("#first")
    page.click("#forward")
    page.click("#remove")
    expect(page.locator("#moves")).to_have_text("No moves yet.")
    page.locator(".notice").get_by_role("button", name="Undo").click()
    expect(page.locator("#moves button")).to_have_count(len(before))
    assert moves(page) == before
    page.click("#remove")
    page.keyboard.press("n")  # another game, in which the branch has no place
    expect(page.locator(".notice")).to_have_count(0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#model=connectfour&moves=449", "“9” is not a move of this game"),
        ("#model=connectfour&moves=4444444", "Move 7, 4, is not legal"),
        ("#model=fresh&moves=b2,b2", "Move 2, b2, is not legal"),
        ("#model=nobody&moves=4", "There is no model “nobody” here."),
        ("44444444", "Move 7"),
    ],
)
def test_what_cannot_be_loaded_leaves_the_game_as_it_was(visitor: Visitor, text: str, said: str) -> None:
    page = with_branches(visitor)
    before, link = moves(page), page.url
    load(page, text)
    expect(page.locator("#load-error")).to_contain_text(said)
    page.keyboard.press("Escape")
    assert moves(page) == before
    expect(page.locator("#model")).to_have_value("connectfour")
    expect(page.locator(".drawing.rack")).to_be_visible()
    assert page.url == link
    page.keyboard.press("7")
    expect(page.locator(".piece")).to_have_count(5)
    analyzed(page)
    assert page.request.get(f"{visitor.url}api/health").json()["status"] == "ok"


def test_a_refused_link_in_the_address_leaves_the_game_and_its_address(visitor: Visitor) -> None:
    page = with_branches(visitor)
    before, link = moves(page), page.url
    page.evaluate("location.hash = '#model=fresh&moves=b2,b2'")
    expect(page.locator(".notice")).to_contain_text("Move 2, b2, is not legal")
    expect(page).to_have_url(link)
    assert moves(page) == before
    page.keyboard.press("7")
    expect(page.locator(".piece")).to_have_count(5)
    analyzed(page)


@pytest.mark.parametrize("text", ["", "  \n "])
def test_an_empty_field_loads_nothing(visitor: Visitor, text: str) -> None:
    page = with_branches(visitor)
    before = moves(page)
    load(page, text)
    expect(page.locator("#load-dialog")).to_be_hidden()
    assert moves(page) == before
    assert page.locator(".notice").count() == 0


@needs_axe
def test_axe_finds_nothing_wrong_with_notices(visitor: Visitor) -> None:
    page = with_branches(visitor)
    page.keyboard.press("n")
    expect(page.locator(".notice")).to_be_visible()
    assert violations(page) == []
    page.click("#help")
    expect(page.locator("dialog[open] .notice")).to_be_visible()
    assert violations(page) == []
