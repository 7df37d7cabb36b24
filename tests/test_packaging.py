"""What a user installs: the wheel holds everything the product needs, nothing else, and runs without the repository."""

from __future__ import annotations

import ast
import email.message
import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DIST_INFO = f"revmatch-{PROJECT['version']}.dist-info"


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Standard output of a command; a failure shows everything it said."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "REVMATCH_"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**clean, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Source archive of the repository and the wheel made from that archive alone."""
    out = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    (archive,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return archive, wheel


@pytest.fixture(scope="module")
def installed(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the commands of an environment that has the wheel, and the dependencies of the one running the tests.

    The dependencies come by a path, for installing them takes minutes. A path file found on such a path is not read,
    so an editable install of this repository does not come along.
    """
    home = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(home, with_pip=False)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = ("-m", "pip", "--disable-pip-version-check", "--python", python)
    run(sys.executable, *pip, "install", "--no-index", "--no-deps", "--no-compile", built[1], cwd=home)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])", cwd=home).strip())
    paths = sysconfig.get_paths()
    (site / "dependencies.pth").write_text(f"{paths['purelib']}\n{paths['platlib']}\n", encoding="utf-8")
    return python.parent


def wanted() -> Iterator[str]:
    """Names in the wheel of everything the product is made of."""
    for folder, target in (("matching", "matching"), ("service", "service"), ("fixtures", "matching/fixtures")):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix not in (".pyc", ".pyo") and path != ROOT / "service" / "Dockerfile":
                yield f"{target}/{path.relative_to(ROOT / folder).as_posix()}"


def test_the_wheel_holds_the_product_and_nothing_else(built: tuple[Path, Path]) -> None:
    """A forgotten migration, template or fixture shows only on a user's machine; so does a stray tests package."""
    with zipfile.ZipFile(built[1]) as wheel:
        names = set(wheel.namelist())
    about = {name for name in names if name.startswith(f"{DIST_INFO}/")}
    assert names - about == set(wanted())
    assert f"{DIST_INFO}/licenses/LICENSE" in about
    assert {name.split("/")[0] for name in names} == {"matching", "service", DIST_INFO}


@pytest.mark.parametrize(
    "pattern",
    [
        r"matching/py\.typed",
        r"service/py\.typed",
        r"matching/fixtures/tiny/.+",
        r"matching/fixtures/icml2026/papers\.jsonl",
        r"service/store/migrations/env\.py",
        r"service/store/migrations/versions/0001_.+\.py",
        r"service/pages/.+\.css",
        r"service/pages/templates/.+\.html",
    ],
)
def test_the_wheel_holds_each_kind_of_data(built: tuple[Path, Path], pattern: str) -> None:
    """Comparing with the tree cannot tell when a kind of file is missing from both."""
    with zipfile.ZipFile(built[1]) as wheel:
        assert any(re.fullmatch(pattern, name) for name in wheel.namelist())


def test_the_source_archive_can_be_tested(built: tuple[Path, Path]) -> None:
    """Whoever packages this for a distribution builds and tests from the archive."""
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in (
        "tests/test_packaging.py", "LICENSE", "README.md", "docker-compose.yml", "service/Dockerfile", ".dockerignore",
        ".ci/run", "fixtures/icml2026/papers.jsonl",
    ):  # fmt: skip
        assert name in names
    assert not [name for name in names if name.endswith((".pyc", ".db")) or name.startswith((".git/", ".secrets"))]


def test_the_metadata_says_licence_commands_and_extras(built: tuple[Path, Path]) -> None:
    """Installers and licence checkers read these, not the README."""
    with zipfile.ZipFile(built[1]) as wheel:
        metadata = email.message_from_string(wheel.read(f"{DIST_INFO}/METADATA").decode("utf-8"))
        entry_points = wheel.read(f"{DIST_INFO}/entry_points.txt").decode("utf-8")
        licence = wheel.read(f"{DIST_INFO}/licenses/LICENSE").decode("utf-8")
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert set(metadata.get_all("Provides-Extra", [])) == {"encoder", "postgres", "container", "test", "dev"}
    assert "revmatch = service.cli:main" in entry_points
    assert "Apache License" in licence and "END OF TERMS AND CONDITIONS" in licence


def test_the_installed_copy_is_the_one_imported(installed: Path, tmp_path: Path) -> None:
    """The tests below would prove nothing if the repository were found first."""
    code = "import matching, service; print(matching.__file__, service.__file__, sep='\\n')"
    for line in run(installed / "python", "-c", code, cwd=tmp_path).splitlines():
        assert Path(line).is_relative_to(installed.parent)
        assert not Path(line).is_relative_to(ROOT)


def test_every_installed_module_can_be_imported(installed: Path, tmp_path: Path) -> None:
    """A module nothing imports at start still has to be importable where it is installed."""
    code = (
        "import importlib, pkgutil, matching, service\n"
        "names = [m.name for p in (matching, service) for m in pkgutil.walk_packages(p.__path__, p.__name__ + '.')]\n"
        "names = [n for n in names if '.migrations' not in n]\n"  # alembic runs those itself
        "[importlib.import_module(n) for n in names]\n"
        "print(len(names))\n"
    )
    assert int(run(installed / "python", "-W", "error::SyntaxWarning", "-c", code, cwd=tmp_path)) > 50


def test_the_fixtures_load_from_the_installed_copy(installed: Path, tmp_path: Path) -> None:
    """The fixtures lie beside the packages in the repository and inside one of them in the wheel."""
    code = (
        "from matching.formats.fixtures import FIXTURES, fixture_path, load_fixture\n"
        "print(*[f'{fixture_path(name)}|{len(load_fixture(name).submissions)}' for name in FIXTURES], sep='\\n')\n"
    )
    for line in run(installed / "python", "-c", code, cwd=tmp_path).splitlines():
        path, _, submissions = line.partition("|")
        assert Path(path).is_relative_to(installed.parent)
        assert int(submissions) >= 4


def test_the_migrations_run_from_the_installed_copy(installed: Path, tmp_path: Path) -> None:
    """Alembic finds its scripts by path, which differs between a repository and an installation."""
    code = (
        "import pathlib\n"
        "from service.store import Store\n"
        "store = Store('sqlite:///here.db', pathlib.Path('.'))\n"
        "store.upgrade(); store.upgrade()\n"
        "print(store.ping())\n"
    )
    assert run(installed / "python", "-c", code, cwd=tmp_path).split()[-1] == "True"


def test_the_demo_runs_from_the_installed_copy(installed: Path, tmp_path: Path) -> None:
    """The first command of the README, where neither the repository nor a terminal is around."""
    said = run(installed / "revmatch", "demo", cwd=tmp_path, COLUMNS="120")
    assert "optimal" in said
    assert "audited" in said
    assert list(tmp_path.iterdir()) == []  # a demo leaves nothing behind


def test_the_command_tells_its_version(installed: Path, tmp_path: Path) -> None:
    """The version is said in one place, pyproject.toml, and read from the installed metadata."""
    assert run(installed / "revmatch", "--version", cwd=tmp_path).strip() == f"revmatch {PROJECT['version']}"


def canonical(requirement: str) -> str:
    """Name of the distribution a requirement asks for."""
    return re.sub(r"[-_.]+", "-", re.match(r"[A-Za-z0-9._-]+", requirement)[0]).lower()  # type: ignore[index]


DECLARED = {canonical(requirement) for requirement in PROJECT["dependencies"]}


def needs(name: str) -> set[str]:
    """Direct needs of an installed distribution, those of its extras left out."""
    requirements = importlib.metadata.requires(name) or []
    return {canonical(text) for text in requirements if not re.search(r"\bextra\s*==", text)}


def test_every_library_the_product_imports_is_a_declared_dependency() -> None:
    """A library that happens to be there through another one's needs may be gone with its next release.

    What a declared library itself is made on counts as declared: flask's werkzeug, distributed's dask.
    """
    imported: dict[str, str] = {}
    for package in ("matching", "service"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    names = [node.module]
                imported.update({name.split(".")[0]: str(path.relative_to(ROOT)) for name in names})
    ours = {"matching", "service", *sys.stdlib_module_names}
    providers = importlib.metadata.packages_distributions()
    allowed = DECLARED.union(*(needs(name) for name in DECLARED))
    used = {}
    for module, where in imported.items():
        if module not in ours:
            used[module] = {canonical(name) for name in providers.get(module, ["nothing installed"])}
            assert used[module] & allowed, f"{where} imports {module}, which no declared dependency brings"
    assert DECLARED - set().union(*used.values()) == set(), "declared but never imported"


def test_no_dependency_asks_more_of_a_user_than_its_name_said() -> None:
    """No copyleft and no unnamed licence among what `pip install revmatch` brings, whatever brought it."""
    seen, waiting = set(), set(DECLARED)
    while waiting:
        name = waiting.pop()
        seen.add(name)
        try:
            metadata = importlib.metadata.metadata(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system or another Python
        said = " ".join(
            text.partition("\n")[0]  # some put the whole text of their licence there
            for field in ("License-Expression", "License", "Classifier")
            for text in metadata.get_all(field) or []
            if field != "Classifier" or text.startswith("License ::")
        )
        assert said.strip(), f"{name} names no licence"
        assert not re.search(r"GPL|Affero|Non-?Commercial|Proprietary", said, re.IGNORECASE), f"{name}: {said}"
        waiting |= needs(name) - seen
    assert len(seen) > len(DECLARED)
