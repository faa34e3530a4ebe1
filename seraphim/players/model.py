"""A model in Python: asked about positions, or as a player."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from seraphim.effects import find_idle
from seraphim.errors import GameError, ModelError, SettingsError, shown
from seraphim.game import CHANCE, AnyGame, Array, load_game, load_game_module, module_name
from seraphim.game.notation import followers, label_in
from seraphim.game.saved_games import read_state
from seraphim.inference import Runtime, SavedNetwork
from seraphim.options import Count, Natural, NotNegative, Part, PositiveShare, SearchOptions, Threads
from seraphim.players.arguments import checked
from seraphim.players.choose import Choose, SearchPlayer, raw_player
from seraphim.players.hub import is_hub_folder, read_hub
from seraphim.players.review import MISTAKE, SOLVER_SECONDS, GameMoves, GameReview, review_line, to_tree
from seraphim.search.analysis import LEAVES, PositionAnalysis, make_analysis
from seraphim.search.evaluator import Evaluate, Inference, StateFunction, Uniform, inputs_of
from seraphim.search.expansion import check_offers
from seraphim.search.traversal import TreePolicy
from seraphim.settings import Settings, default_settings
from seraphim.storage.models import ModelFolder, Snapshot
from seraphim.storage.shipped import data_root, find_model

_BATCH = 256  # positions that the network gets at a time
_PARTS: tuple[Part, ...] = ("self_play", "evaluation", "analysis")  # what a model does here


class Model:
    """A game, what evaluates its positions, and the options of the search.

    `seraphim.load` makes one of a snapshot. One without a network takes a function in its place, or nothing: then all
    moves are equally likely, and all values 0.

    Threads may share a model: each search is that of its thread alone, and they take turns at the network. It can be
    pickled, as its path; or with a function of a module.

    Examples:
        >>> import seraphim
        >>> model = seraphim.Model("tictactoe", solver=True, readouts=1000)
        >>> model
        <uniform: tictactoe by no network>
        >>> model.play("a1 b1 a2 b2")
        'a3'
    """

    @checked()
    def __init__(
        self,
        game: AnyGame,
        evaluation: Inference | Evaluate | SavedNetwork | None = None,
        *,
        settings: Settings | None = None,
        tree_policy: TreePolicy | None = None,
        **options: object,
    ) -> None:
        """Make a model in memory.

        Args:
            game: the game, or the name of its package or module.
            evaluation: an `Inference`, a `SavedNetwork`, or a function of states int64 [N, W] that returns logits
                [N, A] and the values [N] for the player to move; see `seraphim.search.evaluator`.
            settings: by default the game's.
            tree_policy: the search's selection rule in place of PUCT; see `seraphim.search.traversal.TreePolicy`.
            options: of the search and of self-play, by the names of `seraphim.options`: `readouts=100`.

        Raises:
            GameError: there is no such game.
            SettingsError: there is no such option, it has no effect here, or a value is out of range.
        """
        self.game = load_game(game)
        self.settings = (settings or default_settings(game)).override(options)
        idle = {"cpuct": "PUCT"} if tree_policy and "cpuct" in options else {}
        for option, needs in (find_idle(options, self.settings, _PARTS) | idle).items():
            raise SettingsError(f"{option} changes nothing here: it needs {needs}")
        check_offers(self.game, self.settings.search)
        self.origin = game  # as it was given
        self.tree_policy = tree_policy
        self._evaluation = evaluation
        self.name = str(evaluation.snapshot) if isinstance(evaluation, SavedNetwork) else self.inference.name
        self.snapshot, self.step = "", 0

    @cached_property
    def inference(self) -> Inference:
        """What evaluates a few positions at a time; a saved network is loaded when it is first asked for."""
        given = self._evaluation
        if given is None:
            return Uniform(self.game)
        if isinstance(given, SavedNetwork):
            return given.load(self.game, LEAVES)
        if hasattr(given, "infer"):
            return cast(Inference, given)
        if callable(given):
            return StateFunction(self.game, given)
        raise SettingsError(f"evaluation must be an Inference or a function of states, not {shown(given)}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled as what made it: the network is loaded again, from the same path.

        Raises:
            ModelError: the network was given as one that is loaded already.
        """
        given = self._evaluation
        if not isinstance(given, SavedNetwork | Uniform) and type(given).__module__.startswith("seraphim.inference."):
            raise ModelError(f"{self!r} cannot be pickled, as its network is in memory only: use one of seraphim.load")
        game = self.origin
        with contextlib.suppress(GameError):  # no module offers it
            game = module_name(game)
        make = partial(Model, settings=self.settings, tree_policy=self.tree_policy)
        return make, (game, given), {"name": self.name, "snapshot": self.snapshot, "step": self.step}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Load the network again; raise a ModelError if it is gone."""
        vars(self).update(state)
        _ = self.inference

    def __repr__(self) -> str:
        """Return the name, the snapshot, the game and the runtime."""
        name = "/".join(filter(None, (self.name, self.snapshot)))
        return f"<{name}: {self.game.name} by {self.inference.description}>"

    @checked(readouts=Count)
    def analyze(self, position: str | Array = "", readouts: int | None = None) -> PositionAnalysis:
        """Search an unfinished position.

        Args:
            position: moves such as `4453`, a drawn board, or a state int64 [W]; moves contain the outcomes of chance,
                such as `roll 3`.
            readouts: of the search, at least 1; by default the model's own number.

        Raises:
            GameError: it is no position, or the game is over in it, or chance moves there.
            SettingsError: the readouts are out of range, or change nothing, as the model plays by afterstates.
        """
        return self._analyze(self._unfinished(position), self._search(readouts))

    def _analyze(self, state: Array, options: SearchOptions) -> PositionAnalysis:
        leaves = LEAVES if self.tree_policy is None else 1  # so that a policy need not know leaves under way
        analysis = make_analysis(self.game, self.inference, options, leaves, self.tree_policy)
        analysis.start(state)
        analysis.more(options.readouts)
        return analysis.result()

    @checked(readouts=Count)
    def play(self, position: str | Array = "", readouts: int | None = None) -> str:
        """Return the label of the move to play; arguments and errors as `analyze`."""
        return self.analyze(position, readouts).best

    @checked(readouts=Count, threshold=PositiveShare, seconds=NotNegative)
    def review(
        self, moves: GameMoves, readouts: int | None = None, threshold: float = MISTAKE, seconds: float = SOLVER_SECONDS
    ) -> GameReview:
        """Review a game, finished or not: search each of its positions, and find the moves that lost much.

        Values are exact where the game has ended, the search proved them, or the game's solver finds them in time.
        Each position is searched as `analyze` does, so that a review is the same each time; only how far back from
        the end the solver gets depends on the machine. Where values become exact, a move may seem to lose what the
        search had misjudged before it.

        Args:
            moves: text such as `4453`, a list of labels or of actions, or a `seraphim.game.tree.GameTree`, whose line
                through its current position is taken.
            readouts: of each search, at least 1; by default the model's own number.
            threshold: expected points that a mistake loses at least, where a win counts 1 and a draw 0.5; by default
                0.2, which is a drop of the value by 0.4.
            seconds: of the game's solver for each position; 0: it is not asked.

        Raises:
            GameError: these are no moves, or one of them is not legal.
            SettingsError: a number is out of range.

        Examples:
            >>> import seraphim
            >>> review = seraphim.Model("tictactoe", readouts=50).review("b2 b1 a1 c3", threshold=0.5)
            >>> review.values
            (0.0, 0.0, 1.0, 1.0, 1.0)
            >>> [(move.label, move.lost, move.better) for move in review.mistakes]
            [('b1', 0.5, 'a1')]
        """
        tree, options = to_tree(self.origin, moves), self._search(readouts)
        module, analyze = load_game_module(self.origin), partial(self._analyze, options=options)
        return review_line(tree, module, analyze, 0 if options.by_turns else options.readouts, threshold, seconds)

    def network(self, positions: Sequence[str | Array]) -> tuple[Array, Array]:
        """Return what the network says about positions, without a search.

        Args:
            positions: P unfinished positions, as `analyze` takes them.

        Returns:
            The probabilities of the actions, float32 [P, A], 0 where illegal; and the expected results for the player
            to move, float32 [P], -1 to 1, or with more than two players for each, that one first; of a game with a
            score, of what is still to come.

        Raises:
            GameError: one is no position, or the game is over in it, or chance moves there.
            SettingsError: `positions` is a text, or empty.
        """
        is_list = isinstance(positions, Sequence | np.ndarray) and not isinstance(positions, str)
        if not is_list or getattr(positions, "shape", None) == () or not len(positions):
            raise SettingsError(f"expected a list of positions, such as ['4453'], not {shown(positions)}")
        states = np.stack([self._unfinished(each) for each in positions])
        inputs, legal = inputs_of(self.game, self.inference, states), self.game.legal(states)
        found = [self.inference.infer(inputs[start : start + _BATCH]) for start in range(0, len(states), _BATCH)]
        logits, values = (np.concatenate(column) for column in zip(*found, strict=True))
        logits = np.where(legal, logits, -np.inf)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32), values.astype(np.float32)

    @checked(batch=Count, threads=Threads)
    def inferences(self, batch: int, threads: int = 1) -> list[Inference]:
        """Return what evaluates positions in batches of this size, one for each thread; of a function, only one.

        A network whose snapshot has been removed since it was loaded is there only once, too.
        """
        given = self._evaluation
        if given is None:
            return [self.inference] * threads
        if not isinstance(given, SavedNetwork) or not given.snapshot.is_dir():
            return [self.inference]
        return [given.load(self.game, batch) for _ in range(threads)]

    @checked(readouts=Natural)
    def player(self, readouts: int | None = None, inferences: Sequence[Inference] = ()) -> Choose:
        """Return a function that chooses an action in each of some unfinished states, int64 [P, W] -> int [P].

        Args:
            readouts: of the search, by default the model's own number; 0: the network alone.
            inferences: one for each thread, from `inferences(…)`; by default there is one thread.
        """
        if not isinstance(inferences, Sequence) or not all(hasattr(each, "infer") for each in inferences):
            raise SettingsError(f"inferences must be a list of what `inferences` returns, not {shown(inferences)}")
        used = inferences or [self.inference]
        if readouts == 0:
            return raw_player(self.game, used[0])
        return SearchPlayer(self.game, used, self._search(readouts), self.tree_policy)

    def _search(self, readouts: int | None) -> SearchOptions:
        options = self.settings.search
        if readouts is not None and options.by_turns:
            raise SettingsError(
                f"readouts change nothing here: {self!r} plays by afterstates; leave them out, or load it with "
                "root=puct or gumbel"
            )
        return options if readouts is None else replace(options, readouts=readouts)

    def _unfinished(self, position: str | Array) -> Array:
        state = read_state(self.origin, position)
        possible = np.flatnonzero(followers(self.game, state[None])[0])
        if len(possible) and self.game.to_play(state[None])[0] == CHANCE:
            example = label_in(self.game, state, int(possible[0]))
            raise GameError(f"chance moves in this position: add the outcome to its moves, such as {example}")
        if not self.game.legal(state[None]).any():
            raise GameError(f"the game is over in this position:\n{self.game.render(state)}")
        return state


@checked()
def load(
    name: str | Path,
    *,
    snapshot: str | None = None,
    folder: str | Path | None = None,
    runtime: Runtime = "auto",
    trust: bool = False,
    tree_policy: TreePolicy | None = None,
    **options: object,
) -> Model:
    """Load a model.

    Args:
        name: of the folder `models/NAME`, in `folder` or among those that come with Seraphim; or a path, seen from
            `folder`: `models/NAME`, or that of a snapshot in it; or that of a folder from a model hub, which may lie
            anywhere: it is checked first, and its game must come with Seraphim or be imported already.
        snapshot: one of the model's, by default its champion.
        folder: that holds `models/`, by default SERAPHIM_DATA or else the current one.
        runtime: what runs the network.
        trust: load what is outside `models/` too; see docs/security.md.
        tree_policy: the search's selection rule in place of PUCT; see docs/your-own-search.md.
        options: of the search and of self-play, in place of the model's own: `cpuct=2.0`.

    Raises:
        ModelError: there is no such model or snapshot, it is damaged, or a folder from a hub holds what it should not.
        SettingsError: the name or an option is not valid.
        NotInstalledError: the runtime is not installed.

    Examples:
        >>> import seraphim
        >>> model = seraphim.load("tictactoe")
        >>> round(model.analyze("b2 a2").value)  # the middle, then an edge: X wins
        1
    """
    path = Path(data_root(folder), name)
    if _is_path(name) and is_hub_folder(path):
        if snapshot is not None:
            raise SettingsError(f"{shown(str(name))} holds one snapshot: leave snapshot={shown(snapshot)} out")
        settings, only = read_hub(path, trust)
        given = SavedNetwork(only.path, runtime)
        model = Model(settings.game, given, settings=settings, tree_policy=tree_policy, **options)
        model.name, model.step = only.name, only.step
        _ = model.inference  # which fails if it does not fit the game
        return model
    if _is_path(name) and path.parent.joinpath("settings.json").is_file():
        if snapshot is not None:
            raise SettingsError(
                f"{str(name)!r} is the path of a snapshot already: leave snapshot={shown(snapshot)} out"
            )
        name, last = Path(name).parent, Path(name).name
        snapshot = None if last == "champion" else last
    found = model_folder(name, folder, trust)
    model = open_model(found, found.choose(snapshot), found.settings(), runtime, tree_policy=tree_policy, **options)
    _ = model.inference  # which fails if it is damaged
    return model


def open_model(
    folder: ModelFolder, snapshot: Snapshot, settings: Settings, runtime: Runtime = "auto", **others: Any
) -> Model:
    """Return the model of a snapshot, whose network is loaded when it is first asked for; `others` as in `Model`."""
    network = SavedNetwork(snapshot.path.resolve(), runtime, folder.trust)
    model = Model(settings.game, network, settings=settings, **others)
    model.name, model.snapshot, model.step = folder.name, network.snapshot.name, snapshot.step
    return model


def model_folder(name: str | Path, folder: str | Path | None = None, trust: bool = False) -> ModelFolder:
    """Return the folder of a model, to read it: by its name, or by the path `models/NAME` or `gamedata/NAME`.

    Raises:
        SettingsError: the name is not valid.
    """
    if not _is_path(name):
        return find_model(data_root(folder), str(name), trust)
    path = Path(data_root(folder), name).absolute()
    if path.parent.name not in ("models", "gamedata"):
        expected = "expected models/NAME, or the name alone; or the folder of a model hub, for seraphim.load"
        raise SettingsError(f"{shown(str(name))} is not the path of a model: {expected}")
    return ModelFolder(path.parents[1], path.name, trust)


def _is_path(name: str | Path) -> bool:
    return "/" in str(name)
