"""Training: makes a new model of Othello, or trains its champion on the games it has played.

    python othello/train.py NAME --init    # models/NAME, with random weights
    python othello/train.py NAME           # reads gamedata/NAME, publishes a snapshot, makes it the champion

TensorBoard shows models/NAME/logs.
"""

try:
    from seraphim import cli
    from seraphim.training.command import define_command
except ModuleNotFoundError as error:
    raise SystemExit(f"train.py: {error}: source .venv/bin/activate, or run make setup first") from None
except KeyboardInterrupt:
    raise SystemExit(130) from None

main = define_command("othello", {})

if __name__ == "__main__":
    cli.run(main)
