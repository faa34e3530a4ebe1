"""An engine for other programs: speaks the Go Text Protocol, UCI or lines of JSON on standard input and output.

    seraphim engine NAME                     # GTP: for Go, Othello, connect four, Hex and games like these
    seraphim engine NAME --protocol=uci      # for chess and breakthrough by OpenSpiel
    seraphim engine NAME --protocol=json     # a query and an answer a line, many positions in one batch: any game
    gogui-twogtp -size 9 -black "seraphim engine NAME" -white "gnugo --mode gtp"     # a referee, for a model of Go

Without a clock it searches as long as its settings say, --readouts. Given one, it divides its time among the moves that
the game may still have. docs/engines.md lists the commands, and docs/analysis-engine.md describes the lines of JSON.
"""

import io
import sys
from collections.abc import Sequence

from absl import flags

from seraphim import cli

PROTOCOL = flags.DEFINE_enum("protocol", "gtp", ["gtp", "uci", "json"], "What the other program speaks.")
cli.define_options(["analysis"])
cli.define_model()


def main(arguments: Sequence[str]) -> None:
    """Answer commands."""
    import numpy as np

    from seraphim.game.features import check_two_players
    from seraphim.gtp.gtp import GtpServer
    from seraphim.gtp.thinker import Thinker
    from seraphim.gtp.uci import UciServer
    from seraphim.players.opponent import Opponent, PlayOptions
    from seraphim.search.analysis import resumable
    from seraphim.server.json_engine import JsonServer

    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    model = cli.load_model(arguments, ["analysis"])
    if PROTOCOL.value == "json":
        JsonServer(model, sys.stdin.buffer, sys.stdout).run()
        return
    check_two_players(model.game)
    search = resumable(model.settings.search)
    opponent = Opponent(model.game, model.inference, search, PlayOptions(), np.random.default_rng())
    opponent.warm_up()
    server = GtpServer if PROTOCOL.value == "gtp" else UciServer
    server(Thinker(model.game, opponent, sys.stdin), sys.stdout).run()
