"""Readers of docker-compose.yml, service/Dockerfile and .dockerignore: as much of each as this project uses."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
COMPOSE_FILE = ROOT / "docker-compose.yml"
DOCKERFILE = ROOT / "service" / "Dockerfile"
IGNORE_FILE = ROOT / ".dockerignore"

SECRET_WORDS = re.compile(r"TOKEN|PASSWORD|SECRET|KEY", re.IGNORECASE)
"""Names under which nothing may be written down."""

INSTRUCTIONS = {
    "FROM", "RUN", "COPY", "ADD", "ENV", "ARG", "WORKDIR", "USER", "EXPOSE", "CMD", "ENTRYPOINT", "HEALTHCHECK",
    "LABEL", "VOLUME", "STOPSIGNAL", "SHELL", "ONBUILD",
}  # fmt: skip


def compose(text: str | None = None) -> dict[str, Any]:
    """The compose file with its anchors merged; variables stay as written."""
    loaded = yaml.safe_load(COMPOSE_FILE.read_text(encoding="utf-8") if text is None else text)
    assert isinstance(loaded, dict)
    return loaded


def interpolated(text: object, variables: dict[str, str] | None = None) -> str:
    """``${NAME:-default}`` as compose fills it in."""
    return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: (variables or {}).get(found[1]) or found[2], str(text))


def command(service: str) -> list[str]:
    """The words compose starts a service with."""
    words: list[str] = compose()["services"][service]["command"]
    return words


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


def pinned(image: str) -> bool:
    """Whether an image names a version, down to the minor one where it has one; "latest" is a surprise for later."""
    _, colon, tag = image.partition(":")
    return bool(colon) and re.match(r"\d+(\.\d+)*(-|$)", tag) is not None


@dataclass(frozen=True)
class Instruction:
    """One instruction of a Dockerfile: its word in capitals, and the rest with continued lines joined."""

    word: str
    rest: str

    @property
    def argv(self) -> list[str] | None:
        """The list of an instruction in exec form, None for one in shell form."""
        try:
            found = json.loads(self.rest)
        except ValueError:
            return None
        return found if isinstance(found, list) and all(isinstance(part, str) for part in found) else None

    @property
    def flags(self) -> dict[str, str]:
        """``--name=value`` words in front."""
        return dict(re.findall(r"(?:^|\s)--([a-z-]+)=(\S+)", self.rest.split(" CMD ")[0]))

    @property
    def words(self) -> list[str]:
        """Words behind the flags."""
        return [word for word in shlex.split(self.rest) if not re.match(r"--[a-z-]+=", word)]


@dataclass(frozen=True)
class Stage:
    """FROM and what follows it."""

    base: str
    name: str | None
    instructions: tuple[Instruction, ...]

    def of(self, word: str) -> list[Instruction]:
        return [instruction for instruction in self.instructions if instruction.word == word]


def stages(text: str | None = None) -> list[Stage]:
    """A Dockerfile, stage by stage.

    Raises
    ------
    ValueError
        A line that is no instruction.
    """
    text = DOCKERFILE.read_text(encoding="utf-8") if text is None else text
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines)).splitlines()
    found: list[tuple[str, str | None, list[Instruction]]] = []
    for line in joined:
        word, _, rest = line.partition(" ")
        word, rest = word.upper(), re.sub(r"\s+", " ", rest.strip())
        if word not in INSTRUCTIONS:
            raise ValueError(f"{line!r} is no instruction")
        if word == "FROM":
            base, _, name = re.sub(r" as ", " AS ", rest, flags=re.IGNORECASE).partition(" AS ")
            found.append((base, name or None, []))
        elif found:
            found[-1][2].append(Instruction(word, rest))
        elif word != "ARG":
            raise ValueError(f"{line!r} stands before the first FROM")
    return [Stage(base, name, tuple(instructions)) for base, name, instructions in found]


def environment(stage: Stage) -> dict[str, str]:
    """ENV of a stage."""
    return dict(pair.split("=", 1) for env in stage.of("ENV") for pair in shlex.split(env.rest))


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    parts = []
    for piece in re.split(r"(\*\*/?|\*|\?)", pattern):
        parts.append({"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(piece, re.escape(piece)))
    return re.compile("".join(parts))


def sent_to_docker(path: str, text: str | None = None) -> bool:
    """Whether a file is in the build context: the last pattern that matches it, or a folder it is in, decides."""
    text = IGNORE_FILE.read_text(encoding="utf-8") if text is None else text
    sent = True
    whole = PurePosixPath(path)
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        keep, pattern = line.startswith("!"), line.removeprefix("!").strip("/")
        if any(_pattern(pattern).fullmatch(str(part)) for part in (whole, *whole.parents) if str(part) != "."):
            sent = keep
    return sent
