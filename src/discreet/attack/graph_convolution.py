"""A graph convolutional network in NumPy and SciPy, and a service around it: what attacks and tests run against.

Kipf and Welling (2017): every layer mixes the features of neighbors and multiplies them by weights; ReLU between
layers, softmax at the end. Real services plug in by the same few methods (`GraphService`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import softmax

from discreet.core.arrays import Floats, Integers, numbers_of
from discreet.core.constraints import AtLeast, Share
from discreet.core.errors import InputError, ParameterError
from discreet.core.parameters import checked
from discreet.core.randomness import generator

Normalization = Literal["row", "sym", "first-order"]


class GraphService(Protocol):
    """A service that predicts classes of the nodes of its network, and lets users add a node.

    ``replaced`` (predictions with other features of one node) is needed by the LinkTeller baseline only.
    """

    @property
    def width(self) -> int:
        """How many features a node has."""

    def predict(self, nodes: Integers) -> Floats:
        """Class probabilities, one row a node."""

    def connect(self, features: Floats, target: int) -> int:
        """Add a node with one edge to the target, and give its number."""

    def reset(self) -> None:
        """Take all added nodes out again."""


@dataclass(frozen=True)
class GraphConvolution:
    """A network by its weights.

    Parameters
    ----------
    weights
        A matrix a layer.
    normalization
        How neighbors are mixed: ``row`` (a mean over a node and its neighbors), ``sym`` (divided by the roots of both
        degrees), ``first-order`` (the node itself and the divided neighbors).
    """

    weights: tuple[Floats, ...]
    normalization: Normalization = "row"

    def predict(self, adjacency: Any, features: Floats) -> Floats:
        """Class probabilities of all nodes."""
        mixing = mixed_neighbors(adjacency, self.normalization)
        hidden = features
        for layer, weight in enumerate(self.weights):
            hidden = mixing @ (hidden @ weight)
            if layer < len(self.weights) - 1:
                hidden = np.maximum(hidden, 0.0)
        return np.asarray(softmax(hidden, axis=1))


def square_matrix(graph: Any, name: str) -> Any:
    """Read who is linked with whom, a square matrix, dense or sparse, as a sparse one."""
    if not sparse.issparse(graph):
        graph = numbers_of(graph, name)
    if graph.ndim != 2 or graph.shape[0] != graph.shape[1] or graph.shape[0] < 2:
        raise InputError(f"{name} must be a square matrix of at least 2 nodes.")
    return sparse.csr_array(graph, dtype=np.float64)


def mixed_neighbors(adjacency: Any, normalization: Normalization) -> Any:
    """The matrix that mixes the features of neighbors."""
    plain = square_matrix(adjacency, "adjacency")
    eye = sparse.eye_array(plain.shape[0], format="csr")
    if normalization == "first-order":
        degree = plain.sum(axis=1)
        root = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
        return eye + sparse.diags_array(root) @ plain @ sparse.diags_array(root)
    own = plain + eye
    degree = own.sum(axis=1)
    if normalization == "row":
        return sparse.diags_array(1.0 / degree) @ own
    if normalization == "sym":
        root = sparse.diags_array(1.0 / np.sqrt(degree))
        return root @ own @ root
    raise ParameterError("normalization must be 'row', 'sym' or 'first-order'.")


@checked
def train_graph_convolution(
    adjacency: Any,
    features: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    hidden: Sequence[int] = (16,),
    normalization: Normalization = "sym",
    train: npt.ArrayLike | None = None,
    learning_rate: float = 0.01,
    epochs: Annotated[int, AtLeast(1)] = 200,
    dropout: Annotated[float, Share(below=True)] = 0.5,
    decay: float = 5e-4,
    patience: int = 20,
    seed: int | None = None,
) -> GraphConvolution:
    """Train a network: Adam on the cross-entropy, with dropout, until nodes held out get no better.

    Parameters
    ----------
    adjacency, features, labels
        The graph, one row of numbers a node, and its class (whole numbers from 0).
    hidden
        The widths of the inner layers; one inner layer makes a network of two.
    normalization
        As in `GraphConvolution`.
    train
        Which nodes have labels to learn from; 80 % of all by lot unless given, and the others say when to stop.
    learning_rate, epochs, dropout, decay, patience
        Of the training.
    seed
        For the start, dropout and the lot.
    """
    x = numbers_of(features, "features")
    y = numbers_of(labels, "labels", least=0).astype(np.int64)
    if x.ndim != 2 or len(y) != len(x):
        raise ParameterError("features must have one row and labels one class a node.")
    rng = generator(seed, "graph-convolution")
    mixing = mixed_neighbors(adjacency, normalization)
    if train is None:
        used = rng.random(len(y)) < 0.8
    else:
        used = np.zeros(len(y), dtype=bool)
        used[np.asarray(train)] = True
    if not used.any():
        raise InputError("No node has a label to learn from.")
    held = ~used if (~used).any() else used
    sizes = [x.shape[1], *hidden, int(y.max()) + 1]
    weights = [rng.uniform(-1, 1, size=(a, b)) * np.sqrt(6.0 / (a + b)) for a, b in pairwise(sizes)]
    first, second = ([np.zeros_like(w) for w in weights] for _ in range(2))
    best, kept, waited = np.inf, [w.copy() for w in weights], 0
    target = np.eye(sizes[-1])[y]
    for epoch in range(1, epochs + 1):
        inputs, h = [], x
        for layer, weight in enumerate(weights):
            mask = (rng.random(h.shape) >= dropout) / (1 - dropout) if dropout else 1.0
            inputs.append((h * mask, mask))
            h = mixing @ (inputs[-1][0] @ weight)
            if layer < len(weights) - 1:
                h = np.maximum(h, 0.0)
        back = np.where(used[:, None], softmax(h, axis=1) - target, 0.0) / used.sum()
        for layer in range(len(weights) - 1, -1, -1):
            pushed = mixing.T @ back
            gradient = inputs[layer][0].T @ pushed + decay * weights[layer]
            if layer:
                back = (pushed @ weights[layer].T) * inputs[layer][1] * (inputs[layer][0] > 0)
            first[layer] = 0.9 * first[layer] + 0.1 * gradient
            second[layer] = 0.999 * second[layer] + 0.001 * gradient**2
            weights[layer] = weights[layer] - learning_rate * (first[layer] / (1 - 0.9**epoch)) / (
                np.sqrt(second[layer] / (1 - 0.999**epoch)) + 1e-8
            )
        shown = GraphConvolution(tuple(weights), normalization).predict(adjacency, x)
        loss = float(-np.log(np.maximum(shown[held, y[held]], 1e-12)).mean())
        if loss < best - 1e-5:
            best, kept, waited = loss, [w.copy() for w in weights], 0
        else:
            waited += 1
            if waited > patience:
                break
    return GraphConvolution(tuple(kept), normalization)


class LocalService:
    """A service that runs here: the network, its features, and a model.

    Parameters
    ----------
    adjacency, features, model
        The private graph, the features of its nodes, and what predicts from them.
    decimals
        How many decimals the service tells: rounding as a defence.
    allows_new_nodes
        Whether users may add nodes.

    Examples
    --------
    >>> model = GraphConvolution((np.array([[1.0, -1.0]]),))
    >>> service = LocalService(np.array([[0, 1], [1, 0]]), [[1.0], [0.0]], model, decimals=2)
    >>> service.predict(np.array([0])).tolist()
    [[0.73, 0.27]]
    """

    def __init__(
        self,
        adjacency: Any,
        features: npt.ArrayLike,
        model: GraphConvolution,
        *,
        decimals: int | None = None,
        allows_new_nodes: bool = True,
    ) -> None:
        self.model, self.decimals, self.allows_new_nodes = model, decimals, allows_new_nodes
        self._graph = sparse.csr_array(adjacency, dtype=np.float64)
        self._features = numbers_of(features, "features")
        if self._features.ndim != 2 or self._graph.shape != (len(self._features),) * 2:
            raise ParameterError("adjacency must be square, and features have one row a node of it.")
        self._now = (self._graph, self._features)

    @property
    def width(self) -> int:
        """How many features a node has."""
        return int(self._features.shape[1])

    def predict(self, nodes: Integers) -> Floats:
        """Class probabilities, one row a node."""
        return self._told(self.model.predict(*self._now)[nodes])

    def replaced(self, node: int, features: Floats, nodes: Integers) -> Floats:
        """Class probabilities if one node had other features."""
        graph, own = self._now
        changed = own.copy()
        changed[node] = features
        return self._told(self.model.predict(graph, changed)[nodes])

    def connect(self, features: Floats, target: int) -> int:
        """Add a node with one edge to the target, and give its number."""
        if not self.allows_new_nodes:
            raise PermissionError("This service takes no new nodes.")
        graph, own = self._now
        count = int(graph.shape[0])
        edge = sparse.csr_array(([1.0], ([0], [target])), shape=(1, count))
        grown = sparse.block_array([[graph, edge.T], [edge, None]], format="csr")
        self._now = (grown, np.vstack([own, features]))
        return count

    def reset(self) -> None:
        """Take all added nodes out again."""
        self._now = (self._graph, self._features)

    def _told(self, shown: Floats) -> Floats:
        return shown if self.decimals is None else np.round(shown, self.decimals)
