"""The forward pass of a BERT-family sentence encoder in numpy: one text in, one unit vector out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matching.errors import InvalidFileError
from matching.vectors.model_json import read_object
from matching.vectors.safetensors import Tensors

__all__ = ["BertEncoder", "BertShape"]

Single = NDArray[np.float32]

FAULTS_SHOWN = 5
ROWS = 32  # tokens a step of the element-wise parts: what they work on stays in the processor's cache


@dataclass(frozen=True)
class BertShape:
    """What config.json says about a model, checked.

    Attributes
    ----------
    width, layers, heads : int
    positions : int
        Most tokens a text may have.
    activation : str
        A name in ACTIVATIONS.
    epsilon : float
        Added to variances.
    """

    width: int
    layers: int
    heads: int
    positions: int
    activation: str
    epsilon: float

    @classmethod
    def of_folder(cls, folder: Path) -> BertShape:
        """Read config.json.

        Raises
        ------
        InvalidFileError
            ``invalid-file``: no such file, or a model that is not of this family; every reason is named.
        """
        config = read_object(folder / "config.json")
        faults = []
        for name, wanted in (("model_type", "bert"), ("position_embedding_type", "absolute")):
            if config.get(name, wanted) != wanted:
                faults.append(f"{name} is {config[name]!r}, only {wanted!r} can be computed here")
        activation = config.get("hidden_act", "gelu")
        if not isinstance(activation, str) or activation not in ACTIVATIONS:
            faults.append(f"hidden_act is {activation!r}, known: {', '.join(sorted(ACTIVATIONS))}")
        sizes: list[int] = []
        for name in ("hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings"):
            size = config.get(name)
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                faults.append(f"{name} must be a whole number of at least 1")
                size = 1
            sizes.append(size)
        epsilon = config.get("layer_norm_eps", 1e-12)
        if not isinstance(epsilon, int | float) or isinstance(epsilon, bool) or not 0 <= epsilon < 1:
            faults.append("layer_norm_eps must be a number of at least 0 and below 1")
        if sizes[0] % sizes[2]:
            faults.append("hidden_size must be a multiple of num_attention_heads")
        if faults:
            raise InvalidFileError(f"config.json of the model folder: {'; '.join(faults)}")
        width, layers, heads, positions = sizes
        return cls(width, layers, heads, positions, activation, float(epsilon))


class BertEncoder:
    """A sentence encoder whose weights lie in a model folder.

    Parameters
    ----------
    folder : Path
        With config.json and model.safetensors (F32, F16 or BF16).
    pooling : {"mean", "cls"}
        Mean over the tokens of a text, or its first token.

    Raises
    ------
    InvalidFileError
        ``invalid-file``: a file is missing, damaged or of another kind of model.

    Notes
    -----
    Texts go through one at a time: nothing is padded or masked, so nothing is computed in vain and a vector
    depends on its own text alone, whatever else is encoded. A text of 256 tokens keeps the matrix products as
    busy as a batch does. Memory: the weights, and about 10 MB while it runs.

    References
    ----------
    Vaswani et al., "Attention is all you need", NIPS 2017, section 3. Devlin et al., "BERT", NAACL 2019. Reimers and
    Gurevych, "Sentence-BERT", EMNLP 2019, section 3.
    """

    def __init__(self, folder: Path, pooling: str = "mean") -> None:
        self.shape = BertShape.of_folder(folder)
        self._pooling = pooling
        tensors = Tensors(folder / "model.safetensors")
        # heads for training lie beside the encoder, whose tensors then have a prefix
        prefix = "bert." if "bert.embeddings.word_embeddings.weight" in tensors else ""
        _check_shapes(tensors, prefix, self.shape)
        take = _Taker(tensors, prefix)
        # a sentence is one segment, so the embedding of segment 0 is part of every position's
        segment = take("embeddings.token_type_embeddings.weight")[0]
        self._words = take("embeddings.word_embeddings.weight")
        self._places = take("embeddings.position_embeddings.weight") + segment
        self._norm = take.pair("embeddings.LayerNorm")
        self._layers = [_Layer(take, at, self.shape) for at in range(self.shape.layers)]
        take.complain()
        self.vocabulary = int(self._words.shape[0])

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return self.shape.width

    def encode(self, pieces: list[int]) -> Single:
        """The unit vector of one text, float32 of shape (dimensions,).

        Parameters
        ----------
        pieces : list of int
            As `WordPiece.encode` gives them, at most `shape.positions`, each below `vocabulary`.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # callers look at the vector
            states = self._words[pieces] + self._places[: len(pieces)]
            states = _normalised(states, *self._norm, self.shape.epsilon)
            for layer in self._layers:
                states = layer(states)
            pooled = states[:1].mean(axis=0) if self._pooling == "cls" else states.mean(axis=0)
            length = float(np.linalg.norm(pooled))
            unit: Single = (pooled / (length or 1.0)).astype(np.float32)
        return unit


def _expected(tensors: Tensors, prefix: str, shape: BertShape) -> Iterator[tuple[str, tuple[int | None, ...]]]:
    """Name and shape of every tensor the model needs; None for a size that the file alone states."""

    def dense(name: str, outputs: int | None, inputs: int | None) -> Iterator[tuple[str, tuple[int | None, ...]]]:
        yield f"{name}.weight", (outputs, inputs)
        yield f"{name}.bias", (outputs,)

    def norm(name: str) -> Iterator[tuple[str, tuple[int | None, ...]]]:
        yield f"{name}.weight", (width,)
        yield f"{name}.bias", (width,)

    width = shape.width
    yield "embeddings.word_embeddings.weight", (None, width)
    yield "embeddings.token_type_embeddings.weight", (None, width)
    yield "embeddings.position_embeddings.weight", (shape.positions, width)
    yield from norm("embeddings.LayerNorm")
    for at in range(shape.layers):
        name = f"encoder.layer.{at}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            yield from dense(f"{name}.attention.{part}", width, width)
        yield from norm(f"{name}.attention.output.LayerNorm")
        widen = f"{prefix}{name}.intermediate.dense.weight"
        inner = next(iter(tensors.shape_of(widen)), None) if widen in tensors else None
        yield from dense(f"{name}.intermediate.dense", inner, width)
        yield from dense(f"{name}.output.dense", width, inner)
        yield from norm(f"{name}.output.LayerNorm")


def _check_shapes(tensors: Tensors, prefix: str, shape: BertShape) -> None:
    """Compare the weight file with config.json before anything is read or made room for."""
    faults: list[str] = []
    for name, wanted in _expected(tensors, prefix, shape):
        if len(faults) > FAULTS_SHOWN:
            break  # a file has an end, a number of layers in config.json need not
        if prefix + name not in tensors:
            faults.append(f"{name} is missing")
            continue
        found = tensors.shape_of(prefix + name)
        if len(found) != len(wanted) or not all(
            real == size or (size is None and real > 0) for size, real in zip(wanted, found)
        ):
            sizes = " x ".join("any" if size is None else str(size) for size in wanted)
            faults.append(f"{name} has shape {' x '.join(map(str, found)) or 'of one number'}, not {sizes}")
    if faults:
        listed = "; ".join(faults[:FAULTS_SHOWN]) + ("; and more" if len(faults) > FAULTS_SHOWN else "")
        raise InvalidFileError(
            f"model.safetensors does not fit config.json (num_hidden_layers {shape.layers}, hidden_size "
            f"{shape.width}): {listed}"
        )


class _Taker:
    """Takes tensors and lists all that hold something else than numbers."""

    def __init__(self, tensors: Tensors, prefix: str) -> None:
        self._tensors, self._prefix = tensors, prefix
        self._faults: list[str] = []

    def __call__(self, name: str) -> Single:
        found = self._tensors[self._prefix + name]
        # a number that is none would show only at the text that needs it, perhaps after hours
        if not np.isfinite(found).all():
            self._faults.append(name)
        return found

    def pair(self, name: str) -> tuple[Single, Single]:
        """Weight and bias."""
        return self(f"{name}.weight"), self(f"{name}.bias")

    def complain(self) -> None:
        if self._faults:
            listed = ", ".join(self._faults[:FAULTS_SHOWN]) + (" and more" if len(self._faults) > FAULTS_SHOWN else "")
            raise InvalidFileError(f"model.safetensors is damaged: not finite are numbers in {listed}")


class _Layer:
    """Attention and feed-forward part of one layer."""

    def __init__(self, take: _Taker, at: int, shape: BertShape) -> None:
        name, width = f"encoder.layer.{at}", shape.width
        self._heads, self._epsilon = shape.heads, shape.epsilon
        parts = [take.pair(f"{name}.attention.self.{part}") for part in ("query", "key", "value")]
        # one product instead of three, and the scale of the attention is in the queries from the start
        scale = np.float32((width // shape.heads) ** -0.5)
        self._project = (
            np.ascontiguousarray(np.concatenate([parts[0][0] * scale, parts[1][0], parts[2][0]]).T),
            np.concatenate([parts[0][1] * scale, parts[1][1], parts[2][1]]),
        )
        self._gather = take.pair(f"{name}.attention.output.dense")
        self._attention_norm = take.pair(f"{name}.attention.output.LayerNorm")
        self._widen = take.pair(f"{name}.intermediate.dense")
        self._narrow = take.pair(f"{name}.output.dense")
        self._output_norm = take.pair(f"{name}.output.LayerNorm")
        self._activate = ACTIVATIONS[shape.activation]

    def __call__(self, states: Single) -> Single:
        """New states of shape (n_tokens, width)."""
        attended = self._attend(states) @ self._gather[0].T
        attended += self._gather[1]
        attended += states
        attended = _normalised(attended, *self._attention_norm, self._epsilon)
        wide = attended @ self._widen[0].T
        for start in range(0, len(wide), ROWS):
            block = wide[start : start + ROWS]
            block += self._widen[1]
            self._activate(block)
        out: Single = np.matmul(wide, self._narrow[0].T)
        out += self._narrow[1]
        out += attended
        return _normalised(out, *self._output_norm, self._epsilon)

    def _attend(self, states: Single) -> Single:
        count, width = states.shape
        projected = states @ self._project[0]
        projected += self._project[1]
        # (query, key or value; head; token; number)
        query, key, value = projected.reshape(count, 3, self._heads, -1).transpose(1, 2, 0, 3)
        mixed = np.empty((count, self._heads, width // self._heads), dtype=np.float32)
        for head in range(self._heads):
            weights = query[head] @ key[head].T
            weights -= weights.max(axis=1, keepdims=True)
            np.exp(weights, out=weights)
            part = weights @ value[head]
            part /= weights.sum(axis=1, keepdims=True)
            mixed[:, head] = part
        return mixed.reshape(count, width)


def _normalised(states: Single, weight: Single, bias: Single, epsilon: float) -> Single:
    """Every token to mean 0 and variance 1, then scaled and shifted; in place."""
    states -= states.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", states, states)[:, None] / np.float32(states.shape[1])
    states /= np.sqrt(variance + np.float32(epsilon))
    states *= weight
    states += bias
    return states


def _gelu(block: Single) -> None:
    """x times the normal distribution function of x, in place.

    The error function is formula 7.1.26 of Abramowitz and Stegun (1964), right to 1.5e-7, which is the precision of
    the numbers; it takes a third of the time of a library's error function.
    """
    size = np.abs(block)
    fraction = np.float32(0.3275911 / np.sqrt(2.0)) * size
    fraction += np.float32(1.0)
    np.reciprocal(fraction, out=fraction)
    # half of 1 - erf: a polynomial of the fraction, times exp(-x^2 / 2)
    tail = np.float32(0.5 * 1.061405429) * fraction
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail += np.float32(0.5 * factor)
        tail *= fraction
    np.multiply(size, size, out=fraction)
    fraction *= np.float32(-0.5)
    tail *= np.exp(fraction, out=fraction)
    tail *= size
    np.maximum(block, np.float32(0.0), out=block)
    block -= tail


def _gelu_tanh(block: Single) -> None:
    """The approximation by a hyperbolic tangent that some models were trained with, in place."""
    inner = block * block
    inner *= np.float32(0.044715)
    inner += np.float32(1.0)
    inner *= block
    inner *= np.float32(np.sqrt(2.0 / np.pi))
    np.tanh(inner, out=inner)
    inner += np.float32(1.0)
    inner *= np.float32(0.5)
    block *= inner


def _relu(block: Single) -> None:
    np.maximum(block, np.float32(0.0), out=block)


ACTIVATIONS: Mapping[str, Callable[[Single], Any]] = {
    "gelu": _gelu,
    "gelu_new": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
    "relu": _relu,
}
"""Name in config.json -> function that changes a float32 array in place."""
