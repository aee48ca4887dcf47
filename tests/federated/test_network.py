"""Three real sites on loopback: they fit, survive a killed one, and refuse what their owner did not allow."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import tomli_w
from federated_sites import Running, free_port

from discreet.core.errors import DiscreetError, InputError, ParameterError
from discreet.federated import (
    ProtocolError,
    SecureMLE,
    assess,
    fit_from_moments,
    latent_growth,
    rank_over_sites,
    vertical,
)
from discreet.federated.envelopes import Sealer, new_keys, packed, put_in, unpacked
from discreet.federated.layouts import Group, Layout
from discreet.federated.messages import Message
from discreet.federated.model_description import ModelFile
from discreet.federated.remote_transport import SitesInProcesses, SitesOnNetwork
from discreet.federated.site_rules import SiteFile
from discreet.federated.sites import Site
from discreet.federated.trial_certificates import prepare

pytest.importorskip("uvicorn")
pytest.importorskip("httpx")

SITES = {"north": ["y1", "y2"], "middle": ["y3", "y4"], "south": ["y5"]}
ROWS = 120
PATIENCE = 600.0  # seconds: a busy machine is not a silent site


def measurements():
    moments = latent_growth(5).implied(np.array([0.4, 0.5, 0.05, 0.1, 2.0, -0.1]))
    return np.random.default_rng(11).multivariate_normal(*moments, ROWS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("sites")
    x = measurements()
    rng = np.random.default_rng(1)
    for name, columns in SITES.items():
        frame = pl.DataFrame({"id": np.arange(ROWS), "secret": rng.normal(size=ROWS)}).with_columns(
            *(pl.Series(column, x[:, int(column[1]) - 1]) for column in columns)
        )
        # Each site has its own order; rows are linked by their ids.
        frame[rng.permutation(ROWS)].write_csv(place / f"{name}.csv")
    protocols = ("vertical-likelihood", "shared-product")
    prepare(place, {name: f"{name}.csv" for name in SITES}, columns=SITES, ids="id", port=free_port(3),
            protocols=protocols)  # fmt: skip
    return place


@pytest.fixture(scope="module")
def running(folder):
    sites = Running(folder, *SITES)
    yield sites
    sites.close()


def addresses(folder):
    return {name: f"https://127.0.0.1:{SiteFile.read(folder / f'{name}.toml').port}" for name in SITES}


def analyst(folder, **options):
    files = {
        "certificate": folder / "analyst.pem",
        "key": folder / "analyst.key",
        "authority": folder / "authority.pem",
    }
    return SitesOnNetwork(addresses(folder), **{**files, "timeout": PATIENCE, **options})


LAYOUT = Layout("vertical", (Group(tuple(SITES), tuple(tuple(own) for own in SITES.values())),))


def model_file(folder, **fit):
    document = {
        "analyst": {"certificate": "analyst.pem", "key": "analyst.key", "authority": "authority.pem"},
        "sites": addresses(folder),
        "layout": {"kind": "vertical", "columns": SITES},
        "model": {"kind": "latent-growth", "p": 5},
        "fit": {"hessian": "expected", "timeout": PATIENCE, **fit},
    }
    path = folder / "model.toml"
    path.write_text(tomli_w.dumps(document))
    return path


def pooled():
    x = measurements()
    return fit_from_moments(ROWS, x.mean(axis=0), np.cov(x.T, bias=True), latent_growth(5))


def test_three_sites_fit_a_model_and_their_transcript_is_that_of_one_process(folder, running):
    fit = ModelFile(model_file(folder)).fit()
    expected = pooled()
    for name, value in expected.estimates.items():
        assert fit.estimates[name] == pytest.approx(value, abs=1e-4)
    assert fit.minus_two_ll == pytest.approx(expected.minus_two_ll, abs=1e-5)
    here = {
        name: pl.read_csv(folder / f"{name}.csv").select("id", *columns) for name, columns in SITES.items()
    }
    law = latent_growth(5).implied(np.array([0.4, 0.5, 0.05, 0.1, 2.0, -0.1]))
    local = SecureMLE(vertical(here, ids="id"))
    values = [local.log_likelihood(*law)]
    with analyst(folder) as transport:
        remote = SecureMLE(LAYOUT, transport=transport)
        values.append(remote.log_likelihood(*law))
    assert values[0] == pytest.approx(values[1], abs=1e-6)
    assert list(remote.transcript) == list(local.transcript)
    assert remote.leakage.to_dict() == local.leakage.to_dict()


def test_the_command_fits_and_writes_the_report(folder, running):
    from typer.testing import CliRunner

    from discreet.cli import app

    path = model_file(folder, mode="sufficient")
    done = CliRunner().invoke(
        app, ["federated", "fit", str(path), "--html", str(folder / "report.html"), "--json"]
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["estimates"] == pytest.approx(dict(pooled().estimates), abs=1e-5)
    page = (folder / "report.html").read_text()
    assert "What did each party learn" in page
    assert "a holder who deals the masks of two others recovers their rows with either of them" in page
    for row in told["leakage"]["transcript"]["by_message"]:
        assert f"{row['bytes']:,}" in page


def test_the_commands_for_keys_and_a_trial(tmp_path):
    from typer.testing import CliRunner

    from discreet.cli import app

    run = CliRunner().invoke
    done = run(app, ["federated", "keys", str(tmp_path / "a.seal")])
    assert done.exit_code == 0
    assert len(done.stdout.strip()) == 44
    assert (tmp_path / "a.seal").stat().st_mode & 0o077 == 0
    done = run(app, ["federated", "prepare", str(tmp_path / "trial"), "--site", "a=x", "--site", "b=y,z", "--data",
                     f"a={tmp_path}/a.csv", "--data", f"b={tmp_path}/b.csv", "--ids", "id", "--limit",
                     "least_sites=2", "--limit", "dealers=coordinator"])  # fmt: skip
    assert done.exit_code == 0, done.output
    allowed = SiteFile.read(tmp_path / "trial" / "b.toml").allowed
    assert (allowed.least_sites, allowed.dealers) == (2, ("coordinator",))
    done = run(app, ["federated", "prepare", str(tmp_path / "no"), "--site", "a=x", "--data", "a=a.csv", "--limit",
                     "least_site=2"])  # fmt: skip
    assert isinstance(done.exception, ParameterError)
    assert SiteFile.read(tmp_path / "trial" / "b.toml").allowed.columns == ("y", "z")


def test_sufficient_mode_over_the_network(folder, running):
    with analyst(folder) as transport:
        fit = SecureMLE(LAYOUT, mode="sufficient", transport=transport).fit(latent_growth(5))
    assert list(fit.estimates.values()) == pytest.approx(list(pooled().estimates.values()), abs=1e-6)


def test_a_killed_site_ends_the_fit_and_a_restarted_one_goes_on_with_it(folder, running):
    path = model_file(folder, evaluations="fit.jsonl")
    with analyst(folder) as transport:
        deliver, left = transport.deliver, iter(range(150))

        def failing(batch):
            if next(left, None) is None and running.processes["middle"].poll() is None:
                running.kill("middle")
            return deliver(batch)

        transport.deliver = failing
        with pytest.raises(ProtocolError, match="'middle' cannot be reached"):
            ModelFile(path).fit_over(transport)
    kept = len((folder / "fit.jsonl").read_text().splitlines())
    assert kept > 10
    state = json.loads((folder / "middle.state.json").read_text())["evaluations"]
    running.start("middle")
    fit = ModelFile(path).fit()
    expected = pooled()
    for name, value in expected.estimates.items():
        assert fit.estimates[name] == pytest.approx(value, abs=1e-4)
    after = json.loads((folder / "middle.state.json").read_text())["evaluations"]
    # Joining tells the spread of the columns, and counts as well.
    assert after == state + fit.n_evaluations + 1
    assert len((folder / "fit.jsonl").read_text().splitlines()) >= kept + fit.n_evaluations


def logged(folder, name):
    return [json.loads(line) for line in (folder / f"{name}.log.jsonl").read_text().splitlines()]


def test_what_the_owner_did_not_allow_is_refused_and_logged(folder, running):
    forbidden = Layout("vertical", (Group(("north", "south"), (("y1", "secret"), ("y5",))),))
    with (
        analyst(folder) as transport,
        pytest.raises(ProtocolError, match="does not allow the column 'secret'"),
    ):
        SecureMLE(forbidden, transport=transport).log_likelihood(np.zeros(3), np.eye(3))
    rows = Layout("horizontal", tuple(Group((name,), (("y1",),)) for name in SITES))
    with analyst(folder) as transport, pytest.raises(ProtocolError, match="does not allow 'secure-sum'"):
        assess(rows, {"y1": [1]}, transport=transport)
    with analyst(folder) as transport, pytest.raises(ProtocolError, match="less than the owner"):
        SecureMLE(LAYOUT, transport=transport, noise_scale=20.0, max_evaluations=1).log_likelihood(
            np.zeros(5), np.eye(5)
        )
    refused = [
        line
        for name in ("north", "middle", "south")
        for line in logged(folder, name)
        if line["what"] == "refused"
    ]
    assert {line["who"] for line in refused} == {"analyst"}
    assert any("'secret'" in line["why"] for line in refused)


def test_strangers_old_certificates_and_plain_addresses_are_turned_away(folder, running, tmp_path):
    other = prepare(tmp_path / "other", {"north": "x.csv"}, columns={"north": []})
    with (
        analyst(folder, certificate=other / "analyst.pem", key=other / "analyst.key") as transport,
        pytest.raises(ProtocolError, match=r"certificate|cannot be reached"),
    ):
        SecureMLE(LAYOUT, transport=transport).log_likelihood(np.zeros(5), np.eye(5))
    # A site's own certificate is good for a connection, but it is no analyst.
    with (
        analyst(folder, certificate=folder / "south.pem", key=folder / "south.key") as transport,
        pytest.raises(ProtocolError, match="does not answer this analyst"),
    ):
        SecureMLE(LAYOUT, transport=transport).log_likelihood(np.zeros(5), np.eye(5))
    with pytest.raises(ParameterError, match="https"):
        SitesOnNetwork({"north": "http://127.0.0.1:1"}, certificate="a", key="b", authority="c")
    with (
        analyst(folder, authority=other / "authority.pem") as transport,
        pytest.raises(ProtocolError, match="cannot be trusted"),
    ):
        SecureMLE(LAYOUT, transport=transport).log_likelihood(np.zeros(5), np.eye(5))


def test_a_site_that_is_late_is_named(folder, running):
    # The silent site is asked first: on a busy machine another one could be late as well.
    first = Layout("vertical", (Group(("south", "north"), (("y5",), ("y1",))),))
    os.kill(running.processes["south"].pid, signal.SIGSTOP)
    try:
        with (
            analyst(folder, timeout=1.0) as transport,
            pytest.raises(ProtocolError, match="'south' does not answer in time"),
        ):
            SecureMLE(first, transport=transport).log_likelihood(np.zeros(2), np.eye(2))
    finally:
        os.kill(running.processes["south"].pid, signal.SIGCONT)


def test_nothing_of_the_data_leaves_a_site_or_the_analyst(folder, running):
    """Values of the files stand nowhere but in the files: searched are all outputs of all commands, and all logs."""
    values = {
        text[:9]
        for name in SITES
        for row in pl.read_csv(folder / f"{name}.csv", infer_schema=False).drop("id").rows()
        for text in row
        if len(text) > 10
    }
    assert len(values) > 300

    def found_in(text):
        return sorted(value for value in values if value in text)

    assert found_in(f"seen: {next(iter(values))}1234")
    good = model_file(folder, mode="sufficient")
    for name, options in {"plain": ["--html", str(folder / "page.html")], "json": ["--json"]}.items():
        code, said = command("fit", good, *options)
        assert code == 0, said
        assert len(said) > 200
        assert not found_in(said), name
    text = good.read_text()
    for old, new in (('"y5"', '"secret"'), ('"y1"', '"nowhere"'), ("p = 5", "p = 4")):
        bad = folder / "bad.toml"
        bad.write_text(text.replace(old, new))
        code, said = command("fit", bad)
        assert code == 2, said
        assert len(said) > 20
        assert not found_in(said)
    for path in (path for path in folder.rglob("*") if path.is_file()):
        if path.suffix != ".csv":
            assert not found_in(path.read_text()), path.name
    for name in SITES:
        assert logged(folder, name)
        assert (folder / f"{name}.err").read_text().count("listens on") >= 1


def command(*parts):
    """Run a command as a user would, but in this process: its exit code, and all that it printed."""
    from discreet.cli import main

    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), redirect_stderr(said):
        patch.setattr(sys, "argv", ["discreet", "federated", *map(str, parts)])
        patch.setattr(warnings, "showwarning", warnings.showwarning)
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
    return code, said.getvalue()


# One site, asked directly: what a real network brings.


@pytest.fixture
def site(folder):
    file = SiteFile.read(folder / "north.toml")
    return Site(replace(file, state=folder / "alone.state.json", log=folder / "alone.log.jsonl"))


def join(number=1, **more):
    message = Message(
        "vertical-likelihood", "r1", "coordinator", "north", "join", {"columns": ["y1"], **more}
    )
    return put_in(message, number)


def test_a_replayed_an_old_and_a_misdirected_message_are_refused(site):
    assert unpacked(site.answer(packed([join(1)]), "analyst"))
    with pytest.raises(ProtocolError, match="had before"):
        site.answer(packed([join(1)]), "analyst")
    old = join(2)
    old.outside["time"] -= 1_000
    with pytest.raises(ProtocolError, match="too old"):
        site.answer(packed([old]), "analyst")
    lost = join(3)
    lost.outside["receiver"] = "south"
    with pytest.raises(ProtocolError, match="for somebody else"):
        site.answer(packed([lost]), "analyst")
    forged = join(4)
    forged.outside["sender"] = "middle"
    with pytest.raises(ProtocolError, match="sites sealed"):
        site.answer(packed([forged]), "analyst")
    with pytest.raises(InputError, match="no message"):
        site.answer(b"\x80\x04\x95 pickled", "analyst")
    with pytest.raises(ProtocolError, match="does not answer this analyst"):
        site.answer(packed([join(5)]), "mallory")


def test_size_rate_rows_and_evaluations_are_limited(site):
    allowed = site.allowed
    site.allowed = replace(allowed, max_bytes=10)
    with pytest.raises(ProtocolError, match="of this size"):
        site.answer(packed([join(1)]), "analyst")
    site.allowed = replace(allowed, min_rows=ROWS + 1)
    with pytest.raises(ProtocolError, match="fewer rows"):
        site.answer(packed([join(2)]), "analyst")
    site.allowed = replace(allowed, max_evaluations=0)
    mu, sigma = np.zeros(1), np.eye(1)
    alone = Message("vertical-likelihood", "r", "coordinator", "north", "alone",
                    {"columns": ["y1"], "block": "main", "mu": mu, "sigma": sigma, "evaluation": 1})  # fmt: skip
    with pytest.raises(ProtocolError, match="all that its owner allows"):
        site.answer(packed([put_in(alone, 3)]), "analyst")
    site.allowed = replace(allowed, max_messages_per_minute=2)
    with pytest.raises(ProtocolError, match="too often"):
        site.answer(packed([join(4)]), "analyst")


def test_sealed_messages_open_for_their_receiver_alone_and_only_unchanged():
    pairs = {name: new_keys() for name in ("a", "b", "c")}
    sealers = {
        name: Sealer(name, private, {peer: pairs[peer][1] for peer in pairs if peer != name})
        for name, (private, _) in pairs.items()
    }
    message = Message("p", "run", "a", "b", "masks", {"r": np.arange(3.0)})
    envelope = put_in(message, 1, sealers["a"])
    assert np.array_equal(envelope.opened(sealers["b"]).values["r"], [0, 1, 2])
    with pytest.raises(ProtocolError, match="cannot be opened"):
        envelope.opened(sealers["c"])
    changed = replace(envelope, outside={**envelope.outside, "name": "other"})
    with pytest.raises(ProtocolError, match="cannot be opened"):
        changed.opened(sealers["b"])
    with pytest.raises(ProtocolError, match="cannot be opened"):
        replace(envelope, inside=envelope.inside[:-1] + b"x").opened(sealers["b"])
    with pytest.raises(DiscreetError):
        envelope.opened()
    assert b"\x00\x00\x00\x00\x00\x00\xf0?" not in envelope.inside


def test_bad_site_and_model_files_are_refused(folder, tmp_path):
    text = (folder / "north.toml").read_text()
    for old, new, match in (
        ("protocols = [", 'protocols = ["everything", ', "no protocol 'everything'"),
        ("[allow]", "[allow]\nmax_evalutions = 3", "max_evaluations"),
        ('name = "north"', 'nmae = "north"', "no setting 'nmae'"),
    ):
        path = tmp_path / "site.toml"
        path.write_text(text.replace(old, new, 1))
        with pytest.raises((ParameterError, InputError), match=match):
            SiteFile.read(path)
    model = model_file(folder).read_text()
    (tmp_path / "model.toml").write_text(model.replace("latent-growth", "latent-shrink"))
    with pytest.raises(ParameterError, match="latent-growth"):
        ModelFile(tmp_path / "model.toml")


@pytest.mark.slow
def test_sites_in_processes_of_this_machine(folder):
    law = np.zeros(5), np.eye(5)
    with SitesInProcesses([folder / f"{name}.toml" for name in SITES]) as transport:
        found = SecureMLE(LAYOUT, transport=transport).log_likelihood(*law)
        forbidden = Layout("vertical", (Group(("north", "south"), (("secret",), ("y5",))),))
        transport._here.clear()
        with pytest.raises(ProtocolError, match="does not allow the column"):
            SecureMLE(forbidden, transport=transport).log_likelihood(np.zeros(2), np.eye(2))
    x = measurements()
    # MPyC between the same processes: each hands its own values to a party of its own.
    for name in SITES:
        path = folder / f"{name}.toml"
        (folder / f"{name}-mpyc.toml").write_text(
            path.read_text().replace('protocols = [', 'protocols = ["mpyc-rank", ', 1).replace(
                'columns = [', 'columns = ["id", ', 1)
        )  # fmt: skip
    rows = Layout("horizontal", tuple(Group((name,), (("id",),)) for name in SITES))
    with SitesInProcesses([folder / f"{name}-mpyc.toml" for name in SITES]) as transport:
        median = rank_over_sites(rows, "id", share=0.5, domain=(0, 255), backend="mpyc", transport=transport)
    assert (median.value, median.rank, median.values) == (59, 180, 360)
    assert "any 2 of the 4 parties" in median.leakage.meaning
    assert found == pytest.approx(SecureMLE([x], mode="plain").log_likelihood(*law), abs=1e-5)
