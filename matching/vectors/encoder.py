"""Texts compared by a sentence encoder: what they mean, whatever words they use."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matching.errors import InvalidFileError
from matching.types import IntArray
from matching.vectors.base import Comparison, Encoded, Group, TextModel
from matching.vectors.cache import VectorCache
from matching.vectors.model import SentenceModel, open_model
from matching.vectors.neighbours import moved, smoothed
from matching.vectors.threads import cores, one_blas_thread

__all__ = ["NEIGHBOURS", "SHARE", "TEMPERATURE", "TOKENS", "EncoderVectorizer"]

log = logging.getLogger(__name__)

TOKENS = 256  # of a text that are read; 512 score alike and take twice the time, 128 score worse
NEIGHBOURS = 10  # nearest archive papers a vector is moved towards
SHARE = 0.5  # of their mean beside the vector itself
TEMPERATURE = 0.1  # of the soft maximum over a reviewer's documents

STEP = 32  # texts between two reports of progress
KEPT_EVERY = 256  # texts after which vectors go to the cache: ten to twenty seconds of work

Vectors = NDArray[np.float32]


class EncoderVectorizer:
    """One comparison: the cosine of smoothed sentence vectors, soft maximum over the documents.

    Every text becomes a unit vector; texts that differ in capitals, blanks and punctuation only are one. Then each is
    moved towards its nearest archive papers: with N the ten other documents of highest cosine, ``x <- unit(x + 0.5 *
    weighted mean of N)``, weights their cosines. Submissions are never neighbours, so what else was submitted changes
    no score.

    Parameters
    ----------
    model_folder : Path or None
        See `matching.vectors.model.open_model`.
    cache_folder : Path or None
        Vectors are kept there between runs, by the text and everything else they depend on.
    tokens : int
        Read of a text, [3, inf); no more than the model has positions for.
    neighbours : int
        [0, inf); 0 leaves the vectors as they are.
    share : float
        Weight of the neighbours' mean, [0, inf).
    temperature : float
        Of the soft maximum, (0, inf), in units of cosine.
    threads : int or None
        Texts encoded at the same time, [1, inf); None for the processor's cores. Changes no vector.
    progress : callable or None
        Called with the encoded share of the texts, [0, 1], now and then; what it raises stops the run, and the
        vectors made so far are kept.

    Notes
    -----
    Time: the encoding, linear in the number of distinct texts that are not in the cache (60 to 80 ms of one core each
    for the weights of the extra), and the neighbours, which take texts x documents x dimensions operations. Memory:
    12 bytes a dimension and text.

    References
    ----------
    Reimers and Gurevych, "Sentence-BERT: sentence embeddings using Siamese BERT-networks", EMNLP 2019.
    """

    def __init__(
        self,
        model_folder: Path | None = None,
        cache_folder: Path | None = None,
        *,
        tokens: int = TOKENS,
        neighbours: int = NEIGHBOURS,
        share: float = SHARE,
        temperature: float = TEMPERATURE,
        threads: int | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        self._model_folder, self._cache_folder = model_folder, cache_folder
        self._tokens, self._neighbours, self._share, self._temperature = tokens, neighbours, share, temperature
        self._threads = threads or cores()
        self._progress = progress or (lambda share: None)

    def fit(self, documents: Sequence[str], submissions: Sequence[str]) -> TextModel:
        """See `Vectorizer.fit`.

        Raises
        ------
        MissingExtraError, InvalidFileError
            See `open_model`.
        """
        model = open_model(self._model_folder)
        works = {text: _work(text) for text in {*documents, *submissions}}
        # a work is spelled as in the archive wherever it is in one, and as it stands elsewhere, so that no submission
        # changes another's score
        archived = _spellings(documents, works)
        spelled = {text: archived.get(work, text) for text, work in works.items()}
        order = sorted(set(spelled.values()))  # so that no order of the texts shows in any rounding
        vectors, known = self._encode(model, order)
        where = {text: row for row, text in enumerate(order)}
        of_documents = np.fromiter((where[spelled[text]] for text in documents), np.int64, len(documents))
        of_submissions = np.fromiter((where[spelled[text]] for text in submissions), np.int64, len(submissions))
        known_submissions, known_documents = known[of_submissions], known[of_documents]
        comparisons: tuple[Comparison, ...] = ()
        space: _EncoderSpace | None = None
        if known_submissions.any() and known_documents.any():
            archive = np.unique(of_documents[known_documents])
            twins = np.full(len(order), -1, dtype=np.int64)
            twins[archive] = np.arange(archive.size)
            places = {works[order[row]]: at for at, row in enumerate(archive.tolist())}
            space = _EncoderSpace(self, model, vectors[archive], places)
            with one_blas_thread():
                vectors = smoothed(vectors, archive, twins, self._neighbours, self._share, self._threads, self._tick)
            comparisons = (
                Comparison(
                    "meaning",
                    vectors[of_submissions],
                    vectors[of_documents],
                    pooling="lse",
                    amount=self._temperature,
                ),
            )
        return TextModel((Group("encoder", comparisons, known_submissions, known_documents, space=space),))

    def describe(self) -> Mapping[str, Any]:
        """See `Vectorizer.describe`; raises as `fit` does."""
        model = open_model(self._model_folder)
        return {
            "scorer": "encoder",
            "model": {
                "name": model.name,
                "sha256": model.sha256,
                "fingerprint": model.fingerprint,
                "route": model.route,
            },
            "settings": {
                "tokens": min(self._tokens, model.positions),
                "neighbours": self._neighbours,
                "share": self._share,
                "temperature": self._temperature,
            },
        }

    def _tick(self) -> None:
        self._progress(1.0)

    def _moved(self, vectors: Vectors, archive: Vectors, twins: IntArray) -> Vectors:
        with one_blas_thread():
            return moved(vectors, archive, twins, self._neighbours, self._share)

    def _encode(self, model: SentenceModel, texts: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        """Vectors of shape (n_texts, dim), 0 where nothing is known, and whether something is."""
        limit = min(self._tokens, model.positions)
        prefix = f"{model.fingerprint} {limit}"
        keys = [hashlib.sha256(f"{prefix}\n{text}".encode("utf-8", "surrogatepass")).digest() for text in texts]
        cache = None if self._cache_folder is None else VectorCache(self._cache_folder / model.fingerprint[:16])
        found = {} if cache is None else cache.fetch(keys)
        missing: list[tuple[int, list[int]]] = []
        known = np.ones(len(texts), dtype=np.bool_)
        blank = {model.tokenizer.unknown, model.tokenizer.first, model.tokenizer.last}
        for row, text in enumerate(texts):
            if keys[row] not in found:
                pieces = model.tokenizer.encode(text, limit)
                if blank.issuperset(pieces) or not any(map(str.isalnum, text)):
                    known[row] = False
                else:
                    missing.append((row, pieces))
        log.info("%d texts: %d vectors from the cache, %d to compute", len(texts), len(found), len(missing))
        missing.sort(key=lambda entry: -len(entry[1]))  # long ones first: equally long ones end together
        found.update(self._compute(model, cache, [(keys[row], pieces) for row, pieces in missing]))
        width = next((vector.size for vector in found.values()), 1)
        vectors = np.zeros((len(texts), width), dtype=np.float32)
        for row in np.flatnonzero(known).tolist():
            vectors[row] = found[keys[row]]
        return vectors, known

    def _compute(
        self, model: SentenceModel, cache: VectorCache | None, wanted: Sequence[tuple[bytes, list[int]]]
    ) -> dict[bytes, Vectors]:
        done: dict[bytes, Vectors] = {}
        fresh: list[bytes] = []

        def keep() -> None:
            if cache is not None and fresh:
                cache.add(fresh, np.stack([done[key] for key in fresh]))
            fresh.clear()

        # one text a core, each with single-threaded products: twice as fast on two cores as products that are split,
        # and no vector depends on how many cores there are
        try:
            with one_blas_thread(), ThreadPoolExecutor(self._threads) as pool:
                for start in range(0, len(wanted), STEP):
                    self._progress(start / len(wanted))
                    part = wanted[start : start + STEP]
                    for (key, _), vector in zip(part, pool.map(model.network.encode, (pieces for _, pieces in part))):
                        if not np.isfinite(vector).all() or not vector.any():
                            why = "has no direction" if np.isfinite(vector).all() else "is not finite"
                            raise InvalidFileError(f"the weights of {model.name} are damaged: a vector {why}")
                        done[key] = vector
                        fresh.append(key)
                    if len(fresh) >= KEPT_EVERY:
                        keep()
        finally:
            keep()
        if wanted:
            self._progress(1.0)
        return done


class _EncoderSpace:
    """Vectors of texts that come later: moved toward the archive's, of which they do not become a part."""

    def __init__(
        self, encoder: EncoderVectorizer, model: SentenceModel, archive: Vectors, places: Mapping[bytes, int]
    ) -> None:
        self._encoder, self._model, self._archive, self._places = encoder, model, archive, places

    def documents(self, texts: Sequence[str]) -> Encoded:
        """See `Space`."""
        twins = np.fromiter((self._places.get(_work(text), -1) for text in texts), np.int64, len(texts))
        there = twins >= 0
        vectors = np.zeros((len(texts), self._archive.shape[1]), dtype=np.float32)
        known = there.copy()
        vectors[there] = self._archive[twins[there]]  # as the archive spells it
        if not there.all():
            fresh, known[~there] = self._encoder._encode(
                self._model, [text for text, old in zip(texts, there.tolist()) if not old]
            )
            if known[~there].any():
                vectors[~there] = fresh
        vectors[known] = self._encoder._moved(vectors[known], self._archive, twins[known])
        return Encoded((vectors,), (None,), known)

    submissions = documents


def _spellings(texts: Sequence[str], works: Mapping[str, bytes]) -> dict[bytes, str]:
    """Work -> its longest spelling, the last in the alphabet among equally long ones."""
    out: dict[bytes, str] = {}
    for text in set(texts):
        work = works[text]
        out[work] = max(out.get(work, ""), text, key=lambda spelling: (len(spelling), spelling))
    return out


def _work(text: str) -> bytes:
    """Equal for texts that differ in capitals, blanks and punctuation only; the same for all without any letter.

    Copies of one paper differ so from one co-author's list to the next. They are one text here, the longest: taken
    apart they would be each other's nearest neighbours, and a version more would change a profile's score.
    """
    return hashlib.sha256("".join(filter(str.isalnum, text.casefold())).encode("utf-8", "surrogatepass")).digest()
