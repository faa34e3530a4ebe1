"""The planted faults of `make planted-faults`: each still applies to the code as it is, and has tests to catch it."""

import re
from pathlib import Path

import pytest
from plant import plant, pytest_arguments
from planted_faults import FAULTS, MISTAKES, Fault

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_applies_exactly_once_and_the_code_can_still_be_read(fault: Fault) -> None:
    compile(plant((ROOT / fault.file).read_text(), fault), fault.file, "exec")


@pytest.mark.parametrize("text", ["", "x = 1\nx = 1\n"])
def test_a_fault_that_applies_never_or_twice_is_refused(text: str) -> None:
    fault = Fault("an-example", 0, "example.py", "x = 1", "x = 2", "test_example.py")
    with pytest.raises(ValueError, match="an-example: example.py holds the text . times, not once"):
        plant(text, fault)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_tests_that_should_catch_a_fault_are_there(fault: Fault) -> None:
    files = [each for each in pytest_arguments(fault) if each.endswith(".py")]
    assert files
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_every_mistake_has_a_fault_and_names_are_distinct() -> None:
    assert {fault.mistake for fault in FAULTS} == {0, *MISTAKES}
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert all(re.fullmatch(r"[a-z0-9-]+", fault.name) for fault in FAULTS)
