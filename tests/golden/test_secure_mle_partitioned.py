"""The complete printed example of the secure likelihood (n = 3, three nodes): 004_0f131553ca3c695a, Appendix C.

The source lost its minus signs; the signs are those of methods/secure-mle-partitioned.md, section 5.1.
"""

from __future__ import annotations

import numpy as np
import pytest

from discreet.federated import SecureMLE
from discreet.federated.normal_likelihood import minus_two_log_likelihood

X = np.array([[-0.36, 1.31, -0.23], [-0.09, 0.75, 2.82], [-0.92, 0.43, -0.64]])
MU = np.full(3, 0.1)
SIGMA = np.full((3, 3), 0.1) + 0.9 * np.eye(3)
PRINTED = {
    "coordinator": {
        "p1": (65.18644, -20.08849, 135.41011),
        "p2": (-181.81430, 280.12343, -26.61653),
        "p3": (-196.07673, 89.11074, -44.19684),
    },
    "node 1": {"r": (1494.8524, 1930.3440, 161.8065), "q": (4113.309, 557.0139, 964.1046)},
    "node 2": {
        "r": (214.6229, 860.1230, 1393.1503),
        "q": (781.3601, 530.806, 227.6579),
        "m": (1437.0787, 323.9371, 301.7027),
    },
    "node 3": {"r": (363.1359, 310.8918, 1739.9768), "q": (1848.916, 1849.285, 309.7504)},
}


class PrintedNoise:
    """The noise of the source, and totals in the clear as there."""

    def __init__(self, printed):
        self.printed = printed

    def fresh(self, name, shape, scales):
        return np.array(self.printed[name])[:, None]

    def same(self, name, shape, scales, label):
        return self.fresh(name, shape, scales)

    def divided(self, noise, inverse):
        return noise

    def whole(self):
        return 0


@pytest.fixture(scope="module")
def run():
    secure = SecureMLE([X[:, :1], X[:, 1:2], X[:, 2:]], noise_scale=1000.0, max_evaluations=1, keep=True)
    for party in (secure.central, *secure.layout.holders.values()):
        party.noise = PrintedNoise(PRINTED[party.name])
    value = secure.log_likelihood(MU, SIGMA)
    return value, secure.transcript.contents


def sent(messages, sender, name):
    return next(one.values for one in messages if one.sender == sender and one.name == name)


def total(values):
    whole = int(values["total"], 16)
    return (whole - (1 << 192) if whole >> 191 else whole) / 2**64


def close(found, printed, digits):
    np.testing.assert_allclose(
        np.asarray(found).reshape(np.shape(printed)), printed, atol=0.51 * 10.0**-digits
    )


def test_the_likelihood_is_the_printed_one(run):
    assert run[0] == pytest.approx(27.912019, abs=5e-7)
    assert run[0] == pytest.approx(27.91201924819, abs=1e-8)
    assert minus_two_log_likelihood(X, MU, SIGMA) == pytest.approx(27.91201924819, abs=1e-10)


def test_what_the_first_node_sends(run):
    answers = sent(run[1], "node 1", "answers")
    close(answers["a1"], (1429.206, 1950.242, 25.37639), 3)
    close(answers["a2"], (2552.810, -1353.432, 665.868), 3)
    assert total(sent(run[1], "node 1", "masks")) == pytest.approx(23324.09, abs=0.006)


def test_what_the_coordinator_sends_on(run):
    to_second = next(one.values for one in run[1] if one.receiver == "node 2" and one.name == "conditional")
    rows = [(-38.79370, -53.05613), (475.24768, 284.23498), (-23.97889, -41.55920)]
    close(to_second["mean"], rows, 4)
    np.testing.assert_allclose(to_second["weights"].ravel(), (0.1, 0.1))
    assert float(to_second["covariance"][0, 0]) == pytest.approx(0.99)
    to_third = next(one.values for one in run[1] if one.receiver == "node 3" and one.name == "conditional")
    close(to_third["mean"], (1277.2099, 465.9168, 386.6128), 4)
    assert float(to_third["covariance"][0, 0]) == pytest.approx(0.9818182, abs=5e-8)
    assert float(to_third["weights"][0, 0]) == pytest.approx(0.09090909, abs=5e-9)


def test_what_the_second_node_sends(run):
    answers = sent(run[1], "node 2", "answers")
    close(answers["a1"], (401.7103, 586.5339, 1434.544), 3)
    close(answers["a2"], (749.4888, -620.2823, -1152.243), 3)
    close(answers["later"], (1241.0559, 413.1288, 257.5039), 4)
    onward = sent(run[1], "node 2", "masks")
    # The source prints 387491.9 for this node's term, which is a slip: -250686.4 follows from 113481.4.
    assert total(onward) == pytest.approx(-250686.4, abs=0.06)
    assert total(onward) - -364167.8 == pytest.approx(113481.4, abs=0.11)


def test_what_the_third_node_sends(run):
    answers = sent(run[1], "node 3", "answers")
    close(answers["a1"], (569.1629, 228.6159, 1816.524), 3)
    # Q3 is printed with three decimals itself, so that the last digit may be off by one.
    np.testing.assert_allclose(answers["a2"].ravel(), (1678.358, 1444.602, -1418.123), atol=1e-3)
    assert total(sent(run[1], "node 3", "last")) == pytest.approx(-202713.2, abs=0.06)
    assert total(sent(run[1], "node 1", "total")) == pytest.approx(8715.1, abs=0.06)


def test_the_noise_terms_of_the_coordinator(run):
    terms = []
    for place, (name, s) in enumerate((("p1", 1.0), ("p2", 0.99), ("p3", 0.9818181818))):
        answers = sent(run[1], f"node {place + 1}", "answers")
        noise = np.array(PRINTED["coordinator"][name])[:, None]
        terms.append(float((noise * (answers["a1"] + answers["a2"] + noise / s)).sum()))
    # The noise Q3 is printed with three decimals and enters times P3, which is about 200.
    assert terms == pytest.approx([364174.6, -112904.4, -259957.5], abs=0.1)
