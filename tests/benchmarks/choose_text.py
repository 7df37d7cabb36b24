"""How the settings of the lexical scorer were chosen: by cross-validation over participants, one curve each.

    python -m tests.benchmarks.choose_text [--versions 10] [--together] [--hybrid [--cache FOLDER]]

Every curve changes one setting and leaves the others at the chosen point. "cv" is the loss when the value is
chosen on the other participants (five folds, 40 draws): a curve on which it lies well above the best loss has
no optimum worth trusting. Differences under 0.02 are noise at 29 participants. The parts are written out here
once more, without any regard to speed, so that what the product does can be compared with something.
With --hybrid, one more curve is the encoder's share in the hybrid scorer, by the product's own code.
"""

import argparse
import itertools
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.extmath import randomized_svd

from matching.profiles.text import submission_text, tokens
from matching.scores.pooling import pool_lse, pool_mean, pool_top
from matching.scores.text import text_affinity
from matching.vectors import EncoderVectorizer, HybridVectorizer
from matching.vectors.hybrid import MEANING
from tests.benchmarks.gold import Losses, centred, load, standardised, texts_of

DIMENSIONS = (50, 100, 150, 200, 300, 400)
MUS = (25, 50, 100, 200, 400, 1000)
POOLS = {
    "mean": ("mean", 0), "top 1": ("top", 1), "top 2": ("top", 2), "top 3": ("top", 3), "top 5": ("top", 5),
    "top 8": ("top", 8), "top 10": ("top", 10), "lse 0.02": ("lse", 0.02), "lse 0.05": ("lse", 0.05),
    "lse 0.1": ("lse", 0.1), "lse 0.2": ("lse", 0.2), "lse 0.3": ("lse", 0.3), "lse 0.5": ("lse", 0.5),
    "lse 1": ("lse", 1.0),
}  # fmt: skip
CENTRES = (0.0, 0.25, 0.5, 0.75, 1.0)
HALF_LIVES = (None, 8.0, 4.0, 2.0, 1.0)
CENTROIDS = (2, 3, 5)
SHARES = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

WORDS = ("words", "sqrt", "mean", 0.5, None)
TOPICS = ("topics", 400, "lse 0.2", 0.5, None)
LANGUAGE = ("language", 100, "lse 0.2", 0.0, None)
WEIGHTS = (1.0, 1.0, 1.0)


class Study:
    """Similarities of submissions and documents of each version, computed once; pooled parts kept as pair vectors."""

    def __init__(self, versions):
        self.versions = versions
        self.losses = Losses(versions)
        self.similar = [self._similarities(version) for version in versions]
        self.kept = {}

    def _similarities(self, version):
        texts = texts_of(version)
        documents = [document.text for document in texts.documents]
        submissions = [submission_text(entry) for entry in version.submissions]
        distinct = sorted({*documents, *submissions})
        row = {text: at for at, text in enumerate(distinct)}
        left, right = [row[text] for text in submissions], [row[text] for text in documents]
        counts = CountVectorizer(analyzer=tokens).fit_transform(distinct).astype(float)
        idf = np.log((1 + counts.shape[0]) / (1 + counts.getnnz(axis=0))) + 1

        def weighted(change):
            vectors = counts.copy()
            vectors.data = change(vectors.data)
            vectors = vectors.multiply(idf).tocsr()
            return vectors.multiply(1 / np.sqrt(vectors.multiply(vectors).sum(axis=1))).tocsr()

        found = {"texts": texts}
        forms = {"raw": lambda n: n, "ln": lambda n: 1 + np.log(n), "sqrt": np.sqrt, "binary": np.ones_like}
        for name, change in forms.items():
            vectors = weighted(change)
            found["words", name] = (vectors[left] @ vectors[right].T).toarray()
        vectors = weighted(forms["ln"])
        axes = randomized_svd(vectors, n_components=max(DIMENSIONS), n_iter=4, random_state=0)[2]
        whole = vectors @ axes.T
        for size in DIMENSIONS:  # the leading axes of a larger decomposition are those of a smaller one
            latent = whole[:, :size] / np.linalg.norm(whole[:, :size], axis=1, keepdims=True)
            found["topics", size] = latent[left] @ latent[right].T
            found["latent", size] = latent[left], latent[right]
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        probability = np.asarray(counts.sum(axis=0)).ravel() / lengths.sum()
        shares = counts.multiply(1 / lengths[:, None]).tocsr()
        tfidf = weighted(forms["sqrt"])
        for mu in MUS:
            gains = counts.copy()
            gains.data = np.log1p(gains.data / (mu * probability[gains.indices]))
            offset = np.log(mu / (lengths[right] + mu))
            found["language", mu] = (shares[left] @ gains[right].T).toarray() + offset
            found["language of words", mu] = (tfidf[left] @ gains[right].T).toarray()
            profiles = np.add.reduceat(counts[right].toarray(), texts.indptr[:-1], axis=0)
            whole_gains = np.log1p(profiles / (mu * probability))
            found["one text", mu] = shares[left] @ whole_gains.T + np.log(mu / (profiles.sum(axis=1) + mu))
        return found

    def part(self, kind, form, pool, centre, half_life):
        """Standardised part as a vector over all rated pairs."""
        key = kind, form, pool, centre, half_life
        if key not in self.kept:
            found = []
            for version, similar in zip(self.versions, self.similar):
                pooled = self._pooled(version, similar, kind, form, pool, half_life)
                found.append(version.ahead(standardised(centred(pooled, centre))))
            self.kept[key] = np.concatenate(found)
        return self.kept[key]

    def _pooled(self, version, similar, kind, form, pool, half_life):
        texts = similar["texts"] if half_life is None else texts_of(version, half_life)
        if kind == "one text":
            return similar[kind, form]
        if pool.startswith("centroids"):
            return centroids(*similar["latent", form], texts, int(pool.split()[1]), float(pool.split()[2]))
        how, amount = POOLS[pool]
        similarities = similar[kind, form]
        if how == "mean":
            return pool_mean(similarities, texts.indptr, texts.weights)
        pooling = pool_top if how == "top" else pool_lse
        return pooling(similarities, texts.indptr, texts.weights, amount)

    def ahead(self, words=WORDS, topics=TOPICS, language=LANGUAGE, weights=WEIGHTS):
        chosen = [(part, weight) for part, weight in zip((words, topics, language), weights) if weight]
        return sum(weight * self.part(*part) for part, weight in chosen)

    def curve(self, title, settings, chosen):
        """Print the loss at every value of one setting; `settings` maps its names to arguments of `ahead`."""
        ahead = {name: self.ahead(**arguments) for name, arguments in settings.items()}
        return dict(zip(settings, self.shown(title, ahead, self.ahead(), chosen)))

    def product(self, vectorizer=None):
        """What the product's own scorer makes of the rated pairs."""
        found = (text_affinity(entry.submissions, entry.reviewers, vectorizer=vectorizer) for entry in self.versions)
        return np.concatenate([entry.ahead(scores.astype(float)) for entry, scores in zip(self.versions, found)])

    def shown(self, title, ahead, base, chosen):
        """Print the loss of every vector in `ahead` (name -> vector), against that of `base`; what each has wrong."""
        wrong = np.stack([self.losses.wrong(vector) for vector in ahead.values()])
        cv, share = self.losses.cross_validated(wrong)
        half = self.losses.halves(wrong)
        base = self.losses.wrong(base)
        print(f"\n{title}  (cv {cv:.4f}, halves {half:.4f})")
        print(f"  {'':<26}{'loss':>7}{'easy':>7}{'hard':>7}{'change and 95 % interval':>27}{'chosen':>8}")
        for at, (name, vector) in enumerate(ahead.items()):
            delta, low, high = self.losses.change(wrong[at], base)
            mark = "*" if name == chosen else " "
            print(
                f"{mark} {name!s:<26}{self.losses.loss(wrong[at]):>7.4f}{self.losses.share(vector, 1):>7.3f}"
                f"{self.losses.share(vector, 2):>7.3f}{delta:>+9.4f} [{low:+.4f}, {high:+.4f}]{share[at]:>8.2f}"
            )
        return wrong


def centroids(left, right, texts, count, temperature):
    """Soft maximum over a few means of each reviewer's latent vectors (spherical k-means, seeded by the farthest)."""
    columns = []
    for start, end in itertools.pairwise(texts.indptr):
        own = right[start:end]
        seeds = [0]
        while len(seeds) < min(count, len(own)):
            seeds.append(int(np.argmin((own @ own[seeds].T).max(axis=1))))
        means = own[seeds]
        for _ in range(10):
            label = np.argmax(own @ means.T, axis=1)
            means = np.stack([own[label == k].sum(axis=0) for k in range(len(means)) if (label == k).any()])
            means /= np.linalg.norm(means, axis=1, keepdims=True)
        label = np.argmax(own @ means.T, axis=1)
        size = np.bincount(label, minlength=len(means)) / len(own)
        # the length of a mean of unit vectors says how much they agree; it belongs to the similarity
        inner = np.stack([own[label == k].mean(axis=0) if (label == k).any() else means[k] for k in range(len(means))])
        with np.errstate(divide="ignore"):
            exponent = left @ inner.T / temperature + np.log(size)
        best = exponent.max(axis=1, keepdims=True)
        columns.append(temperature * (best[:, 0] + np.log(np.exp(exponent - best).sum(axis=1))))
    return np.stack(columns, axis=1)


def changed(part, **changes):
    """A part with some of its settings changed."""
    names = ("kind", "form", "pool", "centre", "half_life")
    return tuple(changes.get(name, value) for name, value in zip(names, part))


def curves(study):
    def over(title, key, part, name, values, chosen):
        study.curve(title, {str(value): {key: changed(part, **{name: value})} for value in values}, str(chosen))

    over("words: term frequency", "words", WORDS, "form", ("raw", "ln", "sqrt", "binary"), "sqrt")
    over("words: pooling", "words", WORDS, "pool", POOLS, "mean")
    over("words: centre", "words", WORDS, "centre", CENTRES, 0.5)
    over("topics: dimensions", "topics", TOPICS, "form", DIMENSIONS, 400)
    means = [f"centroids {count} 0.2" for count in CENTROIDS]
    over("topics: pooling", "topics", TOPICS, "pool", [*POOLS, *means], "lse 0.2")
    over("topics: centre", "topics", TOPICS, "centre", CENTRES, 0.5)
    over("language: mu", "language", LANGUAGE, "form", MUS, 100)
    over("language: pooling", "language", LANGUAGE, "pool", POOLS, "lse 0.2")
    over("language: centre", "language", LANGUAGE, "centre", CENTRES, 0.0)
    whole = {f"mu {mu}": {"language": ("one text", mu, "", 0.0, None)} for mu in MUS}
    study.curve("language: the profile as one text", {"as chosen": {}, **whole}, "as chosen")
    half = changed(LANGUAGE, pool="mean", centre=0.5)
    shared = {f"mu {mu}": {"language": ("language of words", mu, "mean", 0.5, None)} for mu in MUS}
    study.curve(
        "language: mean, centre 0.5, query words weighted as in words",
        {"as chosen": {}, "mean, centre 0.5": {"language": half}, **shared},
        "as chosen",
    )
    recent = {
        str(years): {
            key: changed(part, half_life=years)
            for key, part in (("words", WORDS), ("topics", TOPICS), ("language", LANGUAGE))
        }
        for years in HALF_LIVES
    }
    study.curve("recency: half-life in years", recent, "None")
    grid = [weights for weights in itertools.product((0.0, 0.5, 1.0, 2.0), repeat=3) if max(weights) == 1.0]
    weights = {" ".join(f"{weight:g}" for weight in entry): {"weights": entry} for entry in grid}
    weights["0.5 1 2"], weights["2 1 0.5"] = {"weights": (0.5, 1.0, 2.0)}, {"weights": (2.0, 1.0, 0.5)}
    study.curve("weights of words, topics, language", weights, "1 1 1")


def cheaper(study):
    """Routes with fewer inner products a pair, against the chosen one."""
    mean = changed(LANGUAGE, pool="mean")
    settings = {"as chosen": {}}
    for centre in (0.0, 0.25, 0.5):
        settings[f"language mean c{centre}"] = {"language": changed(mean, centre=centre)}
    for size in (100, 200, 400):
        settings[f"topics mean {size}"] = {"topics": changed(TOPICS, pool="mean", form=size)}
        settings[f"topics mean {size}, lang mean"] = {
            "topics": changed(TOPICS, pool="mean", form=size),
            "language": changed(mean, centre=0.25),
        }
        settings[f"topics lse {size}, lang mean"] = {
            "topics": changed(TOPICS, form=size),
            "language": changed(mean, centre=0.25),
        }
        for count in (2, 3):
            settings[f"topics {count} means {size}, lang mean"] = {
                "topics": changed(TOPICS, pool=f"centroids {count} 0.2", form=size),
                "language": changed(mean, centre=0.25),
            }
    settings["no language"] = {"weights": (1.0, 1.0, 0.0)}
    settings["no topics"] = {"weights": (1.0, 0.0, 1.0)}
    settings["no words"] = {"weights": (0.0, 1.0, 1.0)}
    settings["no topics, lang mean"] = {"weights": (1.0, 0.0, 1.0), "language": changed(mean, centre=0.25)}
    study.curve("cheaper routes", settings, "as chosen")


def hybrid(study, cache):
    """The encoder's share; the texts are encoded once."""
    found = {
        share: study.product(HybridVectorizer(EncoderVectorizer(cache_folder=cache), share=share))
        for share in sorted({*SHARES, MEANING})
    }
    study.shown("hybrid: share of the encoder", found, found[MEANING], MEANING)


def together(study):
    """All settings chosen at once, each on the other participants."""
    words = [changed(WORDS, centre=centre) for centre in (0.25, 0.5, 0.75)]
    topics = [
        changed(TOPICS, form=size, pool=pool, centre=centre)
        for size, pool, centre in itertools.product(
            (100, 200, 400), ("mean", "lse 0.1", "lse 0.2", "lse 0.5"), (0.25, 0.5, 0.75)
        )
    ]
    language = [
        changed(LANGUAGE, form=mu, pool=pool, centre=centre)
        for mu, pool, centre in itertools.product(
            (50, 100, 200), ("mean", "top 5", "lse 0.1", "lse 0.2", "lse 0.5"), (0.0, 0.5)
        )
    ]
    weights = [(1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2)]
    wrong, names = [], []
    for first, second, third, share in itertools.product(words, topics, language, weights):
        wrong.append(study.losses.wrong(study.ahead(first, second, third, share)))
        names.append((first, second, third, share))
    wrong = np.stack(wrong)
    losses = study.losses.loss(wrong)
    cv, _ = study.losses.cross_validated(wrong, repeats=20)
    print(f"\nall at once: {len(wrong)} settings, cv {cv:.4f}, halves {study.losses.halves(wrong, 100):.4f}")
    print(f"  lowest {losses.min():.4f}, tenth of the settings below {np.quantile(losses, 0.1):.4f}, ", end="")
    print(f"median {np.median(losses):.4f}, highest {losses.max():.4f}")
    print(f"  lowest at {names[int(losses.argmin())]}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", type=int, default=10)
    parser.add_argument("--together", action="store_true", help="also choose all settings at once (minutes)")
    parser.add_argument("--hybrid", action="store_true", help="also the encoder's share (minutes without a cache)")
    parser.add_argument("--cache", type=Path, help="folder in which a sentence encoder keeps its vectors")
    options = parser.parse_args()
    chosen = Study(load(options.versions))
    here, there = (chosen.losses.loss(chosen.losses.wrong(vector)) for vector in (chosen.ahead(), chosen.product()))
    print(f"{options.versions} versions, chosen point: loss {here:.4f}; the product's own lexical scorer {there:.4f}")
    curves(chosen)
    cheaper(chosen)
    if options.hybrid:
        with TemporaryDirectory() as folder:
            hybrid(chosen, options.cache or Path(folder))
    if options.together:
        together(chosen)
