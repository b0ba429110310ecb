"""gradeq elo on files: the library's ratings, a leaderboard, and a probability for every game."""

import math
from pathlib import Path

import numpy as np
import pytest

from cli.calling import column, games, gradeq, here, ok, refused, table, write
from gradeq.layers.elo import Elo

SIDES = ("--a", "home", "--b", "away")
WINNER = (*SIDES, "--winner", "winner")


@pytest.fixture
def rows():
    return games()


@pytest.fixture
def file(rows, tmp_path: Path) -> Path:
    return write(tmp_path / "games.csv", rows)


def played(rows, **settings):
    elo = Elo(**settings)
    run = elo.run(
        [row["home"] for row in rows],
        [row["away"] for row in rows],
        np.array([row["score"] for row in rows], dtype=float),
    )
    return elo, run


def test_the_installed_command_rates_as_the_library_does(file, rows, tmp_path):
    board, p = tmp_path / "board.csv", tmp_path / "p.csv"
    done = gradeq("elo", file, *WINNER, "-o", board, "--predictions", p, "--json", cwd=tmp_path)
    found = ok(done).json
    elo, run = played(rows)
    np.testing.assert_array_equal(column(p, "p"), run.values)
    assert found["theta"] == elo.theta
    assert found["certificate"]["gap"] < 1e-14
    assert found["headline"] == " ".join(elo.board().lines)
    assert found["view"]["constant_weight"] == elo.drift()["constant"]
    assert found["fit"]["residual"] < 1e-9 and found["fit"]["groups"] == 1
    loss = -np.log(
        [
            q if y == 1 else 1 - q if y == 0 else math.sqrt(q * (1 - q))
            for q, y in zip(run.values, [row["score"] for row in rows], strict=True)
        ]
    )
    assert found["loss"]["name"] == "log loss"
    assert found["loss"]["after"] == pytest.approx(loss.mean(), abs=1e-12)
    since = found["learned_from"]
    assert since["rows"] == len(rows) and since["loss"] == pytest.approx(found["loss"], abs=1e-12)
    names = "rank,rank_low,rank_high,player,elo,elo_low,elo_high,games,wins,win_rate,"
    names += "predicted_win_rate,bias,bound,rating,elo_all_time,elo_now,tracked"
    lines = table(board)
    assert ",".join(lines[0]) == names
    assert {line["player"] for line in lines} >= {"ann", "'=cy", "007"}
    for line in lines:
        name = line["player"].removeprefix("'")
        tracked, number = float(line["tracked"]), int(line["games"])
        assert tracked == elo.theta[name]
        wanted = 1000 + 400 / math.log(10) * float(line["rating"])
        assert float(line["elo"]) == pytest.approx(wanted)
        assert float(line["bias"]) == pytest.approx(-tracked / (0.01 * number), abs=1e-13)
        assert float(line["bias"]) == pytest.approx(
            float(line["predicted_win_rate"]) - float(line["win_rate"]), abs=1e-15
        )


def test_dropped_ties_are_no_games_but_have_a_probability(file, rows, tmp_path):
    p = tmp_path / "p.csv"
    options = ("--ties", "drop", "--k", "20")
    found = ok(here("elo", file, *WINNER, *options, "--predictions", p, "--json")).json
    elo, run = played(rows, ties="drop", k=20)
    np.testing.assert_array_equal(column(p, "p"), run.values)
    ties = sum(row["winner"] == "tie" for row in rows)
    assert (found["ties"], found["labelled"]) == (ties, len(rows) - ties)
    assert found["eta"] == pytest.approx(20 * math.log(10) / 400)
    assert found["theta"] == elo.ratings
    assert sum(group["rows"] for group in found["groups"]) == 2 * (len(rows) - ties)


def test_every_way_to_name_the_winner_says_the_same(rows, tmp_path):
    words = {
        "names": {"home": "home", "away": "away"},
        "sides": {"home": "a", "away": "B", "tie": "Draw"},
        "models": {"home": "model_a", "away": "model_b", "tie": "tie (bothbad)"},
        "bad": {"home": "a", "away": "b", "tie": "both_bad"},
    }
    thetas = []
    for kind, spelled in words.items():
        made = []
        for row in rows:
            winner = row["winner"]
            winner = row[winner] if kind == "names" and winner != "tie" else spelled.get(winner, winner)
            made.append({**row, "winner": winner})
        file = write(tmp_path / f"{kind}.csv", made)
        thetas.append(ok(here("elo", file, *WINNER, "--json")).json["theta"])
    file = write(tmp_path / "score.csv", rows)
    thetas.append(ok(here("elo", file, *SIDES, "--score", "score", "--json")).json["theta"])
    assert all(theta == thetas[0] for theta in thetas)


def test_a_game_against_oneself_is_refused_or_left_out(rows, tmp_path):
    odd = {**rows[5], "away": rows[5]["home"]}
    file = write(tmp_path / "games.csv", [*rows[:5], odd, *rows[5:]])
    assert "row 6" in refused(here("elo", file, *WINNER))
    p = tmp_path / "p.csv"
    found = ok(here("elo", file, *WINNER, "--skip-self", "--predictions", p, "--json")).json
    elo, run = played(rows)
    assert found["theta"] == elo.theta and found["skipped"] == 1
    assert table(p)[5]["p"] == ""
    assert [x for x in column(p, "p") if not math.isnan(x)] == run.values.tolist()


def test_games_by_time_and_runs_that_continue_equal_one_run(rows, tmp_path):
    mixed = [rows[i] for i in np.random.default_rng(4).permutation(len(rows))]
    mixed.sort(key=lambda row: row["day"])
    shuffled = [mixed[i] for i in np.argsort([row["day"] % 7 for row in mixed], kind="stable")]
    file = write(tmp_path / "shuffled.csv", shuffled)
    order = np.argsort([row["day"] for row in shuffled], kind="stable")
    elo, run = played([shuffled[i] for i in order])
    p = tmp_path / "p.csv"
    found = ok(here("elo", file, *WINNER, "--time", "day", "--predictions", p, "--json")).json
    assert found["theta"] == elo.theta
    np.testing.assert_array_equal(np.array(column(p, "p"))[order], run.values)
    state = tmp_path / "elo.json"
    for k, part in enumerate((rows[:100], rows[100:])):
        piece = write(tmp_path / f"{k}.csv", part)
        last = ok(here("elo", piece, *WINNER, "--state", state, "--json")).json
    assert last["theta"] == played(rows)[0].theta
    assert "ok  identity" in ok(here("audit", state)).out


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ([*SIDES], "--winner or --score"),
        ([*WINNER, "--score", "score"], "--winner or --score"),
        ([*WINNER, "--k", "20", "--eta", "0.1"], "--eta"),
        ([*WINNER, "--k", "0"], "above 0"),
        ([*WINNER, "--decay", "0.5"], "give --eta or --k"),
        ([*WINNER, "--penalty", "lasso", "--strength", "0.1"], "give --eta or --k"),
        ([*WINNER, "--home", "winner"], "which says nothing about who is at home"),
        ([*WINNER, "--neutral", "day"], "does not say whether the ground is neutral"),
        ([*SIDES, "--winner", "day"], "row 1"),
        ([*SIDES, "--winner", "day"], "tie (bothbad), both_bad"),
        ([*SIDES, "--score", "home"], "row 1"),
        ([*SIDES, "--score", "day"], "[0, 1]"),
        (["--a", "hom", "--b", "away", "--winner", "winner"], "did you mean 'home'?"),
        ([*WINNER, "-o", "x.csv", "--predictions", "x.csv"], "two outputs"),
    ],
)
def test_calls_that_make_no_sense_are_refused(file, options, word):
    assert word in refused(here("elo", file, *options))


def test_a_game_without_a_player_is_refused_with_its_row(rows, tmp_path):
    file = write(tmp_path / "games.csv", [*rows[:3], {**rows[3], "home": ""}, *rows[4:]])
    assert "row 4" in refused(here("elo", file, *WINNER))


@pytest.mark.parametrize(
    ("made", "options", "words"),
    [
        ([("ann", "ann", "a")], ["--skip-self"], ["of 1 row 1 against oneself"]),
        ([("ann", "bob", "tie")] * 3, ["--ties", "drop"], ["3 dropped as ties", "--ties half"]),
        (
            [("ann", "bob", "tie"), ("ann", "ann", "a")],
            ["--ties", "drop", "--skip-self"],
            ["1 against oneself and 1 dropped as a tie"],
        ),
    ],
)
def test_a_file_without_any_game_is_refused_and_leaves_nothing(tmp_path, made, options, words):
    rows = [dict(zip(("home", "away", "winner"), row, strict=True)) for row in made]
    file = write(tmp_path / "games.csv", rows)
    outputs = []
    for option, name in (("-o", "b.csv"), ("--predictions", "p.csv"), ("--state", "s.json")):
        outputs += [option, tmp_path / name]
    line = refused(here("elo", file, *WINNER, *options, *outputs))
    assert "no games" in line and all(word in line for word in words)
    assert [path.name for path in tmp_path.iterdir()] == ["games.csv"]


def test_who_only_played_itself_is_no_player(rows, tmp_path):
    odd = {**rows[5], "home": "zoe", "away": "zoe"}
    file = write(tmp_path / "games.csv", [odd, *rows])
    state, board, page = (tmp_path / name for name in ("s.json", "b.csv", "r.html"))
    outputs = ("--state", state, "-o", board, "--report", page)
    found = ok(here("elo", file, *WINNER, "--skip-self", "--json", *outputs)).json
    assert found["theta"] == played(rows)[0].theta
    assert "zoe" not in [group["name"] for group in found["groups"]]
    assert all("zoe" not in path.read_text() for path in (state, board, page))


def test_a_skipped_game_does_not_unsettle_late_scores(rows, tmp_path):
    made = [{**row, "known": row["day"] + 5} for row in rows]
    made.append({**made[0], "away": made[0]["home"], "day": 200, "known": 200})
    file = write(tmp_path / "games.csv", made)
    late = ("--time", "day", "--label-time", "known", "--skip-self", "--json")
    found = ok(here("elo", file, *WINNER, *late)).json
    assert found["certificate"]["gap"] < 1e-12 and found["skipped"] == 1
    assert found["rows"] == len(made)


def test_theta_is_what_the_certificate_is_about(file, rows):
    found = ok(here("elo", file, *WINNER, "--eta", "auto", "--json")).json
    elo, _ = played(rows, eta="auto")
    assert found["theta"] == elo.theta != elo.ratings


def test_who_is_at_home_is_read_from_words_and_learned(rows, tmp_path):
    ground = [("true", 0.0) if k % 3 == 0 else ("false", 1.0) for k in range(len(rows))]
    made = [{**row, "neutral": word, "host": "neutral" if word == "true" else "a"}
            for row, (word, _) in zip(rows, ground, strict=True)]  # fmt: skip
    file = write(tmp_path / "games.csv", made)
    elo = Elo(home_advantage=True)
    columns = ([row[name] for row in rows] for name in ("home", "away", "score"))
    elo.run(*columns, home=[h for _, h in ground])
    said = ok(here("elo", file, *WINNER, "--home", "a", "--neutral", "neutral", "--json")).json
    assert said["theta"] == elo.theta and said["home"] == elo.board().home._asdict()
    assert said["home"]["bias"] == pytest.approx(said["home"]["from_state"], abs=1e-12)
    everywhere = write(tmp_path / "everywhere.csv", [{**row, "host": "a"} for row in made])
    both = ("--home", "host", "--neutral", "neutral", "--json")  # neutral ground wins
    assert ok(here("elo", everywhere, *WINNER, *both)).json["theta"] == said["theta"]
    for other in (("--neutral", "neutral"), ("--home", "host")):
        assert ok(here("elo", file, *WINNER, *other, "--json")).json["theta"] == said["theta"]


@pytest.mark.parametrize("view", ["auto", "all-time", "now"])
def test_the_first_line_says_who_is_first_and_how_sure_that_is(file, rows, view):
    lines = ok(here("elo", file, *WINNER, "--view", view)).out.splitlines()
    assert tuple(lines[:2]) == played(rows)[0].board(view).lines


def test_players_who_never_met_the_others_are_named_and_notes_stand_below_the_board(tmp_path):
    rows = [*games(300), {**games(1)[0], "home": "zoe", "away": "yan", "winner": "zoe"}]
    file, page = write(tmp_path / "apart.csv", rows), tmp_path / "page.html"
    told = ok(here("elo", file, *WINNER, "--report", page)).out
    assert "Warning: 2 players never met the other" in told
    assert "No chain of games joins yan, zoe to them" in told
    text = page.read_text()
    places = [text.index(part) for part in ("never met", ">Leaderboard<", "What is certified", "Good to know")]
    assert places == sorted(places) and text.index("No time column") > places[-1]


@pytest.mark.parametrize("view", ["auto", "all-time", "now"])
@pytest.mark.parametrize("step", [(), ("--k", "16")])
@pytest.mark.parametrize("home", [(), ("--home", "a")])
def test_page_and_terminal_describe_what_was_run(file, tmp_path, view, step, home):
    page = tmp_path / "page.html"
    asked = ("--view", view, *step, *home)
    told = ok(here("elo", file, *WINNER, *asked, "--report", page)).out
    found = ok(here("elo", file, *WINNER, *asked, "--json")).json
    text = page.read_text()
    method = text[text.index("Before each game") :]
    assert ("<mi>logit</mi>" in method) == ("mixes filters" in method) == (not step)
    assert ("400 / ln 10" in method) == bool(step)
    assert ("<mtext>home</mtext>" in method) == bool(home)
    constant = found["view"]["constant_weight"]
    fitted = {"auto": constant, "all-time": 1.0, "now": 0.0}[view]
    assert ("expected wins of all games" in method) == (1.0 - fitted <= 0.9995)
    assert ("current strengths, by the filter" in method) == (fitted <= 0.9995)
    if home:
        advantage = [f"{found['home'][end]:.0f}" for end in ("elo", "low", "high")]
        said = "Home advantage: {} Elo (95 % interval {} to {}).".format(*advantage)
        assert said in told.splitlines() and "Home advantage" in text
    assert home or "Home advantage" not in told + text


def test_everyone_without_a_rank_is_counted(tmp_path):
    rows = [*games(700), *({**games(1)[0], "home": "new", "away": "ann", "winner": "b"},) * 3]
    file, board = write(tmp_path / "games.csv", rows), tmp_path / "board.csv"
    told = ok(here("elo", file, *WINNER, "-o", board)).out
    few = [row for row in table(board) if not row["rank"]]
    assert {row["player"] for row in few} >= {"new"} and all(int(r["games"]) < 30 for r in few)
    people = "1 player" if len(few) == 1 else f"{len(few)} players"
    have = "has" if len(few) == 1 else "have"
    assert f"{people} with fewer than 30 games {have} no rank (" in told and "new, 3 games" in told


def test_views_that_rank_players_differently_are_told(tmp_path):
    rng = np.random.default_rng(3)
    level, rows = np.linspace(-3.0, 3.0, 60), []
    for t in range(6000):  # equals meet equals, and all grow and fall at random
        a = int(rng.integers(60))
        b = int(np.clip(a + rng.choice([-2, -1, 1, 2]), 0, 59))
        if a != b:
            won = rng.random() < 1.0 / (1.0 + math.exp(level[b] - level[a]))
            rows.append({"home": f"p{a}", "away": f"p{b}", "winner": "a" if won else "b"})
            if t % 2:
                level[a] += rng.normal(0.0, 0.3)
    file = write(tmp_path / "equals.csv", rows)
    board = ok(here("elo", file, *WINNER, "--json")).json
    assert board["view"]["constant_weight"] < 0.95
    assert "rank players differently" in ok(here("elo", file, *WINNER)).out


@pytest.mark.parametrize(
    ("games", "many"),
    [
        ("home,draw,draw\ndraw,home,home\nhome,draw,tie\n", 2),
        ("b,a,a\na,b,a\na,b,b\n", 1),  # as a word and as a name a is one side in the others
        ("home,x,home\nx,away,away\ny,x,draw\n", 0),
    ],
)
def test_a_winner_that_is_a_player_and_another_word_is_told(games, many, tmp_path):
    path = tmp_path / "games.csv"
    path.write_text(f"a,b,w\n{games}")
    done = ok(here("elo", path, "--a", "a", "--b", "b", "--winner", "w", "--json")).json
    said = [w for w in done["warnings"] if "two ways" in w["claim"]]
    assert len(said) == bool(many)
    if many:
        assert f"of {many} game" in said[0]["claim"] and "row 1" in str(said[0])
