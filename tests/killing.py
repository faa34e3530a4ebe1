"""Programs that are killed at random moments and started again, and what must be true whenever one is dead.

Two models learn meanwhile: `whole` by bin/learn.py alone, and `parts` by train.py and bin/generate_games.py, whose
seed goes up when its games are complete, while bin/arena.py plays its snapshots.
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

import numpy as np

from seraphim.curve import read_curve
from seraphim.examples import end_of
from seraphim.game import load_game
from seraphim.gamefiles import published_files, read_examples
from seraphim.inference import load_inference
from seraphim.matchfile import RESULTS, read_matches
from seraphim.saving import load_model
from seraphim.store import ModelFolder, Snapshot
from seraphim.tfrecord import DamageError, parse_example

ROOT = Path(__file__).parents[1]
GAMES, STEPS = 40, 8  # of a generation, and of a seed
SMALL = ("--depth=1", "--width=16", "--readouts=10", f"--steps={STEPS}", "--max_snapshots=100000", "--max_files=100000")
SMALL += (f"--games_per_generation={GAMES}", "--games_per_file=7")
LEARN = ("bin/learn.py", "whole", "--game=tictactoe", "--goal=none", "--workers=2", *SMALL)
MAKE = ("tictactoe/train.py", "parts", "--init", *SMALL)
TRAIN = ("tictactoe/train.py", "parts")
GENERATE = ("bin/generate_games.py", "parts", f"--games={GAMES}", "--workers=2")
ARENA = ("bin/arena.py", "parts", "random", "--games=4", "--readouts=4", "--forever")
MOST_SECONDS = 600  # that a program may take here, or that workers may take to notice that they are alone
WAYS = ("the program and its workers", "the program alone", "one worker")


def start(root: Path, *command: str, output: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """Start a program in a process group of its own, with its workers."""
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, "SERAPHIM_DATA": str(root), "PYTHONUNBUFFERED": "1"},
        stdout=output,
        stderr=subprocess.STDOUT if output == subprocess.PIPE else output,
        text=True,
        start_new_session=True,
    )


def run(root: Path, *command: str) -> str:
    """Run a program to its end, and return what it said."""
    with start(root, *command, output=subprocess.PIPE) as program:
        output, _ = program.communicate(timeout=MOST_SECONDS)
    if program.returncode:
        raise AssertionError(f"{' '.join(command)} ended with {program.returncode}:\n{output}")
    return output


def games_of(folder: ModelFolder) -> list[str]:
    """The ids of all finished games, in the order in which they are stored."""
    last = (one for path in published_files(folder.game_data) for one in read_examples(path) if end_of(one))
    return [parse_example(example)["game_id"].values[0].decode() for example in last]


def living(group: int) -> list[int]:
    """The processes of a group that live."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, its_group = stat.read_text().rpartition(") ")[2].split()[:3]
            if int(its_group) == group and state not in "ZX":
                found.append(int(stat.parent.name))
    return found


def workers(process: int) -> list[int]:
    """The processes that play for a program."""
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
    return []


class Campaign:
    """Kills, and tells what was wrong.

    Attributes:
        kills: how many there were, by program and way.
        faults: what was wrong, a sentence each.
    """

    def __init__(self, root: Path, seed: int, say: Callable[[str], None] = lambda line: None) -> None:
        """Make both models, and find out how long each program takes."""
        self.kills: Counter[tuple[str, str]] = Counter()
        self.faults: list[str] = []
        self._root = root
        self._rng = np.random.default_rng(seed)
        self._say = say
        self._folders = [ModelFolder(root, "whole"), ModelFolder(root, "parts")]
        self._files: dict[Path, bytes] = {}
        self._loaded: set[Snapshot] = set()
        self._seed = 0  # of the games that are generated
        self._game = load_game("tictactoe")
        run(root, *MAKE)
        self._seconds = {name: self._time(name) for name in ("generate", "train", "learn", "arena")}

    def kill(self) -> None:
        """Let a program run, kill it at a random moment or see it end before, and look at what is there."""
        name = str(self._rng.choice(["learn", "learn", "generate", "train", "arena"]))
        way = WAYS[self._rng.integers(len(WAYS))] if name in ("learn", "generate") else WAYS[0]
        moment = self._rng.uniform(0.05, 1.1) * self._seconds[name]
        with start(self._root, *self._command(name), output=subprocess.PIPE) as program:
            time.sleep(moment)
            if program.poll() is None:
                self._kill(program, name, way, moment)
            else:
                self._ended(name, program)
        self.look()

    def _command(self, name: str) -> tuple[str, ...]:
        commands = {"learn": LEARN, "generate": (*GENERATE, f"--seed={self._seed}"), "train": TRAIN, "arena": ARENA}
        return commands[name]

    def _time(self, name: str) -> float:
        began = time.perf_counter()
        if name == "arena":
            self._play_matches()
        else:
            run(self._root, *self._command(name), *(["--generations=1"] if name == "learn" else []))
            self._seed += name == "generate"
        return time.perf_counter() - began

    def _play_matches(self) -> None:
        # The arena goes on without end: until it tells the first match or rating.
        with start(self._root, *ARENA, output=subprocess.PIPE) as program:
            assert program.stdout and program.stdout.readline()
            program.terminate()
            output, _ = program.communicate(timeout=MOST_SECONDS)
        if program.returncode:
            self._wrong(f"the arena ended with {program.returncode}: {output}")

    def _kill(self, program: subprocess.Popen[str], name: str, way: str, moment: float) -> None:
        victims = workers(program.pid)
        if way == WAYS[2] and not victims:
            way = WAYS[0]
        if way == WAYS[0]:
            os.killpg(program.pid, signal.SIGKILL)
        elif way == WAYS[1]:
            program.kill()
        else:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(int(self._rng.choice(victims)), signal.SIGKILL)
            output, _ = program.communicate(timeout=MOST_SECONDS)
            if program.returncode != 1 or "died with exit code" not in output or "Traceback" in output:
                if program.returncode == 0:
                    return self._ended(name, program)
                self._wrong(f"{name} without a worker ended with {program.returncode}: {output[-2000:]}")
        self.kills[name, way] += 1
        self._say(f"kill {self.kills.total()}: {way} of {name} after {moment:.1f} s")
        deadline = time.monotonic() + MOST_SECONDS
        while living(program.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        if left := living(program.pid):
            self._wrong(f"{len(left)} processes outlived {name}")
            os.killpg(program.pid, signal.SIGKILL)
        return None

    def _ended(self, name: str, program: subprocess.Popen[str]) -> None:
        if program.returncode:
            self._wrong(f"{name} ended with {program.returncode}: {(program.stdout or sys.stdin).read()}")
        elif name == "generate":
            self._seed += 1

    def _wrong(self, fault: str) -> None:
        self.faults.append(fault)
        self._say(f"FAULT: {fault}")

    def look(self) -> None:
        """Check what another program may find at any moment."""
        files = {}
        for folder in self._folders:
            files |= {path: path.read_bytes() for path in published_files(folder.game_data)}
            try:
                doubled = [identity for identity, count in Counter(games_of(folder)).items() if count > 1]
            except DamageError as error:
                self._wrong(f"game data of {folder.name} is {error}")
            else:
                if doubled:
                    self._wrong(f"games of {folder.name} are stored twice: {doubled[:5]}")
            steps = [snapshot.step for snapshot in folder.snapshots()]
            if steps != list(range(0, len(steps) * STEPS, STEPS)):
                self._wrong(f"snapshots of {folder.name} have the steps {steps}")
            for snapshot in set(folder.snapshots()) - self._loaded:
                self._load(snapshot)
            if steps and folder.champion().step < steps[-1] - STEPS:
                self._wrong(f"the champion of {folder.name} is old: {folder.champion().name}")
        if not self._files.items() <= files.items():
            self._wrong("files of game data were lost or changed")
        self._files = files

    def _load(self, snapshot: Snapshot) -> None:
        load_model(snapshot.path)
        logits, _ = load_inference(snapshot.path, self._game, batch=1).infer(self._game.observe(self._game.initial(1)))
        if not np.isfinite(logits).all():
            self._wrong(f"{snapshot.path} plays nothing")
        self._loaded.add(snapshot)

    def finish(self) -> None:
        """Let every program end, and check what has come of everything."""
        for name in ("generate", "train", "learn", "arena"):
            try:
                self._time(name)
            except AssertionError as error:
                self._wrong(str(error))
        self.look()
        whole, parts = self._folders
        steps = [snapshot.step for snapshot in whole.snapshots()]
        expected = [f"0-{step}-{number}" for step in steps[:-1] for number in range(GAMES)]
        self._compare("games of learning", games_of(whole), expected)
        expected = [f"{seed}-{number}" for seed in range(self._seed) for number in range(GAMES)]
        self._compare("generated games", sorted(games_of(parts)), sorted(expected))
        curve = [(line["step"], line["games"]) for line in read_curve(whole.path / "curve.csv")]
        self._compare("lines of curve.csv", curve, [(step, step // STEPS * GAMES) for step in steps[1:]])
        met = [frozenset((match.first, match.second)) for match in read_matches(parts.path / RESULTS)]
        self._compare("matches", sorted(map(sorted, met)), sorted(map(sorted, set(met))))
        for folder in self._folders:
            self._compare("champion", folder.champion(), folder.snapshots()[-1])
            hidden = (".unfinished", ".next", ".partial", ".sealed")
            places = [*folder.path.iterdir(), *folder.game_data.iterdir()]
            self._compare("leftovers", [each.name for each in places if any(one in each.name for one in hidden)], [])
        self._compare_weights(whole, len(steps) - 1)

    def _compare_weights(self, killed: ModelFolder, generations: int) -> None:
        # Learning that was killed against learning that was not.
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
