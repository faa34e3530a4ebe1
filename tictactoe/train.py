"""Training: makes a new model of tic-tac-toe, or trains its champion on the games it has played.

    python tictactoe/train.py NAME --init      # models/NAME, with random weights
    python tictactoe/train.py NAME --init --preset=keras-tictactoe
    python tictactoe/train.py NAME             # reads gamedata/NAME, publishes a snapshot, makes it the champion

TensorBoard shows models/NAME/logs.
"""

import sys

sys.path.append(__file__.rsplit("/", 2)[0])  # where Seraphim is not installed
from seraphim.__main__ import run

if __name__ == "__main__":
    run("train", game="tictactoe")
