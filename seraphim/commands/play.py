"""Play against a model at the terminal, or inspect its search.

    seraphim play NAME                     # you play first; help lists the commands
    seraphim play NAME --human=second --readouts=800
    seraphim play NAME --debug             # show each candidate's priors, visits, Q, U and variation
    seraphim play NAME --load=a1,b2        # start from moves, a saved game, FILE.tfrecord:RECORD
    seraphim play NAME --rolls=enter       # with dice of your own: type what they show
    seraphim play NAME --engine="gtp:gtp-rhino --level=3"             # against another program
    seraphim play connectfour --human=second --proof=models/connectfour/start.proof   # you will lose

Moves are written in the game's notation. Input may also come from a pipe.
"""

from collections.abc import Sequence
from pathlib import Path

from absl import flags

from seraphim import cli
from seraphim.options import Part
from seraphim.settings import Chooser, Human, Rolls, Temperature

HUMAN = cli.define_choice("human", Human, "first", "Your side.")
ROLLS = cli.define_choice("rolls", Rolls, "program", "Who rolls dice: the program, or you enter what you rolled.")
DEBUG = flags.DEFINE_bool("debug", False, "Show the search's results in each position, and wait before each move.")
COMPUTER = cli.define_choice(
    "computer", Chooser, "search", "How the computer chooses its moves; raw: the network without a search."
)
TEMPERATURE = cli.define_choice(
    "temperature",
    Temperature,
    "cold",
    "cold: play the best move; hot: sample in proportion to visits; auto: as in self-play, by ply.",
)
NOISE = flags.DEFINE_bool("noise", False, "Add noise to the root's priors, as in self-play.")
LOAD = flags.DEFINE_string("load", None, "The initial position.")
PROOF = flags.DEFINE_string("proof", None, "A proof, whose moves the computer plays where it leads (seraphim prove).")
ENGINE = flags.DEFINE_string(
    "engine", None, "A program that plays for the computer: gnubg:PLIES, gtp:COMMAND or uci:COMMAND."
)
SEED = flags.DEFINE_integer("seed", None, "Random seed. Default: random.", lower_bound=0)
cli.define_options(["analysis", "analysis_noise", "analysis_draws"])
cli.define_model()


def main(arguments: Sequence[str]) -> None:
    """Play."""
    import numpy as np
    from rich.console import Console

    from seraphim.game.features import has_chance
    from seraphim.players.external.load import load_engine
    from seraphim.players.opponent import PlayOptions
    from seraphim.proof.known_moves import read_moves
    from seraphim.terminal.repl import Interactive
    from seraphim.terminal.session import GameSession, SessionOptions

    parts: dict[Part, bool] = {
        "analysis": True,
        "analysis_noise": NOISE.value,
        "analysis_draws": TEMPERATURE.value == "auto",
    }
    model = cli.load_model(arguments, [part for part, happens in parts.items() if happens])
    game = model.settings.game
    cli.refuse_flags(not has_chance(model.game), "rolls", because=f"chance never moves in {model.game.name}")
    session = GameSession(
        game,
        model.inference,
        model.settings.search,
        PlayOptions(COMPUTER.value, TEMPERATURE.value, NOISE.value),
        SessionOptions(HUMAN.value, DEBUG.value, ROLLS.value),
        np.random.default_rng(SEED.value),
        read_moves(game, model.game, Path(PROOF.value)) if PROOF.value else None,
    )
    if ENGINE.value:
        cli.refuse_flags(True, "computer", "temperature", "noise", "proof", because="--engine makes the moves")
        session.engine = load_engine(model.game, ENGINE.value)
    if LOAD.value:
        session.load(LOAD.value)
        session.waiting = False
    Interactive(session, ENGINE.value or model.name, Console(highlight=False)).run()
