"""Training: makes a new model of Hex 7×7, or trains its champion on the games it has played.

    python hex/train.py NAME --init    # models/NAME, with random weights
    python hex/train.py NAME           # reads gamedata/NAME, publishes a snapshot, makes it the champion

TensorBoard shows models/NAME/logs. For other sizes: seraphim learn NAME --game=hex:5.
"""

import sys

sys.path.append(__file__.rsplit("/", 2)[0])  # where Seraphim is not installed
from seraphim.__main__ import run

if __name__ == "__main__":
    run("train", game="hex")
