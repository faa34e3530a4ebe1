"""Training: makes a new model of Hex 7×7, or trains its champion on the games it has played.

    python hex/train.py NAME --init    # models/NAME, with random weights
    python hex/train.py NAME           # reads gamedata/NAME, publishes a snapshot, makes it the champion

TensorBoard shows models/NAME/logs. For other sizes: bin/learn.py NAME --game=hex:5.
"""

try:
    from seraphim import cli
    from seraphim.training.command import define_command
except ModuleNotFoundError as error:
    raise SystemExit(f"train.py: {error}: source .venv/bin/activate, or run make setup first") from None
except KeyboardInterrupt:
    raise SystemExit(130) from None

main = define_command("hex", {})

if __name__ == "__main__":
    cli.run(main)
