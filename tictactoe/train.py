"""Training: makes a new model of tic-tac-toe, or trains its champion on the games it has played.

    python tictactoe/train.py NAME --init      # models/NAME, with random weights
    python tictactoe/train.py NAME --init --preset=keras-tictactoe
    python tictactoe/train.py NAME             # reads gamedata/NAME, publishes a snapshot, makes it the champion

TensorBoard shows models/NAME/logs.
"""

from seraphim.training.command import run
from tictactoe.presets import PRESETS

if __name__ == "__main__":
    run("tictactoe", PRESETS)
