"""Where the time of learning goes, and what holds it up."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from seraphim.selfplay.generate import Generated
from seraphim.training.trainer import Generation

# What time goes into: parts of self-play, parts of training, and the check.
START, NETWORK, RULES, SEARCH, OTHER = "start", "network", "rules", "search", "other"
STEPS, GATE, FILES, CHECK = "steps", "gate", "files", "check"
SELF_PLAY, TRAINING = (START, NETWORK, RULES, SEARCH, OTHER), (STEPS, GATE, FILES)

MEANINGS = {
    START: "start of self-play, when workers load the model and wait for the last games",
    NETWORK: "network's evaluations in self-play",
    RULES: "game's rules in self-play",
    SEARCH: "search's own work in self-play",
    OTHER: "rest of self-play, such as records of games",
    STEPS: "steps of training",
    GATE: "match of the gate",
    FILES: "reading of game data and writing of snapshots",
    CHECK: "check against solved positions",
}


@dataclass(frozen=True)
class Pace:
    """What was done in which time; prints as one line."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    """By part, see MEANINGS; all together, the time by the clock."""
    games: int = 0
    evaluations: int = 0
    """Positions evaluated by the network in self-play."""

    def __add__(self, other: "Pace") -> "Pace":
        """Return both together."""
        seconds = {part: self.seconds.get(part, 0.0) + other.seconds.get(part, 0.0) for part in MEANINGS}
        return Pace(seconds, self.games + other.games, self.evaluations + other.evaluations)

    def share(self, *parts: str) -> float:
        """Return the share of the time that went into some parts."""
        return sum(self.seconds.get(part, 0.0) for part in parts) / self._total

    @property
    def bottleneck(self) -> str:
        """Return the part that took most time."""
        return max(MEANINGS, key=lambda part: self.seconds.get(part, 0.0))

    @property
    def _total(self) -> float:
        return sum(self.seconds.values()) or 1e-9

    def figures(self) -> dict[str, float]:
        """Return the figures by name."""
        return {
            "time/self_play": self.share(*SELF_PLAY),
            "time/training": self.share(*TRAINING),
            "time/check": self.share(CHECK),
            **{f"time/of_{part}": self.share(part) for part in MEANINGS},
            "speed/evaluations_per_second": self.evaluations / self._total,
            "speed/games_per_hour": 3600 * self.games / self._total,
        }

    def __str__(self) -> str:
        figures = self.figures()
        return (
            f"self-play {self.share(*SELF_PLAY):.0%} of the time, training {self.share(*TRAINING):.0%}, "
            f"check {self.share(CHECK):.0%}: {figures['speed/evaluations_per_second']:,.0f} network evaluations/s, "
            f"{figures['speed/games_per_hour']:,.0f} games/h; bottleneck: the {MEANINGS[self.bottleneck]} "
            f"({self.share(self.bottleneck):.0%})"
        )


def pace_of(generated: Generated, generation: Generation, check_seconds: float) -> Pace:
    """Return the pace of one generation.

    Args:
        generated: its self-play.
        generation: its training.
        check_seconds: what the check of its snapshot took.
    """
    work = generated.work
    # The workers' stages are summed over all who play at the same time.
    at_a_time = sum(work.seconds.values()) / max(work.playing_seconds, 1e-9) or 1.0
    seconds = {
        START: generated.seconds - work.playing_seconds,
        **{stage: seconds / at_a_time for stage, seconds in work.seconds.items()},
        STEPS: generation.training_seconds,
        GATE: generation.gate_seconds,
        FILES: generation.seconds - generation.training_seconds - generation.gate_seconds,
        CHECK: check_seconds,
    }
    return Pace(seconds, generated.games, work.evaluations)
