"""Reads tensors out of a .safetensors file: a JSON header, then the numbers; nothing in it is executed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matching.errors import InvalidFileError
from matching.vectors.model_json import why_unreadable

__all__ = ["Tensors"]

HEADER_LIMIT = 100 << 20  # bytes, as the format's own library has it
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


class Tensors(Mapping[str, NDArray[np.float32]]):
    """The floating-point tensors of a file, each read when asked for.

    Parameters
    ----------
    path : Path
        Its name, never its folder, appears in messages.

    Raises
    ------
    InvalidFileError
        ``invalid-file``: not this format, or damaged.

    Notes
    -----
    F32 tensors are views into the mapped file, which costs no memory of its own until they are used; F64, F16
    and BF16 become float32 copies. All are read-only.
    """

    def __init__(self, path: Path) -> None:
        self._name = path.name
        try:
            data = np.memmap(path, dtype=np.uint8, mode="r")
        except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
            raise InvalidFileError(f"{path.name} cannot be read: {why_unreadable(error)}") from error
        length = int.from_bytes(data[:8].tobytes(), "little") if data.size >= 8 else HEADER_LIMIT + 1
        if length > min(HEADER_LIMIT, data.size - 8):
            raise self._fault("the header is longer than the file")
        try:
            header = json.loads(data[8 : 8 + length].tobytes().decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise self._fault("the header is not JSON") from error
        if not isinstance(header, dict):
            raise self._fault("the header is not a JSON object")
        header.pop("__metadata__", None)
        self._entries: dict[str, Any] = header
        self._data = data[8 + length :]

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor, without reading it."""
        return self._place(name)[1]

    def _place(self, name: str) -> tuple[str, tuple[int, ...], int, int]:
        """Number format, shape, first byte and end of a tensor: only what fits the file is believed."""
        entry = self._entries[name]
        if not isinstance(entry, dict):
            raise self._fault(f"the entry of {name} is damaged")
        kind, shape, place = entry.get("dtype"), _whole(entry.get("shape")), _whole(entry.get("data_offsets"))
        if not isinstance(kind, str) or shape is None or place is None or len(place) != 2:
            raise self._fault(f"the entry of {name} is damaged")
        if kind not in _TYPES:
            raise self._fault(f"{name} holds {kind}; readable: {', '.join(sorted(_TYPES))}")
        begin, end = place
        size = math.prod(shape) * np.dtype(_TYPES[kind]).itemsize
        # beside a side of 0 any number would fit, so each side is looked at, too
        fits = all(0 <= side <= self._data.size for side in shape) and end - begin == size
        if not fits or not 0 <= begin <= end <= self._data.size:
            raise self._fault(f"{name} does not lie within the file")
        return kind, shape, begin, end

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        kind, shape, begin, end = self._place(name)
        stored = np.dtype(_TYPES[kind])
        raw = self._data[begin:end]
        # numbers need not start at a multiple of their size; then the bytes are copied
        numbers = (raw if raw.ctypes.data % stored.itemsize == 0 else raw.copy()).view(stored).reshape(shape)
        if kind == "BF16":  # the upper half of a float32
            numbers = (numbers.astype(np.uint32) << np.uint32(16)).view(np.float32)
        out: NDArray[np.float32] = np.asarray(numbers, dtype=np.float32)
        if out.flags.writeable:
            out.flags.writeable = False
        return out

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def _fault(self, reason: str) -> InvalidFileError:
        return InvalidFileError(f"{self._name} is not a safetensors file: {reason}")


def _whole(numbers: Any) -> tuple[int, ...] | None:
    """A list of whole numbers as it stands in the header, None for anything else."""
    if isinstance(numbers, list) and all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
        return tuple(numbers)
    return None
