"""When two written forms mean the same person, the same address or the same institution.

Addresses and ids are folded before they are compared; domains are compared by whole labels; institution
names only when they are equal after folding. Nothing here guesses: domains that merely look alike are
joined by an explicit alias table or not at all.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

from matching.profiles.known_domains import FREE_MAIL, PLACEHOLDER_AFFILIATIONS, PUBLIC_SUFFIXES, SUFFIX_LABELS

__all__ = [
    "FREE_MAIL",
    "PLACEHOLDER_AFFILIATIONS",
    "Institutions",
    "domain_of",
    "fold_address",
    "fold_domain",
    "fold_id",
    "fold_institution",
    "fold_name",
    "is_address",
    "is_full_name",
    "registrable_domain",
    "same_institution",
]

INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))  # come in by copy and paste
PLAIN_ADDRESS = re.compile(r"[a-z0-9][a-z0-9._+-]*@[a-z0-9-]+(\.[a-z0-9-]+)*")
EDGES = ";,." + "".join(char for char in map(chr, range(0x3001)) if char.isspace())  # around an address in a list
IN_BRACKETS = re.compile(r"<([^<>]*)>[\s;,.]*$")


def _fold(text: str) -> str:
    # Folding case can undo NFKC, so the form is taken once more after it.
    folded = unicodedata.normalize("NFKC", text.translate(INVISIBLE)).casefold()
    return unicodedata.normalize("NFKC", folded).strip()


def fold_address(text: str | None) -> str:
    """The form in which e-mail addresses are compared: trimmed, without ``Name <...>``, case-folded, NFKC.

    "" for a blank or missing text. What is no address comes back folded all the same; see `is_address`.
    """
    if not text:
        return ""
    if PLAIN_ADDRESS.fullmatch(text):
        return text  # the common case needs no work
    folded = _fold(text)
    wrapped = IN_BRACKETS.search(folded)
    folded = (wrapped[1] if wrapped else folded).strip(EDGES)
    while folded.startswith("mailto:"):
        folded = folded.removeprefix("mailto:").strip(EDGES)
    local, at, domain = folded.rpartition("@")
    return f"{local}@{_ascii_domain(domain)}" if at else folded


def is_address(folded: str) -> bool:
    """Whether a folded text has the form of an address, so that "n/a" in an address field joins nobody."""
    local, at, domain = folded.rpartition("@")
    return bool(at and local and domain) and not any(map(str.isspace, folded))


def fold_id(text: str | None) -> str:
    """The form in which ids are compared where no record has exactly the given one.

    Addresses fold as addresses; any other id is trimmed, case-folded and NFKC.
    """
    if not text:
        return ""
    return fold_address(text) if "@" in text else _fold(text)


def fold_name(text: str | None) -> str:
    """The form in which personal names are compared for notices: no accents, dots or capitals, family name last."""
    if not text:
        return ""
    bare = "".join(mark for mark in unicodedata.normalize("NFKD", _fold(text)) if not unicodedata.combining(mark))
    family, comma, given = bare.partition(",")
    if comma and given.strip() and "," not in given:
        bare = f"{given} {family}"
    return " ".join(bare.replace(".", " ").split())


def is_full_name(folded: str) -> bool:
    """Whether a folded name has more than one part, or is written in a script that does not space names."""
    return " " in folded or (len(folded) > 1 and all(mark >= "\u2e80" for mark in folded))


def _ascii_domain(domain: str) -> str:
    """Without outer dots; internationalised labels in their ASCII form, so that both spellings are equal."""
    domain = domain.strip(" .")
    if domain.isascii():
        return domain
    try:
        return domain.encode("idna").decode("ascii")
    except UnicodeError:
        return domain


def fold_domain(text: str | None) -> str:
    """A domain in comparable form, from ``uni.example``, ``@uni.example``, ``*.uni.example``, an address or a URL."""
    if not text:
        return ""
    folded = fold_address(text).rpartition("@")[2]
    folded = folded.partition("://")[2] if "://" in folded else folded
    return _ascii_domain(folded.partition("/")[0].removeprefix("*."))


def domain_of(address: str | None) -> str:
    """The domain of an address, folded; "" where the text is no address."""
    folded = fold_address(address)
    return folded.rpartition("@")[2] if is_address(folded) else ""


def registrable_domain(domain: str) -> str:
    """The part of a folded domain that an institution registers: ``uni.example`` of ``mail.cs.uni.example``.

    "" for a bare public suffix (``ac.uk``), a single label and a numeric address: those name no institution.
    """
    labels = domain.split(".")
    if len(labels) < 2 or not all(labels) or labels[-1].isdigit() or "]" in domain:
        return ""
    pair = f"{labels[-2]}.{labels[-1]}"
    public = pair in PUBLIC_SUFFIXES or (len(labels[-1]) == 2 and labels[-2] in SUFFIX_LABELS)
    wanted = 3 if public else 2
    return ".".join(labels[-wanted:]) if len(labels) >= wanted else ""


def _parents(domain: str) -> list[str]:
    """The domain and its parents, longest first."""
    labels = domain.split(".")
    return [".".join(labels[at:]) for at in range(len(labels))]


class Institutions:
    """Which institutions a domain or an affiliation speaks for, given an alias table and known mail providers.

    Two domains belong to one institution exactly when their `keys` share an element, so a join over keys finds
    all pairs without comparing each with each.

    Parameters
    ----------
    aliases : mapping of str to str
        Domain -> the domain it counts as, applied at every parent of a domain and repeatedly; cycles do no harm.
        An alias adds an institution, it never takes the domain's own away.
    free_mail : iterable of str
        Mail providers; their domains and sub-domains have no key. Default FREE_MAIL.
    """

    __slots__ = ("_aliases", "_cache", "_free_mail")

    def __init__(self, aliases: Mapping[str, str] | None = None, free_mail: Iterable[str] = FREE_MAIL) -> None:
        self._aliases: dict[str, set[str]] = {}
        for source, target in (aliases or {}).items():
            # two spellings of one domain may name different targets: both count
            self._aliases.setdefault(fold_domain(source), set()).add(fold_domain(target))
        self._free_mail = frozenset(folded for domain in free_mail if (folded := fold_domain(domain)))
        self._cache: dict[str, frozenset[str]] = {}

    def keys(self, domain: str) -> frozenset[str]:
        """Registrable domains that a folded domain counts as; empty for mail providers and public suffixes."""
        known = self._cache.get(domain)
        if known is None:
            known = self._cache[domain] = self._find(domain)
        return known

    def _find(self, domain: str) -> frozenset[str]:
        seen: set[str] = set()
        keys: set[str] = set()
        waiting = [domain]
        while waiting:
            current = waiting.pop()
            if not current or current in seen:
                continue
            seen.add(current)
            parents = _parents(current)
            if not self._free_mail.isdisjoint(parents):
                continue
            if key := registrable_domain(current):
                keys.add(key)
            for parent in parents:
                # a whole domain may be anything the table says; a parent must itself name an institution
                if parent == current or registrable_domain(parent):
                    waiting += self._aliases.get(parent, ())
        return frozenset(keys)


def same_institution(domain_a: str, domain_b: str, aliases: Mapping[str, str] | None = None) -> bool:
    """Whether two domains belong to one institution, by whole labels.

    ``mail.cs.uni.example`` and ``uni.example`` do, and so do two sub-domains of ``uni.example``;
    ``notuni.example`` and ``uni.example`` do not, nor do equal first labels under different suffixes. A bare
    public suffix or a single label matches nothing. Mail providers are not treated apart here; see `Institutions`.

    Parameters
    ----------
    domain_a, domain_b : str
        Domains or addresses, any capitals.
    aliases : mapping of str to str
        Domain -> the domain it counts as.
    """
    table = Institutions(aliases, free_mail=())
    return not table.keys(fold_domain(domain_a)).isdisjoint(table.keys(fold_domain(domain_b)))


def fold_institution(text: str | None) -> str:
    """An institution's name as compared: NFKC, case-folded, spaces collapsed; "" for a blank or placeholder."""
    if not text:
        return ""
    folded = " ".join(_fold(text).split())
    return "" if folded.strip(" .,;:-–—_/()[]?*'\"") in PLACEHOLDER_AFFILIATIONS else folded
