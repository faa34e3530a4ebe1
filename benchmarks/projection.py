"""What a cluster of many machines needs, computed from what was measured on this one; and what is scarce there."""

from collections.abc import Sequence
from dataclasses import dataclass

MACHINES = (1, 10, 100, 1000)
DAY = 86_400  # seconds


@dataclass(frozen=True)
class Measured:
    """What one machine was seen to do."""

    games_per_second: float
    """Of one worker."""
    plies: float
    """Of a game."""
    bytes_per_game: float
    """As it travels, and as it is stored."""
    parcel_bytes: int
    """Of a snapshot as it travels."""
    learner_seconds: float
    """Of the learner's processor for each game that it receives and writes."""
    training_rate: float
    """Positions a second that the learner trains on."""
    uses: float
    """How often each new position is trained on, by the settings."""


@dataclass(frozen=True)
class Hardware:
    """What is assumed of each machine."""

    cores: int
    network: float
    """Bytes a second, in each direction."""
    disk: float
    """Bytes a second, written."""


@dataclass(frozen=True)
class Need:
    """What so many machines need while all their workers play; shares are of what one learner has."""

    machines: int
    games_per_hour: float
    inbound: float
    """Bytes a second into the learner."""
    stored: float
    """Bytes a day."""
    handover_seconds: float
    """To send a new champion to each machine, all from the learner."""
    trained: float
    """Positions a second that training has to take, to keep up."""
    shares: dict[str, float]
    """Of the learner's network, disk, one core of its processor, and training speed: above 1 is more than it has."""

    @property
    def scarce(self) -> str:
        """Return the resource of which the greatest share is needed."""
        return max(self.shares, key=lambda name: self.shares[name])


def need_of(machines: int, measured: Measured, hardware: Hardware) -> Need:
    """Return what a number of machines need."""
    games = machines * hardware.cores * measured.games_per_second
    inbound, trained = games * measured.bytes_per_game, games * measured.plies * measured.uses
    shares = {
        "network": inbound / hardware.network,
        "disk": inbound / hardware.disk,
        "processor that receives games": games * measured.learner_seconds,
        "training": trained / measured.training_rate,
    }
    handover = machines * measured.parcel_bytes / hardware.network
    return Need(machines, 3600 * games, inbound, DAY * inbound, handover, trained, shares)


def to_table(needs: Sequence[Need]) -> str:
    """Return the needs as a table in Markdown, a column for each number of machines."""
    shares = [
        (f"{name}: how many learners'", [f"{each.shares[name]:,.3f}" for each in needs]) for name in needs[0].shares
    ]
    rows = [
        ("games/h", [f"{each.games_per_hour:,.0f}" for each in needs]),
        ("into the learner, MB/s", [f"{each.inbound / 1e6:,.2f}" for each in needs]),
        ("stored, GB a day", [f"{each.stored / 1e9:,.1f}" for each in needs]),
        ("a new champion to all machines, s", [f"{each.handover_seconds:,.2f}" for each in needs]),
        ("positions/s to be trained on", [f"{each.trained:,.0f}" for each in needs]),
        *shares,
        ("scarce", [each.scarce for each in needs]),
    ]
    header = f"| machines | {' | '.join(f'{each.machines:,}' for each in needs)} |"
    lines = [header, "| --- |" + " --- |" * len(needs)]
    return "\n".join([*lines, *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows)])
