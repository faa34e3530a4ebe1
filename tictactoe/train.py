"""Training: makes a new model of tic-tac-toe, or trains its champion on the games it has played.

    python tictactoe/train.py NAME --init      # models/NAME, with random weights
    python tictactoe/train.py NAME --init --preset=keras-tictactoe
    python tictactoe/train.py NAME             # reads gamedata/NAME, publishes a snapshot, makes it the champion

TensorBoard shows models/NAME/logs.
"""

try:
    from seraphim import cli
    from seraphim.training.command import define_command
    from tictactoe.presets import PRESETS
except ModuleNotFoundError as error:
    raise SystemExit(f"train.py: {error}: source .venv/bin/activate, or run make setup first") from None
except KeyboardInterrupt:
    raise SystemExit(130) from None

main = define_command("tictactoe", PRESETS)

if __name__ == "__main__":
    cli.run(main)
