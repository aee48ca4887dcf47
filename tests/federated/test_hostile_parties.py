"""A listed analyst whose program departs from the protocol, and a site that does: what do they get from an honest site?

Each attack was played against sites that followed the protocol only, and got what it says. Sites answer here by the
bytes that would travel; the last tests play analyst and site against services over HTTPS.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count

import numpy as np
import polars as pl
import pytest
from examples import examples
from federated_sites import Running, SitesHere, free_port
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.core.errors import DiscreetError, InputError, ParameterError
from discreet.core.files import locks
from discreet.federated import ProtocolError, SecureMLE, assess, rank_over_sites, regression_over_sites
from discreet.federated.envelopes import Envelope, packed, put_in, unpacked
from discreet.federated.layouts import Group, Layout
from discreet.federated.messages import Message
from discreet.federated.parties import ROLES, Party
from discreet.federated.quantities import Ring
from discreet.federated.remote_transport import SitesOnNetwork
from discreet.federated.shared_product import joint_moments
from discreet.federated.site_rules import SiteFile
from discreet.federated.sites import Site, opened_site
from discreet.federated.trial_certificates import prepare

pytest.importorskip("cryptography")

NAMES = ("north", "middle", "south")
ROWS = 60
QUANTITIES = ("likelihood", "totals", "products", "glm", "counts", "held-totals", "ranks", "scores")
PROTOCOLS = ("vertical-likelihood", "shared-product", "secure-sum")
COLUMNS = ("y1", "y2", "job", "ill", "rare", "pay")


def table(seed):
    """Everything that can go wrong in one table: a rare group, one high income, and numbers that tell people apart."""
    rng = np.random.default_rng(seed)
    rows = np.arange(ROWS)
    return pl.DataFrame({
        "id": rows, "y1": rng.normal(size=ROWS), "y2": rng.normal(size=ROWS) + 5, "job": rows % 3 + (rows == 0) * 4,
        "ill": (rng.random(ROWS) < 0.5).astype(int), "rare": (rows == 7).astype(int),
        "pay": np.where(rows == 3, 1e6, rng.uniform(1, 2, ROWS)),
    })  # fmt: skip


def made(folder, *, port=8441, **limits):
    for at, name in enumerate(NAMES):
        table(at).write_csv(folder / f"{name}.csv")
    prepare(folder, {name: f"{name}.csv" for name in NAMES}, columns=dict.fromkeys(NAMES, COLUMNS), ids="id",
            protocols=PROTOCOLS, quantities=QUANTITIES, limits=limits, port=port)  # fmt: skip
    return folder


@pytest.fixture
def folder(tmp_path):
    return made(tmp_path)


@pytest.fixture
def sites(folder):
    return SitesHere(folder, NAMES)


NUMBERS = count(1)


def ask(sites, to, protocol, name, run="r1", sender="coordinator", **values):
    """Send one message to a site, as the analyst or sealed as another site; the replies come back as they travel."""
    message = Message(protocol, run, sender, to, name, values)
    sealer = None if sender == "coordinator" else sites.sites[sender].sealer
    return unpacked(sites.sites[to].answer(packed([put_in(message, next(NUMBERS), sealer)]), "analyst"))


def told(replies, name):
    """Return what the analyst reads in a reply."""
    return next(one.opened().values for one in replies if one.outside["name"] == name)


def passed_on(sites, replies, to):
    """Return the sealed reply to another site, as that site reads it."""
    envelope = next(one for one in replies if one.receiver == to)
    return envelope, envelope.opened(sites.sites[to].sealer).values


def answered(site):
    return json.loads(site.file.state.read_text())["evaluations"]


# Shared products


def masks(rows=ROWS, width=1, **more):
    return {
        "mask": np.zeros((rows, 2 * width), dtype=np.uint64), "share": np.zeros((2 * width, 2), dtype=np.uint64),
        "other": "middle", "first": True, "frac": 28, "columns": ["y1"], "block": "main", **more,
    }  # fmt: skip


@pytest.mark.parametrize("other", ["coordinator", "middle", "north", "ghost"])
def test_an_analyst_who_deals_masks_of_zero_gets_nothing(sites, other):
    with pytest.raises(ProtocolError, match=r"takes no masks|knows no"):
        ask(sites, "north", "shared-product", "masks", **masks(other=other))


@pytest.mark.parametrize(
    ("columns", "rows"), [([["y1"], ["y1"]], 2**40), ([[f"c{at}" for at in range(2000)]] * 2, 6000)]
)
def test_a_dealer_is_not_worn_out_by_a_short_message(sites, columns, rows):
    with pytest.raises(ProtocolError, match="Ask for fewer columns"):
        ask(sites, "south", "shared-product", "deal", holders=["north", "middle"], columns=columns, rows=rows,
            frac=28, block="main")  # fmt: skip


def test_runs_that_nobody_ends_take_no_more_memory_than_the_owner_lets_messages_have(folder):
    wary = SitesHere(folder, NAMES)
    site = wary.sites["north"]
    site.allowed = replace(site.allowed, max_bytes=20_000)
    conditional = {
        **step(1),
        "nodes": ["south", "north"],
        "weights": np.zeros((1, 1)),
        "noise": np.zeros((ROWS, 1)),
    }
    opened = count()

    def another():
        ask(wary, "north", "vertical-likelihood", "conditional", f"run {next(opened)}", **conditional)

    for _ in range(20):
        another()
    with pytest.raises(ProtocolError, match="too many runs"):
        [another() for _ in range(200)]
    # What was idle long enough makes room, and comes back no more.
    site._runs = {run: (began - 400, size) for run, (began, size) in site._runs.items()}
    another()
    with pytest.raises(ProtocolError, match="has ended"):
        ask(wary, "north", "vertical-likelihood", "conditional", "run 0", **conditional)


def test_a_site_is_served_by_one_process(folder, monkeypatch):
    """Two would count their answers apart, and an analyst would have twice what the owner allows."""
    monkeypatch.setattr(locks, "PATIENCE", 0.1)
    file = SiteFile.read(folder / "north.toml")
    with opened_site(file) as site, pytest.raises(InputError, match="served already"), opened_site(file):
        pass
    assert site.name == "north"
    with opened_site(file) as again:
        assert again.name == "north"


def test_messages_in_one_request_count_one_by_one(sites):
    site = sites.sites["north"]
    site.allowed = replace(site.allowed, max_messages_per_minute=5)
    many = [
        put_in(
            Message("vertical-likelihood", f"r{at}", "coordinator", "north", "join", {"columns": ["y1"]}), 1
        )
        for at in range(6)
    ]
    with pytest.raises(ProtocolError, match="too often"):
        site.answer(packed(many), "analyst")
    assert site.answer(packed(many[:5]), "analyst")


@pytest.mark.parametrize(
    "holders",
    [["north", "north"], ["north", "coordinator"], ["north", "ghost"], ["south", "north"], ["north"],
     ["north", "middle", "north"]],
)  # fmt: skip
def test_a_dealer_deals_to_two_other_sites_that_it_knows(sites, holders):
    with pytest.raises(ProtocolError, match=r"knows no|by a third"):
        ask(sites, "south", "shared-product", "deal", holders=holders, columns=[["y1"]] * len(holders), rows=ROWS,
            frac=28, block="main")  # fmt: skip


def deal(sites, run, columns=("y1", "y2"), holders=("north", "middle"), dealer="south"):
    return ask(sites, dealer, "shared-product", "deal", run, holders=list(holders),
               columns=[[name] for name in columns], rows=ROWS, frac=28, block="main")  # fmt: skip


def forward(sites, envelope):
    return unpacked(sites.sites[envelope.receiver].answer(packed([envelope]), "analyst"))


def test_masks_are_used_once_and_for_the_columns_that_they_were_drawn_for(sites):
    dealt = deal(sites, "r1")
    rests = [forward(sites, envelope) for envelope in dealt]
    assert [one.receiver for one in dealt] == ["north", "middle"]
    assert all(one.outside["sealed"] for reply in rests for one in reply)
    with pytest.raises(ProtocolError, match="had before"):
        forward(sites, dealt[0])
    again = deal(sites, "r1-again")
    changed = Envelope({**again[0].outside, "run": "r1"}, again[0].inside)
    with pytest.raises(DiscreetError, match=r"cannot be opened|had before"):
        forward(sites, changed)
    # The dealer draws others for another pair of columns, and takes one part in a run.
    with pytest.raises(ProtocolError, match="used once"):
        deal(sites, "r1")
    with pytest.raises(ProtocolError, match="used once"):
        ask(sites, "north", "shared-product", "masks", "r1", "south", **masks(columns=["y2"]))
    assert not np.array_equal(
        passed_on(sites, dealt, "north")[1]["mask"], passed_on(sites, again, "north")[1]["mask"]
    )


def test_both_holders_see_the_same_dealer_and_the_same_other(sites):
    rest = {"rest": np.zeros((ROWS, 2), dtype=np.uint64), "dealer": "south", "first": False, "frac": 28}
    for at, wrong in enumerate(
        ({"dealer": "middle"}, {"first": True}, {"frac": 20}, {"rest": rest["rest"][:, :1]})
    ):
        for envelope in deal(sites, f"r{at}"):
            if envelope.receiver == "north":
                forward(sites, envelope)
        with pytest.raises(ProtocolError, match=r"another dealer|another number of columns"):
            ask(sites, "north", "shared-product", "rest", f"r{at}", "middle", **{**rest, **wrong})


def test_products_with_a_third_site_as_dealer_are_the_pooled_ones(folder, sites):
    names = {"north": ["y1"], "middle": ["y2"], "south": ["y1"]}
    central = Party("coordinator")
    sites.join(central)
    rows, mean, covariance = joint_moments(sites, central, NAMES, list(names.values()))
    x = np.column_stack([table(at)[column[0]] for at, column in enumerate(names.values())])
    assert rows == ROWS
    np.testing.assert_allclose(mean, x.mean(axis=0))
    np.testing.assert_allclose(covariance, np.cov(x.T, bias=True), atol=1e-12)
    dealers = {one.sender for one in sites.transcript if one.name == "masks"}
    assert dealers == set(NAMES)


def test_two_sites_multiply_only_where_their_owners_name_a_dealer(tmp_path):
    def run(**limits):
        made(tmp_path, **limits)
        transport, central = SitesHere(tmp_path, NAMES[:2]), Party("coordinator")
        transport.join(central)
        return joint_moments(transport, central, NAMES[:2], [["y1"], ["y1"]])

    with pytest.raises(ProtocolError, match="the owner names whom to trust"):
        run()
    x = np.column_stack([table(at)["y1"] for at in range(2)])
    np.testing.assert_allclose(run(dealers=["coordinator"])[2], np.cov(x.T, bias=True), atol=1e-12)
    with pytest.raises(ParameterError, match="no dealer 'ghost'"):
        run(dealers=["ghost"])


def test_a_site_without_columns_deals_and_the_others_need_not_allow_likelihoods(tmp_path):
    """The way for owners who leave nothing about rows to the analyst's program."""
    made(tmp_path)
    for name in NAMES:
        path = tmp_path / f"{name}.toml"
        text = path.read_text().replace('    "vertical-likelihood",\n', "").replace('    "secure-sum",\n', "")
        assert "vertical" not in text
        path.write_text(text)
    text = (tmp_path / "south.toml").read_text()
    (tmp_path / "south.toml").write_text(text.replace("".join(f'    "{name}",\n' for name in COLUMNS), ""))
    assert SiteFile.read(tmp_path / "south.toml").allowed.columns == ()
    layout = Layout("vertical", (Group(("north", "middle"), (("y1",), ("y2",))),))
    transport = SitesHere(tmp_path, NAMES)
    secure = SecureMLE(layout, mode="sufficient", transport=transport)
    x = np.column_stack([table(0)["y1"], table(1)["y2"]])
    np.testing.assert_allclose(secure.moments()[2], np.cov(x.T, bias=True), atol=1e-10)
    assert secure.rows == ROWS
    assert "a holder who deals the masks" in secure.leakage.meaning
    with pytest.raises(ProtocolError, match="does not allow 'vertical-likelihood'"):
        SecureMLE(layout, transport=SitesHere(tmp_path, NAMES)).log_likelihood([0, 0], np.eye(2))


# Joint likelihoods


def step(place=0, nodes=("north", "middle"), widths=None, column="y1", **more):
    widths = [1] * len(nodes) if widths is None else widths
    return {
        "nodes": list(nodes), "widths": widths, "place": place, "start": 0, "rows": ROWS, "chunk": 0, "chunks": 1,
        "evaluation": 1, "block": "main", "coordinator": "coordinator", "keep_total": False,
        "scales": [1e3] * sum(widths), "columns": [column], "covariance": np.eye(1),
        "mean": np.zeros((ROWS, sum(widths[place:]) if place else 1)), **more,
    }  # fmt: skip


def first(**more):
    return {"last_noise": np.zeros((ROWS, 1)), **step(**more)}


@pytest.mark.parametrize(
    "wrong",
    [
        {"nodes": ["north", "coordinator"]}, {"nodes": ["north", "ghost"]}, {"nodes": ["north", "north"]},
        {"nodes": ["north"], "widths": [1], "scales": [1e3]}, {"nodes": ["middle", "south"]},
        {"coordinator": "middle"}, {"widths": [1]}, {"scales": [1e3]}, {"scales": [1e3, -1e3]}, {"chunk": "0"},
        {"chunk": True}, {"keep_total": "yes"}, {"evaluation": 1.5}, {"nodes": "north"}, {"quantity": {}},
        {"columns": ["y1", "y1"]}, {"columns": []}, {"columns": "y1"}, {"block": "ghost"}, {"place": -2},
    ],
)  # fmt: skip
def test_noise_and_what_it_hides_go_to_different_readers_or_nowhere(sites, wrong):
    with pytest.raises(ProtocolError):
        ask(sites, "north", "vertical-likelihood", "first", **{**first(), **wrong})
    replies = ask(sites, "north", "vertical-likelihood", "first", **first())
    assert {one.outside["name"]: one.receiver for one in replies} == {
        "answers": "coordinator",
        "masks": "middle",
    }


def test_evaluations_that_a_site_cannot_check_need_the_trust_of_its_owner(tmp_path):
    """The means come row by row: two evaluations of a changed program differ by one row, and look like any others."""
    wary = SitesHere(made(tmp_path, program_trusted=False), NAMES)
    for name, values in (("first", first()), ("conditional", {**step(1), "nodes": ["south", "north"]})):
        values |= {"weights": np.zeros((1, 1)), "noise": np.zeros((ROWS, 1))} if name == "conditional" else {}
        with pytest.raises(ProtocolError, match="program_trusted"):
            ask(wary, "north", "vertical-likelihood", name, **values)
    assert not any(wary.sites[name].holder.held_totals for name in NAMES)
    # What names no mean for a row is answered: the same fits come from products with masks of a third site.
    assert ask(wary, "north", "vertical-likelihood", "join", columns=["y1"])
    assert ask(wary, "north", "shared-product", "own", columns=["y1"])


def test_only_an_owner_trusts_a_program(tmp_path):
    file = SiteFile.read(made(tmp_path) / "north.toml")
    assert file.allowed.program_trusted  # of a trial
    text = (tmp_path / "north.toml").read_text().replace("program_trusted = true\n", "")
    (tmp_path / "north.toml").write_text(text)
    assert not SiteFile.read(tmp_path / "north.toml").allowed.program_trusted


def test_the_same_noise_never_hides_two_columns_or_other_rows(sites):
    """Kept noise is that of a column, a range of rows and a scale: else a difference of two answers is one of rows."""
    x = table(0)

    def answers(run, **more):
        return told(ask(sites, "north", "vertical-likelihood", "first", run, **first(**more)), "answers")[
            "a1"
        ]

    both = [answers("r1"), answers("r2", column="y2")]
    assert np.abs((both[0] - both[1])[:, 0] - (x["y1"] - x["y2"]).to_numpy()).max() > 100
    assert np.array_equal(both[0], answers("r3"))  # the same question has the same noise: nothing to average
    parts = []
    for run, sizes in (("r4", (10, 20, 30)), ("r5", (20, 20, 20))):
        starts = np.concatenate([[0], np.cumsum(sizes)])
        parts += [
            answers(run, chunk=at, chunks=3, start=int(starts[at]), rows=sizes[at], mean=np.zeros((sizes[at], 1)),
                    last_noise=np.zeros((sizes[at], 1)))
            for at in (0, 1)
        ]  # fmt: skip
    y = x["y1"].to_numpy()
    assert np.abs((parts[1] - parts[3])[:, 0] - (y[10:30] - y[20:40])).max() > 100


def test_averaging_over_runs_and_restarts_leaves_the_noise_that_the_owner_asks_for(folder):
    """Two answers a time under new noise: 222 evaluations at 100 standard deviations leave three of them."""
    spread = float(table(0)["y1"].std(ddof=0))

    def evaluated(sites, run, deviations=100.0):
        scales = [deviations * spread, 1e3]
        return ask(sites, "north", "vertical-likelihood", "first", run, **first(scales=scales))

    for start in (0, 111):
        sites = SitesHere(folder, NAMES)
        for at in range(start, start + 111):
            evaluated(sites, f"r{at}")
            sites.sites["north"].forget(f"r{at}")
    for deviations in (100.0, 110.0):
        with pytest.raises(ProtocolError, match="averaging would leave less than 3 standard deviations"):
            evaluated(sites, "one more", deviations)
    assert evaluated(sites, "under more noise", 1_000.0)


def test_an_evaluation_stays_with_its_columns_and_its_end(sites):
    small = {"rows": 30, "mean": np.zeros((30, 1)), "last_noise": np.zeros((30, 1)), "chunks": 2}
    ask(sites, "north", "vertical-likelihood", "first", **first(**small))
    with pytest.raises(ProtocolError, match="one over all its rows"):
        ask(
            sites,
            "north",
            "vertical-likelihood",
            "first",
            **first(**small, chunk=1, start=30, keep_total=True),
        )
    with pytest.raises(ProtocolError, match="one over all its rows"):
        ask(sites, "north", "vertical-likelihood", "first", **first(**small, chunk=1, start=30, column="y2"))


@pytest.mark.parametrize("through", ["answers", "later"])
def test_weights_that_magnify_the_noise_of_another_site_do_not_show_it(sites, through):
    """Huge weights, or no noise for the columns to come, made the next holder pass the noise of the first one on."""
    nodes = ("north", "middle", "south")
    scales = {"scales": [1e3, 1e3, 0.0]}
    replies = ask(sites, "north", "vertical-likelihood", "first", **first(nodes=nodes, **scales))
    seen = told(replies, "answers")["a1"][:, 0]
    weight = 1e9 if through == "answers" else 1.0
    forward(sites, passed_on(sites, replies, "middle")[0])
    weights = np.array([[weight if through == "answers" else 0.0], [0.0 if through == "answers" else weight]])
    other = ask(sites, "middle", "vertical-likelihood", "conditional", **{
        **step(1, nodes, **scales), "weights": weights, "noise": np.zeros((ROWS, 1)),
    })  # fmt: skip
    values = told(other, "answers")
    noise = -values["later"][:, 0] if through == "later" else values["a1"][:, 0]
    noise = noise / weight if through == "later" else -noise / -weight
    rows = table(0)["y1"].to_numpy()
    for sign in (1, -1):
        assert abs(np.corrcoef(seen + sign * noise, rows)[0, 1]) < 0.6
    assert abs(np.corrcoef(noise, seen)[0, 1]) < 0.95


def test_a_hostile_site_ends_no_evaluation_and_speaks_for_no_other(sites):
    replies = ask(sites, "north", "vertical-likelihood", "first", **first())
    _, onward = passed_on(sites, replies, "middle")
    last = {name: value for name, value in onward.items() if name != "r"} | {"place": 1}
    with pytest.raises(ProtocolError, match="not begun"):
        ask(sites, "north", "vertical-likelihood", "last", sender="south", **last)
    with pytest.raises(ProtocolError, match="not begun"):
        ask(sites, "north", "vertical-likelihood", "last", sender="middle", **{**last, "keep_total": True})
    assert ask(sites, "north", "vertical-likelihood", "last", sender="middle", **last)
    with pytest.raises(ProtocolError, match="not begun"):
        ask(sites, "north", "vertical-likelihood", "last", sender="middle", **last)
    with pytest.raises(ProtocolError, match="does not come from"):
        ask(
            sites,
            "middle",
            "vertical-likelihood",
            "first",
            sender="north",
            **first(nodes=("middle", "north")),
        )
    ask(sites, "middle", "vertical-likelihood", "masks", "r9", "south", **onward)
    conditional = {**step(1), "weights": np.zeros((1, 1)), "noise": np.zeros((ROWS, 1))}
    with pytest.raises(ProtocolError, match="different evaluations"):
        ask(sites, "middle", "vertical-likelihood", "conditional", "r9", **conditional)


# What is asked, what is counted


def test_rules_are_held_against_what_is_used_and_not_against_a_decoy(folder, sites):
    decoys = ({"quantity": {"columns": ["y1"]}}, {"quantity": {}}, {"block": "ghost"}, {"x": ["y1"]})
    for decoy in decoys:
        with pytest.raises(ProtocolError):
            ask(sites, "north", "vertical-likelihood", "join", columns=["id"], **decoy)
    site = sites.sites["north"]
    site.allowed = replace(site.allowed, min_rows=ROWS + 1)
    with pytest.raises(ProtocolError):
        ask(sites, "north", "vertical-likelihood", "join", columns=["y1"], quantity={"block": "main"})
    with pytest.raises(ProtocolError, match="fewer rows"):
        ask(sites, "north", "shared-product", "own", columns=["y1"])


def test_a_role_reads_nothing_but_what_was_allowed(sites):
    """Should a role ask its holder for more than it said, the holder does not give it out."""

    class Greedy(ROLES["vertical-likelihood"]):
        def on_join(self, message):
            return [self.send("coordinator", "joined", secret=self.party.matrix(["y2"]))]

    site = sites.sites["north"]
    site.holder.plays(Greedy(site.holder, "r1"))
    with pytest.raises(DiscreetError):
        ask(sites, "north", "vertical-likelihood", "join", columns=["y1"])


def partial(
    orders=(("coordinator", "north", "middle", "south"),), at=0, kind="totals", ring=(192, 64), **quantity
):
    asked = {"kind": kind, "columns": ["y1"], "size": 2, **quantity}
    zero = Ring(*ring).to_wire(Ring(*ring).words([0] * asked["size"]))
    return {"orders": [list(one) for one in orders], "size": asked["size"], "mask": "ring", "scale": 1.0,
            "bits": ring[0], "frac": ring[1], "round": at, "quantity": asked, "sum": zero}  # fmt: skip


TWICE = (("coordinator", "north", "middle", "south"),) * 2


def test_every_answer_that_tells_something_counts(sites):
    site = sites.sites["north"]
    site.allowed = replace(site.allowed, max_evaluations=3)
    with pytest.raises(ProtocolError, match="another type"):
        ask(sites, "north", "secure-sum", "partial", **{**partial(), "round": "0"})
    assert answered(site) == 0
    ask(sites, "north", "vertical-likelihood", "join", columns=["y1"])
    ask(sites, "north", "secure-sum", "partial", "r2", **partial(TWICE, at=1))
    ask(sites, "north", "secure-sum", "partial", "r3", **partial(TWICE, at=0))
    assert answered(site) == 3
    for name, values in (("own", {"columns": ["y1"]}), ("join", {"columns": ["y1"]})):
        protocol = "shared-product" if name == "own" else "vertical-likelihood"
        with pytest.raises(ProtocolError, match="all that its owner allows"):
            ask(sites, "north", protocol, name, "r4", **values)
    for at in range(10):
        with pytest.raises(ProtocolError, match="all that its owner allows"):
            ask(sites, "north", "secure-sum", "partial", f"r{at}", **partial(TWICE, at=1))


def test_every_role_of_a_site_declares_what_it_takes_and_whom_it_tells():
    for protocol, role in ROLES.items():
        handled = {name[3:].replace("_", "-") for name in dir(role) if name.startswith("on_")}
        assert set(role.takes) == handled, protocol
        assert role.sends, protocol
    for name in ("masks", "last"):
        assert ROLES["vertical-likelihood"].sends[name] == "site"
    assert ROLES["shared-product"].sends["rest"] == ROLES["secure-sum"].sends["partial"] == "site"


# Secure sums


@pytest.mark.parametrize(
    "order",
    [
        ["coordinator", "ghost", "north"], ["coordinator", "ghost", "phantom", "north"],
        ["coordinator", "north", "north", "middle"], ["coordinator", "middle", "middle", "north"],
        ["coordinator", "north", "coordinator", "middle"], ["coordinator", "north", "middle"],
        ["middle", "coordinator", "north", "south"], ["coordinator", "middle", "south"], ["north", "middle", "south"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("sender", ["coordinator", "middle"])
def test_a_sum_goes_round_enough_sites_that_the_owner_knows(sites, order, sender):
    with pytest.raises(ProtocolError):
        ask(sites, "north", "secure-sum", "partial", sender=sender, **partial([order]))


def test_a_sum_comes_from_the_one_before_and_is_answered_once(sites):
    later = partial([["coordinator", "middle", "north", "south"]])
    with pytest.raises(ProtocolError, match="out of turn"):
        ask(sites, "north", "secure-sum", "partial", **later)
    with pytest.raises(ProtocolError, match="out of turn"):
        ask(sites, "north", "secure-sum", "partial", sender="south", **later)
    ask(sites, "north", "secure-sum", "partial", "r2", **partial())
    for wrong in (partial(), partial(kind="totals", columns=["y2"])):
        with pytest.raises(ProtocolError, match="has answered this sum"):
            ask(sites, "north", "secure-sum", "partial", "r2", **wrong)
    gaussian = {**partial(), "mask": "gaussian", "sum": np.zeros(2)}
    with pytest.raises(ProtocolError, match="on a ring only"):
        ask(sites, "north", "secure-sum", "partial", "r3", **gaussian)


def test_masks_of_the_analyst_protect_no_site_and_are_not_needed(sites):
    """With a mask of zero the second site would read the number of the first, and the last neighbors the middle one."""
    replies = ask(sites, "north", "secure-sum", "partial", **partial())
    envelope, values = passed_on(sites, replies, "middle")
    y = table(0)["y1"].to_numpy()
    assert Ring(192, 64).decode(Ring(192, 64).from_wire(values["sum"], 2))[0] != ROWS
    onward = forward(sites, envelope)
    total = told(forward(sites, passed_on(sites, onward, "south")[0]), "total")["sum"]
    found = Ring(192, 64).decode(Ring(192, 64).from_wire(total, 2))
    assert found == pytest.approx([3 * ROWS, sum(table(at)["y1"].sum() for at in range(3))])
    assert found[1] != pytest.approx(y.sum())


def test_a_number_that_runs_over_is_not_refused_as_that_would_tell_its_size(sites):
    narrow = partial(ring=(8, 0), kind="totals")
    assert ask(sites, "north", "secure-sum", "partial", **narrow)


# Sums over other sites, small cells, large contributions


def horizontal(*names, columns=("y1",)):
    return Layout("horizontal", tuple(Group((name,), (tuple(columns),)) for name in names))


def moments(folder, *names, columns=("y1",)):
    """Ask for sums alone, as an analyst who has no use for the spread at each site."""
    transport, central = SitesHere(folder, NAMES), Party("coordinator")
    transport.join(central)
    from discreet.federated.moments_over_sites import horizontal_moments

    return horizontal_moments(transport, central, horizontal(*names, columns=columns))


def test_sums_over_other_sites_are_refused_over_restarts_and_other_names(tmp_path):
    made(tmp_path, least_sites=2)
    moments(tmp_path, "north", "middle")
    for asked in ((("middle", "south"), ["y1"]), (("north", "south"), ["y1", "y2"]), (NAMES, ["y1"])):
        with pytest.raises(ProtocolError, match="different sites give one of them away"):
            moments(tmp_path, *asked[0], columns=asked[1])
    with pytest.raises(ProtocolError, match="different sites"):
        rank_over_sites(horizontal("middle", "south"), "y1", share=0.5, domain=(-9, 9), precision=0.01,
                        transport=SitesHere(tmp_path, NAMES))  # fmt: skip
    with pytest.raises(ProtocolError, match="different sites"):
        joint_moments(*_joined(SitesHere(tmp_path, NAMES)), NAMES, [["y1"]] * 3)
    # The same rows under another name are the same rows.
    path = tmp_path / "middle.csv"
    pl.read_csv(path).with_columns(z=pl.col("y1")).sample(fraction=1, shuffle=True, seed=1).write_csv(path)
    text = (tmp_path / "middle.toml").read_text()
    (tmp_path / "middle.toml").write_text(text.replace('"y1",', '"z",', 1))
    site = SitesHere(tmp_path, NAMES)
    with pytest.raises(ProtocolError, match="different sites"):
        ask(
            site,
            "middle",
            "secure-sum",
            "partial",
            **partial([["coordinator", "middle", "south"]], columns=["z"]),
        )
    (tmp_path / "middle.toml").write_text(text)
    rows, *_ = moments(tmp_path, "middle", "north")
    assert rows == 2 * ROWS
    (tmp_path / "north.site-sets.json").write_text("{")
    with pytest.raises(InputError, match="with whom its data were added"):
        Site(SiteFile.read(tmp_path / "north.toml"))


def _joined(transport):
    central = Party("coordinator")
    transport.join(central)
    return transport, central


def test_an_owner_may_allow_other_sites(tmp_path):
    made(tmp_path, least_sites=2, other_site_sets=True)
    assert moments(tmp_path, "north", "middle")[0] == moments(tmp_path, "middle", "south")[0]


def test_what_the_list_of_site_sets_holds_are_no_values(tmp_path):
    moments(made(tmp_path), *NAMES)
    text = (tmp_path / "north.site-sets.json").read_text()
    assert not any(f"{value:.5f}" in text for value in table(0)["y1"])


def test_cells_of_few_records_are_refused(folder):
    with pytest.raises(ProtocolError, match="fewer than 3 records"):
        assess(horizontal(*NAMES, columns=["job"]), {"job": [0, 1, 2, 4]}, transport=SitesHere(folder, NAMES))
    with pytest.raises(ProtocolError, match="fewer than 3 records"):  # the cell of all others is a cell
        assess(horizontal(*NAMES, columns=["job"]), {"job": [0, 1, 2]}, transport=SitesHere(folder, NAMES))
    found = assess(horizontal(*NAMES, columns=["ill"]), {"ill": [0, 1]}, transport=SitesHere(folder, NAMES))
    assert found.records == 3 * ROWS
    with pytest.raises(ProtocolError, match="fewer than 3 records"):
        rank_over_sites(horizontal(*NAMES), "y1", rank=1, domain=(-9, 9), precision=0.001,
                        transport=SitesHere(folder, NAMES))  # fmt: skip


@pytest.mark.parametrize(
    ("column", "why"), [("rare", "fewer than 3 records"), ("pay", "One record makes up more")]
)
def test_totals_of_one_record_are_refused_at_every_door(folder, column, why):
    for asks in (
        lambda: moments(folder, *NAMES, columns=["y1", column]),
        lambda: joint_moments(*_joined(SitesHere(folder, NAMES)), NAMES, [[column]] * 3),
        lambda: SecureMLE(horizontal(*NAMES, columns=[column]), transport=SitesHere(folder, NAMES)).moments(),
        lambda: regression_over_sites(
            horizontal(*NAMES), "ill", [column], transport=SitesHere(folder, NAMES)
        ),
    ):
        with pytest.raises(ProtocolError, match=why):
            asks()


def test_a_steep_regression_that_weights_one_record_is_refused(sites):
    asked = {"family": "logistic", "y": "ill", "x": ["y1"], "size": 7}
    target = float(np.sort(table(0)["y1"].to_numpy())[30])
    steep = partial(kind="glm", **asked, beta=[-2e4 * target, 2e4])
    del steep["quantity"]["columns"]
    with pytest.raises(ProtocolError, match=r"fewer than 3 records|One record"):
        ask(sites, "north", "secure-sum", "partial", **steep)


@pytest.mark.parametrize(
    ("kind", "own"),
    [
        ("products", {"around": [[0.0]] * ROWS, "size": 1}),
        ("likelihood", {"mu": [[0.0]] * ROWS, "sigma": [[1.0]], "size": 1}),
        (
            "scores",
            {"mu": [[0.0]] * ROWS, "sigma": [[1.0]], "means": [[1.0]], "covariances": [[[1.0]]], "size": 1},
        ),
    ],
)
def test_no_sum_takes_numbers_for_each_row(sites, kind, own):
    """With a centre of its own for each row, the difference of two sums is that row."""
    with pytest.raises(ProtocolError, match="another shape"):
        ask(sites, "north", "secure-sum", "partial", **partial(kind=kind, **own))


@pytest.mark.parametrize(
    ("levels", "small"),
    [
        ({"ill": ["0", "1"], "job": ["0", "1"]}, False), ({"job": ["0", "1", "2"]}, True),
        ({"job": ["0", "1", "2", "4"]}, True), ({"job": ["0", "1"], "rare": ["0"]}, True),
    ],
)  # fmt: skip
def test_no_cell_is_small_nor_what_a_table_of_other_levels_would_tell_by_subtraction(sites, levels, small):
    """Whoever has the jobs 0 and 1 by rarity, and then without it, has those who are rare."""
    cells = int(np.prod([len(own) for own in levels.values()])) + 1
    asked = partial(kind="counts", columns=list(levels), levels=levels, size=cells, ring=(64, 0))
    if small:
        with pytest.raises(ProtocolError, match="fewer than 3 records"):
            ask(sites, "north", "secure-sum", "partial", **asked)
    else:
        assert ask(sites, "north", "secure-sum", "partial", **asked)


def test_a_table_of_more_cells_than_can_be_is_refused_before_it_is_made(sites):
    many = [str(at) for at in range(2_000)]
    asked = partial(
        kind="counts", columns=["ill", "job"], levels={"ill": many, "job": many}, size=5, ring=(64, 0)
    )
    with pytest.raises(ProtocolError, match="more than 2,000,000 cells"):
        ask(sites, "north", "secure-sum", "partial", **asked)


def test_a_message_without_a_time_is_not_fresh(sites):
    envelope = put_in(Message("shared-product", "r1", "coordinator", "north", "own", {"columns": ["y1"]}), 1)
    envelope.outside["time"] = float("nan")
    with pytest.raises(DiscreetError):
        sites.sites["north"].answer(packed([envelope]), "analyst")


def test_a_held_total_is_told_once_and_in_one_sum(sites):
    alone = {"columns": ["y1"], "block": "main", "mu": np.zeros(1), "sigma": np.eye(1), "evaluation": 1}
    ask(sites, "north", "vertical-likelihood", "alone", **alone)
    held = partial(kind="held-totals", keys=["r1 1"], size=1)
    del held["quantity"]["columns"]
    ask(sites, "north", "secure-sum", "partial", "s1", **held)
    with pytest.raises(ProtocolError, match="holds no total"):
        ask(sites, "north", "secure-sum", "partial", "s2", **held)


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("[peers]", '[peers]\ncoordinator = "x"', "no site is called 'coordinator'"),
        ("[peers]", '[peers]\nnorth = "x"', "names 'north' itself"),
        ("[peers]", "[peers]\ntwin = {middle}", "the same key"),
        ('name = "north"', 'name = "coordinator"', "no site is called 'coordinator'"),
        ("[allow]", "[allow]\nother_site_sets = 1", "must be true or false"),
        ("[allow]", "[allow]\nmax_share = 0.0", "max_share"),
    ],
)
def test_peers_are_other_sites_each_once(folder, old, new, match):
    path = folder / "north.toml"
    text = path.read_text()
    key = next(line for line in text.splitlines() if line.startswith("middle = ")).split(" = ")[1]
    path.write_text(text.replace(old, new.replace("{middle}", key), 1))
    with pytest.raises(ParameterError, match=match):
        Site(SiteFile.read(path))


# Whatever is sent


def honest(folder):
    """Record what an honest analyst sends in each protocol."""
    transport = SitesHere(folder, NAMES)
    layout = Layout("vertical", (Group(NAMES[:2], (("y1",), ("y2",))),))
    SecureMLE(layout, transport=transport).log_likelihood([0.0, 5.0], np.eye(2) + 0.1)
    other = SitesHere(folder, NAMES)
    joint_moments(*_joined(other), NAMES, [["y1"], ["y2"], ["y1"]])
    made = []
    for _, data in (*transport.passed, *other.passed):
        made += [one.opened() for one in unpacked(data) if not one.outside["sealed"]]
    return [*made, Message("secure-sum", "r", "coordinator", "north", "partial", partial(columns=["ill"]))]


NAMES_IN_MESSAGES = st.sampled_from([*NAMES, "coordinator", "ghost", "y1", "y2", "id", "main", ""])
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 2**70), st.floats(), NAMES_IN_MESSAGES),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(NAMES_IN_MESSAGES, inner, max_size=3)
    ),
    max_leaves=6,
)


def changed(value, draw):
    """Change a value in a way that keeps its type more often than not."""
    how = draw(st.integers(0, 3))
    if isinstance(value, np.ndarray):
        if how == 0:
            return np.zeros_like(value)
        if how == 1:
            return value[: draw(st.integers(0, 3))]
        factor = draw(st.sampled_from([1, 2, 1e-9, 1e9, 1e150]))
        return (value * factor).astype(value.dtype) if value.dtype.kind == "f" else value + np.uint64(1)
    if how == 0:
        return draw(ANYTHING)
    if isinstance(value, list) and value:
        at = draw(st.integers(0, len(value) - 1))
        return [*value[:at], changed(value[at], draw), *value[at + 1 :]]
    if isinstance(value, dict) and value:
        name = draw(st.sampled_from(sorted(value)))
        return {**value, name: changed(value[name], draw)}
    if isinstance(value, str):
        return draw(NAMES_IN_MESSAGES)
    if isinstance(value, bool):
        return not value
    return draw(st.sampled_from([0, 1, 2, 1e3, 1e-9, 1e9])) if isinstance(value, int | float) else value


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = made(tmp_path_factory.mktemp("recorded"), max_evaluations=1_000_000, other_site_sets=True)
    messages = honest(folder)
    return SitesHere(folder, NAMES), messages


@settings(max_examples=examples(400), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_changed_message_brings_a_record_or_an_image_of_it(recorded, data):
    """What one reader gets in a run is held against every column, and every sum of two answers with it."""
    sites, messages = recorded
    run = f"run {next(NUMBERS)}"
    held = {name: table(at).select("y1", "y2", "id", "ill").to_numpy() for at, name in enumerate(NAMES)}
    seen: dict[tuple[str, str], list[np.ndarray]] = {}
    for _ in range(data.draw(st.integers(1, 3))):
        message = data.draw(st.sampled_from(messages))
        values = dict(message.values)
        for _ in range(data.draw(st.integers(0, 2))):
            if values:
                name = data.draw(st.sampled_from(sorted(values)))
                values[name] = changed(values[name], data.draw)
        if data.draw(st.integers(0, 9)) == 0:
            values[data.draw(st.sampled_from(["quantity", "block", "columns"]))] = data.draw(ANYTHING)
        to = message.receiver
        before = answered(sites.sites[to])
        try:
            replies = ask(sites, to, message.protocol, message.name, run, **values)
        except (DiscreetError, UnicodeEncodeError):
            continue
        except (TypeError, ValueError, OverflowError):
            continue  # it could not even be written
        if replies and message.name != "deal":
            assert answered(sites.sites[to]) == before + 1
        for reply in replies:
            inside = reply.opened(
                sites.sites[reply.receiver].sealer if reply.outside["sealed"] else None
            ).values
            arrays = [one for one in inside.values() if isinstance(one, np.ndarray) and len(one) == ROWS]
            seen.setdefault((to, reply.receiver), []).extend(
                one.astype(np.int64).astype(float) if one.dtype == np.uint64 else one for one in arrays
            )
    for (to, reader), arrays in seen.items():
        if to == reader:
            continue
        columns = [
            one.reshape(ROWS, -1)[:, at] for one in arrays for at in range(one.reshape(ROWS, -1).shape[1])
        ]
        pairs = [
            one + sign * other for at, one in enumerate(columns) for other in columns[:at] for sign in (1, -1)
        ]
        for image in (*columns, *pairs):
            spread = image.std()
            for record in held[to].T:
                if spread > 0 and np.isfinite(spread):
                    assert abs(np.corrcoef(image, record)[0, 1]) < 0.8, (to, reader)


# Over HTTPS


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    pytest.importorskip("uvicorn")
    pytest.importorskip("httpx")
    folder = made(tmp_path_factory.mktemp("network"), port=free_port(3))
    running = Running(folder, *NAMES)
    yield folder
    running.close()


class Hostile(SitesOnNetwork):
    """An analyst with a good certificate who sends what it likes; it may hold the key of a site that works with it."""

    def __init__(self, folder):
        addresses = {
            name: f"https://127.0.0.1:{SiteFile.read(folder / f'{name}.toml').port}" for name in NAMES
        }
        files = {"certificate": "analyst.pem", "key": "analyst.key", "authority": "authority.pem"}
        super().__init__(addresses, timeout=600.0, **{name: folder / file for name, file in files.items()})
        self.folder = folder

    def ask(self, to, protocol, name, run, sender="coordinator", **values):
        sealer = None
        if sender != "coordinator":
            from discreet.federated.envelopes import Sealer, read_key

            file = SiteFile.read(self.folder / f"{sender}.toml")
            sealer = Sealer(sender, read_key(file.seal), file.peers)
        envelope = put_in(Message(protocol, run, sender, to, name, values), next(NUMBERS), sealer)
        return unpacked(self._post(to, packed([envelope]), []))


def test_a_hostile_analyst_over_https_is_refused_and_logged(network):
    with Hostile(network) as analyst:
        for at, (protocol, name, values, match) in enumerate((
            ("shared-product", "masks", masks(other="coordinator"), "knows no 'coordinator'"),
            ("shared-product", "masks", masks(), "takes no masks of 'coordinator'"),
            ("vertical-likelihood", "first", first(nodes=("north", "coordinator")), "knows no 'coordinator'"),
            ("vertical-likelihood", "join", {"columns": ["id"], "quantity": {"columns": ["y1"]}}, "does not have"),
            ("secure-sum", "partial", partial([["coordinator", "ghost", "north"]]), "knows no 'ghost'|out of turn"),
            ("secure-sum", "partial", {**partial(), "round": "0"}, "another type"),
            ("secure-sum", "partial", partial([["coordinator", "north", "middle"]]), "3 sites at least"),
            ("secure-sum", "partial", partial(columns=["rare"]), "fewer than 3 records"),
        )):  # fmt: skip
            with pytest.raises(ProtocolError, match=match):
                analyst.ask("north", protocol, name, f"hostile {at}", **values)
    log = [json.loads(line) for line in (network / "north.log.jsonl").read_text().splitlines()]
    assert sum(line["what"] == "refused" for line in log) == 8


def test_a_hostile_site_over_https_gets_no_more_than_its_part(network):
    """The middle site works with the analyst: it forges dealers, ends of evaluations and places in a sum."""
    with Hostile(network) as analyst:
        replies = analyst.ask("north", "vertical-likelihood", "first", "v", **first(nodes=("north", "south")))
        assert {one.receiver for one in replies} == {"coordinator", "south"}
        forged = {name: value for name, value in step(1, ("north", "south")).items() if name not in
                  ("columns", "covariance", "mean")} | {"q": np.zeros((ROWS, 1)), "total": "0" * 48}  # fmt: skip
        for protocol, name, run, values, match in (
            ("vertical-likelihood", "last", "v", forged, "not begun"),
            ("shared-product", "masks", "p", masks(other="coordinator"), "knows no"),
            ("shared-product", "masks", "q", masks(other="middle"), "a third party deals"),
            ("shared-product", "deal", "d", {"holders": ["north", "south"], "columns": [["y1"], ["y1"]], "rows": ROWS,
             "frac": 28, "block": "main"}, "does not come from"),
            ("secure-sum", "partial", "s", partial(columns=["ill"]), "out of turn"),
        ):  # fmt: skip
            with pytest.raises(ProtocolError, match=match):
                analyst.ask("north", protocol, name, run, "middle", **values)
        # A mask of zero and the neighbor's keys do not show the number: the third site's masks are on it.
        sealed = analyst.ask("north", "secure-sum", "partial", "sum", **partial(columns=["ill"]))
        from discreet.federated.envelopes import Sealer, read_key

        file = SiteFile.read(network / "middle.toml")
        seen = sealed[0].opened(Sealer("middle", read_key(file.seal), file.peers)).values["sum"]
        assert Ring(192, 64).decode(Ring(192, 64).from_wire(seen, 2))[0] != ROWS


def test_honest_work_over_https_goes_on_beside_it(network):
    layout = Layout("vertical", (Group(("north", "middle"), (("y1",), ("y2",))),))
    with Hostile(network) as transport:
        found = SecureMLE(layout, mode="sufficient", transport=transport).moments()
    x = np.column_stack([table(0)["y1"], table(1)["y2"]])
    np.testing.assert_allclose(found[2], np.cov(x.T, bias=True), atol=1e-10)
