"""A sentence encoder stored as an ONNX graph, run by onnxruntime where that is installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matching.errors import InvalidFileError, MissingExtraError

__all__ = ["OnnxEncoder", "has_onnxruntime"]

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def has_onnxruntime() -> bool:
    """Whether graphs can be run here."""
    return find_spec("onnxruntime") is not None


class OnnxEncoder:
    """A graph that maps token numbers to states of tokens, or to one vector.

    Parameters
    ----------
    path : Path
        Inputs: some of input_ids, attention_mask, token_type_ids, int64 of shape (1, n_tokens). The first output of
        shape (1, n_tokens, width) is pooled; without one, the first of shape (1, width) is taken as it is.
    pooling : {"mean", "cls"}

    Raises
    ------
    MissingExtraError
        ``missing-extra``: onnxruntime is not installed.
    InvalidFileError
        ``invalid-file``: not such a graph.

    Notes
    -----
    One text at a time, as in `matching.vectors.bert`: graphs of 8-bit integers scale by the largest number in
    a batch, so in a batch a vector would depend on its neighbours.
    """

    def __init__(self, path: Path, pooling: str = "mean") -> None:
        if not has_onnxruntime():
            raise MissingExtraError(
                f"{path.name} needs onnxruntime, which is not installed; add it with: pip install onnxruntime",
                missing=["onnxruntime"],
            )
        runtime: Any = import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # texts are spread over the cores instead
        self._name = path.name
        try:
            self._session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            self._inputs = [entry.name for entry in self._session.get_inputs()]
            by_rank = {len(entry.shape or ()): entry.name for entry in reversed(self._session.get_outputs())}
        except Exception as error:  # the library's own exceptions have no common root
            raise InvalidFileError(f"{path.name} cannot be used: {error}") from error
        if strange := sorted(set(self._inputs) - set(_INPUTS)):
            raise InvalidFileError(f"{path.name} wants {', '.join(strange)}; known inputs: {', '.join(_INPUTS)}")
        if not {2, 3} & set(by_rank):
            raise InvalidFileError(f"{path.name} has no output that holds states of tokens or a vector")
        self._of_tokens = 3 in by_rank
        self._output = by_rank[3] if self._of_tokens else by_rank[2]
        self._pooling = pooling

    def encode(self, pieces: list[int]) -> NDArray[np.float32]:
        """The unit vector of one text; see `BertEncoder.encode`."""
        ids = np.asarray([pieces], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        try:
            found = self._session.run([self._output], {name: given[name] for name in self._inputs})[0]
            states = np.asarray(found, dtype=np.float64)
        except Exception as error:  # a vocabulary larger than the graph's, say
            raise InvalidFileError(f"{self._name} cannot be used: {error}") from error
        if states.ndim != 2 + self._of_tokens or states.shape[0] != 1 or not states.size:
            raise InvalidFileError(f"{self._name} gives an array of shape {states.shape}, not what it announces")
        vector = states[0]
        if self._of_tokens:
            vector = vector[0] if self._pooling == "cls" else vector.mean(axis=0)
        length = float(np.linalg.norm(vector))
        unit: NDArray[np.float32] = (vector / (length or 1.0)).astype(np.float32)
        return unit
