"""Solutions with one number changed, and restated so that nothing else gives the change away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np
from scipy import sparse

from matching.solvers.base import Proof, Solution

NOT_NUMBERS = (np.nan, np.inf, -np.inf)


def mutants(rng: np.random.Generator, solution: Solution, count: int) -> Iterator[tuple[str, Solution]]:
    """`count` changed solutions, each with a word for what was changed."""
    makers = [_pairs, _stated, *([_proof] * 6 if solution.proofs else [_prices] * 3)]
    if solution.probabilities is not None:
        makers.append(_probability)
    if solution.mixture:
        makers += [_chance, _plan]
    made = 0
    while made < count:
        mutant = makers[rng.integers(len(makers))](rng, solution)
        if mutant is not None:
            made += 1
            yield mutant


def _step(rng):
    if rng.random() < 0.08:
        return float(rng.choice(NOT_NUMBERS))
    return float(rng.choice([-1.0, 1.0]) * rng.choice([1e-4, 0.01, 0.3, 2.0]))


def _entry(rng, values, step):
    """One entry changed; sparse arrays keep their places."""
    if sparse.issparse(values):
        out = sparse.csr_array(values, dtype=float, copy=True)
        if not out.nnz:
            place = tuple(int(rng.integers(size)) for size in out.shape)
            return sparse.csr_array(([step], ([place[0]], [place[1]])), shape=out.shape)
        out.data[rng.integers(out.nnz)] += step
        return out
    out = np.array(values, dtype=float)
    if out.size:
        out.flat[rng.integers(out.size)] += step
    return out


def _pairs(rng, solution):
    if not len(solution.pairs):
        return None
    pairs = solution.pairs.copy()
    if rng.random() < 0.3:
        return "pair dropped", replace(solution, pairs=np.delete(pairs, rng.integers(len(pairs)), axis=0))
    pairs[rng.integers(len(pairs)), 1] = rng.integers(solution.reviewer_prices.size)
    return "pair changed", replace(solution, pairs=pairs)


def _stated(rng, solution):
    """Value or bound moved, with the gap that goes with it, in the solution and in its first proof."""
    name = str(rng.choice(["value", "bound", "gap"]))
    numbers = {key: getattr(solution, key) for key in ("value", "bound", "gap")}
    numbers[name] += _step(rng)
    if name != "gap":
        numbers["gap"] = abs(numbers["bound"] - numbers["value"])
    proofs = solution.proofs
    if proofs:
        proofs = (replace(proofs[0], **numbers), *proofs[1:])
    return f"stated {name}", replace(solution, proofs=proofs, **numbers)


def _prices(rng, solution):
    name = str(rng.choice(["submission_prices", "reviewer_prices"]))
    changed = _entry(rng, getattr(solution, name), _step(rng))
    return name, _boast(rng, replace(solution, **{name: changed}))


def _proof(rng, solution):
    at = int(rng.integers(len(solution.proofs)))
    proof = solution.proofs[at]
    names = [field.name for field in fields(Proof) if field.name not in ("wish", "gap", "cap")]
    name = str(rng.choice(names))
    changed = _part(rng, proof, name)
    if changed is None:
        return None
    proofs = list(solution.proofs)
    proofs[at] = replace(proof, **{name: changed})
    if name in ("value", "bound"):
        proofs[at] = replace(proofs[at], gap=abs(proofs[at].bound - proofs[at].value))
    last = proofs[-1]
    out = replace(
        solution, proofs=tuple(proofs), submission_prices=last.submission_prices, penalty=last.penalty,
        reviewer_prices=last.reviewer_prices, value=proofs[0].value, bound=proofs[0].bound, gap=proofs[0].gap,
    )  # fmt: skip
    return f"proof {at} {name}", _boast(rng, out)


def _part(rng, proof, name):
    value, step = getattr(proof, name), _step(rng)
    if name in ("value", "bound", "penalty"):
        return value + step
    if name == "whole":
        return not value
    if name == "height":
        return None if value is None else value * (1 + step) if rng.random() < 0.5 else value + step
    if name in ("weights", "submission_prices", "reviewer_prices"):
        return _entry(rng, value, step) if rng.random() < 0.8 else np.asarray(value) * (1 + step)
    if value is None or (isinstance(value, tuple) and not value):
        return None
    if name == "constraints":
        at = int(rng.integers(len(value)))
        measure, least = value[at]
        changed = (measure, least + step) if rng.random() < 0.6 else (_measure(rng, measure, step), least)
        return tuple(changed if place == at else entry for place, entry in enumerate(value))
    if name == "multipliers":
        at = int(rng.integers(len(value)))
        k, z = value[at]
        changed = (k + step, z) if rng.random() < 0.5 else (k, _entry(rng, z, step))
        return tuple(changed if place == at else entry for place, entry in enumerate(value))
    if name == "rule_prices":
        at = int(rng.integers(len(value)))
        return tuple(_entry(rng, entry, step) if place == at else entry for place, entry in enumerate(value))
    if name == "measure":
        return _measure(rng, value, step)
    return _entry(rng, value, step)  # anchor, reviewer_terms


def _measure(rng, measure, step):
    """The measure with one of its own numbers changed."""
    held = vars(measure)
    if not held:
        return measure
    name = str(rng.choice(sorted(held)))
    value = held[name]
    if isinstance(value, np.ndarray) and value.dtype == bool:
        changed = value.copy()
        at = int(rng.integers(value.size))
        changed[at] = not changed[at]
        return replace(measure, **{name: changed})
    return replace(measure, **{name: _entry(rng, value, step) if isinstance(value, np.ndarray) else value + step})


def _probability(rng, solution):
    return "probability", replace(solution, probabilities=_entry(rng, solution.probabilities, _step(rng)))


def _chance(rng, solution):
    """Chances moved from one plan to another, or one changed; half of the time with the probabilities that follow."""
    mixture = list(solution.mixture)
    step = _step(rng)
    at, to = (int(rng.integers(len(mixture))) for _ in range(2))
    mixture[at] = (mixture[at][0] + step, mixture[at][1])
    if rng.random() < 0.7:
        mixture[to] = (mixture[to][0] - step, mixture[to][1])
    return "chance", _restated(rng, replace(solution, mixture=tuple(mixture)))


def _plan(rng, solution):
    """A pair of a plan changed, or the plan left out; half of the time with the probabilities that follow."""
    mixture = list(solution.mixture)
    at = int(rng.integers(len(mixture)))
    chance, pairs = mixture[at]
    if not len(pairs):
        return None
    if rng.random() < 0.2:
        del mixture[at]
    else:
        pairs = pairs.copy()
        pairs[rng.integers(len(pairs)), 1] = rng.integers(solution.reviewer_prices.size)
        mixture[at] = (chance, pairs)
    return "plan of the lottery", _restated(rng, replace(solution, mixture=tuple(mixture)))


def _restated(rng, solution):
    if rng.random() < 0.5 or not all(np.isfinite(chance) for chance, _ in solution.mixture):
        return solution
    shares = np.zeros(solution.probabilities.shape)
    for chance, pairs in solution.mixture:
        np.add.at(shares, (pairs[:, 0], pairs[:, 1]), chance)
    return replace(solution, probabilities=sparse.csr_array(shares))


def _boast(rng, solution):
    """Half of them claim to be proven best, whatever their numbers say."""
    if rng.random() < 0.5:
        return solution
    proofs = tuple(replace(proof, bound=proof.value, gap=0.0) for proof in solution.proofs)
    return replace(solution, proofs=proofs, bound=solution.value, gap=0.0)
