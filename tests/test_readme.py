"""The README is run, not believed: its Python blocks, its HTTP walk-through, its two commands' shape."""

import contextlib
import io
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(marker):
    """The fenced block after ``<!-- marker -->``."""
    found = re.search(rf"<!-- {marker} -->\n```sh\n(.*?)```", README, re.DOTALL)
    assert found, f"README has no block marked {marker}"
    return found.group(1)


def test_python_blocks_print_what_their_comments_say():
    """Lines of comment at the end of a block are its expected output."""
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 2
    for code in blocks:
        lines = code.rstrip().split("\n")
        expected = []
        while lines and lines[-1].startswith("# "):
            expected.insert(0, lines.pop()[2:])
        assert expected, "a block without expected output shows nothing"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n".join(lines), "README.md", "exec"), {})
        assert printed.getvalue().strip().split("\n") == expected


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_http_walk_through_goes_from_an_empty_venue_to_a_certified_plan(tmp_path):
    """The very lines of the README, against the very command it names, on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("REVMATCH_")}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH", "")]))
    server = subprocess.Popen(
        [sys.executable, "-m", "service.cli", "serve", "--port", str(port)],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < deadline, "the server did not come up"
                time.sleep(0.2)
        script = "set -e\n" + (block("walk") + block("wishes")).replace(":8300", f":{port}")
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == 0, done.stderr
        assert '"state":"succeeded"' in done.stdout
        assert '"gap":0.0' in done.stdout
        assert re.search(r"^p1,bo,", done.stdout, re.MULTILINE), "p1's author shares a domain with ana"
        assert re.search(r"^p2,bo,", done.stdout, re.MULTILINE)
        assert '"audited":true' in done.stdout
        assert '"name":"two at most"' in done.stdout and '"name":"maximin"' in done.stdout
        assert '"rule_shortfalls":[]' in done.stdout
    finally:
        server.terminate()
        output, _ = server.communicate(timeout=30)
    assert "Traceback" not in output
    assert server.returncode == 0


def test_both_commands_set_everything_up_themselves():
    """One line each: an environment of their own, an install, then the job."""
    for marker, job in (("demo", "revmatch demo"), ("tests", "pytest")):
        command = block(marker).strip()
        assert "\n" not in command and command.startswith("python3 -m venv ")
        assert " install " in command and job in command


def test_what_the_readme_shows_exists():
    """Pictures, folders and files named in the text are there."""
    for name in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / name).exists(), name
    for name in ("fixtures/tiny", "docker-compose.yml"):
        assert f"`{name}`" in README and (ROOT / name).exists()
    picture = (ROOT / "fixtures" / "plan.svg").read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"' )]+", picture)) == {"http://www.w3.org/2000/svg"}
