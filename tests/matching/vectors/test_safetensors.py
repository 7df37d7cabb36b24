"""Weight files: read in place, and never trusted about where their numbers lie."""

import json

import numpy as np
import pytest

from matching.errors import InvalidFileError
from matching.vectors.safetensors import Tensors
from tests.tiny_bert import safetensors

NUMBERS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([1.5, -2.0], dtype=np.float32)}


def file_of(tmp_path, data):
    path = tmp_path / "w.safetensors"
    path.write_bytes(data)
    return path


def with_header(header, body=b"\0" * 8):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


@pytest.mark.parametrize("kind", ["F64", "F32", "F16", "BF16"])
@pytest.mark.parametrize("pad", [0, 1, 3])
def test_tensors_read_back_in_every_format_wherever_they_lie(tmp_path, kind, pad):
    """Writers do not always align their numbers."""
    found = Tensors(file_of(tmp_path, safetensors(NUMBERS, kind, pad)))
    assert sorted(found) == ["a", "b"] and len(found) == 2
    for name, numbers in NUMBERS.items():
        assert found[name].dtype == np.float32
        np.testing.assert_array_equal(found[name], numbers)
        with pytest.raises(ValueError, match="read-only"):
            found[name][0] = 0


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "cannot be read"),
        (b"1234", "longer than the file"),
        ((1 << 40).to_bytes(8, "little") + b"{}", "longer than the file"),
        (with_header(b"{"), "not JSON"),
        (with_header(b"\xff\xff"), "not JSON"),
        (with_header([1]), "not a JSON object"),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path, data, said):
    """An error page saved under this name is a usual accident."""
    with pytest.raises(InvalidFileError, match=said):
        Tensors(file_of(tmp_path, data))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}, "holds I64"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}, "within the file"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}, "within the file"),
        ({"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}, "within the file"),
        ({"dtype": "F32", "shape": [2]}, "damaged"),
        ({"dtype": "F32", "shape": ["x"], "data_offsets": [0, 8]}, "damaged"),
        ({"dtype": "F32", "shape": [2], "data_offsets": ["0", "x"]}, "damaged"),
        (7, "damaged"),
    ],
)
def test_an_entry_that_points_elsewhere_is_refused(tmp_path, entry, said):
    """A cut or forged file must not be read past its end."""
    with pytest.raises(InvalidFileError, match=said):
        Tensors(file_of(tmp_path, with_header({"x": entry})))["x"]


def test_a_missing_file_is_an_error_of_the_file(tmp_path):
    """Without the folder's path: messages reach people who do not know the machine."""
    with pytest.raises(InvalidFileError, match=r"^w\.safetensors cannot be read") as caught:
        Tensors(tmp_path / "w.safetensors")
    assert caught.value.code == "invalid-file"
