"""The limit on threads of products, which is one for a process."""

from matching.vectors import threads
from matching.vectors.threads import one_blas_thread


def test_the_last_to_leave_takes_the_limit_back(monkeypatch):
    """Two plans at a time in a worker: the first to end must not lift the other's limit, nor leave it for ever."""
    told = []

    class Library:
        def limit(self, limits, user_api):
            told.append((limits, user_api))
            return self

        def restore_original_limits(self):
            told.append("restored")

    limit = threads._Limit()
    monkeypatch.setattr(threads, "_LIMIT", limit)
    monkeypatch.setattr(limit, "_found", Library)
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert told == [(1, "blas")]
    second.__exit__(None, None, None)
    assert told == [(1, "blas"), "restored"]
    with one_blas_thread():
        assert told[2:] == [(1, "blas")]
