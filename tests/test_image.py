"""service/Dockerfile and .dockerignore, checked without Docker: what goes into the image, and what must not."""

from __future__ import annotations

import re
import tomllib

import pytest

from service.config import SETTINGS_HELP
from tests.container_files import (
    DOCKERFILE,
    ROOT,
    SECRET_WORDS,
    Stage,
    command,
    compose,
    environment,
    option,
    pinned,
    sent_to_docker,
    stages,
)

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OURS = ("scheduler", "worker", "api")
BUILD_TOOLS = re.compile(r"\b(gcc|g\+\+|make|build-essential|apt-get|apk|curl|wget|git|pip3? install)\b")


def dockerfile_faults(text: str | None = None) -> list[str]:
    """What must not be in the image, or is missing from it."""
    built = stages(text)
    names: list[str] = []
    found = []
    for stage in built:
        if stage.base not in names and not pinned(stage.base):
            found.append(f"FROM {stage.base} names no version")
        for copy in stage.of("COPY"):
            origin = copy.flags.get("from")
            if origin is not None:
                if origin not in names:
                    found.append(f"COPY --from={origin} names no earlier stage")
                continue
            for source in copy.words[:-1]:
                if not (ROOT / source).exists():
                    found.append(f"COPY {source}: there is no such file")
                elif not sent_to_docker(source):
                    found.append(f"COPY {source}: .dockerignore keeps it out")
        found += [f"ADD {add.rest}: COPY says what it does" for add in stage.of("ADD")]
        found += [
            f"{setting.word} {setting.rest}: a secret would stay in the image"
            for setting in (*stage.of("ENV"), *stage.of("ARG"))
            if SECRET_WORDS.search(setting.rest)
        ]
        names.append(stage.name or "")
    return found + last_stage_faults(built[-1])


def last_stage_faults(stage: Stage) -> list[str]:
    found = []
    users = stage.of("USER")
    if not users or not re.fullmatch(r"[1-9]\d*(:[1-9]\d*)?", users[-1].rest):
        found.append("the image must run as a user that is a number above 0")
    elif any(run for run in stage.instructions[stage.instructions.index(users[-1]) :] if run.word == "RUN"):
        found.append("nothing is installed after USER")
    for word in ("CMD", "HEALTHCHECK"):
        if len(stage.of(word)) != 1:
            found.append(f"the image needs one {word}")
    if any(start.argv is None for start in (*stage.of("CMD"), *stage.of("ENTRYPOINT"))):
        found.append("CMD in shell form: the shell would not hand on signals")
    found += [f"RUN {run.rest}: no build tools in the image" for run in stage.of("RUN") if BUILD_TOOLS.search(run.rest)]
    found += [
        f"ENV {name}: no such setting"
        for name in environment(stage)
        if name.startswith("REVMATCH_") and name not in SETTINGS_HELP
    ]
    return found


def test_the_dockerfile_passes_every_check() -> None:
    """Several stages, the last of which has an environment, a user and a command, and no tools."""
    assert dockerfile_faults() == []
    assert len(stages()) > 1


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("FROM python:3.11-slim-bookworm AS wheel", "FROM python:latest AS wheel", "names no version"),
        ("FROM python:3.11-slim-bookworm AS wheel", "FROM python AS wheel", "names no version"),
        ("COPY fixtures ./fixtures", "COPY fixture ./fixtures", "there is no such file"),
        ("COPY fixtures ./fixtures", "COPY tests ./tests", ".dockerignore keeps it out"),
        ("COPY fixtures ./fixtures", "ADD fixtures ./fixtures", "COPY says what it does"),
        ("COPY --from=environment", "COPY --from=nowhere", "no earlier stage"),
        ("USER 10001:10001", "USER root", "must run as a user"),
        ("USER 10001:10001\n", "", "must run as a user"),
        ("USER 10001:10001", "USER 10001\nUSER 0", "must run as a user"),
        ("EXPOSE 8300", "RUN true", "after USER"),
        ("CMD [\"gunicorn\"", "CMD gunicorn [\"x\"", "shell form"),
        ("HEALTHCHECK", "LABEL", "needs one HEALTHCHECK"),
        ("ENV PATH", "ENV REVMATCH_TOKEN=abc PATH", "would stay in the image"),
        ("REVMATCH_PORT=8300", "REVMATCH_PORTS=8300", "no such setting"),
        ("RUN python -m pip uninstall --yes", "RUN apt-get install --yes gcc", "no build tools"),
    ],
)  # fmt: skip
def test_a_careless_change_to_the_dockerfile_is_reported(old: str, new: str, said: str) -> None:
    """As for the compose file."""
    text = DOCKERFILE.read_text(encoding="utf-8")
    assert old in text
    assert any(said in fault for fault in dockerfile_faults(text.replace(old, new, 1)))


def test_the_image_and_the_compose_file_say_the_same() -> None:
    """`docker run` of the image alone starts what compose starts."""
    last = stages()[-1]
    services = compose()["services"]
    assert last.of("CMD")[0].argv == command("api")
    check = last.of("HEALTHCHECK")[0].rest.partition(" CMD ")[2]
    assert check == str(services["api"]["healthcheck"]["test"][1:]).replace("'python'", '"python"').replace(
        "'-c'", '"-c"'
    )
    user = last.of("USER")[0].rest
    for service in OURS:
        assert services[service]["user"] == user
        assert services[service]["image"] == f"revmatch:{PROJECT['project']['version']}"
        assert ROOT / services[service]["build"]["dockerfile"] == DOCKERFILE
    target = services["worker"]["volumes"][0].split(":")[1]
    assert last.of("WORKDIR")[-1].rest == target  # made in the image for its user; a volume takes over the owner
    assert any(f"--owner={user.split(':')[0]}" in run.rest and target in run.rest for run in last.of("RUN"))
    assert option(command("worker"), "--local-directory") == target


def test_the_image_installs_the_extra_for_containers() -> None:
    """gunicorn and the PostgreSQL driver are no dependencies of their own."""
    assert any("[container]" in run.rest for stage in stages() for run in stage.of("RUN"))


def test_the_wheel_in_the_image_is_made_of_all_it_needs() -> None:
    """pyproject.toml names files outside the packages: a build that lacks one fails only in Docker."""
    copied = {source.rstrip("/") for copy in stages()[0].of("COPY") for source in copy.words[:-1]}
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    project = PROJECT["project"]
    assert {"pyproject.toml", project["readme"], *project["license-files"]} <= copied
    assert {*wheel["packages"], *wheel["force-include"]} <= copied


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("matching/engine.py", True),
        ("service/store/migrations/env.py", True),
        ("fixtures/icml2026/papers.jsonl", True),
        ("pyproject.toml", True),
        (".secrets/token", False),
        (".git/config", False),
        ("revmatch.db", False),
        ("tests/shared.py", False),
        (".venv/bin/python", False),
        ("matching/__pycache__/engine.cpython-311.pyc", False),
    ],
)
def test_the_build_context_holds_sources_and_no_secrets(path: str, sent: bool) -> None:
    """What is sent to Docker may end in a layer or a cache on another machine."""
    assert sent_to_docker(path) is sent
