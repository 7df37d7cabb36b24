"""docker-compose.yml, checked without Docker: what it says is safe, and fits the code.

`tests/test_image.py` looks at the image, `tests/test_topology.py` runs the same commands.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import tomllib
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import dask.config
import distributed  # noqa: F401  (loads its part of the configuration)
import pytest

from service.cluster import SETTINGS as CLUSTER_SETTINGS
from service.config import SETTINGS_HELP, Settings
from service.errors import SettingsError
from tests.container_files import ROOT, SECRET_WORDS, command, compose, interpolated, option, pinned

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OURS = ("scheduler", "worker", "api")
SERVICE_KEYS = {
    "build", "cap_drop", "command", "depends_on", "deploy", "environment", "healthcheck", "image", "init", "logging",
    "networks", "ports", "read_only", "restart", "secrets", "security_opt", "shm_size", "stop_grace_period", "tmpfs",
    "user", "volumes",
}  # fmt: skip


def compose_faults(file: dict[str, Any]) -> list[str]:
    """What a careful operator would not let through."""
    found = []
    for name, service in file["services"].items():
        found += [f"{name}: unknown key {key}" for key in sorted(set(service) - SERVICE_KEYS)]
        user = str(service.get("user", ""))
        limits = service.get("deploy", {}).get("resources", {}).get("limits", {})
        for missing, reason in (
            (not re.fullmatch(r"[1-9]\d*:[1-9]\d*", user), "must run as a user and group that are numbers above 0"),
            (service.get("read_only") is not True, "must have a read-only root file system"),
            (service.get("cap_drop") != ["ALL"], "must give up every capability"),
            ("no-new-privileges:true" not in service.get("security_opt", ()), "must not gain privileges"),
            (service.get("restart") not in ("unless-stopped", "always", "on-failure"), "must be started again"),
            (
                service.get("healthcheck", {}).get("test", ["NONE"])[0] not in ("CMD", "CMD-SHELL"),
                "needs a health check",
            ),
            (not {"cpus", "memory", "pids"} <= set(limits), "needs limits of cpus, memory and processes"),
            (not pinned(service.get("image", "")), "needs an image with a version"),
            (not any(str(entry).startswith("/tmp") for entry in service.get("tmpfs", ())), "needs a /tmp it can write"),
            (not service.get("logging", {}).get("options", {}).get("max-size"), "needs logs that end"),
        ):
            if missing:
                found.append(f"{name} {reason}")
        for variable, value in service.get("environment", {}).items():
            if SECRET_WORDS.search(variable):
                given = str(value).removeprefix("/run/secrets/")
                if not variable.endswith("_FILE") or given not in service.get("secrets", ()):
                    found.append(f"{name}: {variable} must name the file of a secret the service is given")
            if re.search(r"//[^/@\s]*:[^/@\s]*@", str(value)):
                found.append(f"{name}: {variable} holds a password")
            if variable.startswith("REVMATCH_") and variable not in SETTINGS_HELP:
                found.append(f"{name}: there is no setting {variable}")
        for secret in service.get("secrets", ()):
            if secret not in file.get("secrets", {}):
                found.append(f"{name}: there is no secret {secret}")
        for volume in service.get("volumes", ()):
            if volume.split(":")[0] not in file.get("volumes", {}):
                found.append(f"{name}: {volume} is no named volume")
        for needed, how in service.get("depends_on", {}).items():
            if needed not in file["services"] or how.get("condition") != "service_healthy":
                found.append(f"{name} must wait until {needed} is healthy")
        if service.get("ports"):
            open_to = [interpolated(port).rsplit(":", 2)[0] for port in service["ports"]]
            if open_to != ["127.0.0.1"]:
                found.append(f"{name} is published beyond this machine")
        elif any(
            not (file["networks"][network] or {}).get("internal") for network in service.get("networks", ["default"])
        ):
            found.append(f"{name} must be on internal networks only")
    for secret, source in file.get("secrets", {}).items():
        if set(source) != {"file"} or not source["file"].startswith("./.secrets/"):
            found.append(f"secret {secret} must come from a file in .secrets")
    return found


def test_the_compose_file_passes_every_check() -> None:
    """One file a stranger starts on a server: it is safe as it stands."""
    assert compose_faults(compose()) == []
    assert set(compose()["services"]) == {"db", *OURS}


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda s: s["db"].pop("user"), "db must run as a user"),
        (lambda s: s["api"].update(user="0:0"), "api must run as a user"),
        (lambda s: s["worker"].update(read_only=False), "worker must have a read-only"),
        (lambda s: s["api"].pop("cap_drop"), "api must give up"),
        (lambda s: s["api"].update(security_opt=[]), "api must not gain"),
        (lambda s: s["db"].pop("restart"), "db must be started again"),
        (lambda s: s["scheduler"].pop("healthcheck"), "scheduler needs a health check"),
        (lambda s: s["worker"]["deploy"].pop("resources"), "worker needs limits"),
        (lambda s: s["db"].update(image="postgres:latest"), "db needs an image"),
        (lambda s: s["db"].update(image="postgres"), "db needs an image"),
        (lambda s: s["api"]["environment"].update(REVMATCH_TOKEN="abc"), "REVMATCH_TOKEN must name the file"),
        (lambda s: s["db"]["environment"].update(POSTGRES_PASSWORD="abc"), "POSTGRES_PASSWORD must name the file"),
        (lambda s: s["api"]["environment"].update(REVMATCH_DATABASE_URL="postgresql://a:b@db/c"), "holds a password"),
        (lambda s: s["api"]["environment"].update(REVMATCH_WORKERS="2"), "no setting REVMATCH_WORKERS"),
        (lambda s: s["api"].update(secrets=["nothing"]), "no secret nothing"),
        (lambda s: s["api"].update(privileged=True), "unknown key privileged"),
        (lambda s: s["api"].update(volumes=["/:/host"]), "is no named volume"),
        (lambda s: s["api"].update(ports=["8300:8300"]), "published beyond"),
        (lambda s: s["scheduler"].update(networks=["outside"]), "scheduler must be on internal"),
        (lambda s: s["scheduler"].pop("networks"), "scheduler must be on internal"),
        (lambda s: s["api"]["depends_on"].update(db={"condition": "service_started"}), "api must wait"),
    ],
)
def test_a_careless_change_to_the_compose_file_is_reported(spoil: Callable[[Any], object], said: str) -> None:
    """A check that accepts everything proves nothing: one change of each kind must be found."""
    file = deepcopy(compose())
    file["networks"]["default"] = {}
    spoil(file["services"])
    assert any(said in fault for fault in compose_faults(file)), compose_faults(file)


@pytest.mark.parametrize("service", OURS)
def test_every_command_is_one_the_image_has(service: str) -> None:
    """The first word is a command of a package that the extra for containers installs."""
    scripts = importlib.metadata.entry_points(group="console_scripts")
    provided = {script.name: script.dist.name for script in scripts if script.dist is not None}
    wanted = [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["container"]]
    names = {re.match(r"[A-Za-z0-9-]+", requirement)[0] for requirement in wanted} | {"dask"}  # type: ignore[index]
    assert provided[command(service)[0]] in names  # dask is what distributed is a part of


@pytest.mark.parametrize("service", ["scheduler", "worker"])
def test_dask_understands_its_options(service: str) -> None:
    """An option renamed by a new release would stop the service at its start."""
    words = command(service)
    assert words[:2] == ["dask", service]
    main = importlib.import_module(f"distributed.cli.dask_{service}").main
    main.make_context(service, list(words[2:]))  # raises on an option it does not know


def test_gunicorn_starts_the_application_factory() -> None:
    """The name in the command is the function in the code."""
    words = command("api")
    module, _, call = words[1].partition(":")
    assert call.endswith("()")
    assert callable(getattr(importlib.import_module(module), call.removesuffix("()")))
    assert "--preload" not in words  # threads and connections do not survive a fork


def test_the_parts_find_each_other() -> None:
    """Addresses and ports are said in several places and must agree."""
    services = compose()["services"]
    address = f"tcp://scheduler:{option(command('scheduler'), '--port')}"
    assert services["api"]["environment"]["REVMATCH_SCHEDULER"] == address
    assert command("worker")[2] == address
    port = option(command("api"), "--bind").rpartition(":")[2]
    assert services["api"]["environment"]["REVMATCH_PORT"] == port
    assert interpolated(services["api"]["ports"][0]) == f"127.0.0.1:{port}:{port}"
    for service, where in (("scheduler", "--dashboard-address"), ("worker", "--dashboard-address")):
        assert option(command(service), where) in " ".join(services[service]["healthcheck"]["test"])
    assert f"127.0.0.1:{port}/healthz" in " ".join(services["api"]["healthcheck"]["test"])
    database = services["db"]["environment"]
    for service in ("worker", "api"):
        url = services[service]["environment"]["REVMATCH_DATABASE_URL"]
        assert url == f"postgresql://{database['POSTGRES_USER']}@db:5432/{database['POSTGRES_DB']}"


def test_the_scheduler_treats_plans_as_the_local_one_does() -> None:
    """service/cluster.py sets these for a local cluster; one started elsewhere has to be told."""
    given = dask.config.collect_env(compose()["services"]["scheduler"]["environment"])
    for name, value in CLUSTER_SETTINGS.items():
        assert dask.config.get(name, config=given) == value


def test_the_service_starts_with_the_secrets_and_not_without(tmp_path: Path) -> None:
    """The settings of the container are valid, put the password into the URL, and demand a token."""
    for name in ("token", "db_password"):
        (tmp_path / name).write_text("s:ecr@t\n", encoding="utf-8")
    given = {
        name: str(value).replace("/run/secrets", str(tmp_path))
        for name, value in compose()["services"]["api"]["environment"].items()
    }
    settings = Settings.from_environment(given)
    settings.check()
    assert settings.token == "s:ecr@t"
    assert settings.database_url == "postgresql://revmatch:s%3Aecr%40t@db:5432/revmatch"
    (tmp_path / "token").write_text("\n", encoding="utf-8")
    with pytest.raises(SettingsError):
        Settings.from_environment(given)
    del given["REVMATCH_TOKEN_FILE"]
    with pytest.raises(SettingsError, match="REVMATCH_TOKEN"):
        Settings.from_environment(given).check()


@pytest.mark.parametrize(
    ("url", "password", "code"),
    [
        ("postgresql://revmatch:other@db/revmatch", "secret", "twice"),
        ("postgresql://db/revmatch", "secret", "no-user"),
        ("sqlite:///revmatch.db", "secret", "no-user"),
        ("", "secret", "no-user"),
        ("postgresql://revmatch@db/revmatch", "\n", "empty"),
        ("postgresql://revmatch@db/revmatch", None, "unreadable"),
    ],
)
def test_a_database_password_that_fits_nowhere_stops_the_start(
    tmp_path: Path, url: str, password: str | None, code: str
) -> None:
    """Left aside in silence, it would leave an operator believing that the database asks for it."""
    file = tmp_path / "db_password"
    if password is not None:
        file.write_text(password, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment({"REVMATCH_DATABASE_URL": url, "REVMATCH_DATABASE_PASSWORD_FILE": str(file)})
    assert [issue.code for issue in caught.value.issues] == [code]
    assert "secret" not in str(caught.value)


def test_secrets_do_not_show_in_settings() -> None:
    """Settings end up in tracebacks and logs."""
    shown = repr(Settings(database_url="postgresql://revmatch:s3cret@db/revmatch", token="t0ken"))
    assert "s3cret" not in shown
    assert "t0ken" not in shown


def test_workers_can_be_scaled() -> None:
    """Their number comes from outside, so nothing of a worker may be bound to there being one."""
    worker = compose()["services"]["worker"]
    assert interpolated(worker["deploy"]["replicas"]) == "1"
    assert interpolated(worker["deploy"]["replicas"], {"WORKERS": "4"}) == "4"
    assert "container_name" not in worker
    assert "ports" not in worker
    assert "--name" not in worker["command"]


def test_a_worker_uses_the_cores_it_is_given() -> None:
    """Libraries count the cores of the host, and Dask sets one thread: both are wrong under a limit."""
    worker = compose()["services"]["worker"]
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        assert worker["environment"][variable] == worker["deploy"]["resources"]["limits"]["cpus"]
        assert variable in dask.config.get("distributed.nanny.pre-spawn-environ")


def test_secrets_stay_out_of_version_control() -> None:
    """The compose file tells people to make them inside the repository."""
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    assert "/.secrets/" in ignored
