"""An atlas of connect four: for each size of the board, learn, prove the result, and check the proof by the rules.

    PYTHONPATH=. python benchmarks/atlas.py --out=atlas                    # all boards, the smaller ones first
    PYTHONPATH=. python benchmarks/atlas.py --out=atlas --boards 5x6 6x6   # of 5 rows by 6 columns, and 6 by 6

prints a row for each board. Its network learns for 45 minutes · 2^((cells − 42) / 4), or --minutes; without minutes
there is no network. The folder keeps models, proofs and what has been measured: the same command goes on where it was
interrupted. A result that is not the one that John Tromp computed (https://tromp.github.io/c4/c4.html) ends it.
"""

import argparse
import hashlib
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import seraphim
from seraphim.game.saved_games import read_position
from seraphim.inference.interface import LARGEST_BATCH
from seraphim.machine import count_cores
from seraphim.players.model import Model
from seraphim.proof.certificate import read_certificate
from seraphim.proof.display import Proof, show
from seraphim.proof.proving import Limits, prove
from seraphim.storage.models import ModelFolder
from seraphim.training.curve import CURVE, read_curve

# Tromp's results by rows, for 4 columns and more: the first player wins (+), the second does (-), or neither (=).
TROMP = {4: "==-=--", 5: "====++", 6: "==-+--", 7: "==+=+", 8: "==-+", 9: "==+", 10: "==", 11: "="}
SIGNS = {1: "+", 0: "=", -1: "-"}
COLUMNS = (
    *("board", "result", "Tromp", "minutes of learning", "seconds", "evaluations", "positions in memory"),
    *("positions in the proof", "bytes", "SHA-256", "seconds of the check"),
)


def boards() -> list[tuple[int, int]]:
    """Return the boards of Tromp's table that the rules take, as rows and columns, those of fewer cells first."""
    sizes = [(rows, 4 + place) for rows, results in TROMP.items() for place in range(len(results))]
    return sorted((size for size in sizes if (size[0] + 1) * size[1] < 63), key=lambda size: (math.prod(size), size))


def minutes_of_learning(rows: int, columns: int) -> float:
    """Return for how long a board's network learns."""
    return 45 * 2 ** ((rows * columns - 42) / 4)


class Board:
    """A board of the atlas, with what was done about it in a folder."""

    def __init__(self, root: Path, rows: int, columns: int) -> None:
        """Find what was done."""
        self.name = f"{rows}x{columns}"
        self.game = f"connectfour:{self.name}"
        self.tromp = TROMP[rows][columns - 4]
        self.proof = root / f"{self.name}.proof"
        self._root, self._model = root, f"atlas-{self.name}"
        self._file = root / f"{self.name}.json"
        self.found: dict[str, Any] = json.loads(self._file.read_text()) if self._file.exists() else {"decisions": []}

    def learn(self, minutes: float) -> None:
        """Let its network learn until it has for so long."""
        folder = ModelFolder(self._root, self._model)
        if not folder.path.exists():
            seraphim.new(self._model, self.game, seed=1, folder=self._root)
        learned = self._seconds_learned(folder)
        if learned < 60 * minutes:
            print(f"{self.name}: learns for {minutes - learned / 60:.1f} minutes", file=sys.stderr, flush=True)
            hours = (minutes - learned / 60) / 60
            said: list[str] = []
            seraphim.learn(self._model, hours=hours, goal="none", seed=1, folder=self._root, callback=said.append)
        self._keep(minutes=self._seconds_learned(folder) / 60)

    def prove(self, megabytes: int, hours: float) -> None:
        """Prove its result, as far as that takes no longer."""
        model: Model = seraphim.load(self._model, folder=self._root) if "minutes" in self.found else Model(self.game)
        inferences = model.inferences(LARGEST_BATCH, count_cores())
        start, limits = read_position(model.origin, ""), Limits(3600 * hours, megabytes)
        with show() as report:
            for decision in prove(self.game, start, "result", inferences, limits, self.proof, report):
                print(f"{self.name}: {Proof((), (decision,), None)}", file=sys.stderr, flush=True)
                if decision.true_claim is not None:
                    figures = decision.seconds, decision.counts.evaluations, decision.counts.positions
                    self._keep(decisions=[*self.found["decisions"], [*figures, decision.proof_positions]])

    @property
    def result(self) -> str | None:
        """Its result for the first player as a sign; None if the proof leaves it open."""
        claims = read_certificate(self.proof).claims if self.proof.exists() else ()
        value = Proof(claims, (), self.proof).value
        return None if value is None else SIGNS[value]

    def check(self) -> None:
        """Check the proof.

        Raises:
            SystemExit: it is wrong, or contradicts the table.
        """
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "bin/check_proof.py", str(self.proof)], check=False, capture_output=True, text=True
        )
        if done.returncode or self.result != self.tromp:
            raise SystemExit(f"{self.proof} is wrong: {done.stdout}{done.stderr}; Tromp found {self.tromp}")
        self._keep(check=time.perf_counter() - start)

    def row(self) -> str:
        """Return its row of the table; a draw has two proofs."""
        sums = [
            " + ".join(f"{figure:,.0f}" for figure in figures) for figures in zip(*self.found["decisions"], strict=True)
        ]
        data = self.proof.read_bytes()
        learned = f"{self.found['minutes']:.1f}" if "minutes" in self.found else "–"
        digest, check = hashlib.sha256(data).hexdigest(), f"{self.found['check']:.1f}"
        return _row(self.name, str(self.result), self.tromp, learned, *sums, f"{len(data):,}", digest, check)

    def _seconds_learned(self, folder: ModelFolder) -> float:
        rows = read_curve(folder.path / CURVE)
        return rows[-1]["seconds"] if rows else 0.0

    def _keep(self, **found: Any) -> None:
        self.found |= found
        self._file.write_text(json.dumps(self.found))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Go through the boards."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder")
    parser.add_argument("--boards", nargs="+", default=[], help="such as 5x6; default: all")
    parser.add_argument("--minutes", type=float, help="of learning, for each board; 0: without a network")
    parser.add_argument("--hours", type=float, default=math.inf, help="limit on each proof")
    parser.add_argument("--megabytes", type=int, default=8192, help="of memory for positions")
    arguments = parser.parse_args()
    sizes = {f"{rows}x{columns}": (rows, columns) for rows, columns in boards()}
    if unknown := set(arguments.boards) - set(sizes):
        parser.error(f"no board of the atlas: {', '.join(sorted(unknown))}; expected some of {', '.join(sizes)}")
    arguments.out.mkdir(exist_ok=True)
    print(_row(*COLUMNS), "|" + " --- |" * len(COLUMNS), sep="\n", flush=True)
    for name in arguments.boards or sizes:
        board = Board(arguments.out, *sizes[name])
        if board.result is None:
            minutes = minutes_of_learning(*sizes[name]) if arguments.minutes is None else arguments.minutes
            if minutes:
                board.learn(minutes)
            board.prove(arguments.megabytes, arguments.hours)
        if board.result is None:
            print(f"{name} is undecided", file=sys.stderr, flush=True)
            continue
        if "check" not in board.found:
            board.check()
        print(board.row(), flush=True)


if __name__ == "__main__":
    main()
