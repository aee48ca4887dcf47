"""French tables of turnover that were aggregated apart and are published together."""

from itertools import combinations

import polars as pl
import pytest

from discreet.core.errors import DiscreetWarning
from discreet.hierarchy import Hierarchy
from discreet.tables import Dominance, Suppression, Table, Threshold, audit, primary

FILES = {
    "act_size": "ACTIVITY*SIZE",
    "act_cj": "ACTIVITY*CJ",
    "nuts_size": "NUTS*SIZE",
    "nuts_cj": "NUTS*CJ",
}


@pytest.fixture(scope="module")
def turnover(test_data):
    activity = pl.read_csv(test_data / "rtauargus_activity_corr_table.csv", infer_schema=False)
    nuts = pl.read_csv(test_data / "rtauargus_nuts23_fr_corr_table.csv", infer_schema=False)
    known = {
        "ACTIVITY": Hierarchy.from_table(activity.select("A88", "A21", "A10")),
        "NUTS": Hierarchy.from_table(nuts.select("NUTS3", "NUTS2")),
    }

    def read(file, **options):
        frame = pl.read_csv(test_data / f"rtauargus_turnover_{file}.csv", infer_schema_length=None)
        dimensions = [name for name in frame.columns if name not in ("N_OBS", "TOT", "MAX")]
        return Table.from_cells(
            frame,
            dimensions,
            count="N_OBS",
            measure="TOT",
            largest="MAX",
            hierarchies={name: way for name, way in known.items() if name in dimensions},
            tolerance=0.01,
            **options,
        )

    return read


@pytest.mark.slow
def test_four_tables_are_protected_together_and_shared_cells_go_out_with_all_or_with_none(turnover):
    tables = [turnover(file) for file in FILES]
    linked = Table.link(tables, tolerance=0.01)
    assert linked.cells.height == 1_493
    assert linked.cells["agree"].all()
    assert linked.tables == tuple(FILES.values())
    result = Suppression().apply(primary(linked, Dominance(1, 85), Threshold(3)))
    assert result.figures["primary"] == 260
    assert result.audit.safe
    published = {name: result.published_in(name) for name in FILES.values()}
    for name, table in zip(FILES.values(), tables, strict=True):
        assert published[name].height == table.cells.height
    for one, other in combinations(published.values(), 2):
        shared = [
            name
            for name in ("ACTIVITY", "NUTS", "SIZE", "CJ")
            if name in one.columns and name in other.columns
        ]
        alone = [
            frame.filter(
                pl.all_horizontal(
                    pl.col(c) == "Total" for c in frame.columns if c.isupper() and c not in (*shared, "TOT")
                )
            ).select(*(shared or [pl.lit("all")]), "TOT", "status")
            for frame in (one, other)
        ]
        assert alone[0].sort(pl.all()).equals(alone[1].sort(pl.all()))


@pytest.mark.slow
def test_tables_protected_each_by_itself_give_cells_away_together(turnover):
    tables = [primary(turnover(file), Dominance(1, 85), Threshold(3)) for file in ("act_size", "act_cj")]
    linked = Table.link(tables, tolerance=0.01)
    gone = set()
    for table, name in zip(tables, linked.tables, strict=True):
        result = Suppression().apply(table)
        keys = linked.cells.select(table.dimensions).rows()
        mine = linked.in_table(name)
        left_out = {key for key, out in zip(table.keys, result.suppressed, strict=True) if out}
        gone |= {i for i, key in enumerate(keys) if mine[i] and key in left_out}
    # Left out of one file and printed in the other: what is left out of both is what is really gone.
    really = []
    for cell in sorted(gone):
        where = [name for name in linked.tables if linked.in_table(name)[cell]]
        if len(where) == 1 or linked.cells["primary"][cell]:
            really.append(cell)
    found = audit(linked, really)
    assert not found.safe


@pytest.mark.slow
def test_four_tables_keep_every_sensitive_cell_within_wide_bounds(turnover):
    linked = Table.link([turnover(file) for file in FILES], tolerance=0.01)
    result = Suppression(intervals=True).apply(primary(linked, Dominance(1, 85), Threshold(3)))
    assert result.audit.figures["narrow"] == 0
    assert result.audit.safe
    assert result.figures["secondary"] < 500


def test_a_table_of_other_records_is_noticed(turnover):
    east = turnover("act_nuts_size", total={"NUTS": "Total_EAST"})
    with pytest.warns(DiscreetWarning, match="do not agree on 52 of 56 shared cells"):
        linked = Table.link([turnover("act_size"), turnover("nuts_size"), east], tolerance=0.01)
    assert linked.hierarchy["NUTS"].total == "Total"
    assert linked.inner.filter(pl.col("NUTS") == "not Total_EAST").height > 100
