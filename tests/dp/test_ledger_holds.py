"""A budget holds under threads, processes, copies, links and systems without locks, and its file can always be read."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.core.errors import DiscreetError, InputError, ParameterError
from discreet.core.files import locks
from discreet.dp import Cost, Ledger
from discreet.dp.ledger_files import well_formed

PART = Cost("laplace", "pure", epsilon=0.125)
FORKS = "fork" in multiprocessing.get_all_start_methods()
HARD = st.text(st.characters(), max_size=40) | st.sampled_from(
    [
        "\U0001f600",
        "\ud83d",
        "\udcff",
        "\x00\x7f\r\n",
        '"""',
        "\\ud83d\\ude00",
        "\u202eabc",
        "\u2028",
        "x" * 100_000,
    ]
)


def spend_until_refused(ledger: Ledger, times: int = 6) -> int:
    granted = 0
    for _ in range(times):
        try:
            ledger.spend(PART)
        except ParameterError:
            continue
        granted += 1
    return granted


def in_threads(work, many: int = 6) -> int:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(many) as pool:
            return sum(pool.map(lambda _: work(), range(many)))
    finally:
        sys.setswitchinterval(before)


def hammer(path: str, without_locks: bool, granted) -> None:
    if without_locks:
        locks.fcntl = None
        del os.link
    ledger = Ledger(1.0, path=path)
    granted.put(spend_until_refused(ledger))


def hold_and_hang(path: str, ready) -> None:
    with locks.alone(Path(path)):
        ready.set()
        time.sleep(60)


# -- every text -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "\U0001f600",
        "\ud83d",
        "a\x00b\x1b\x7f",
        "two\nlines\r\n",
        "\"\"\"'''\\",
        "\u202eright to left",
        "x" * 200_000,
    ],
)
def test_a_ledger_that_holds_any_text_can_be_read_again(text, tmp_path):
    ledger = Ledger(1.0, path=tmp_path / "x.privacy.toml")
    ledger.spend(Cost(text, "pure", epsilon=0.5, purpose=text))
    assert Ledger.load(ledger.path).table()["purpose"].to_list() == [well_formed(text)]
    assert tomllib.loads(ledger.path.read_text(encoding="utf-8"))["record"][0]["mechanism"] == well_formed(
        text
    )


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(HARD, min_size=1, max_size=4))
def test_any_text_comes_back_from_a_ledger(tmp_path, texts):
    path = tmp_path / "x.privacy.toml"
    path.unlink(missing_ok=True)
    ledger = Ledger(100.0, path=path)
    for text in texts:
        ledger.spend(Cost("laplace", "pure", epsilon=0.5, purpose=text))
    assert Ledger.load(path).table()["purpose"].to_list() == [well_formed(text) for text in texts]


@pytest.mark.parametrize("name", ["\U0001f600.csv", os.fsdecode(b"na\xefve.csv")])
def test_a_file_with_any_name_has_a_ledger(name, tmp_path):
    source = tmp_path / name
    source.write_text("age\n1\n", encoding="utf-8")
    Ledger.beside(source, 1.0).spend(PART)
    assert Ledger.beside(source, 1.0).left == 0.875


def test_numbers_of_numpy_are_written_as_numbers(tmp_path):
    ledger = Ledger(np.float64(1.0), path=tmp_path / "x.privacy.toml")
    ledger.spend(Cost("laplace", "pure", epsilon=np.float64(0.5), values=np.int64(3), proved=np.bool_(False)))
    assert Ledger.load(ledger.path).unproved == 1


def as_first_version(header: dict, entries: list[dict]) -> str:
    """What a ledger looked like before: JSON texts and the words of NumPy, which TOML does not know."""
    import hashlib

    sealed = hashlib.sha256(json.dumps([header, entries], sort_keys=True).encode()).hexdigest()

    def told(value):
        if isinstance(value, bool):
            return "true" if value else "false"
        return repr(value) if isinstance(value, int | float) else json.dumps(value)

    lines = ["# The privacy budget of a data source. Do not edit: the checksum would no longer fit."]
    lines += [f"{name} = {told(value)}" for name, value in header.items()]
    lines.append(f"checksum = {told(sealed)}")
    for entry in entries:
        lines += ["", "[[record]]", *(f"{name} = {told(value)}" for name, value in entry.items())]
    return "\n".join(lines) + "\n"


FIRST = {
    "format": 1,
    "source": "",
    "fingerprint": "",
    "epsilon": 1.0,
    "delta": 0.0,
    "adjacency": "add-remove",
    "unit": "record",
    "closed": False,
}
RECORD = {
    "release": 1,
    "time": "2026-01-01T00:00:00+00:00",
    "disjoint": False,
    "mechanism": "laplace",
    "definition": "pure",
    "epsilon": 0.5,
    "delta": 0.0,
    "rho": 0.0,
    "adjacency": "add-remove",
    "unit": "record",
    "values": 1,
    "purpose": "income",
    "proved": True,
}


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"purpose": "\U0001f600 and \\ud83d\\ude00 and \\\U0001f600"},
        {"purpose": "na\udcefve"},
        {"epsilon": np.float64(0.5)},
    ],
)
def test_a_ledger_that_an_earlier_version_damaged_is_read_and_spent_again(changed, tmp_path):
    path = tmp_path / "x.privacy.toml"
    path.write_text(as_first_version(FIRST, [{**RECORD, **changed}]), encoding="utf-8")
    ledger = Ledger.load(path)
    assert ledger.left == 0.5
    ledger.spend(PART)
    assert Ledger.load(path).left == 0.375
    assert Ledger.load(path).table()["purpose"][0] == well_formed({**RECORD, **changed}["purpose"])


def test_a_damaged_ledger_whose_checksum_does_not_fit_stays_refused(tmp_path):
    path = tmp_path / "x.privacy.toml"
    text = as_first_version(FIRST, [{**RECORD, "purpose": "\U0001f600"}])
    path.write_text(text.replace("epsilon = 0.5", "epsilon = 0.1"), encoding="utf-8")
    with pytest.raises(InputError, match="checksum"):
        Ledger.load(path)


def test_a_ledger_that_could_not_be_read_back_takes_no_others_place(tmp_path, monkeypatch):
    ledger = Ledger(1.0, path=tmp_path / "x.privacy.toml")
    before = ledger.path.read_bytes()
    monkeypatch.setattr("discreet.dp.ledger_files.as_toml", lambda *_: "nonsense = ")
    with pytest.raises(DiscreetError):
        ledger.spend(PART)
    assert ledger.path.read_bytes() == before
    assert ledger.left == 1.0


# -- one file under several names -------------------------------------------------------------------------------------


def test_a_ledger_behind_a_symbolic_link_is_spent_once(tmp_path):
    real = Ledger(1.0, path=tmp_path / "x.privacy.toml")
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.toml"
    link.symlink_to(real.path)
    assert spend_until_refused(Ledger(1.0, path=link), 4) + spend_until_refused(real, 2) == 6
    assert spend_until_refused(Ledger.load(link)) + spend_until_refused(Ledger.load(real.path)) == 2
    assert link.is_symlink()
    assert Ledger.load(real.path).left == 0


def test_other_spellings_of_a_path_are_one_ledger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    spellings = ["x.toml", "./x.toml", "a/../x.toml", str(tmp_path / "x.toml"), f"../{tmp_path.name}/x.toml"]
    ledgers = [Ledger(1.0, path=path) for path in spellings]
    assert sum(spend_until_refused(ledger, 3) for ledger in ledgers) == 8
    assert len({ledger.path for ledger in ledgers}) == 1


def test_a_ledger_with_a_second_name_is_refused(tmp_path):
    ledger = Ledger(1.0, path=tmp_path / "x.privacy.toml")
    os.link(ledger.path, tmp_path / "second.toml")
    for refused in (lambda: ledger.spend(PART), lambda: Ledger.load(tmp_path / "second.toml")):
        with pytest.raises(InputError, match="hard link"):
            refused()
    (tmp_path / "second.toml").unlink()
    ledger.spend(PART)


@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "loop", "missing folder", "NUL"])
def test_what_is_no_file_is_no_ledger(kind, tmp_path):
    place = tmp_path / "x.toml"
    if kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "device":
        place = Path("/dev/null")
    elif kind == "loop":
        place.symlink_to(place)
    elif kind == "missing folder":
        place = tmp_path / "no" / "x.toml"
    else:
        place = Path("a\0b")
    for opened in (lambda: Ledger(1.0, path=place), lambda: Ledger.load(place)):
        with pytest.raises(InputError):
            opened()


def test_a_link_to_the_data_has_the_ledger_of_the_data(tmp_path):
    source = tmp_path / "survey.csv"
    source.write_text("age\n1\n", encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.csv"
    link.symlink_to(source)
    Ledger.beside(source, 1.0).spend(PART)
    assert Ledger.beside(link, 1.0).left == 0.875


# -- threads, processes and copies ------------------------------------------------------------------------------------


def test_threads_spend_a_ledger_in_memory_once():
    for _ in range(20):
        ledger = Ledger(1.0)
        assert in_threads(lambda own=ledger: spend_until_refused(own)) == 8
        assert ledger.spent.epsilon == 1.0


def test_threads_spend_a_ledger_in_a_file_once_through_one_object_or_many(tmp_path):
    one = Ledger(1.0, path=tmp_path / "one.toml")
    assert in_threads(lambda: spend_until_refused(one)) == 8
    assert in_threads(lambda: spend_until_refused(Ledger(1.0, path=tmp_path / "many.toml"))) == 8
    assert Ledger.load(tmp_path / "many.toml").spent.epsilon == Ledger.load(one.path).spent.epsilon == 1.0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_ledger_in_memory_is_the_same_ledger(copied):
    ledger = Ledger(1.0)
    assert spend_until_refused(copied(ledger)) + spend_until_refused(ledger) == 8


def test_a_ledger_in_memory_is_not_pickled_and_one_in_a_file_spends_on(tmp_path):
    with pytest.raises(ParameterError, match="in a file"):
        pickle.dumps(Ledger(1.0))
    ledger = Ledger(1.0, path=tmp_path / "x.toml")
    again = pickle.loads(pickle.dumps(ledger))
    assert spend_until_refused(again) + spend_until_refused(ledger) == 8


@pytest.mark.skipif(not FORKS, reason="the system cannot fork")
def test_a_forked_process_cannot_spend_the_ledger_in_memory_again():
    ledger = Ledger(1.0)
    child = os.fork()
    if child == 0:
        try:
            ledger.spend(PART)
        except InputError:
            os._exit(3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    ledger.spend(PART)


@pytest.mark.skipif(not FORKS, reason="the system cannot fork")
@pytest.mark.parametrize("without_locks", [False, True])
def test_processes_spend_a_ledger_once_also_where_there_are_no_locks(tmp_path, without_locks):
    context = multiprocessing.get_context("fork")
    granted = context.Queue()
    path = str(tmp_path / "x.toml")
    workers = [context.Process(target=hammer, args=(path, without_locks, granted)) for _ in range(6)]
    for worker in workers:
        worker.start()
    total = sum(granted.get(timeout=60) for _ in workers)
    for worker in workers:
        worker.join()
    assert total == 8
    assert Ledger.load(path).spent.epsilon == 1.0
    assert [place.name for place in tmp_path.iterdir()] == ["x.toml"]


@pytest.mark.skipif(not FORKS, reason="the system cannot fork")
def test_a_holder_that_was_killed_is_put_aside_and_one_that_lives_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "PATIENCE", 0.3)
    ledger = Ledger(1.0, path=tmp_path / "x.toml")
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    holder = context.Process(target=hold_and_hang, args=(str(ledger.path), ready))
    holder.start()
    assert ready.wait(30)
    with pytest.raises(InputError, match="held by another program"):
        ledger.spend(PART)
    os.kill(holder.pid, signal.SIGKILL)
    while not Path(f"/proc/{holder.pid}/stat").exists() and holder.is_alive():
        time.sleep(0.01)
    time.sleep(0.1)
    ledger.spend(PART)  # nobody has asked for the dead process yet
    holder.join()
    assert Ledger.load(ledger.path).left == 0.875
    assert [place.name for place in tmp_path.iterdir()] == ["x.toml"]


def test_a_holder_of_another_machine_or_without_a_name_is_told_from_a_dead_one(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "PATIENCE", 0.1)
    ledger = Ledger(1.0, path=tmp_path / "x.toml")
    lock = tmp_path / ".x.toml.lock"
    lock.mkdir()  # a process that was killed before it wrote its name
    ledger.spend(PART)
    lock.mkdir()
    (lock / "elsewhere+99999999-1@0").touch()
    with pytest.raises(InputError, match=r"remove the folder '\.x\.toml\.lock'"):
        ledger.spend(PART)
    assert Ledger.load(ledger.path).left == 0.875  # reading needs nobody's leave
    (lock / "elsewhere+99999999-1@0").unlink()
    ledger.spend(PART)


def test_a_holder_whose_start_is_hidden_is_waited_for_and_one_whose_number_was_given_anew_is_not(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(locks, "PATIENCE", 0.1)
    ledger = Ledger(1.0, path=tmp_path / "x.toml")
    lock = tmp_path / ".x.toml.lock"
    lock.mkdir()
    (lock / f"{locks._system_mark()}+{os.getppid()}-1@0").touch()
    monkeypatch.setattr(locks, "_process_mark", lambda pid: f"{locks._system_mark()}+{pid}-")
    with pytest.raises(InputError, match="held by another program"):
        ledger.spend(PART)
    monkeypatch.undo()
    if Path("/proc/self/stat").exists():
        ledger.spend(PART)
        assert not lock.exists()


def test_on_windows_no_process_is_asked_whether_it_lives(monkeypatch):
    monkeypatch.setattr(locks, "WINDOWS", True)
    monkeypatch.setattr(locks.os, "kill", lambda *_: pytest.fail("os.kill ends a process on Windows"))
    assert not locks.is_over(os.getpid())


def test_windows_renames_over_a_file_once_nobody_reads_it(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "WINDOWS", True)
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_text("new")
    renamed, refusals = Path.replace, iter([PermissionError(), PermissionError()])

    def shared(self, other):
        for refusal in refusals:
            raise refusal
        return renamed(self, other)

    monkeypatch.setattr(Path, "replace", shared)
    locks.rename_over(source, target)
    assert target.read_text() == "new"


def test_without_hard_links_a_new_file_takes_nobodys_place(tmp_path, monkeypatch):
    from discreet.core.files.atomic import replacing

    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError("no links")))
    target = tmp_path / "a.txt"

    def appears():
        with replacing(target, overwrite=False) as unfinished:
            unfinished.write_text("mine")
            target.write_text("theirs")

    with pytest.raises(InputError, match="appeared"):
        appears()
    assert target.read_text() == "theirs"
    with replacing(tmp_path / "b.txt", overwrite=False) as unfinished:
        unfinished.write_text("mine")
    assert (tmp_path / "b.txt").read_text() == "mine"


# -- a ledger that says less than it did ------------------------------------------------------------------------------


def test_an_older_copy_that_is_put_back_is_noticed(tmp_path):
    ledger = Ledger(1.0, path=tmp_path / "x.toml")
    ledger.spend(PART)
    older = ledger.path.read_bytes()
    ledger.spend(PART)
    latest = ledger.path.read_bytes()
    ledger.path.write_bytes(older)
    for noticed in (
        lambda: ledger.spend(PART),
        ledger.close,
        lambda: pickle.loads(pickle.dumps(ledger)).spend(PART),
        lambda: Ledger.load(ledger.path),
        lambda: Ledger(1.0, path=ledger.path),
    ):
        with pytest.raises(InputError, match="is not what it was"):
            noticed()
    ledger.path.write_bytes(latest)
    ledger.spend(PART)
    assert ledger.left == 0.625


def test_a_ledger_that_is_gone_replaced_or_open_again_is_noticed(tmp_path):
    ledger = Ledger(1.0, path=tmp_path / "x.toml")
    opened = ledger.path.read_bytes()
    ledger.path.unlink()
    with pytest.raises(InputError, match="no ledger"):
        ledger.spend(PART)
    assert not ledger.path.exists()
    Ledger(1.0, path=tmp_path / "x.toml")
    with pytest.raises(InputError, match="another ledger took its place"):
        ledger.spend(PART)
    ledger.path.write_bytes(opened)
    ledger.close()
    ledger.path.write_bytes(opened)
    with pytest.raises(InputError, match="is not what it was"):
        ledger.spend(PART)


# -- all together -----------------------------------------------------------------------------------------------------

STEP = st.tuples(
    st.sampled_from(["same", "open", "load", "copy", "pickle", "threads"]),
    st.floats(0.01, 0.6),
    st.integers(0, 2),
)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEP, min_size=1, max_size=10), kept=st.booleans())
def test_what_is_recorded_is_what_was_granted_and_never_more_than_the_budget(tmp_path, steps, kept):
    path = tmp_path / "x.toml" if kept else None
    if path is not None:
        path.unlink(missing_ok=True)
    ledger = Ledger(2.0, path=path)
    granted: list[float] = []
    noted = threading.Lock()

    def spend(own: Ledger, epsilon: float) -> int:
        try:
            own.spend(Cost("laplace", "pure", epsilon=epsilon))
        except ParameterError:
            return 0
        with noted:
            granted.append(epsilon)
        return 1

    for how, epsilon, _ in steps:
        own = ledger
        if how == "copy":
            own = copy.deepcopy(ledger)
        elif path is not None:
            opened = {
                "open": lambda: Ledger(2.0, path=path),
                "load": lambda: Ledger.load(path),
                "pickle": lambda: pickle.loads(pickle.dumps(ledger)),
            }
            own = opened.get(how, lambda: ledger)()
        if how == "threads":
            in_threads(lambda own=own, epsilon=epsilon: spend(own, epsilon), 3)
        else:
            spend(own, epsilon)
    last = ledger if path is None else Ledger.load(path)
    assert last.table().height == len(granted)
    assert last.spent.epsilon == pytest.approx(sum(granted))
    assert last.spent.epsilon <= 2.0 * (1 + 1e-12)
