"""Effects of options: a flag that is refused would change nothing, and one that is accepted changes something."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import programs
import pytest
from knows_the_end import GAME
from reference import ArbitraryNetwork, random_states

from seraphim.effects import find_idle, has_two_searches, is_read
from seraphim.evaluation.gate import judge
from seraphim.game import Symmetries
from seraphim.network import architectures
from seraphim.options import Part, SearchOptions, SelfPlayOptions
from seraphim.players.choose import minimax_player, random_player
from seraphim.players.opponent import PlayOptions
from seraphim.records.examples import Positions
from seraphim.records.files import published_files
from seraphim.search.search import Search
from seraphim.selfplay.games import SelfPlay
from seraphim.selfplay.generate import generate_games
from seraphim.selfplay.processes import WorkerPool
from seraphim.settings import OPTIONS, SECTIONS, Settings
from seraphim.storage.models import ModelFolder
from seraphim.terminal.session import GameSession, SessionOptions
from seraphim.tracking.tensorboard import ScalarLog
from seraphim.training import fit
from seraphim.training.fit import Batches, TrainingSteps, count_steps, window_size

NETWORK = ArbitraryNetwork(GAME)
AS_SEARCH = Settings("tictactoe", self_play_overrides={})  # self-play searches as everything else
SEARCH = {name for name, section in OPTIONS.items() if section == "search"}
BY_TREE = SEARCH - {"turns"}
STATES = random_states(GAME, 12, seed=1)

# Another value of each option, or two where the first may be its current one.
OTHERS: dict[str, Any] = {
    "readouts": 17,
    "cpuct": 4.0,
    "tempering_point": 0,
    "dirichlet_alpha": 5.0,
    "noise_coefficient": 0.9,
    "leaf": "playout",
    "root": ("gumbel", "puct"),
    "gumbel_actions": 2,
    "turns": 2,
    "solver": (True, False),
    "fast_wins": 0.9,
    "known_results": True,
    "cache_megabytes": 0,
    "kind": ("mlp", "resnet"),
    "depth": 2,
    "width": 24,
    "blocks": 2,
    "filters": 5,
    "kernel_size": 2,
    "policy_filters": 3,
    "value_filters": 3,
    "normalization": "batch",
    "activation": "leaky_relu",
    "value_width": 9,
    "l2": 0.1,
    "concurrent_games": 3,
    "readouts_growth_steps": 2000,
    "games_per_generation": 7,
    "random_plies": 3,
    "random_share": 0.5,
    "games_per_file": 3,
    "learning_rate": 0.1,
    "optimizer": ("sgd", "adam"),
    "average_decay": 0.5,
    "samples_per_position": 3.0,
    "learning_rate_decay_steps": 1,
    "batch_size": 16,
    "steps": 2,
    "learning_rate_cycle": 5,
    "precision": "float32",
    "root_value_share": 0.7,
    "policy_loss_weight": 0.5,
    "td_lambda": 0.5,
    "average_positions": False,
    "window_start": 150,
    "max_window": 250,
    "max_snapshots": 3,
    "gate": ("off", "score"),
    "gate_games": 6,
    "gate_score": 0.99,
}


def changed(settings: Settings, option: str, name: str = "") -> Settings:
    """The settings with another value of an option; by `name`, of self-play's search."""
    value = OTHERS[option]
    if isinstance(value, tuple):
        now = settings.to_dict()[OPTIONS[option]][option]
        value = next(each for each in value if each != now)
    return settings.override({name or option: value})


def idle(option: str, settings: Settings, *parts: Part) -> bool:
    """Whether the option, with another value, is refused as a flag."""
    return option in find_idle([option], changed(settings, option), parts)


def test_the_table_of_values_has_every_option() -> None:
    assert set(OTHERS) == {name for name, section in OPTIONS.items() if section != "self_play_search"}


# ---------------------------------------------------------------- the search

SEARCHES = {
    "puct": SearchOptions(readouts=40, solver=False),
    "puct, without noise": SearchOptions(readouts=40, solver=False, noise_coefficient=0.0),
    "gumbel": SearchOptions(readouts=40, solver=False, root="gumbel"),
}


def in_self_play(search: SearchOptions) -> Any:
    """The records of self-play, and the number of evaluations."""
    player = SelfPlay(GAME, NETWORK, search, SelfPlayOptions(6, random_plies=0), "a")
    records = sorted(player.play(iter(range(6))), key=lambda record: record.game_id)
    return player.search.counters.evaluations, [np.asarray(part).tolist() for record in records for part in record[1:]]


def in_quiet_searches(search: SearchOptions) -> Any:
    """Results of searches without noise, one after the other, as in evaluations, checks and the gate."""
    trees = Search(GAME, NETWORK, search, len(STATES))
    found = []
    for states in (STATES, STATES[::-1]):
        trees.abandon()
        trees.begin(np.arange(len(states)), states)
        trees.run()
        found.append([part.tolist() for part in trees.result(np.arange(len(states)))])
    return trees.counters.evaluations, found


def in_analysis(play: PlayOptions) -> Callable[[SearchOptions], Any]:
    """What the computer finds and plays in a game against a person."""

    def found(search: SearchOptions) -> Any:
        network = ArbitraryNetwork(GAME)
        session = GameSession("knows_the_end", network, search, play, SessionOptions("both"), np.random.default_rng(0))
        seen = []
        for _ in range(5):
            for action in (0, 4, 8):
                session.play(action)
                found = session.read(session.opponent.search.readouts)
                seen.append((found.moves, found.value, session.opponent.choose(session.tree)))
            session.new()
        return network.positions, seen

    return found


WAYS: dict[str, tuple[list[Part], Callable[[SearchOptions], Any]]] = {
    "self-play": (["self_play"], in_self_play),
    "evaluation": (["evaluation"], in_quiet_searches),
    "analysis": (["analysis"], in_analysis(PlayOptions())),
    "analysis with noise": (["analysis", "analysis_noise"], in_analysis(PlayOptions(noise=True))),
    "analysis with drawn moves": (["analysis", "analysis_draws"], in_analysis(PlayOptions(temperature="auto"))),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", SEARCHES)
def test_an_option_of_the_search_is_refused_exactly_where_it_changes_nothing(kind: str, way: str) -> None:
    parts, outcome = WAYS[way]
    settings = Settings("tictactoe", search=SEARCHES[kind], self_play_overrides={})
    before = outcome(settings.search)
    for option in SEARCH:
        if option == "readouts" and way == "evaluation":
            continue  # whose searches get another number of readouts, see below
        after = outcome(changed(settings, option).search)
        assert (before == after) == idle(option, settings, *parts), f"{option} in {way} by {kind}"


def test_the_readouts_of_an_evaluation_are_those_of_its_flag() -> None:
    assert idle("readouts", Settings("tictactoe"), "evaluation")


def test_readouts_grow_only_where_self_play_has_readouts() -> None:
    settings = Settings("tictactoe").override({"readouts_growth_steps": 5})
    assert not find_idle(["readouts_growth_steps"], settings, ["self_play"])
    without = settings.override({"self_play_root": "afterstates"})
    assert "readouts_growth_steps" in find_idle(["readouts_growth_steps"], without, ["self_play"])


def test_noise_and_temperature_have_no_effect_in_quiet_searches() -> None:
    settings = Settings("tictactoe")
    for part in ("gate", "checks", "evaluation"):
        for option in ("tempering_point", "dirichlet_alpha", "noise_coefficient"):
            assert idle(option, settings.override({"gate": "score"}), part)


def test_the_gate_and_checks_search_only_where_they_happen() -> None:
    off, on = Settings("tictactoe"), Settings("tictactoe").override({"gate": "score"})
    assert idle("cpuct", off, "training", "gate") and not idle("cpuct", on, "training", "gate")
    assert not idle("cpuct", off, "checks")  # of tic-tac-toe all positions are solved
    assert idle("cpuct", Settings("tictactoe.plain"), "checks")


def test_a_flag_that_another_one_overrides_everywhere_is_refused() -> None:
    settings = AS_SEARCH.override({"tempering_point": 3, "self_play_tempering_point": 5})
    assert set(find_idle(["tempering_point"], settings, ["self_play", "checks"])) == set()
    both = find_idle(["tempering_point", "self_play_tempering_point"], settings, ["self_play", "checks"])
    assert set(both) == {"tempering_point"}


def test_flags_for_self_play_alone_need_other_searches_beside_it() -> None:
    settings = Settings("tictactoe").override({"self_play_readouts": 5})
    assert not find_idle(["self_play_readouts"], settings, ["self_play", "checks"])
    told = find_idle(["self_play_readouts"], settings, ["self_play"])
    assert told == {"self_play_readouts": "another search beside self-play's: give --readouts"}
    assert find_idle(["self_play_readouts"], settings, ["training", "gate"]) == {"self_play_readouts": "self-play"}


# ---------------------------------------------------------------- everything else


def network_of(settings: Settings) -> str:
    model = architectures.build(GAME, settings.network, seed=0)
    return json.dumps(model.get_config(), default=str, sort_keys=True)


@pytest.mark.parametrize("kind", ["mlp", "resnet"])
def test_an_option_of_the_network_is_refused_exactly_where_it_changes_nothing(kind: str) -> None:
    small = {"depth": 1, "width": 8, "blocks": 1, "filters": 4, "policy_filters": 2, "value_filters": 2, "l2": 0.0}
    settings = Settings("tictactoe").override({"kind": kind, **small})
    before = network_of(settings)
    for option in (name for name, section in OPTIONS.items() if section == "network"):
        after = network_of(changed(settings, option))
        assert (before == after) == idle(option, settings, "creation"), option
        assert idle(option, settings, "self_play", "training", "gate", "evaluation")


def weights_of(settings: Settings, directory: Path) -> list[list[float]]:
    """The weights after some steps."""
    rng = np.random.default_rng(0)
    count = 200
    positions = Positions(
        **{
            **{name: np.ones(count, np.float32) for name in Positions._fields},
            "observations": rng.integers(0, 2, (count, 3, 3, 2)).astype(np.uint8),
            "policies": rng.dirichlet(np.ones(9), count).astype(np.float32),
            "values": rng.choice([-1.0, 0.0, 1.0], count).astype(np.float32),
            "root_values": rng.uniform(-1, 1, count).astype(np.float32),
        }
    )
    options = settings.training
    model = architectures.build(GAME, settings.network, seed=0)
    fit.prepare(model, options)
    identity = Symmetries(*(rows[:1] for rows in GAME.symmetries()))
    batches = Batches(GAME.observation_shape, identity, options, 0)
    steps = options.steps or count_steps(len(positions.values), options)
    TrainingSteps(model, batches).train(positions, steps, ScalarLog(directory), quiet=True)
    return [weight.numpy().tolist() for weight in model.weights]


@pytest.mark.parametrize(
    ("given", "options"),
    [
        # One that changes something and one that does not; the others only in `make test-all`.
        ({"optimizer": "adam"}, ["root_value_share"]),
        ({}, ["samples_per_position"]),
        *(
            pytest.param(*others, marks=pytest.mark.slow)
            for others in (
                ({"optimizer": "sgd"}, ["learning_rate", "learning_rate_decay_steps", "batch_size", "steps"]),
                ({"optimizer": "adam"}, ["optimizer", "average_decay"]),
                ({"learning_rate_cycle": 4}, ["learning_rate_decay_steps", "learning_rate_cycle"]),
                ({"steps": 0}, ["samples_per_position", "steps", "learning_rate_cycle"]),
            )
        ),
    ],
    ids=str,
)
def test_an_option_of_training_is_refused_exactly_where_it_changes_nothing(
    given: dict[str, Any], options: list[str], tmp_path: Path
) -> None:
    small = {"kind": "mlp", "depth": 1, "width": 8, "value_width": 4, "l2": 0.0, "batch_size": 32, "steps": 3}
    settings = Settings("tictactoe").override({**small, **given})
    before = weights_of(settings, tmp_path)
    for option in options:
        after = weights_of(changed(settings, option), tmp_path)
        assert (before == after) == idle(option, settings, "creation", "training"), option
        assert idle(option, settings, "self_play", "evaluation")


@pytest.mark.parametrize("window_start", [100, 300])
def test_an_option_of_the_window_is_refused_exactly_where_it_changes_nothing(window_start: int) -> None:
    def sizes(settings: Settings) -> list[int]:
        return [window_size(generated, settings.training) for generated in (400, 2000)]

    settings = Settings("tictactoe").override({"window_start": window_start, "max_window": 300})
    before = sizes(settings)
    for option in ("window_start", "max_window"):
        after = sizes(changed(settings, option))
        assert (before == after) == idle(option, settings, "training"), option


def test_the_window_is_accepted_in_self_play_because_games_that_it_does_not_reach_are_removed(
    folder: ModelFolder,
) -> None:
    def kept(settings: Settings) -> list[str]:
        generate_games(pool, folder, settings, "a", 160, notify=lambda _: None)
        found = [file.name for file in published_files(folder.game_data)]
        shutil.rmtree(folder.game_data)
        return found

    settings = folder.settings()
    with WorkerPool(settings, num_workers=1) as pool:
        before = kept(settings)
        for option in ("max_window", "window_start"):
            after = kept(changed(settings, option))
            assert (before == after) == idle(option, settings, "self_play"), option
            assert not idle(option, settings, "training") and not idle(option, settings, "self_play", "training")
            assert idle(option, settings, "gate", "checks", "evaluation", "analysis")


@pytest.mark.parametrize("gate", ["off", "score", "sprt"])
def test_an_option_of_the_gate_is_refused_exactly_where_it_changes_nothing(gate: str) -> None:
    def judged(settings: Settings) -> Any:
        return judge(GAME, minimax_player(GAME, 1), random_player(GAME), settings.gate, seed=5)

    settings = Settings("tictactoe").override({"gate": gate, "gate_games": 40})
    before = judged(settings)
    for option in ("gate", "gate_games", "gate_score"):
        after = judged(changed(settings, option))
        assert (before == after) == idle(option, settings, "training"), option
        assert idle(option, settings, "self_play")


@pytest.mark.parametrize("random_plies", [0, 4])
def test_an_option_of_random_openings_is_refused_exactly_where_it_changes_nothing(random_plies: int) -> None:
    def lengths(settings: Settings) -> list[int]:
        player = SelfPlay(GAME, NETWORK, SearchOptions(readouts=2), settings.self_play, "a")
        return sorted(record.plies[0] for record in player.play(iter(range(30))))

    settings = Settings("tictactoe").override({"random_plies": random_plies})
    before = lengths(settings)
    for option in ("random_plies", "random_share"):
        after = lengths(changed(settings, option))
        assert (before == after) == idle(option, settings, "self_play"), option
        assert idle(option, settings, "training", "gate", "evaluation")


# ---------------------------------------------------------------- the programs

# Runs a program with one flag at a time, on a model without a champion, or with --init on one that exists: a flag that
# is not refused as idle is refused for that reason.
CALLS = """
import json, runpy, sys
from seraphim import cli
from seraphim.cli import FLAGS
from seraphim.errors import SeraphimError

program, flags, always = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:]
sys.argv = [program]
mains = []
cli.run = mains.append
runpy.run_path(program, run_name="__main__")
(main,) = mains
said = {}
for name, value in flags.items():
    for flag in FLAGS:
        FLAGS[flag].unparse()
    rest = FLAGS([program, *always, f"--{name}={value}"])
    try:
        main(rest)
    except SeraphimError as error:
        said[name] = str(error)
print(json.dumps(said))
"""
NOISY = {"tempering_point", "dirichlet_alpha", "noise_coefficient"}
PUCT = {"cpuct"}
SECTION: dict[str, set[str]] = {section: {name for name in OPTIONS if OPTIONS[name] == section} for section in SECTIONS}
RESNET = {"blocks", "filters", "kernel_size", "normalization", "policy_filters", "value_filters"}
GATE_MATCH = {"gate_games", "gate_score"}
IN_SELF_PLAY = SECTION["self_play"] - {"games_per_generation"} | SECTION["records"] | {"max_window"}
STORED = {
    *(SECTION["network"] - RESNET),
    *SECTION["self_play"],
    *SECTION["records"],
    *(SECTION["training"]),
    "gate",
}


def for_self_play(options: Collection[str]) -> set[str]:
    return {f"self_play_{option}" for option in options}


PROGRAMS: dict[str, tuple[list[str], set[str], set[str]]] = {
    # Arguments, and the accepted flags for a model whose self-play has a PUCT root, and a Gumbel root; the network is
    # an mlp that is trained by a number of steps, the gate off.
    "bin/generate_games.py": (
        ["bin/generate_games.py", "model"],
        BY_TREE - {"gumbel_actions"} | IN_SELF_PLAY,
        BY_TREE - PUCT - NOISY | IN_SELF_PLAY,
    ),
    "tictactoe/train.py": (
        ["tictactoe/train.py", "model"],
        SECTION["training"] - {"optimizer", "samples_per_position"} | {"gate"},
        SECTION["training"] - {"optimizer", "samples_per_position"} | {"gate"},
    ),
    "tictactoe/train.py --init": (
        ["tictactoe/train.py", "fresh", "--init"],
        STORED | BY_TREE - {"gumbel_actions"} | for_self_play(BY_TREE - {"gumbel_actions"}),
        set(),
    ),
    "bin/learn.py": (
        ["bin/learn.py", "model"],
        STORED - {"samples_per_position"} | BY_TREE - {"gumbel_actions"} | for_self_play(BY_TREE - {"gumbel_actions"}),
        STORED - {"samples_per_position"} | BY_TREE - NOISY | for_self_play(BY_TREE - PUCT - NOISY),
    ),
    "bin/evaluate.py": (
        ["bin/evaluate.py", "model"],
        BY_TREE - NOISY - {"readouts", "gumbel_actions"},
        BY_TREE - NOISY - {"readouts", "gumbel_actions"},
    ),
    "bin/evaluate.py by the network alone": (["bin/evaluate.py", "model", "--searches=0"], set(), set()),
    "bin/interactive.py": (
        ["bin/interactive.py", "model"],
        BY_TREE - NOISY - {"root", "gumbel_actions"},
        BY_TREE - NOISY - {"root", "gumbel_actions"},
    ),
    "bin/interactive.py with noise": (
        ["bin/interactive.py", "model", "--noise", "--temperature=auto"],
        BY_TREE - {"root", "gumbel_actions"},
        BY_TREE - {"root", "gumbel_actions"},
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_accept_the_flags_that_have_an_effect_and_refuse_the_others(name: str, root: Path) -> None:
    (program, *always), by_puct, by_gumbel = PROGRAMS[name]
    folder, calls = root / "models/model", root / "calls.py"
    folder.mkdir()
    calls.write_text(CALLS)
    fresh = json.loads((root / "models/fresh/settings.json").read_text())
    for accepted, section in ((by_puct, {}), (by_gumbel, {"root": "gumbel"})):
        if "--init" in always and section:
            continue  # a new model has the settings of its game
        (folder / "settings.json").write_text(json.dumps({**fresh, "self_play_search": section}))
        values = {option: value[0] if isinstance(value, tuple) else value for option, value in OTHERS.items()}
        values |= {f"self_play_{option}": values[option] for option in SEARCH}
        done = programs.run(
            [sys.executable, calls, program, json.dumps(values), *always],
            env={**os.environ, "SERAPHIM_DATA": str(root)},
            timeout=100,
        )
        assert done.returncode == 0, done.stderr
        said: dict[str, str] = json.loads(done.stdout)
        assert set(said) == set(values)
        refused = {option for option, text in said.items() if "changes nothing here: it needs " in text}
        assert set(values) - refused == accepted
        for option in refused:
            assert said[option].startswith(f"--{option} changes nothing here: it needs ")
            assert "\n" not in said[option] and "; " not in said[option]


def test_the_help_shows_the_options_that_a_program_may_read() -> None:
    assert has_two_searches(["self_play", "checks"]) and not has_two_searches(["self_play"])
    for program, parts in (("bin/generate_games.py", ["self_play"]), ("bin/evaluate.py", ["evaluation"])):
        done = programs.run([sys.executable, program, "--help"], timeout=100)
        for option in OPTIONS:
            shown = f"\n  --{option}:" in done.stdout or f"\n  --[no]{option}:" in done.stdout
            assert shown == is_read(option, parts), option
    words = " ".join(programs.run([sys.executable, "bin/learn.py", "--help"], timeout=100).stdout.split())
    for option, default in (("root", "gumbel"), ("readouts", 32)):
        text = f"--{option} for self-play alone. Default: the model's setting, else that of the other searches"
        assert f"{text} (initially {default})." in words
    assert "--cpuct for self-play alone. Default: the model's setting, else that of the other searches. " in words
