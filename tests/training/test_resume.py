"""Programs that are killed and restarted: nothing is lost or counted twice, and learning has the same result."""

from pathlib import Path

import pytest
from killing import Campaign

pytestmark = pytest.mark.slow

KILLS = 8  # `make faults` kills 200 times


def test_programs_that_are_killed_and_resumed_lose_or_duplicate_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    campaign = Campaign(tmp_path, seed=5, say=said.append)
    while campaign.kills.total() < KILLS:
        campaign.kill()
    campaign.finish()
    assert campaign.faults == [], "\n".join(said)
