"""Sites without a network between them: what their owners allow, what they answer, and what is refused.

Envelopes are packed, sealed, opened and held against the rules as over HTTPS; only the wire is left out.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import tomli_w
from federated_sites import SitesHere

from discreet.core.errors import ColumnError, DiscreetError, InputError, ParameterError
from discreet.dp.mechanisms import laplace
from discreet.federated import (
    ProtocolError,
    SecureMLE,
    factor_model,
    latent_growth,
    noisy_counts_over_sites,
    rank_over_sites,
)
from discreet.federated.envelopes import packed, put_in, unpacked
from discreet.federated.layouts import Group, Layout
from discreet.federated.messages import Message
from discreet.federated.model_description import ModelFile
from discreet.federated.normal_likelihood import minus_two_log_likelihood
from discreet.federated.remote_transport import refuse_old, serve
from discreet.federated.site_rules import SiteFile
from discreet.federated.trial_certificates import _Authority, prepare

pytest.importorskip("cryptography")

NAMES = ("north", "middle", "south")
QUANTITIES = (
    "likelihood",
    "totals",
    "products",
    "glm",
    "counts",
    "held-totals",
    "ranks",
    "scores",
    "noisy-counts",
)
PROTOCOLS = ("vertical-likelihood", "shared-product", "secure-sum")


def rows_of(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)) @ (np.eye(4) + 0.3 * rng.normal(size=(4, 4)))
    return pl.DataFrame({f"y{at + 1}": x[:, at] for at in range(4)})


@pytest.fixture
def rows(tmp_path):
    """Three sites with the same columns and different people."""
    for at, name in enumerate(NAMES):
        frame = rows_of(40 + at, at).with_columns(
            age=pl.Series(np.random.default_rng(at).integers(20, 80, 40 + at)),
            sex=pl.Series(["f", "m", "m", "f"] * 10 + ["f"] * at),
        )
        frame.write_csv(tmp_path / f"{name}.csv")
    prepare(
        tmp_path, {name: f"{name}.csv" for name in NAMES}, protocols=PROTOCOLS, quantities=QUANTITIES, epsilon=2.0,
        columns={name: ["y1", "y2", "y3", "y4", "age", "sex"] for name in NAMES},
    )  # fmt: skip
    return tmp_path


def pooled(folder):
    return pl.concat([pl.read_csv(folder / f"{name}.csv") for name in NAMES])


HORIZONTAL = Layout("horizontal", tuple(Group((name,), (("y1", "y2"),)) for name in NAMES))


def model_file(folder, layout, model, sites=NAMES, **more):
    document = {
        "analyst": {"certificate": "analyst.pem", "key": "analyst.key", "authority": "authority.pem"},
        "sites": dict.fromkeys(sites, "https://127.0.0.1:1"),
        "layout": layout, "model": model, **more,
    }  # fmt: skip
    path = folder / "model.toml"
    path.write_text(tomli_w.dumps(document))
    return ModelFile(path)


@pytest.fixture
def mixed(tmp_path):
    """Rows and columns split: the west is with two sites, the east with two others."""
    west, east = rows_of(50, 1), rows_of(30, 2)
    parts = {
        "north": {"west": west.select("y1", "y2")},
        "middle": {"west": west.select("y3", "y4"), "east": east.select("y2")},
        "south": {"east": east.select("y1", "y3", "y4")},
    }
    files, columns = {}, {}
    for name, blocks in parts.items():
        files[name] = {block: f"{name}-{block}.csv" for block in blocks}
        columns[name] = sorted({column for frame in blocks.values() for column in frame.columns})
        for block, frame in blocks.items():
            frame.write_csv(tmp_path / f"{name}-{block}.csv")
    prepare(tmp_path, files, columns=columns, protocols=PROTOCOLS, quantities=("held-totals",),
            limits={"least_sites": 2})  # fmt: skip
    return tmp_path, pl.concat([west, east])


GROUPS = [
    {"block": "west", "columns": {"north": ["y1", "y2"], "middle": ["y3", "y4"]}},
    {"block": "east", "columns": {"middle": ["y2"], "south": ["y1", "y3", "y4"]}},
]


@pytest.mark.parametrize("mode", ["secure", "sufficient"])
def test_a_model_file_lays_out_rows_and_columns_and_the_likelihood_is_the_pooled_one(mixed, mode):
    folder, frame = mixed
    file = model_file(
        folder, {"kind": "complex", "groups": GROUPS}, {"kind": "saturated"}, fit={"mode": mode}
    )
    transport = SitesHere(folder, NAMES)
    secure = SecureMLE(file.layout, mode=mode, transport=transport)
    law = np.zeros(4), np.eye(4) * 1.5 + 0.2
    x = frame.select(secure.variables).to_numpy()
    assert secure.log_likelihood(*law) == pytest.approx(minus_two_log_likelihood(x, *law), abs=1e-5)
    if mode == "sufficient":
        fit = file.fit_over(SitesHere(folder, NAMES))
        np.testing.assert_allclose(fit.implied[1], np.cov(x.T, bias=True), atol=1e-8)


def test_ranks_over_sites_are_those_of_the_pooled_file(rows):
    ages = np.sort(pooled(rows)["age"].to_numpy())
    model = {"kind": "rank", "column": "age", "share": 0.5, "domain": [0, 120]}
    layout = {"kind": "horizontal", "columns": {name: ["age"] for name in NAMES}}
    found = model_file(rows, layout, model).fit_over(SitesHere(rows, NAMES))
    assert found.value == ages[int(np.ceil(0.5 * len(ages))) - 1]
    assert found.to_dict()["values"] == len(ages)
    assert "no count of a single site" in found.leakage.meaning
    for rank in (1, 7, len(ages)):
        assert rank_over_sites(_tables(rows), "age", rank=rank, domain=(0, 120)).value == ages[rank - 1]
    with pytest.raises(ParameterError, match="between 1 and the number"):
        rank_over_sites(_tables(rows), "age", rank=0, domain=(0, 120))
    with pytest.raises(ColumnError, match="does not hold numbers"):
        rank_over_sites(_tables(rows), "sex", rank=1, domain=(0, 120))


def _tables(folder):
    return [pl.read_csv(folder / f"{name}.csv") for name in NAMES]


def test_answers_with_noise_are_entered_and_refused_when_the_budget_is_spent(rows):
    layout = {"kind": "horizontal", "columns": {name: ["sex"] for name in NAMES}}
    model = {"kind": "noisy-counts", "levels": {"sex": ["f", "m"]}, "epsilon": 1.5}
    file = model_file(rows, layout, model)
    found = file.fit_over(SitesHere(rows, NAMES))
    truth = pooled(rows)["sex"].value_counts()
    for level, count in truth.iter_rows():
        noisy = found.table.filter(pl.col("sex") == level)["count"][0]
        assert abs(noisy - count) < 40 * found.standard_deviation  # beyond it with a chance below 1e-20
    assert "1.5-differential privacy" in str(found)
    # Each site adds noise of its own: two are enough, and sums over other sites take nothing off.
    two = Layout("horizontal", tuple(Group((name,), (("sex",),)) for name in NAMES[:2]))
    assert noisy_counts_over_sites(two, {"sex": ["f", "m"]}, epsilon=0.1, transport=SitesHere(rows, NAMES))
    text = (rows / "north.privacy.toml").read_text()
    assert "joint counts by sex" in text
    with pytest.raises(ProtocolError, match="budget does not allow"):
        _as_told(file.fit_over, SitesHere(rows, NAMES))
    log = [json.loads(line) for line in (rows / "middle.log.jsonl").read_text().splitlines()]
    assert any(line["what"] == "refused" and "budget" in line["why"] for line in log) or (
        (rows / "north.log.jsonl").read_text().count("budget") == 1
    )


def test_the_noise_of_a_site_is_as_wide_as_is_said():
    """Rounded Laplace noise, drawn with a seed: 20,000 draws, five standard errors of their spread."""
    drawn = np.rint(laplace(np.zeros(20_000), sensitivity=1, epsilon=1.0, seed=1).value)
    found = noisy_counts_over_sites([pl.DataFrame({"a": [1]})] * 2, {"a": [1]}, epsilon=1.0)
    assert drawn.std() == pytest.approx(found.standard_deviation / np.sqrt(2), rel=5 * 1.2 / np.sqrt(20_000))


def _as_told(work, transport):
    """Say what a site refused as an analyst would be told over a wire."""
    try:
        return work(transport)
    except DiscreetError as error:
        raise ProtocolError(str(error)) from error


def test_a_site_without_a_budget_answers_nothing_with_noise(rows):
    for name in NAMES:
        path = rows / f"{name}.toml"
        path.write_text(path.read_text().replace("[ledger]\nepsilon = 2.0", ""))
    layout = Layout("horizontal", tuple(Group((name,), (("sex",),)) for name in NAMES))
    with pytest.raises(ProtocolError, match="set no budget"):
        noisy_counts_over_sites(layout, {"sex": ["f", "m"]}, epsilon=1.0, transport=SitesHere(rows, NAMES))


def asked(site, name, protocol="vertical-likelihood", number=1, **values):
    message = Message(protocol, "r1", "coordinator", site.name, name, values)
    return site.answer(packed([put_in(message, number)]), "analyst")


def first(rows, start=0, chunk=0, chunks=1, **more):
    step = {
        "nodes": ["north", "middle"], "widths": [1, 1], "place": 0, "start": start, "rows": rows, "chunk": chunk,
        "chunks": chunks, "evaluation": 1, "block": "main", "coordinator": "coordinator", "keep_total": False,
        "scales": [1e3, 1e3], "columns": ["y1"], "covariance": np.eye(1), "mean": np.zeros((rows, 1)),
        "last_noise": np.zeros((rows, 1)),
    }  # fmt: skip
    return {**step, **more}


@pytest.mark.parametrize(
    "wrong",
    [
        first(1),
        first(39),
        first(20, chunks=2, chunk=1, start=20),
        first(20, chunks=3, start=10),
        first(40, mean=np.zeros((40, 2))),
        first(40, mean=np.full((40, 1), np.nan)),
        first(40, covariance=-np.eye(1)),
        first(40, covariance=np.zeros((1, 1))),
        first(40, place=7),
        first(40, columns=["y1", "y2"]),
        {"columns": ["y1"]},
    ],
)
def test_an_evaluation_goes_over_all_rows_in_order_or_is_refused(rows, wrong):
    """A likelihood of one row would be that row; rows asked for again without being counted would be averaged."""
    site = SitesHere(rows, NAMES).sites["north"]
    with pytest.raises(ProtocolError) as told:
        asked(site, "first", **wrong)
    assert not any(value in str(told.value) for value in values_of(rows))
    assert len(unpacked(asked(site, "first", number=2, **first(40)))) == 2


def values_of(folder):
    return {
        f"{value:.6f}"[:8] for name in ("y1", "y2", "y3", "y4") for value in pooled(folder)[name].to_list()
    }


def test_a_sum_of_two_is_refused_by_the_site_itself(rows):
    site = SitesHere(rows, NAMES).sites["north"]
    plan = {"orders": [["coordinator", "north"]], "size": 1, "mask": "ring", "scale": 1.0, "bits": 64, "frac": 24,
            "round": 0, "sum": np.zeros(1, dtype=np.uint64)}  # fmt: skip
    quantity = {"kind": "counts", "columns": ["sex"], "levels": {"sex": ["f"]}, "size": 2}
    with pytest.raises(ProtocolError, match="fewer than three parties"):
        asked(site, "partial", "secure-sum", quantity=quantity, **plan)
    orders = {"orders": [["coordinator", "north", "middle", "south"]]}
    with pytest.raises(ProtocolError, match="another length"):
        asked(site, "partial", "secure-sum", number=2, quantity=quantity, **{**plan, **orders})
    one = Layout("horizontal", (Group(("north",), (("sex",),)),))
    with pytest.raises(ParameterError, match="at least 3 parties"):
        rank_over_sites(one, "sex", rank=1, domain=(0, 9), transport=SitesHere(rows, NAMES))


def test_mpyc_is_refused_by_a_site_on_a_network_whatever_its_file_allows(rows):
    site = SitesHere(rows, NAMES).sites["north"]
    site.allowed = replace(site.allowed, protocols=("mpyc-rank",))
    with pytest.raises(ProtocolError, match="pass by its owner's rules"):
        asked(site, "begin", "mpyc-rank", columns=["age"])


def test_messages_of_a_run_that_has_ended_are_refused_though_they_are_fresh(rows):
    transport = SitesHere(rows, NAMES)
    SecureMLE(HORIZONTAL, transport=transport).log_likelihood(np.zeros(2), np.eye(2))
    sums = [(site, data) for site, data in transport.passed if b"partial" in data]
    for site, data in sums:
        transport.sites[site].forget(unpacked(data)[0].outside["run"])
        with pytest.raises(ProtocolError, match="run that has ended"):
            transport.sites[site].answer(data, "analyst")


def test_a_site_that_answers_nonsense_ends_the_run_without_a_result(rows):
    class Lying(SitesHere):
        def _post(self, site, data, ended):
            answer = super()._post(site, data, ended)
            return answer[:-7] if site == "middle" and b"partial" in data else answer

    with pytest.raises(DiscreetError, match="no message of this protocol"):
        SecureMLE(HORIZONTAL, transport=Lying(rows, NAMES)).log_likelihood(np.zeros(2), np.eye(2))

    class Forging(SitesHere):
        def _post(self, site, data, ended):
            envelopes = unpacked(super()._post(site, data, ended))
            for one in envelopes:
                one.outside["sender"] = "south"
            return packed(envelopes)

    with pytest.raises(ProtocolError, match="in the name of somebody else"):
        SecureMLE(HORIZONTAL, transport=Forging(rows, NAMES)).log_likelihood(np.zeros(2), np.eye(2))


def test_laws_and_models_that_cannot_be_ask_nobody(rows):
    transport = SitesHere(rows, NAMES)
    secure = SecureMLE(HORIZONTAL, transport=transport)
    assert secure.log_likelihood(np.zeros(2), np.array([[1.0, 2.0], [2.0, 1.0]])) == np.inf
    assert not transport.passed
    with pytest.raises(ParameterError, match="loading"):
        secure.fit(factor_model([[1], [1]]))
    with pytest.raises(ParameterError, match="has 5 variables"):
        secure.fit(latent_growth(5))
    assert not [data for _, data in transport.passed if b"partial" in data]


def test_old_certificates_are_refused_before_they_are_shown(rows):
    authority = _Authority(30)
    authority.days = -1
    certificate, _ = authority.issued("north")
    (rows / "north.pem").write_bytes(certificate)
    with pytest.raises(InputError, match=r"'north' holds from .* and not today"):
        serve(SiteFile.read(rows / "north.toml"))
    with pytest.raises(InputError, match="the analyst holds from"):
        refuse_old(rows / "north.pem", "the analyst")


def test_a_small_group_of_rows_is_refused_though_the_site_has_more(mixed):
    folder, _ = mixed
    transport = SitesHere(folder, NAMES)
    for site in transport.sites.values():
        site.allowed = replace(site.allowed, min_rows=40)
    layout = Layout("vertical", (Group(("middle", "south"), (("y2",), ("y1",)), "east"),))
    with pytest.raises(ProtocolError, match="fewer rows"):
        SecureMLE(layout, transport=transport).log_likelihood(np.zeros(2), np.eye(2))
    west = Layout("vertical", (Group(("north", "middle"), (("y1",), ("y3",)), "west"),))
    assert np.isfinite(
        SecureMLE(west, transport=SitesHere(folder, NAMES)).log_likelihood(np.zeros(2), np.eye(2))
    )
