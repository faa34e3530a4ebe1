"""Where the time of learning goes, and which part is the bottleneck."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from seraphim.selfplay.generate import Generated
from seraphim.training.trainer import Generation

# Parts of self-play, parts of training, and the check.
START, NETWORK, RULES, SEARCH, OTHER = "start", "network", "rules", "search", "other"
STEPS, GATE, FILES, CHECK = "steps", "gate", "files", "check"
SELF_PLAY, TRAINING = (START, NETWORK, RULES, SEARCH, OTHER), (STEPS, GATE, FILES)

PARTS = {
    START: "start and end of self-play (workers load the model, or wait for the last games)",
    NETWORK: "network evaluations in self-play",
    RULES: "rules of the game in self-play",
    SEARCH: "search in self-play",
    OTHER: "rest of self-play, such as game records",
    STEPS: "training steps",
    GATE: "gate match",
    FILES: "reading game data and writing snapshots",
    CHECK: "check against solved positions",
}
"""What each part is."""


@dataclass(frozen=True)
class Timing:
    """What was done in which time; prints as one line."""

    seconds: Mapping[str, float] = field(default_factory=dict)  # by part, see PARTS; the sum is the elapsed time
    games: int = 0
    evaluations: int = 0  # positions evaluated by the network in self-play

    def __add__(self, other: "Timing") -> "Timing":
        seconds = {part: self.seconds.get(part, 0.0) + other.seconds.get(part, 0.0) for part in PARTS}
        return Timing(seconds, self.games + other.games, self.evaluations + other.evaluations)

    @property
    def total(self) -> float:
        """Return the elapsed seconds."""
        return sum(self.seconds.values()) or 1e-9

    def share(self, *parts: str) -> float:
        """Return the share of the time that some parts took."""
        return sum(self.seconds.get(part, 0.0) for part in parts) / self.total

    @property
    def bottleneck(self) -> str:
        """Return the part that took the most time."""
        return max(PARTS, key=lambda part: self.seconds.get(part, 0.0))

    def figures(self) -> dict[str, float]:
        """Return the figures by name."""
        return {
            "time/self_play": self.share(*SELF_PLAY),
            "time/training": self.share(*TRAINING),
            "time/check": self.share(CHECK),
            **{f"time/of_{part}": self.share(part) for part in PARTS},
            "speed/evaluations_per_second": self.evaluations / self.total,
            "speed/games_per_hour": 3600 * self.games / self.total,
        }

    def __str__(self) -> str:
        figures = self.figures()
        return (
            f"time: self-play {self.share(*SELF_PLAY):.0%}, training {self.share(*TRAINING):.0%}, "
            f"check {self.share(CHECK):.0%}; {figures['speed/evaluations_per_second']:,.0f} network evaluations/s, "
            f"{figures['speed/games_per_hour']:,.0f} games/h; "
            f"bottleneck: {PARTS[self.bottleneck]} ({self.share(self.bottleneck):.0%})"
        )


def time_generation(generated: Generated, generation: Generation, check_seconds: float) -> Timing:
    """Return the timing of one generation, given its self-play, its training, and the seconds of its check."""
    work = generated.work
    # Stages are summed over workers that play in parallel.
    parallel = sum(work.seconds.values()) / max(work.playing_seconds, 1e-9) or 1.0
    seconds = {
        START: generated.seconds - work.playing_seconds,
        **{stage: seconds / parallel for stage, seconds in work.seconds.items()},
        STEPS: generation.training_seconds,
        GATE: generation.gate_seconds,
        FILES: generation.seconds - generation.training_seconds - generation.gate_seconds,
        CHECK: check_seconds,
    }
    return Timing(seconds, generated.games, work.evaluations)
