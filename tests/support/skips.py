"""The tests that may be skipped in continuous integration."""

# Where the environment variable CI is set, a test that is skipped fails, unless it is one of these.
ALLOWED_SKIPS = {
    "test_doctor.py::test_without_a_gpu_one_can_be_required": "the machine has a GPU",
}
