"""Orderings of a published study of a language model (Tabula) and CTGAN that hold here, too.

For nine public files it reports that the language model has more identified records and more risky clusters of shared
neighbors (SNI) than CTGAN, that forests learn from it about what they learn from the original, and that SNI lies below
identifiability in all 45 cells. Here: nine columns of Adult and as many records as Abalone has, four fifths of them to
learn from. CTGAN is the published one (``match=0``).
"""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import f1_score

from discreet import Microdata, datasets, risk
from discreet.synth import CTGAN, LanguageModel

pytest.importorskip("torch", reason="the networks need torch: pip install 'discreet[deep]'")
pytestmark = pytest.mark.slow

ABALONE = 4_177
COLUMNS = (
    *("age", "education", "marital-status", "occupation", "race", "sex", "capital-gain", "hours-per-week"),
    "income",
)
# As small as shows the orderings: together about two minutes of one core.
KINDS = {
    "ctgan": CTGAN(epochs=100, match=0.0, device="cpu"),
    "language-model": LanguageModel(layers=2, epochs=30, batch=64, held_out=0.0, device="cpu"),
}


def cut():
    frame = datasets.adult().frame.select(COLUMNS).sample(ABALONE, seed=1, shuffle=True)
    at = round(0.8 * ABALONE)
    return Microdata(frame[:at], sensitive=["income"]), Microdata(frame[at:], sensitive=["income"])


@pytest.fixture(scope="module")
def parts():
    return cut()


@pytest.fixture(scope="module")
def made(parts):
    return {name: maker.fit(parts[0], seed=1).sample(copies=3, seed=1) for name, maker in KINDS.items()}


@pytest.fixture(scope="module")
def risks(parts, made):
    """Identifiability and SNI, means of three copies."""
    asked = (risk.identifiability, risk.shared_neighbors)
    return {
        name: tuple(float(np.mean([measure(parts[0], one).value for one in copies])) for measure in asked)
        for name, copies in made.items()
    }


def score(learned, train, test):
    """What a forest gets right of real people (F1, weighted) that has learned from a file."""
    arrays = []
    for file in (learned, test):
        columns = []
        for name in COLUMNS:
            own = file.frame[name]
            if not own.dtype.is_numeric():
                levels = sorted(train.frame[name].drop_nulls().cast(str).unique().to_list())
                own = own.cast(str).replace_strict({level: n for n, level in enumerate(levels)}, default=-1)
            columns.append(own.fill_null(-1).to_numpy().astype(np.float64))
        arrays.append(np.column_stack(columns))
    (inputs, wanted), (tested, truth) = ((one[:, :-1], one[:, -1]) for one in arrays)
    forest = RandomForestClassifier(200, min_samples_leaf=2, random_state=1).fit(inputs, wanted)
    return f1_score(truth, forest.predict(tested), average="weighted")


def test_a_language_model_comes_nearer_to_people_than_a_gan(risks):
    assert risks["language-model"][0] > risks["ctgan"][0]
    assert risks["language-model"][1] > risks["ctgan"][1]


def test_shared_neighbors_are_rarer_than_identified_records(risks):
    assert all(shared < identified for identified, shared in risks.values())


def test_a_forest_learns_nearly_as_much_from_the_language_model(parts, made):
    learned = float(np.mean([score(one, *parts) for one in made["language-model"]]))
    assert abs(learned - score(parts[0], *parts)) < 0.05
