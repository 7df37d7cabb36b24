"""Affinities as 16-bit codes: half a step at most, NaN kept, the file gone with its last user."""

import errno
import gc
import os
import pickle
import tempfile

import numpy as np
import pytest

from matching import Params, Publication, Resources, Reviewer, Submission, Venue, recommend
from matching.errors import StorageError
from matching.scores.codes import STEP, CodeFile, decoded, encoded
from tests.tiny_bert import write_model


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_codes_are_within_half_a_step(dtype):
    affinity = np.linspace(0.0, 1.0, 200_001).astype(dtype)
    error = np.abs(decoded(encoded(affinity)).astype(float) - affinity.astype(float))
    assert error.max() <= STEP / 2 + 2.0**-23
    assert decoded(encoded(np.array([0.0, 1.0], dtype=dtype))).tolist() == [0.0, 1.0]


def test_unknown_stays_unknown():
    found = decoded(encoded(np.array([[0.25, np.nan], [np.nan, 1.0]])))
    np.testing.assert_array_equal(np.isnan(found), [[False, True], [True, False]])


def test_codes_keep_the_order():
    affinity = np.sort(np.random.default_rng(1).random(10_000))
    assert (np.diff(encoded(affinity).astype(int)) >= 0).all()


def test_rows_come_back_from_the_file(tmp_path):
    file = CodeFile((3, 5), tmp_path)
    rows = np.random.default_rng(2).integers(65536, size=(3, 5)).astype(np.uint16)
    for row in (2, 0, 1):
        file.write(row, rows[row])
    np.testing.assert_array_equal(file.codes, rows)
    del file
    gc.collect()
    assert not list(tmp_path.iterdir())


def failing(number):
    def fail(*args):
        raise OSError(number, os.strerror(number))

    return fail


def test_a_folder_that_is_not_there_is_an_error_of_ours(tmp_path, monkeypatch):
    """With the size that was wanted, and without the machine's paths."""
    with pytest.raises(StorageError, match=r"3 submissions x 5 reviewers take .* the folder gone") as caught:
        CodeFile((3, 5), tmp_path / "gone")
    assert caught.value.code == "storage-error" and str(tmp_path) not in str(caught.value)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(StorageError, match=r"TMPDIR") as caught:
        CodeFile((3, 5))
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO])
def test_no_room_is_an_error_of_ours_and_leaves_nothing_behind(tmp_path, monkeypatch, number):
    """A full disk is said before the work, and by name."""
    monkeypatch.setattr(os, "posix_fallocate", failing(number))
    with pytest.raises(StorageError) as caught:
        CodeFile((3, 5), tmp_path)
    assert os.strerror(number) in str(caught.value) and isinstance(caught.value.__cause__, OSError)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.EINVAL])
def test_a_file_system_that_promises_no_room_is_used_all_the_same(tmp_path, monkeypatch, number):
    """Some network folders cannot reserve."""
    monkeypatch.setattr(os, "posix_fallocate", failing(number))
    file = CodeFile((3, 5), tmp_path)
    file.write(1, np.arange(5, dtype=np.uint16))
    assert file.codes[1].tolist() == [0, 1, 2, 3, 4] and file.path.stat().st_size == 30


@pytest.mark.parametrize("scorer", ["lexical", "hybrid"])
@pytest.mark.parametrize("when", ["at the start", "while filling"])
def test_a_run_without_room_ends_with_our_error(tmp_path, monkeypatch, scorer, when, no_sockets):
    """From a venue in: the caller of `recommend` sees the tree's own error, and no file is left."""
    monkeypatch.setattr("matching.scores.filling.MATRIX_PAIRS", 3)
    monkeypatch.setattr("matching.scores.filling.ROWS", 2)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if when == "at the start":
        monkeypatch.setattr(os, "posix_fallocate", failing(errno.ENOSPC))
    else:
        monkeypatch.setattr(os, "pwrite", failing(errno.ENOSPC))
    people = tuple(Reviewer(f"r{at}", publications=(Publication("x", f"graph kernels w{at}"),)) for at in range(4))
    papers = tuple(Submission(f"p{at}", f"kernels of graphs w{at}") for at in range(5))
    model = write_model(tmp_path.parent / f"{tmp_path.name}-model")
    with pytest.raises(StorageError) as caught:
        recommend(
            Venue(people, papers, demand=1, load_max=5), Params(scorer=scorer), resources=Resources(encoder_model=model)
        )
    del caught
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_another_process_reads_the_file_and_leaves_it_where_it_is(tmp_path):
    """Processes that share a sweep share the file: nothing of it is sent, and only its owner removes it."""
    file = CodeFile((2, 3), tmp_path)
    file.write(1, np.array([7, 8, 9], dtype=np.uint16))
    other = pickle.loads(pickle.dumps(file))
    assert len(pickle.dumps(file)) < 1000 and other.codes.tolist() == [[0, 0, 0], [7, 8, 9]]
    other.discard()
    del other
    assert file.path.exists()
    file.discard()
    assert not file.path.exists()
