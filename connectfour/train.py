"""Training: makes a new model of connect four, or trains its champion on the games it has played.

    python connectfour/train.py NAME --init    # models/NAME, with random weights
    python connectfour/train.py NAME --init --preset=deepfour
    python connectfour/train.py NAME           # reads gamedata/NAME, publishes a snapshot, makes it the champion

TensorBoard shows models/NAME/logs.
"""

try:
    from connectfour.presets import PRESETS
    from seraphim import cli
    from seraphim.training.command import define_command
except ModuleNotFoundError as error:
    raise SystemExit(f"train.py: {error}: source .venv/bin/activate, or run make setup first") from None
except KeyboardInterrupt:
    raise SystemExit(130) from None

main = define_command("connectfour", PRESETS)

if __name__ == "__main__":
    cli.run(main)
