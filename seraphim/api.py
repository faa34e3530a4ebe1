"""Seraphim as a library: make models, let them learn, ask them about positions, let players meet, prove results.

What is here is re-exported by `seraphim`, and stable.
"""

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from seraphim.errors import SettingsError, shown
from seraphim.evaluation.error_rates import Evaluation, calibrate, measure_errors
from seraphim.evaluation.position_lists import default_split, load_sets
from seraphim.game import AnyGame, Array, load_game, module_name, name_of
from seraphim.game.loading import Split
from seraphim.game.saved_games import read_position
from seraphim.game.solved import load_position_sets
from seraphim.inference.interface import LARGEST_BATCH
from seraphim.machine import count_cores
from seraphim.matches import match, play_alone, play_table
from seraphim.options import Count, Natural, NotNegative, Seed, check
from seraphim.players.arguments import checked
from seraphim.players.choose import yardsticks
from seraphim.players.external.load import load_engine
from seraphim.players.model import Model, load, model_folder
from seraphim.players.review import GameReview
from seraphim.proof.claims import Claim
from seraphim.proof.display import Proof
from seraphim.proof.proving import Decision, Limits, Objective
from seraphim.proof.proving import prove as decide
from seraphim.records.examples import Positions, decode, encode
from seraphim.records.window import read_window
from seraphim.search.analysis import Move, PositionAnalysis
from seraphim.selfplay.games import SelfPlay
from seraphim.settings import Goal, default_settings
from seraphim.storage.atomic import check_file_name
from seraphim.storage.models import ModelFolder
from seraphim.storage.shipped import data_root, own_model

if TYPE_CHECKING:
    from seraphim.training.loop import LearnResult

__all__ = [
    "GameReview",
    "Model",
    "Move",
    "PositionAnalysis",
    "evaluate",
    "learn",
    "load",
    "match",
    "new",
    "play_alone",
    "play_table",
    "prove",
    "read_games",
    "self_play",
]

_ELSEWHERE = "seraphim evaluate NAME --positions=FILE writes its moves in positions of your own"


@checked(seed=Seed)
def new(
    name: str, game: AnyGame, *, preset: str = "", seed: int = 0, folder: str | Path | None = None, **options: object
) -> ModelFolder:
    """Make a model with random weights, as `models/NAME`.

    Args:
        name: of the model.
        game: package or module of the game, or the game that one of them offers as `GAME`.
        preset: of the game's settings.
        seed: of the weights.
        folder: that holds `models/`, by default SERAPHIM_DATA or else the current one.
        options: by the names of `seraphim.options`, in place of the game's settings: `filters=64`.

    Returns:
        Where it is.

    Raises:
        ModelError: it exists.
        SettingsError: there is no such option or preset, or a value is out of range.
        GameError: there is no such game, or it is an object that no module offers.

    Examples:
        >>> import seraphim
        >>> seraphim.new("mine", "tictactoe", width=16).settings().network.width
        16
    """
    from seraphim.training.trainer import bootstrap

    made = ModelFolder(data_root(folder), name)
    settings = default_settings(module_name(game), preset).override(options)
    bootstrap(made, load_game(game), settings, seed)
    return made


@checked()
def learn(
    name: str,
    *,
    hours: float | None = None,
    generations: int | None = None,
    goal: Goal = "network",
    seed: int = 0,
    folder: str | Path | None = None,
    callback: Callable[[str], None] = print,
) -> "LearnResult":
    """Go on learning with a model, as `seraphim learn` does: self-play, training, a check, and again.

    Args:
        name: of the model in `models/`.
        hours: stop after the first generation that ends later.
        generations: stop after this number.
        goal: `network` stops when the network alone errs in no solved position of the game, `search` when a search of
            at most 100 readouts does not; `none` goes on.
        seed: of games and batches.
        folder: that holds `models/` and `gamedata/`, by default SERAPHIM_DATA or else the current one.
        callback: receives each line of the report.

    Raises:
        ModelError: there is no such model in `folder`, or another program trains it.
        SettingsError: nothing would ever end it, or its settings contradict each other.

    Examples:
        >>> import seraphim
        >>> made = seraphim.new("pupil", "tictactoe", width=16, games_per_generation=16, concurrent_games=16, steps=4)
        >>> lines = []
        >>> seraphim.learn("pupil", generations=1, callback=lines.append).generations
        1
    """
    from seraphim.training.loop import Run, learn

    run = Run(goal=goal, generations=generations, hours=hours, seed=seed, quiet=True)
    made = own_model(data_root(folder), name)
    settings = made.settings()
    if hours is None and generations is None and (goal == "none" or not load_position_sets(settings.game)):
        raise SettingsError("no stopping condition: pass hours or generations")
    return learn(made, settings, run, callback)


@checked(games=Natural, seed=Seed)
def self_play(
    model: str | Model, games: int = 1000, *, seed: int = 0, folder: str | Path | None = None
) -> Generator[Positions, None, None]:
    """Let a model play against itself, in this process and without files; close the iterator to stop early.

    A game depends on the model, the seed, its number and the runtime. `learn` and `seraphim generate` use all cores.

    Args:
        model: a model, or its name as `load` takes it.
        games: how many.
        seed: of the games.
        folder: that holds `models/`, by default SERAPHIM_DATA or else the current one.

    Yields:
        Each game when it has ended: the positions from the first to the last in which a move was made, as `read_games`
        returns them.

    Raises:
        ModelError, SettingsError: as `load`; or the model's options contradict each other.

    Examples:
        >>> import seraphim
        >>> games = seraphim.self_play("tictactoe", games=2, seed=1)
        >>> sorted(game.observations.shape for game in games)  # from random openings
        [(2, 3, 3, 2), (8, 3, 3, 2)]
    """
    player = _model(model, folder)
    settings = player.settings.at_step(player.step)
    at_once = replace(settings.self_play, concurrent_games=max(1, min(games, settings.self_play.concurrent_games)))
    (inference,) = player.inferences(settings.self_play.concurrent_games)
    stream = SelfPlay(player.game, inference, settings.self_play_search, at_once, str(seed), player.tree_policy)
    return (decode(player.game, encode(player.game, record)) for record in stream.play(iter(range(games))))


@checked(max_positions=Count)
def read_games(name: str, max_positions: int = 100_000, *, folder: str | Path | None = None) -> Positions:
    """Return the newest positions that a model's self-play wrote, as NumPy arrays, the games in succession.

    Args:
        name: of the model, or the path `gamedata/NAME`.
        max_positions: at most.
        folder: that holds `models/` and `gamedata/`, by default SERAPHIM_DATA or else the current one.

    Raises:
        ModelError: there is no such model.
        RecordError: there are no games, or all of them are damaged.

    Examples:
        >>> import seraphim
        >>> games = seraphim.read_games("pupil")  # which learned above
        >>> int(games.ends.sum()), games.observations.shape[1:], games.policies.shape[1:]
        (16, (3, 3, 2), (9,))
    """
    made = model_folder(name, folder)
    return read_window(made.game_data, load_game(made.settings().game), max_positions)[0]


@checked(max_positions=Count, threads=Natural)
def evaluate(
    model: str | Model,
    searches: Sequence[int] = (0, 100),
    *,
    split: Split | None = None,
    max_positions: int | None = None,
    engine: str | None = None,
    threads: int = 0,
    folder: str | Path | None = None,
) -> Evaluation:
    """Return how often a model errs in the solved positions of its game, as `seraphim evaluate` does.

    Args:
        model: a model, or its name as `load` takes it.
        searches: the readouts of each search; 0: the network alone.
        split: which sets of the game; by default `test` if offered, else `validation`.
        max_positions: of each set, by default all.
        engine: an external engine to measure as well, `gnubg:PLIES`, `gtp:COMMAND` or `uci:COMMAND`.
        threads: that search at a time; 0: one for each processor core.
        folder: that holds `models/`, by default SERAPHIM_DATA or else the current one.

    Returns:
        The `.errors` of each player in each set, and the network's `.calibration`; prints as tables. Where regrets are
        told, random play is a player too, and in a game for one player greedy play.

    Raises:
        SettingsError: the game offers no such sets.
        ModelError: there is no such model, or it is damaged.

    Examples:
        >>> import seraphim
        >>> found = seraphim.evaluate("tictactoe", searches=[0, 50], max_positions=500)
        >>> [(each.player, each.weak.events) for each in found.errors]
        [('network', 0), ('50 readouts', 0)]
    """
    asked = _model(model, folder)
    split = split or default_split(asked.origin)
    if isinstance(searches, str) or not isinstance(searches, Iterable) or getattr(searches, "shape", None) == ():
        raise SettingsError(f"searches must be a list of readouts, such as [0, 100], not {shown(searches)}")
    searches = list(searches)
    for number in searches:
        check(Natural, readouts=number)
    sets = load_sets(asked.origin, split, max_positions)
    if not sets:
        raise SettingsError(f"{name_of(asked.origin)} offers no {split} sets of solved positions, but {_ELSEWHERE}")
    inferences = asked.inferences(LARGEST_BATCH, threads or count_cores())
    names = {number: f"{number:,} readouts" if number else "network" for number in sorted(set(searches))}
    players = {name: asked.player(number, inferences) for number, name in names.items()}
    players |= yardsticks(asked.game)
    if engine is not None:
        external = load_engine(asked.game, engine)
        players[external.title] = external
    errors = measure_errors(asked.game, players, sets)
    calibration = calibrate(asked.game, inferences[0], sets)
    return Evaluation(errors, calibration, inferences[0].description)


@checked(hours=NotNegative, megabytes=Count)
def prove(
    position: str | Array = "",
    *,
    game: AnyGame | None = None,
    model: str | Model | None = None,
    goal: Objective = "result",
    hours: float | None = None,
    megabytes: int = 4096,
    out: str | Path | None = None,
) -> Proof:
    """Prove what a player can force from a position, as `seraphim prove` does.

    Args:
        position: unfinished: moves such as `4453`; without `out` also a drawn board, or a state int64 [W].
        game: the game, for a search that no network guides.
        model: that guides the search, or its name as `load` takes it; either this or the game.
        goal: `first` or `second`: whether that player wins; `draw`: whether neither does; `result`: whichever is true.
        hours: limit on the time; None: there is none.
        megabytes: memory for positions.
        out: file for the certificate, which `seraphim check-proof` checks; if it is there, the search goes on from it.

    Returns:
        The `.claims` that are true, the `.value` that follows for the first player, and the `.evaluations`; prints as
        a line for each claim.

    Raises:
        GameError: it is no position, or the game is over in it.
        SettingsError: it is not clear which game, or the file has no name.
        FileError: the file has no folder.
        RecordError: the file is damaged, or holds something else.

    Examples:
        >>> import seraphim
        >>> seraphim.prove("a1 a2 b1 b2", game="tictactoe").value  # X has two in a row, and is to move
        1
    """
    if (game is None) == (model is None):
        raise SettingsError("give either game or model: a proof without a model needs the game, a model knows its own")
    guide = Model(game) if game is not None else _model(model)  # type: ignore[arg-type]
    name = module_name(guide.origin) if out is not None else guide.origin
    file = None if out is None else Path(out)
    if file is not None:
        check_file_name(file)
    limits = Limits(math.inf if hours is None else 3600 * hours, megabytes)
    inferences = guide.inferences(LARGEST_BATCH, count_cores())
    asked = read_position(guide.origin, position)
    search, decisions = decide(name, asked, goal, inferences, limits, file, lambda *_: None), list[Decision]()
    while True:
        try:
            decisions.append(next(search))
        except StopIteration as end:
            claims: tuple[Claim, ...] = end.value
            return Proof(claims, tuple(decisions), file if claims else None)


def _model(model: str | Model, folder: str | Path | None = None) -> Model:
    return model if isinstance(model, Model) else load(model, folder=folder)
