"""Vectors kept between runs: whole or not there, whatever happened to the file or the process."""

import logging

import numpy as np
import pytest

from matching.vectors.cache import VectorCache


def drawn(n, width=8, seed=0):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, width)).astype(np.float32)
    keys = [rng.bytes(32) for _ in range(n)]
    return keys, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def same(found, keys, vectors):
    assert sorted(found) == sorted(keys)
    for key, vector in zip(keys, vectors):
        np.testing.assert_array_equal(found[key], vector)


def test_what_is_added_is_found_by_others(tmp_path):
    """Two processes add to one folder; each later one sees both."""
    first, second = VectorCache(tmp_path / "made" / "here"), VectorCache(tmp_path / "made" / "here")
    keys, vectors = drawn(5)
    first.add(keys[:3], vectors[:3])
    second.add(keys[2:], vectors[2:])  # one vector twice does no harm
    same(VectorCache(tmp_path / "made" / "here").fetch([*keys, b"x" * 32]), keys, vectors)
    same(first.fetch(keys[1:2]), keys[1:2], vectors[1:2])


def test_an_empty_or_missing_folder_holds_nothing(tmp_path):
    """The first run with a cache, and a run without anything new."""
    cache = VectorCache(tmp_path / "none")
    assert cache.fetch([b"x" * 32]) == {}
    cache.add([], np.empty((0, 4), np.float32))
    assert not (tmp_path / "none").exists()


def test_files_are_only_ever_added(tmp_path):
    """A reader never finds a file that changes under it."""
    keys, vectors = drawn(4)
    cache = VectorCache(tmp_path)
    cache.add(keys[:2], vectors[:2])
    (before,) = tmp_path.iterdir()
    stat = before.stat()
    cache.add(keys[2:], vectors[2:])
    assert before.stat().st_mtime_ns == stat.st_mtime_ns and len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("kept", [0, 10, 64, 100, 191])
def test_a_file_cut_short_counts_as_not_there(tmp_path, caplog, kept):
    """A full disk, or a copy that was interrupted."""
    keys, vectors = drawn(2)
    cache = VectorCache(tmp_path)
    cache.add(keys, vectors)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:kept])
    with caplog.at_level(logging.WARNING):
        assert cache.fetch(keys) == {}
    assert "not used" in caplog.text


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 7.0])
def test_a_vector_that_is_none_of_ours_counts_as_not_there(tmp_path, bad):
    """Bits rot; a vector of another length than 1 would outweigh all others."""
    keys, vectors = drawn(3)
    broken = vectors.copy()
    broken[1, 0] = bad
    VectorCache(tmp_path).add(keys, broken)
    same(VectorCache(tmp_path).fetch(keys), [keys[0], keys[2]], vectors[[0, 2]])


def test_vectors_of_another_length_are_not_taken(tmp_path):
    """They are of another model, whatever the folder says."""
    keys, vectors = drawn(2)
    VectorCache(tmp_path).add(keys, vectors)
    assert VectorCache(tmp_path, 9).fetch(keys) == {}
    assert len(VectorCache(tmp_path, 8).fetch(keys)) == 2


def test_half_written_files_are_left_alone(tmp_path):
    """What a killed process left behind is not read, and another's half-written file is not removed."""
    keys, vectors = drawn(1)
    (tmp_path / ".abc.part").write_bytes(b"revmatch vectors 1\n")
    cache = VectorCache(tmp_path)
    cache.add(keys, vectors)
    assert len(cache.fetch(keys)) == 1 and (tmp_path / ".abc.part").exists()


def test_a_folder_that_cannot_be_written_does_not_stop_a_run(tmp_path, caplog):
    """The vectors are in memory; losing hours of work over a full disk would be worse than a warning."""
    (tmp_path / "file").write_bytes(b"")
    keys, vectors = drawn(1)
    cache = VectorCache(tmp_path / "file" / "folder")
    with caplog.at_level(logging.WARNING):
        cache.add(keys, vectors)
    assert "not kept" in caplog.text and cache.fetch(keys) == {}
