"""Which runtime is the fastest for a model on this machine: measured once, and kept beside the snapshots.

Runtimes round differently, so games depend on the choice. Hence it does not change once it is made: `runtime.json` in
the model's folder keeps it, whichever snapshot is loaded, until the processor, a runtime's version, the network's size
or the use changes. Where that file cannot be written, each load measures again.
"""

import contextlib
import functools
import json
import platform
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seraphim.game import Array
from seraphim.inference.interface import Inference, Runtime

FILE = "runtime.json"

ADVANTAGE = 3.0
"""A runtime is chosen over the one that is listed before it if a call takes less than 1/ADVANTAGE of the time. A
smaller difference might turn out the other way when it is measured again, and other games would be played."""

_LONGEST_CALL = 0.005  # seconds; if a whole batch takes longer, fewer positions are measured
_SECONDS = 0.02  # of measuring one number of positions, at least
_ROUNDS = 4  # at least; the first ones also prepare for the number of positions
_CALLS, _TURN_SECONDS = 8, 0.01  # a runtime's turn in a round is over after so many calls, or after so long


class Choice(NamedTuple):
    """A runtime, and why it was chosen."""

    runtime: Runtime
    reason: str


@dataclass(frozen=True)
class Situation:
    """What a measurement holds for."""

    processor: str
    """Its name."""
    batch: int
    """Positions at a time."""
    threads: int
    """Processor threads of a runtime."""
    precision: str
    """Asked of the arithmetic."""
    runtimes: Mapping[Runtime, str]
    """The versions of the runtimes there are, by name; the first is chosen where none is much faster."""
    observation_shape: list[int]
    num_actions: int
    network_bytes: int
    """Size of the weights, which tells networks of different options apart, but not a network from itself retrained."""


class Measurement(NamedTuple):
    """How long a call takes each runtime."""

    positions: int  # in a call
    microseconds: Mapping[Runtime, float]  # at best


def decide(
    folder: Path, situation: Situation, titles: Mapping[Runtime, str], load: Callable[[Runtime], Inference]
) -> Choice:
    """Return what `folder` remembers for a situation; else measure, and let it remember.

    Args:
        folder: where `runtime.json` is, or will be unless the folder is read-only.
        situation: what the choice is for; at least one runtime.
        titles: the runtimes' names for people.
        load: loads the model with a runtime.

    Raises:
        ModelError: a runtime cannot load the model.
    """
    names = list(situation.runtimes)
    if len(names) == 1:
        return Choice(names[0], "the only runtime there is here")
    known = _recall(folder / FILE, situation)
    if known is None:
        measured = measure({name: load(name) for name in names}, situation.batch, situation.observation_shape)
        # Another program may have been quicker: then its choice counts, so that both play the same games.
        known = _recall(folder / FILE, situation)
        if known is None:
            known = fastest(measured), measured
            _remember(folder / FILE, situation, *known)
    return Choice(known[0], _reason(known[0], known[1], situation.batch, titles))


def fastest(measured: Measurement) -> Runtime:
    """Return the runtime to choose: the first listed, unless another is much faster."""
    chosen, *others = measured.microseconds
    for other in others:
        if ADVANTAGE * measured.microseconds[other] < measured.microseconds[chosen]:
            chosen = other
    return chosen


def measure(models: Mapping[Runtime, Inference], batch: int, observation_shape: list[int]) -> Measurement:
    """Measure how long calls take, in turns and each at its best, so that a busy machine does little harm.

    It takes some tens of milliseconds: fewer than `batch` positions are measured if those took too long.
    """
    generator = np.random.default_rng(0)
    observations: Array = generator.integers(0, 2, (batch, *observation_shape)).astype(np.uint8)
    positions = 1
    while True:
        best = _shortest_calls(models, observations[:positions])
        growth = int(_LONGEST_CALL / max(best.values()))
        if positions >= batch or growth < 2:
            return Measurement(positions, {name: round(1e6 * seconds, 1) for name, seconds in best.items()})
        positions = min(batch, positions << (growth.bit_length() - 1))


def _shortest_calls(models: Mapping[Runtime, Inference], observations: Array) -> dict[Runtime, float]:
    best = dict.fromkeys(models, np.inf)
    rounds, end = 0, time.perf_counter() + _SECONDS
    while rounds < _ROUNDS or time.perf_counter() < end:
        rounds += 1
        for name, model in models.items():
            best[name] = min(best[name], _shortest_call(model, observations))
    return best


def _shortest_call(model: Inference, observations: Array) -> float:
    best, end = np.inf, time.perf_counter() + _TURN_SECONDS
    for _ in range(_CALLS):
        start = time.perf_counter()
        if start > end:
            break
        model.infer(observations)
        best = min(best, time.perf_counter() - start)
    return best


def _reason(chosen: Runtime, measured: Measurement, batch: int, titles: Mapping[Runtime, str]) -> str:
    own = measured.microseconds[chosen]
    count = "1 position" if measured.positions == 1 else f"{measured.positions} positions"
    others = [f"{titles[name]} {figure:,.0f}" for name, figure in measured.microseconds.items() if name != chosen]
    tie = any(figure < own for figure in measured.microseconds.values())
    return (
        f"chosen for batches of {batch}: {own:,.0f} µs for {count}, {' and '.join(others)} µs"
        f"{f' (less than {ADVANTAGE:g} times faster does not count)' if tie else ''}"
    )


def _recall(file: Path, situation: Situation) -> tuple[Runtime, Measurement] | None:
    for entry in _entries(file):
        with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):
            if entry["for"] == asdict(situation):
                microseconds = {name: float(entry["microseconds"][name]) for name in situation.runtimes}
                for name in situation.runtimes:
                    if name == entry["runtime"]:
                        return name, Measurement(int(entry["positions"]), microseconds)
    return None


def _remember(file: Path, situation: Situation, chosen: Runtime, measured: Measurement) -> None:
    # In place of what is no longer true of this processor and use.
    lasting = ("processor", "batch", "threads", "precision")
    facts = asdict(situation)
    entries = [
        entry
        for entry in _entries(file)
        if isinstance(entry, dict)
        and isinstance(entry.get("for"), dict)
        and any(entry["for"].get(name) != facts[name] for name in lasting)
    ]
    entries.append({"for": facts, "runtime": chosen, **measured._asdict()})
    # The folder may be read-only. If this program is killed, the store removes such a temporary folder.
    with contextlib.suppress(OSError), tempfile.TemporaryDirectory(prefix=".unfinished-", dir=file.parent) as folder:
        whole = Path(folder) / file.name
        whole.write_text(json.dumps(entries, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        whole.replace(file)


def _entries(file: Path) -> list[Any]:
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return entries if isinstance(entries, list) else []


@functools.cache
def processor_name() -> str:
    """Return the name of this machine's processor."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


@functools.cache
def version(package: str) -> str | None:
    """Return the version of an installed package; None if it is not there."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
