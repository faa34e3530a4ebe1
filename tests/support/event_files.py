"""What TensorBoard reads."""

from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def shown(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard shows of a folder: by name, steps and values."""
    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()
    return {
        name: [(event.step, float(event.tensor_proto.float_val[0])) for event in events.Tensors(name)]
        for name in events.Tags()["tensors"]
    }
