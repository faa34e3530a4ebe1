"""Players meet: part of Seraphim as a library, re-exported by `seraphim.api`."""

from pathlib import Path

from seraphim.evaluation import seats
from seraphim.evaluation.match import MatchResult, count_openings, default_plies, make_openings, play_match
from seraphim.evaluation.seats import SoloGames, play_solo
from seraphim.game import AnyGame
from seraphim.options import Count, MatchGames, Natural, Seed
from seraphim.players.arguments import checked
from seraphim.players.choose import Choose
from seraphim.players.model import Model
from seraphim.players.roster import Roster, load_players
from seraphim.storage.shipped import data_root


@checked(games=MatchGames, seed=Seed, readouts=Natural)
def match(
    first: str | Model | Choose,
    second: str | Model | Choose,
    games: int = 100,
    *,
    game: AnyGame | None = None,
    readouts: int | None = None,
    seed: int = 0,
    folder: str | Path | None = None,
) -> MatchResult:
    """Let two players meet, from random openings, each of which is played twice with the sides swapped.

    Where chance moves, games begin at the initial position, and both of a pair have the same rolls. For games for one
    player there is `play_alone`, for those for more than two `play_table`.

    Args:
        first: a player as `seraphim arena` takes it, such as `connectfour`, `mcts:200` or `gtp:COMMAND`; a model; or a
            function that chooses an action in each of some states, int64 [P, W] -> int [P].
        second: another one.
        games: how many, an even number; fewer are played where the game has too few distinct openings.
        game: by default that of the models.
        readouts: of the models' searches, by default their own; 0: the networks alone.
        seed: of the openings.
        folder: that holds `models/`, by default SERAPHIM_DATA or else the current one.

    Returns:
        The result of the first player: `.score` in [0, 1], its 95 % `.interval`, `.tally`; prints as one line.

    Raises:
        SettingsError, ModelError, GameError: see `seraphim.players.roster`.
        GameError: the game is not for two players.

    Examples:
        >>> import seraphim
        >>> seraphim.match("minimax:9", "random", games=20, game="tictactoe").tally.losses
        0
    """
    count = count_openings(games)
    rules, (one, other) = load_players([first, second], Roster(data_root(folder), game, games, readouts, seed))
    return play_match(rules, one, other, make_openings(rules, count, default_plies(rules), seed))


@checked(games=MatchGames, seed=Seed, readouts=Natural)
def play_alone(
    player: str | Model | Choose,
    games: int = 100,
    *,
    game: AnyGame | None = None,
    readouts: int | None = None,
    seed: int = 0,
    folder: str | Path | None = None,
) -> SoloGames:
    """Let a player play a game for one; where chance moves, the same seed gives all players the same rolls.

    Args:
        player: as `match` takes it, such as `random`, `greedy`, `mcts:200` or `solver`.
        games: how many.
        game: by default that of the model.
        readouts: of the model's search, by default its own; 0: the network alone.
        seed: of the openings and of chance.
        folder: that holds `models/`, by default SERAPHIM_DATA or else the current one.

    Returns:
        The `.points` of each game, and their `.mean` with its 95 % interval; prints as one line. The difference of two
        players, `one - other`, is that in the mean of the same games.

    Raises:
        SettingsError, ModelError, GameError: see `seraphim.players.roster`.
        GameError: the game is for several players.

    Examples:
        >>> import seraphim
        >>> best, random = (seraphim.play_alone(name, game="twenty48:2x2") for name in ("solver", "random"))
        >>> (best - random).interval[0] > 20
        True
    """
    rules, (choose,) = load_players([player], Roster(data_root(folder), game, games, readouts, seed))
    return play_solo(rules, choose, make_openings(rules, games, default_plies(rules), seed))


@checked(games=Count, seed=Seed, readouts=Natural)
def play_table(
    first: str | Model | Choose,
    second: str | Model | Choose,
    games: int = 100,
    *,
    game: AnyGame | None = None,
    readouts: int | None = None,
    seed: int = 0,
    folder: str | Path | None = None,
) -> seats.TableResult:
    """Let two players share the seats of a game for more than two, in every way, from random openings.

    Args:
        first: a player as `match` takes it.
        second: another one.
        games: how many at least: as many openings are played as it takes, each by all seatings.
        game: by default that of the models.
        readouts: of the models' searches, by default their own; 0: the networks alone.
        seed: of the openings and of chance.
        folder: that holds `models/`, by default SERAPHIM_DATA or else the current one.

    Returns:
        The result of the first player: by how many points its seats are ahead, `.lead`, with its 95 % `.interval`;
        prints as one line.

    Raises:
        SettingsError, ModelError, GameError: see `seraphim.players.roster`.
        GameError: the game is not for more than two players.

    Examples:
        >>> import seraphim
        >>> found = seraphim.play_table("random", "random", games=12, game="threes")
        >>> found.seatings, found.games
        (6, 12)
    """
    rules, (one, other) = load_players([first, second], Roster(data_root(folder), game, games, readouts, seed))
    count = -(-games // len(seats.seatings_of(rules)))
    return seats.play_table(rules, one, other, make_openings(rules, count, default_plies(rules), seed))
