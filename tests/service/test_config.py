"""Settings from the environment, and what is refused before a server starts."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from service.config import SETTINGS_HELP, Settings
from service.errors import SettingsError


def test_an_empty_environment_gives_the_defaults() -> None:
    """`revmatch serve` works without any setting."""
    assert Settings.from_environment({}) == Settings()
    Settings().check()


def test_every_variable_sets_its_field() -> None:
    """A variable that is documented and not read would be a promise broken in silence."""
    environ = {
        "REVMATCH_DATABASE_URL": "postgresql://u@h/d",
        "REVMATCH_DATA_DIR": "/data",
        "REVMATCH_HOST": "0.0.0.0",
        "REVMATCH_PORT": "80",
        "REVMATCH_TOKEN": " secret ",
        "REVMATCH_SCHEDULER": "tcp://s:8786",
        "REVMATCH_MAX_BODY_BYTES": "10",
        "REVMATCH_PAGE_LIMIT": "5",
        "REVMATCH_PLAN_TIME_LIMIT": "1.5",
        "REVMATCH_ENCODER_MODEL": "/model",
        "REVMATCH_ENCODER_CACHE": " /vectors ",
    }
    assert Settings.from_environment(environ) == Settings(
        "postgresql://u@h/d",
        "0.0.0.0",
        80,
        "secret",
        "tcp://s:8786",
        10,
        5,
        1.5,
        Path("/data"),
        Path("/model"),
        Path("/vectors"),
    )


def test_help_names_every_setting_and_only_those() -> None:
    """The README's table is made from the help."""
    fields = {f"REVMATCH_{field.name.upper()}" for field in dataclasses.fields(Settings)}
    assert set(SETTINGS_HELP) == fields | {"REVMATCH_TOKEN_FILE", "REVMATCH_DATABASE_PASSWORD_FILE"}
    assert all(variable in (Settings.__doc__ or "") for variable in SETTINGS_HELP)


def test_all_bad_numbers_are_told_at_once() -> None:
    """One restart is enough to mend all of them."""
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment({"REVMATCH_PORT": "x", "REVMATCH_PAGE_LIMIT": "1.5"})
    assert [issue.field for issue in caught.value.issues] == ["REVMATCH_PORT", "REVMATCH_PAGE_LIMIT"]


def test_the_token_comes_from_the_first_line_of_its_file(tmp_path: Path) -> None:
    """Containers hand secrets in as files, often with a line end."""
    path = tmp_path / "token"
    path.write_text("secret\nnote\n")
    assert Settings.from_environment({"REVMATCH_TOKEN_FILE": str(path)}).token == "secret"


@pytest.mark.parametrize("text", [None, "", "\nsecret"])
def test_a_token_file_without_a_token_is_refused(tmp_path: Path, text: str | None) -> None:
    """Taking it for "no token" would leave a server open that was meant to be closed."""
    path = tmp_path / "token"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingsError, match="REVMATCH_TOKEN_FILE"):
        Settings.from_environment({"REVMATCH_TOKEN_FILE": str(path)})


def test_secrets_are_not_shown() -> None:
    """Settings end up in error reports and logs."""
    shown = repr(Settings(database_url="postgresql://u:secret@h/d", token="secret"))
    assert "secret" not in shown


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_other_hosts_need_a_token(host: str) -> None:
    """Profiles are personal data; the message says which variable to set."""
    with pytest.raises(SettingsError, match="REVMATCH_TOKEN"):
        Settings(host=host).check()
    Settings(host=host, token="secret").check()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"])
def test_loopback_needs_none(host: str) -> None:
    """A laptop works without set-up."""
    Settings(host=host).check()


@pytest.mark.parametrize(
    "settings",
    [
        Settings(port=-1), Settings(port=70000), Settings(max_body_bytes=0), Settings(page_limit=0),
        Settings(plan_time_limit=0.0), Settings(plan_time_limit=float("inf")),
    ],
)  # fmt: skip
def test_numbers_out_of_range_are_refused(settings: Settings) -> None:
    """A limit of zero would stop every request or plan."""
    with pytest.raises(SettingsError):
        settings.check()
