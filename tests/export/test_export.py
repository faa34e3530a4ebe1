"""Exported models: files that compute the same, and a page that plays in the browser, offline."""

import functools
import http.server
import json
import re
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import CHROMIUM, FLAGS

import seraphim
from seraphim.errors import FileError, GameError, ModelError
from seraphim.export import formats, site
from seraphim.export.site import Chosen, Library
from seraphim.game import load_game
from seraphim.inference import load_inference
from seraphim.network import saved_model
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder
from seraphim.training.trainer import bootstrap
from tictactoe.game import GAME

ROOT = Path(__file__).parents[2]
OVER = re.compile(r"after \d+ moves")  # what the page says of a finished game


def chosen(folder: ModelFolder) -> Chosen:
    return Chosen(folder.name, folder.champion(), folder.settings())


@pytest.fixture(scope="session")
def library() -> Library:
    found = site.find_library()
    if found.folder is None:
        pytest.skip(f"LiteRT.js cannot be installed here: {found.reason}")
    return found


# ---------------------------------------------------------------- one file


def test_random_positions_are_distinct_unfinished_and_of_all_lengths() -> None:
    game = load_game("connectfour")
    states = formats.random_positions(game, 1000)
    assert len(np.unique(states, axis=0)) == len(states) == 1000
    assert not game.outcome(states)[0].any()
    stones = [int(first | second).bit_count() for first, second in states.tolist()]
    assert min(stones) == 0
    assert max(stones) >= 35
    np.testing.assert_array_equal(states, formats.random_positions(game, 1000))


@pytest.mark.parametrize("name", ["cube", "pig", "twenty48:2x3"])
def test_random_positions_are_those_of_players_where_chance_moves(name: str) -> None:
    game = load_game(name)
    states = formats.random_positions(game, 300)
    assert len(np.unique(states, axis=0)) == len(states) == 300
    assert game.legal(states).any(axis=1).all()


def test_a_small_game_returns_all_its_positions() -> None:
    assert 10 <= len(formats.random_positions(load_game("games"), 1000)) <= 2 * 16  # of nim: heap and player


@pytest.mark.parametrize("form", ["tflite", "onnx"])
def test_a_file_computes_the_same_as_the_saved_model(folder: ModelFolder, tmp_path: Path, form: Any) -> None:
    if form == "onnx":
        pytest.importorskip("tf2onnx")
    file = tmp_path / f"deep/model.{form}"
    parity = formats.export_file(folder.champion().path, GAME, form, file)
    assert parity.positions == 1000
    assert 0 < max(parity.logits, parity.values) < 1e-5
    assert list(file.parent.iterdir()) == [file]
    # Another look at the file, by what reads such files elsewhere.
    observations = GAME.observe(formats.random_positions(GAME, 1000))[:40]
    logits, values = load_inference(folder.champion().path, GAME, "openvino", "float32").infer(observations)
    if form == "onnx":
        import openvino

        run = openvino.compile_model(str(file), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        outputs = run({"observation": observations})
        np.testing.assert_allclose(outputs["policy"], logits, atol=1e-5)
        np.testing.assert_allclose(outputs["value"], values, atol=1e-5)
    else:
        from ai_edge_litert.interpreter import Interpreter

        runner = Interpreter(str(file)).get_signature_runner(saved_model.SIGNATURE)
        assert runner.get_input_details()["observation"]["shape"].tolist() == [1, 3, 3, 2]
        outputs = [runner(observation=observation[None]) for observation in observations]
        np.testing.assert_allclose(np.concatenate([each["policy"] for each in outputs]), logits, atol=1e-5)
        np.testing.assert_allclose(np.concatenate([each["value"] for each in outputs]), values, atol=1e-5)


def test_a_file_with_other_results_is_refused_and_nothing_is_left(
    folder: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert = formats._to_litert

    def convert_badly(snapshot: Path, game: Any, trust: bool) -> Any:
        content, _ = convert(snapshot, game, trust)
        return content, lambda observations: infer(observations[::-1])

    infer = load_inference(folder.champion().path, GAME, "litert").infer
    monkeypatch.setattr(formats, "_to_litert", convert_badly)
    out = tmp_path / "out"
    with pytest.raises(ModelError, match="is not the same network, so nothing was written"):
        formats.export_file(folder.champion().path, GAME, "tflite", out / "model.tflite")
    with pytest.raises(ModelError, match="is not the same network"):
        site.write_site([chosen(folder)], out, Library("1.2.3", None))
    assert not list(tmp_path.glob("out")) + list(tmp_path.glob(".out*"))


def test_a_network_that_returns_nan_is_refused(folder: ModelFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    convert = formats._to_litert

    def convert_badly(snapshot: Path, game: Any, trust: bool) -> Any:
        content, _ = convert(snapshot, game, trust)
        return content, lambda observations: (infer(observations)[0], np.full(1000, np.nan))

    infer = load_inference(folder.champion().path, GAME, "litert").infer
    monkeypatch.setattr(formats, "_to_litert", convert_badly)
    with pytest.raises(ModelError, match="nan"):
        formats.convert(folder.champion().path, GAME, "tflite")


def test_a_folder_is_refused_as_an_output_file(folder: ModelFolder, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="is a folder: name a file"):
        formats.export_file(folder.champion().path, GAME, "tflite", tmp_path)


# ---------------------------------------------------------------- the folder


@pytest.fixture(scope="session")
def host(_fresh_root: Path, library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of a static host, with an exported folder some levels below."""
    root = tmp_path_factory.mktemp("host")
    models = [chosen(ModelFolder(_fresh_root, "fresh")), chosen(ModelFolder(ROOT, "connectfour"))]
    site.write_site(models, root / "deep/site", library)
    return root


def test_a_folder_that_is_not_an_export_is_refused(folder: ModelFolder, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    for out in (tmp_path / "mine", tmp_path / "mine/thesis.txt"):
        with pytest.raises(FileError, match="is not an export"):
            site.write_site([chosen(folder)], out, Library("1.2.3", None))
    assert [path.name for path in tmp_path.rglob("*") if "data" not in path.parts] == ["mine", "thesis.txt"]


def test_an_export_replaces_an_older_one(folder: ModelFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name in ("one", "two"):
        model = chosen(folder)
        site.write_site([Chosen(name, model.snapshot, model.settings)], out, Library("1.2.3", None))
        assert [path.name for path in (out / "models").iterdir()] == [f"{name}.tflite"]
    assert not list(tmp_path.glob(".out*"))


def test_a_game_without_rules_for_the_browser_is_refused(folder: ModelFolder, tmp_path: Path) -> None:
    model = chosen(folder)
    settings = model.settings.__class__(**{**vars(model.settings), "game": "games"})
    with pytest.raises(GameError, match=r"without .*tests/support/rules\.js, its rules in JavaScript"):
        site.write_site([Chosen("nim", model.snapshot, settings)], tmp_path / "out", Library("1.2.3", None))
    assert not (tmp_path / "out").exists()


def test_without_npm_the_page_loads_the_library_from_the_cdn(
    folder: ModelFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copyfile(ROOT / "package.json", tmp_path / "package.json")
    monkeypatch.setenv("PATH", "")
    found = site.find_library(tmp_path)
    assert (found.folder, found.reason) == (None, "npm is not installed")
    site.write_site([chosen(folder)], tmp_path / "out", found)
    config = (tmp_path / "out/config.js").read_text()
    assert f'"library": "{site.CDN}/@litertjs/core@{found.version}/+esm"' in config
    assert not (tmp_path / "out/engine/litert").exists()


def test_the_lock_file_names_no_host() -> None:
    lock = json.loads((ROOT / "package-lock.json").read_text())
    pinned = json.loads((ROOT / "package.json").read_text())["dependencies"]["@litertjs/core"]
    assert lock["packages"]["node_modules/@litertjs/core"]["version"] == pinned
    assert "resolved" not in json.dumps(lock)
    assert "://" not in json.dumps(lock)


def test_every_file_is_kept_for_offline_use(host: Path) -> None:
    folder = host / "deep/site"
    listed = json.loads((folder / "offline.js").read_text().removeprefix("self.SERAPHIM_OFFLINE = ").rstrip(";\n"))
    kept = {*listed["always"], *listed["relaxed"], *listed["compatible"]}
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert kept == {"./", *files} - {"index.html", "service-worker.js", "offline.js", "export.json"}


# ---------------------------------------------------------------- in a browser


class Host(http.server.SimpleHTTPRequestHandler):
    """A static host as simple as they come."""

    asked: list[str]

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        # Browsers look for a new version of a service worker by themselves, whenever they like.
        if not self.path.endswith(("/service-worker.js", "/offline.js")):
            self.asked.append(self.path)

    def log_message(self, *arguments: Any) -> None:
        pass


class Cdn(Host):
    """A host that others' pages load modules from."""

    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def guess_type(self, path: Any) -> str:
        return "text/javascript" if str(path).endswith("+esm") else super().guess_type(path)


@pytest.fixture
def serve(host: Path) -> Iterator[Any]:
    """A function that starts the host, and returns its server."""
    servers = []

    def start(folder: Path = host, kind: type[Host] = Host) -> http.server.ThreadingHTTPServer:
        handler = type("Handler", (kind,), {"asked": []})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(folder)))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        server.asked = handler.asked  # type: ignore[attr-defined]
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    """Chromium with a profile of its own, as a Playwright context."""
    sync_api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("Chromium, which opens the page, is not installed")
    with sync_api.sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(tmp_path / "profile"), executable_path=CHROMIUM, args=FLAGS
        )
        context.set_default_timeout(30_000)
        yield context
        context.close()


def open_page(context: Any, url: str) -> Any:
    page = context.new_page()
    page.complaints = []
    page.on("console", lambda said: page.complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.goto(url)
    page.wait_for_function("document.querySelector('#engine').textContent.includes('LiteRT.js')")
    return page


def play_whole_game(page: Any) -> str:
    """Play against the engine, a person's moves by mouse; return how it ended."""
    page.select_option("#strength", "50")
    page.select_option("#player-1", "computer")
    while True:
        page.wait_for_function(
            "/after \\d+ moves/.test(document.querySelector('#status').textContent)"
            " || document.querySelector('.targets button[aria-disabled=false]')"
        )
        status = page.inner_text("#status")
        if OVER.search(status):
            return str(status)
        made = page.locator("#moves button").count()
        free = page.locator(".targets button[aria-disabled=false]")
        free.nth(free.count() // 2).click()
        page.wait_for_function("(made) => document.querySelectorAll('#moves button').length > made", arg=made)


@pytest.mark.slow
def test_a_whole_game_is_played_below_a_path_without_a_request(serve: Any, browser: Any) -> None:
    server = serve()
    page = open_page(browser, f"http://127.0.0.1:{server.server_port}/deep/site/#model=connectfour")
    page.evaluate("navigator.serviceWorker.ready")
    before = len(server.asked)
    asked: list[str] = []
    browser.on("request", lambda request: asked.append(request.url))
    assert OVER.search(play_whole_game(page))
    assert (asked, server.asked[before:]) == ([], [])
    assert page.complaints == []
    assert all(path.startswith("/deep/site/") for path in server.asked)


@pytest.mark.slow
def test_the_page_lists_the_worst_moves_of_a_review(serve: Any, browser: Any) -> None:
    url = f"http://127.0.0.1:{serve().server_port}/deep/site/"
    for moves in ("a1 b1 c3 a3 b2", "b2 b1 a1 c3 a3 c1"):
        page = open_page(browser, f"{url}#model=fresh&moves={moves.replace(' ', ',')}")
        page.click("#review")
        page.wait_for_selector("#worst h3")
        review = seraphim.Model("tictactoe").review(moves)
        assert [
            [text.split(", better ")[0] for text in side.locator("button").all_inner_texts()]
            for side in page.locator("#worst > div").all()
        ] == [[f"move {each.ply} {each.label} lost {each.lost:.0%}" for each in review.worst(side)] for side in (0, 1)]
        assert review.mistakes
        assert page.complaints == []


@pytest.mark.slow
def test_the_page_works_without_its_host(serve: Any, browser: Any) -> None:
    server = serve()
    url = f"http://127.0.0.1:{server.server_port}/deep/site/"
    open_page(browser, url).evaluate("navigator.serviceWorker.ready")
    server.shutdown()
    server.server_close()
    for model in ("fresh", "connectfour"):  # of which only the first was opened while the host was there
        page = open_page(browser, f"{url}#model={model}")
        assert page.input_value("#model") == model
        page.wait_for_selector("#candidates tbody tr")
    page = open_page(browser, f"{url}index.html?from=elsewhere#model=fresh")
    assert OVER.search(play_whole_game(page))
    assert page.complaints == []


@pytest.mark.slow
def test_a_link_that_the_page_cannot_follow_leaves_it_usable(serve: Any, browser: Any) -> None:
    url = f"http://127.0.0.1:{serve().server_port}/deep/site/"
    page = open_page(browser, f"{url}#model=fresh&snapshot=00000001-20200101T000000Z&moves=b2,a1")
    assert "has only the snapshot" in page.inner_text(".notice")
    assert page.locator("#moves button").count() == 2
    for text, said in (
        ("#model=connectfour&moves=4444444", "move 7, 4, is not legal"),
        ("#model=connectfour&moves=449", "not a move of this game"),
        ("#model=nobody", "no model “nobody”"),
        (
            "game: tictactoe\nA: b2 a1\nat: A2",
            "saved games and SGF are read by the server’s page (seraphim serve): paste",
        ),
        ("b2 " * 30_000, "at most 65,536 can be sent"),
    ):
        page.click("#load")
        page.fill("#load-text", text)
        page.click("#load-form .primary")
        page.wait_for_function("document.querySelector('#load-error').textContent")
        assert said.lower() in page.inner_text("#load-error").lower()
        page.keyboard.press("Escape")
        assert page.locator("#moves button").count() == 2
    page.keyboard.press("n")
    page.wait_for_selector("#moves .empty")
    page.get_by_role("button", name="Undo", exact=True).first.click()
    page.wait_for_function("document.querySelectorAll('#moves button').length === 2")
    assert OVER.search(play_whole_game(page))
    assert page.complaints == []


TALK = """(messages) => new Promise((resolve, reject) => {
    const worker = new Worker(new URL('engine/worker.js', document.baseURI), {type: 'module'});
    const {models} = globalThis.SERAPHIM;
    const answers = {};
    worker.onmessage = ({data}) => {
        if (data.done !== false) answers[data.id] = data;
        if (Object.keys(answers).length === messages.length) worker.terminate(), resolve(answers);
    };
    setTimeout(() => reject(new Error(`only ${Object.keys(answers)} were answered`)), 60_000);
    for (const message of [{type: 'config', base: document.baseURI, models}, ...messages]) worker.postMessage(message);
})"""


@pytest.mark.slow
def test_a_small_game_is_solved_while_it_is_searched(serve: Any, browser: Any) -> None:
    page = open_page(browser, f"http://127.0.0.1:{serve().server_port}/deep/site/#model=connectfour")
    assert not page.is_visible("#solution-choice")
    told: list[dict[str, Any]] = [
        {"id": 1, "type": "open", "model": "fresh", "snapshot": None},
        {"id": 2, "type": "think", "readouts": 3000},
        {"id": 3, "type": "solve"},
    ]
    _, found, solved = page.evaluate(TALK, told).values()
    assert found["readouts"] >= 400 or found["proven"]
    assert len(solved["actions"]) == 9


@pytest.mark.slow
def test_the_games_of_a_family_share_their_rules(
    serve: Any, browser: Any, small_settings: Settings, library: Library, tmp_path: Path
) -> None:
    models = []
    for name, game in (("swapping", "hex:5,swap"), ("small", "hex:3")):
        settings = replace(small_settings, game=game)
        bootstrap(ModelFolder(tmp_path, name), load_game(game), settings, seed=1)
        models.append(Chosen(name, ModelFolder(tmp_path, name).champion(), settings))
    site.write_site(models, tmp_path / "site", library)
    assert [path.name for path in (tmp_path / "site/games").iterdir()] == ["hex.js"]
    page = open_page(browser, f"http://127.0.0.1:{serve(tmp_path).server_port}/site/")
    page.get_by_role("button", name="a3: empty").click()
    page.wait_for_function("document.querySelectorAll('#moves button').length === 2")  # the computer has moved
    told: list[dict[str, Any]] = [
        {"id": 1, "type": "open", "model": "swapping", "snapshot": None},
        {"id": 2, "type": "position", "start": None, "moves": [10, 25]},
        {"id": 3, "type": "think", "readouts": 20},
        {"id": 4, "type": "open", "model": "small", "snapshot": None},
    ]
    swapping, position, found, small = page.evaluate(TALK, told).values()
    assert (swapping["game"]["name"], small["game"]["name"]) == ("hex:5,swap", "hex:3")
    assert position["board"]["cells"][0] == [-1, -1, 1, -1, -1]
    assert found["readouts"] == 20
    assert page.complaints == []


class Incomplete(Host):
    """A host of which a file is missing."""

    missing = ""

    def send_head(self) -> Any:
        if self.missing and self.path.endswith(self.missing):
            self.send_error(404)
            return None
        return super().send_head()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("engine/search.js", "The engine in this page failed"),
        ("games/tictactoe.js", "Failed to fetch"),
        ("models/fresh.tflite", "fresh.tflite cannot be loaded: the server answered 404"),
        ("engine/litert/index.js", "Failed to fetch"),
    ],
)
def test_a_page_that_could_not_load_a_file_tries_again(serve: Any, browser: Any, missing: str, said: str) -> None:
    server = serve(kind=Incomplete)
    server.RequestHandlerClass.func.missing = missing
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{server.server_port}/deep/site/#model=fresh&moves=b2")
    page.wait_for_selector(".notice")
    assert said in page.inner_text(".notice")
    assert page.inner_text("#status") == "Nothing is loaded."
    server.RequestHandlerClass.func.missing = ""
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector("#candidates tbody tr")
    assert page.locator("#moves button").count() == 1
    assert page.locator(".notice").count() == 0


@pytest.mark.slow
def test_a_new_export_replaces_the_old_one_in_browsers(
    serve: Any, browser: Any, folder: ModelFolder, library: Library, tmp_path: Path
) -> None:
    server = serve(tmp_path)
    url = f"http://127.0.0.1:{server.server_port}/site/"
    for name in ("old", "new"):
        model = chosen(folder)
        site.write_site([Chosen(name, model.snapshot, model.settings)], tmp_path / "site", library)
        page = open_page(browser, url)
        page.evaluate("navigator.serviceWorker.ready.then((registration) => registration.update())")
        page.evaluate(
            """async (file) => {
                const isThere = async () => (await caches.keys()).length === 1 && (await caches.match(file));
                for (const end = performance.now() + 30_000; !(await isThere()); ) {
                    if (performance.now() > end) throw new Error(`${file} did not take the place of what was there`);
                    await new Promise((resolve) => setTimeout(resolve, 50));
                }
            }""",
            f"models/{name}.tflite",
        )
    assert open_page(browser, url).input_value("#model") == "new"


@pytest.mark.slow
def test_a_page_exported_without_npm_plays_with_the_cdn(
    serve: Any, browser: Any, folder: ModelFolder, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert library.folder is not None
    core, helper = (tmp_path / f"cdn/@litertjs/{name}@{library.version}" for name in ("core", "wasm-utils"))
    shutil.copytree(library.folder / "@litertjs/core", core)
    helper.mkdir()
    shutil.copyfile(library.folder / "@litertjs/wasm-utils/dist/bundle.js", helper / "+esm")
    source = (core / "dist/index.js").read_text()
    (core / "+esm").write_text(source.replace('"@litertjs/wasm-utils"', f'"/{helper.parent.name}/{helper.name}/+esm"'))
    cdn = serve(tmp_path / "cdn", Cdn)
    monkeypatch.setattr(site, "CDN", f"http://127.0.0.1:{cdn.server_port}")
    site.write_site([chosen(folder)], tmp_path / "host/site", Library(library.version, None, "npm is not installed"))
    server = serve(tmp_path / "host")
    url = f"http://127.0.0.1:{server.server_port}/site/"
    page = open_page(browser, url)  # once
    assert OVER.search(play_whole_game(page))
    assert len(cdn.asked) >= 4  # library, its helper, and the two parts of a build
    page.evaluate("navigator.serviceWorker.ready")
    for each in (server, cdn):
        each.shutdown()
        each.server_close()
    assert OVER.search(play_whole_game(open_page(browser, url)))


def test_the_browser_computes_the_same_as_the_model(serve: Any, browser: Any) -> None:
    game, folder = load_game("connectfour"), ModelFolder(ROOT, "connectfour")
    observations = game.observe(formats.random_positions(game, 20))
    logits, values = load_inference(folder.champion().path, game, "litert").infer(observations)
    page = open_page(browser, f"http://127.0.0.1:{serve().server_port}/deep/site/")
    told = page.evaluate(
        """async (observations) => {
            const {loadNetwork} = await import('./engine/litert.js');
            const {runtime, model} = SERAPHIM.models.find(({name}) => name === 'connectfour');
            const network = await loadNetwork(runtime, model, [6, 7, 6], document.baseURI);
            const told = [];
            for (const each of observations) {
                const {logits, value} = await network.evaluate(Uint8Array.from(each));
                told.push([...logits, value]);
            }
            return told;
        }""",
        observations.reshape(len(observations), -1).tolist(),
    )
    np.testing.assert_allclose(np.array(told), np.column_stack([logits, values]), atol=1e-4)
