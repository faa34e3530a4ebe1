"""Kills programs at random moments, restarts them, and checks what must be true after each kill.

Two models are trained: `whole` by bin/learn.py alone, and `parts` by train.py and bin/generate_games.py, without a
seed, so that no game is played twice, while bin/arena.py plays its snapshots.

Which games are finished is recorded independently of the code that stores them: each worker logs every game that it
has just finished, with the time. Every such game must be on disk when its program is dead. Missing games that finished
less than SECONDS before their own worker was killed are counted separately. If only the program is killed, its workers
play on for a moment: games that they finish after the kill are counted separately, all others must be there.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seraphim.evaluation.match_csv import RESULTS, read_matches
from seraphim.game import load_game
from seraphim.inference import load_inference
from seraphim.network.saved_model import load_model
from seraphim.records.files import published_files, read_examples, whole_games
from seraphim.records.index import id_of
from seraphim.records.schema import end_of
from seraphim.records.tfrecord import DamageError
from seraphim.storage.models import ModelFolder, Snapshot
from seraphim.training.curve import read_curve

ROOT = Path(__file__).parents[2]
GAMES, STEPS = 40, 8  # of a generation
SECONDS = 1.0  # before the end of its worker, in which a game may be lost
SMALL = ("--depth=1", "--width=16", "--readouts=10", f"--steps={STEPS}", "--max_snapshots=100000")
SMALL += (f"--games_per_generation={GAMES}", "--games_per_file=7", "--max_window=10000000")
LEARN = ("bin/learn.py", "whole", "--game=tictactoe", "--goal=none", "--workers=2", *SMALL)
MAKE = ("tictactoe/train.py", "parts", "--init", *SMALL)
TRAIN = ("tictactoe/train.py", "parts")
GENERATE = ("bin/generate_games.py", "parts", "--games=2000", "--workers=2", "--readouts=60", "--games_per_file=50")
ARENA = ("bin/arena.py", "parts", "random", "--games=4", "--readouts=4", "--forever")
MAX_SECONDS = 600  # for a program to finish, or for workers to notice that their parent is dead
WAYS = ("the program and its workers", "the program alone", "one worker")
# Python runs this when it starts, in each worker: it logs every finished game.
LOG_FINISHED_GAMES = """
import os, sys, time

if "--multiprocessing-fork" in sys.orig_argv:
    from seraphim.selfplay.games import SelfPlay

    log = os.open(os.environ["FINISHED_GAMES"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    play = SelfPlay.play

    def play_and_log(self, numbers):
        for record in play(self, numbers):
            os.write(log, f"{record.game_id} {time.monotonic()}\\n".encode())
            yield record

    SelfPlay.play = play_and_log
"""


def start(root: Path, *command: str, output: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """Start a program in a new process group, with its workers."""
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, "SERAPHIM_DATA": str(root), "PYTHONUNBUFFERED": "1", **_logging(root)},
        stdout=output,
        stderr=subprocess.STDOUT if output == subprocess.PIPE else output,
        text=True,
        start_new_session=True,
    )


def _logging(root: Path) -> dict[str, str]:
    (root / "log").mkdir(parents=True, exist_ok=True)
    (root / "log" / "sitecustomize.py").write_text(LOG_FINISHED_GAMES)
    path = os.pathsep.join([str(root / "log"), os.environ.get("PYTHONPATH", "")])
    return {"PYTHONPATH": path, "FINISHED_GAMES": str(root / "log" / "finished")}


def run(root: Path, *command: str) -> str:
    """Run a program until it ends, and return its output."""
    with start(root, *command, output=subprocess.PIPE) as program:
        output, _ = program.communicate(timeout=MAX_SECONDS)
    if program.returncode:
        raise AssertionError(f"{' '.join(command)} ended with {program.returncode}:\n{output}")
    return output


def games_of(folder: ModelFolder) -> list[str]:
    """Return the ids of all published games, in the order in which they are stored."""
    return [id_of(one) for path in published_files(folder.game_data) for one in read_examples(path) if end_of(one)]


def unpublished(folder: ModelFolder) -> set[str]:
    """Return the ids of the games that are on disk but not published yet."""
    partials = list(folder.game_data.glob(".*.partial"))
    return {id_of(game[-1]) for partial in partials for game in whole_games(partial.read_bytes())}


def living(group: int) -> list[int]:
    """Return the living processes of a group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, its_group = stat.read_text().rpartition(") ")[2].split()[:3]
            if int(its_group) == group and state not in "ZX":
                found.append(int(stat.parent.name))
    return found


def workers(process: int) -> list[int]:
    """Return the worker processes of a program."""
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
    return []


class _File(NamedTuple):
    """A file of games as it was."""

    changed: int
    size: int
    content: list[bytes]  # its examples
    ids: list[str]  # of its games


class Campaign:
    """Kills programs, and collects what was wrong.

    Attributes:
        kills: number of kills, by program and way.
        faults: what was wrong, a sentence each.
        finished: games that workers finished and that were on disk when their program was dead.
        lost: games that were not.
        late: games that were not, but had finished less than SECONDS before their worker was killed.
    """

    def __init__(self, root: Path, seed: int, say: Callable[[str], None] = lambda line: None) -> None:
        """Create both models, and measure how long each program takes."""
        self.kills: Counter[tuple[str, str]] = Counter()
        self.faults: list[str] = []
        self.finished: set[str] = set()
        self.lost: set[str] = set()
        self.late: set[str] = set()
        self._root = root
        self._rng = np.random.default_rng(seed)
        self._say = say
        self._folders = [ModelFolder(root, "whole"), ModelFolder(root, "parts")]
        self._files: dict[Path, _File] = {}
        self._log = root / "log" / "finished"
        self._read = 0  # bytes of the log
        self._loaded: set[Snapshot] = set()
        self._game = load_game("tictactoe")
        run(root, *MAKE)
        self._seconds = {name: self._time(name) for name in ("generate", "train", "learn", "arena")}

    def kill(self) -> None:
        """Run a program, kill it at a random moment unless it ends before, and check the state on disk."""
        name = str(self._rng.choice(["learn", "generate", "generate", "train", "arena"]))
        way = WAYS[self._rng.integers(len(WAYS))] if name in ("learn", "generate") else WAYS[0]
        moment = self._rng.uniform(0.05, 1.1) * self._seconds[name]
        with start(self._root, *self._command(name), output=subprocess.PIPE) as program:
            if name == "generate" and self._rng.random() < 0.9:  # while games are finished, not before
                moment = self._rng.exponential(1.0)
                self._wait_for_a_game(program)
            time.sleep(moment)
            killed = None
            if program.poll() is None:
                killed = self._kill(program, name, way, moment)
            else:
                self._ended(name, program)
        self.look()
        self._count_finished(killed)

    def _wait_for_a_game(self, program: subprocess.Popen[str]) -> None:
        while self._log.stat().st_size == self._read and program.poll() is None:
            time.sleep(0.01)

    def _command(self, name: str) -> tuple[str, ...]:
        return {"learn": LEARN, "generate": GENERATE, "train": TRAIN, "arena": ARENA}[name]

    def _time(self, name: str) -> float:
        began = time.perf_counter()
        if name == "arena":
            self._play_matches()
        else:
            run(self._root, *self._command(name), *(["--generations=1"] if name == "learn" else []))
        return time.perf_counter() - began

    def _play_matches(self) -> None:
        # The arena runs forever; stop it after the first match or rating.
        with start(self._root, *ARENA, output=subprocess.PIPE) as program:
            assert program.stdout and program.stdout.readline()
            program.terminate()
            output, _ = program.communicate(timeout=MAX_SECONDS)
        if program.returncode:
            self._wrong(f"the arena ended with {program.returncode}: {output}")

    def _kill(self, program: subprocess.Popen[str], name: str, way: str, moment: float) -> float:
        # Returns the time from which on finished games may be missing.
        victims = workers(program.pid)
        if way == WAYS[2] and not victims:
            way = WAYS[0]
        killed = time.monotonic() - (0 if way == WAYS[1] else SECONDS)
        if way == WAYS[0]:
            os.killpg(program.pid, signal.SIGKILL)
        elif way == WAYS[1]:
            program.kill()
        else:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(int(self._rng.choice(victims)), signal.SIGKILL)
            output, _ = program.communicate(timeout=MAX_SECONDS)
            if program.returncode != 1 or "died with exit code" not in output or "Traceback" in output:
                if program.returncode == 0:
                    self._ended(name, program)
                    return None
                self._wrong(f"{name} without a worker ended with {program.returncode}: {output[-2000:]}")
        self.kills[name, way] += 1
        self._say(f"kill {self.kills.total()}: {way} of {name} after {moment:.1f} s")
        deadline = time.monotonic() + MAX_SECONDS
        while living(program.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        if left := living(program.pid):
            self._wrong(f"{len(left)} processes outlived {name}")
            os.killpg(program.pid, signal.SIGKILL)
        return killed

    def _ended(self, name: str, program: subprocess.Popen[str]) -> None:
        if program.returncode:
            self._wrong(f"{name} ended with {program.returncode}: {(program.stdout or sys.stdin).read()}")

    def _wrong(self, fault: str) -> None:
        self.faults.append(fault)
        self._say(f"FAULT: {fault}")

    def _count_finished(self, killed: float | None) -> None:
        # Checks the games that were finished since the last time.
        with self._log.open() as log:
            log.seek(self._read)
            finished = {game: float(moment) for game, moment in map(str.split, log)}
            self._read = log.tell()
        on_disk = {game for file in self._files.values() for game in file.ids}
        on_disk |= {game for folder in self._folders for game in unpublished(folder)}
        missing = finished.keys() - on_disk
        late = {game for game in missing if killed and finished[game] > killed}
        self.finished |= finished.keys() & on_disk
        self.late |= late
        if lost := missing - late:
            self.lost |= lost
            self._wrong(f"{len(lost)} games were finished and are not on disk: {sorted(lost)[:5]}")

    def _look_at_games(self, folder: ModelFolder) -> None:
        paths = published_files(folder.game_data)
        for path in paths:
            state, before = path.stat(), self._files.get(path)
            if before and (before.changed, before.size) == (state.st_mtime_ns, state.st_size):
                continue
            examples = read_examples(path)
            content = [example[:-1] for example in examples]  # without what tells that the file ends
            if before and content[: len(before.content)] != before.content:
                self._wrong(f"games of {path} were lost or changed")
            ids = [id_of(example) for example in examples if end_of(example)]
            self._files[path] = _File(state.st_mtime_ns, state.st_size, content, ids)
        if gone := [path for path in self._files if path.parent == folder.game_data and path not in paths]:
            self._wrong(f"files of game data are gone: {gone}")
        counts = Counter(game for path in paths for game in self._files[path].ids)
        if doubled := [game for game, count in counts.items() if count > 1]:
            self._wrong(f"games of {folder.name} are stored twice: {doubled[:5]}")

    def look(self) -> None:
        """Check what another program may see at any moment."""
        for folder in self._folders:
            try:
                self._look_at_games(folder)
            except DamageError as error:
                self._wrong(f"game data of {folder.name} is {error}")
            steps = [snapshot.step for snapshot in folder.snapshots()]
            if steps != list(range(0, len(steps) * STEPS, STEPS)):
                self._wrong(f"snapshots of {folder.name} have the steps {steps}")
            for snapshot in set(folder.snapshots()) - self._loaded:
                self._load(snapshot)
            if steps and folder.champion().step < steps[-1] - STEPS:
                self._wrong(f"the champion of {folder.name} is old: {folder.champion().name}")

    def _load(self, snapshot: Snapshot) -> None:
        load_model(snapshot.path)
        logits, _ = load_inference(snapshot.path, self._game, batch=1).infer(self._game.observe(self._game.initial(1)))
        if not np.isfinite(logits).all():
            self._wrong(f"{snapshot.path} returns no finite numbers")
        self._loaded.add(snapshot)

    def finish(self) -> None:
        """Run every program to its end, and check the results."""
        for name in ("generate", "train", "learn", "arena"):
            try:
                self._time(name)
            except AssertionError as error:
                self._wrong(str(error))
        self.look()
        self._count_finished(None)
        whole, parts = self._folders
        steps = [snapshot.step for snapshot in whole.snapshots()]
        expected = [f"0-{step}-{number}" for step in steps[:-1] for number in range(GAMES)]
        self._compare("games of learning", sorted(games_of(whole)), sorted(expected))
        published = {*games_of(whole), *games_of(parts)}
        self._compare("finished games that are not published", sorted(self.finished - published), [])
        self._compare("published games that no worker finished", sorted(published - self.finished), [])
        self._say(f"games finished: {len(self.finished):,}, lost: {len(self.lost)}, lost at last: {len(self.late)}")
        curve = [(line["step"], line["games"]) for line in read_curve(whole.path / "curve.csv")]
        self._compare("lines of curve.csv", curve, [(step, step // STEPS * GAMES) for step in steps[1:]])
        met = [frozenset((match.first, match.second)) for match in read_matches(parts.path / RESULTS)]
        self._compare("matches", sorted(map(sorted, met)), sorted(map(sorted, set(met))))
        for folder in self._folders:
            self._compare("champion", folder.champion(), folder.snapshots()[-1])
            hidden = (".unfinished", ".next", ".partial", ".new")
            places = [*folder.path.iterdir(), *folder.game_data.iterdir()]
            self._compare("leftovers", [each.name for each in places if any(one in each.name for one in hidden)], [])
        self._compare_weights(whole, len(steps) - 1)

    def _compare_weights(self, killed: ModelFolder, generations: int) -> None:
        # Compares training that was killed with training that was not.
        root = self._root / "undisturbed"
        run(root, *LEARN, f"--generations={generations}")
        models = [load_model(each.champion().path) for each in (killed, ModelFolder(root, killed.name))]
        mine, other = ([*model.get_weights(), *map(np.array, model.optimizer.variables)] for model in models)
        same = [np.array_equal(one, two) for one, two in zip(mine, other, strict=True)]
        self._compare("weights and optimizer, as those of undisturbed learning", same, [True] * len(same))

    def _compare(self, what: str, found: object, expected: object) -> None:
        if found != expected:
            self._wrong(f"{what}: found {str(found)[:1000]}, expected {str(expected)[:1000]}")
        else:
            self._say(f"as expected: {what}")
