"""The command `revmatch`: demo, readiness, plan, explain, evaluate, bench, serve."""

from __future__ import annotations

import io
import os
import stat
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from matching.errors import (
    AuditError,
    InputError,
    MatchingError,
    MemoryLimitError,
    SolverError,
    SolverRangeError,
    StorageError,
)

if TYPE_CHECKING:
    from matching.notices import Notice
    from matching.params import Params
    from matching.plan.plan import AssignmentPlan
    from matching.profiles.venue import Venue
    from matching.resources import Resources
    from matching.solvers.base import Progress as Report

__all__ = ["main"]

INPUT_ERROR = 2  # exit status: the input is not valid, nothing was written
INFEASIBLE = 3  # exit status: no full plan exists, or none was found within the limit; what there is was written
ENGINE_FAILED = 4  # exit status: the solver or the audit failed, or there was no room; nothing was written
ISSUES_SHOWN = 50
NOTICES_SHOWN = 12

READABLE = click.Path(exists=True, dir_okay=False, path_type=Path)

PHASES = {
    "vectors": "generating a venue",
    "yardstick": "timing the plain product",
    "scores": "scoring profiles against abstracts",
    "candidates": "choosing candidates",
    "flow": "solving",
    "prices": "pricing",
    "sweep": "checking every pair",
    "ties": "evening out loads",
    "fairness": "serving the worst-off",
    "rules": "keeping rules",
    "rounding": "rounding",
    "audit": "auditing",
    "report": "writing reasons",
}


def _model_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options by which commands say where the files of a text scorer lie."""
    for name, what in (
        ("--cache", "Keep vectors of texts here. Default: REVMATCH_ENCODER_CACHE, else nowhere."),
        ("--model", "Sentence encoder. Default: REVMATCH_ENCODER_MODEL, else the weights of the extra."),
    ):
        kind = click.Path(file_okay=False, path_type=Path)
        command = click.option(name, metavar="FOLDER", type=kind, help=what)(command)
    return command


def _text_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options by which commands choose a text scorer and say where its files lie."""
    names = "Text scorer: auto (the default), lexical, encoder or hybrid."
    return click.option("--scorer", metavar="NAME", help=names)(_model_options(command))


def _resources(model: Path | None, cache: Path | None) -> Resources:
    from matching.resources import Resources
    from service.config import resource_settings

    found = resource_settings()
    if model is not None:
        found["encoder_model"] = model
    if cache is not None:
        found["encoder_cache"] = cache
    return Resources(**found)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="revmatch", message="revmatch %(version)s")
def main() -> None:
    """Reviewer assignment with proof: profiles and abstracts in, an audited plan with reasons out."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a name the terminal cannot show is no reason to stop


@main.command()
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Seed of ties.")
@click.option("--only", metavar="ID", multiple=True, help="Show only these submissions; may be repeated.")
@_text_options
def demo(seed: int, only: tuple[str, ...], scorer: str | None, model: Path | None, cache: Path | None) -> None:
    """Plan the fictional venue that comes with revmatch and print it with reasons.

    57 submissions, 45 reviewers, three reviews each. Subject areas are left out of the score (weight 0), so
    that they can show how well texts and bids alone find the right people.
    """
    with _faults_told():
        begin = perf_counter()
        from matching.engine import recommend
        from matching.formats.fixtures import load_fixture
        from matching.params import Params

        venue = load_fixture("icml2026")
        unknown = sorted(set(only) - {submission.id for submission in venue.submissions})
        if unknown:
            raise click.BadParameter(f"no submission has the id {', '.join(unknown)}", param_hint="--only")
        params = Params(weights={"areas": 0.0}, rng=seed, scorer=scorer or Params().scorer)
        with _bar() as report:
            plan = recommend(venue, params, progress=report, resources=_resources(model, cache))
        console = _Console()
        _print_pairs(console, venue, plan, set(only))
        _print_summary(console, plan, plan.notices)
        areas = {submission.id: set(submission.areas) for submission in venue.submissions}
        fields = {reviewer.id: set(reviewer.areas) for reviewer in venue.reviewers}
        share = sum(bool(areas[pair.submission] & fields[pair.reviewer]) for pair in plan.assignments)
        console.print(
            f"{share} of {len(plan.assignments)} pairs ({share / max(1, len(plan.assignments)):.0%}) share a subject "
            f"area, which the score did not see. {perf_counter() - begin:.1f} s in all."
        )


@main.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the plan as JSON.")
@click.option("--csv", "csv_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the pairs as CSV.")
@click.option("--spreadsheet", is_flag=True, help="Make the CSV safe and readable for spreadsheet programs.")
@click.option("--demand", type=click.IntRange(0), help="Reviews a submission, where it states none.")
@click.option(
    "--load", "load_max", type=click.IntRange(0), help="Most reviews a reviewer; a lower personal limit stays."
)
@click.option("--load-min", type=click.IntRange(0), help="Fewest reviews a reviewer, where none is stated.")
@click.option(
    "--weight",
    metavar="SIGNAL=NUMBER",
    multiple=True,
    help="Weight of a signal (text, areas, bids, or an imported one).",
)
@click.option(
    "--objective",
    metavar="NAME|JSON",
    multiple=True,
    help='What is maximised, such as maximin or \'{"name": "welfare", "alpha": 2}\'; repeated: in order of importance.',
)
@click.option("--rules", "rules_file", type=READABLE, help="JSON file with a list of rules, beside rules.json.")
@click.option(
    "--role",
    metavar="ROLE[=DEMAND]",
    multiple=True,
    help="A role the plan assigns (reviewer, area_chair, emergency), and how many of it a submission needs; repeated: "
    "all of them together. Loads and weights of roles: in the file of --params. Default: reviewers alone.",
)
@click.option(
    "--probabilities",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write what a randomised plan was drawn from as CSV.",
)
@click.option(
    "--start",
    "start_file",
    type=READABLE,
    help="Plan as JSON to begin from: as good a plan, few pairs moved, found faster.",
)
@click.option("--alternates", type=click.IntRange(0), help="Alternates listed per submission.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Seed of ties.")
@click.option("--time-limit", type=float, metavar="SECONDS", help="Stop after this long, with the best plan so far.")
@click.option(
    "--params",
    "params_file",
    type=READABLE,
    help="TOML file with any option of a run.",
)
@_text_options
@click.option("--quiet", is_flag=True, help="No progress bar and no summary.")
def plan(
    folder: Path,
    out: Path | None,
    csv_file: Path | None,
    spreadsheet: bool,
    quiet: bool,
    params_file: Path | None,
    weight: tuple[str, ...],
    objective: tuple[str, ...],
    rules_file: Path | None,
    role: tuple[str, ...],
    probabilities: Path | None,
    start_file: Path | None,
    alternates: int | None,
    seed: int | None,
    model: Path | None,
    cache: Path | None,
    **options: Any,
) -> None:
    """Plan the venue in FOLDER: a revmatch bundle or an OpenReview expertise dataset, or a zip of either.

    Exit status: 0 full plan; 1 stopped by Ctrl-C, nothing is written; 2 the input is not valid, nothing is written;
    3 no full plan exists or none was found within the limit, and what there is is written with the diagnosis; 4 the
    engine failed.

    A run with --time-limit has a process of its own, which is ended 10 seconds after the limit if it hangs.
    """
    with _faults_told():
        from matching.formats.folder import read_folder
        from service.commands.plan import objective_of, rules_of, start_of

        named = {"rng": seed, "n_alternates": alternates, **options}
        if objective:
            named["objective"] = objective_of(objective)
        if rules_file is not None:
            named["rules"] = rules_of(rules_file)
        params = _params(params_file, weight, named, role)
        targets = {"--out": out, "--csv": csv_file, "--probabilities": probabilities}
        _check_targets(targets)
        begun = {} if start_file is None else {"start": start_of(start_file)}
        venue, notices = read_folder(folder)
        with _bar(hidden=quiet) as report:
            found = _recommend(params)(venue, params, progress=report, resources=_resources(model, cache), **begun)
        _write_plan(found, venue, out, csv_file, probabilities, spreadsheet)
        if not quiet:
            _print_summary(_Console(), found, (*notices, *found.notices))
            for target in targets.values():
                if target is not None:
                    click.echo(f"written: {target}")
        if found.status not in ("optimal", "feasible_at_limit"):
            sys.exit(INFEASIBLE)


@main.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.option("--demand", type=click.IntRange(0), help="Reviews a submission, where it states none.")
@click.option(
    "--load", "load_max", type=click.IntRange(0), help="Most reviews a reviewer; a lower personal limit stays."
)
@click.option("--params", "params_file", type=READABLE, help="TOML file with any option of a run.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def readiness(folder: Path, demand: int | None, load_max: int | None, params_file: Path | None, as_json: bool) -> None:
    """Say what is missing or odd in FOLDER before a run: profiles, texts, addresses, accounts, loads, unused signals.

    Exit status: 0 nothing stands against a full plan by count; 2 the input is not valid; 3 no full plan exists.
    """
    with _faults_told():
        from service.commands.readiness import report

        params = _params(params_file, (), {"demand": demand, "load_max": load_max})
        text, ready = report(folder, params, as_json)
        click.echo(text)
        if not ready:
            sys.exit(INFEASIBLE)


@main.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.argument("submission")
@click.argument("reviewer", required=False)
@click.option("--plan", "plan_file", type=READABLE, required=True, help="The plan that `revmatch plan --out` wrote.")
@_model_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def explain(
    folder: Path,
    plan_file: Path,
    submission: str,
    reviewer: str | None,
    model: Path | None,
    cache: Path | None,
    as_json: bool,
) -> None:
    """Say why SUBMISSION got its reviewers in a plan of FOLDER, and why REVIEWER, if named, is or is not one of them.

    For each: the parts of the affinity, the publications that carry it, words in both texts, how sure it is, the
    rank among the eligible, and why people with a higher affinity are not there.
    """
    with _faults_told():
        from service.commands.explain import report

        click.echo(report(folder, plan_file, submission, reviewer, _resources(model, cache), as_json))


def _recommend(params: Params) -> Callable[..., AssignmentPlan]:
    """What makes the plan: this process, or where there is a limit one that can be ended from here."""
    if params.time_limit is not None:
        from matching.watched import recommend_within

        return recommend_within
    from matching.engine import recommend

    return recommend


def _params(
    params_file: Path | None, weights: tuple[str, ...], options: dict[str, Any], roles: tuple[str, ...] = ()
) -> Params:
    """Options of the file, then those of the command line over them."""
    from matching.errors import InvalidParamsError
    from matching.params import Params

    named: dict[str, Any] = {}
    if params_file is not None:
        try:
            named = tomllib.loads(params_file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidParamsError(f"{params_file} is not TOML: {error}") from error
    for item in weights:
        signal, equals, number = item.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = float("nan")
        if not equals or not signal or value != value:
            raise click.BadParameter(f"{item!r} is not SIGNAL=NUMBER", param_hint="--weight")
        if isinstance(named.setdefault("weights", {}), dict):  # what else a file may say, Params refuses
            named["weights"][signal] = value
    for item in roles:
        role, equals, text = item.partition("=")
        if not role or (equals and not (text.isascii() and text.isdigit())):
            raise click.BadParameter(f"{item!r} is not ROLE or ROLE=DEMAND", param_hint="--role")
        wanted = named.setdefault("roles", {})
        if isinstance(wanted, dict) and isinstance(wanted.setdefault(role, {}), dict) and equals:
            wanted[role]["demand"] = int(text)
    named.update({name: value for name, value in options.items() if value is not None})
    return Params.from_mapping(named)


def _check_targets(targets: dict[str, Path | None]) -> None:
    """Refuse files that cannot be written, or not both, before a long run."""
    seen: dict[Path, str] = {}
    for option, target in targets.items():
        if target is None:
            continue
        whole = target.resolve()
        if not whole.parent.is_dir():
            raise click.BadParameter(f"there is no folder {whole.parent}", param_hint=option)
        if whole in seen:
            raise click.BadParameter(f"names the same file as {seen[whole]}", param_hint=option)
        seen[whole] = option


def _write_plan(
    found: AssignmentPlan,
    venue: Venue,
    out: Path | None,
    csv_file: Path | None,
    probabilities: Path | None,
    spreadsheet: bool,
) -> None:
    from matching.formats.plans import write_plan_csv, write_plan_json, write_probabilities_csv

    if out is not None:
        _write(out, write_plan_json(found))
    if csv_file is not None:
        _write(csv_file, write_plan_csv(found, venue=venue, for_spreadsheets=spreadsheet))
    if probabilities is not None:
        _write(probabilities, write_probabilities_csv(found, for_spreadsheets=spreadsheet))


def _write(target: Path, data: bytes) -> None:
    """All or nothing: a reader never sees half a plan. Links are followed; pipes and devices are written into."""
    target = target.resolve()
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        target.write_bytes(data)
        return
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@main.command()
@click.argument("dataset", type=click.Path(exists=True, path_type=Path))
@_text_options
@click.option("--scores", type=click.Path(exists=True, path_type=Path), help="Judge these scores: a file, or a folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def evaluate(
    dataset: Path, scorer: str | None, model: Path | None, cache: Path | None, scores: Path | None, as_json: bool
) -> None:
    """Judge scores by people's ratings of their own expertise (weighted Kendall tau loss, lower is better).

    DATASET is a folder with evaluations.tsv and one or more OpenReview expertise datasets. --scores takes JSON
    {reviewer: {submission: score}} or rows of submission,reviewer,score; in a folder, one file a dataset, named
    after it. What had to be left out is told on standard error.
    """
    if scorer is not None and scores is not None:
        raise click.UsageError("--scorer and --scores exclude each other")
    with _faults_told():
        from service.commands.evaluate import report

        text, notices = report(dataset, scorer, scores, _resources(model, cache), as_json)
        for notice in notices:
            click.echo(f"- {notice}", err=True)
        click.echo(text)


@main.command()
@click.option("--submissions", type=int, default=1000, show_default=True, help="Submissions.")
@click.option("--reviewers", type=int, default=1000, show_default=True, help="Reviewers.")
@click.option("--dim", type=int, default=256, show_default=True, help="Dimensions of the vectors.")
@click.option("--demand", type=int, default=3, show_default=True, help="Reviews a submission.")
@click.option("--load", type=int, default=4, show_default=True, help="Most reviews a reviewer.")
@click.option("--conflicts", type=float, default=0.01, show_default=True, help="Share of all pairs that is barred.")
@click.option("--bids", type=float, default=0.003, show_default=True, help="Share of all pairs that has a bid.")
@click.option("--objective", metavar="NAME|JSON", multiple=True, help="As for plan. Default: total.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the venue and of ties.")
@click.option("--workers", type=int, default=0, show_default=True, help="Processes for all pairs; 0: a thread a core.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def bench(objective: tuple[str, ...], as_json: bool, **numbers: Any) -> None:
    """Generate a venue, solve and audit it, and time that against one plain product over all pairs.

    Exit status: 0 full plan; 2 an option is not valid; 3 no full plan exists; 4 the engine failed.
    """
    with _faults_told():
        from service.commands.bench import BenchParams, report
        from service.config import resource_settings

        limit = resource_settings().get("memory_limit")
        with _bar() as tell:
            text, full = report(BenchParams(**numbers), objective, as_json, tell, limit)
        click.echo(text)
        if not full:
            sys.exit(INFEASIBLE)


@main.command()
@click.option("--host", help="Address to listen on. Default: REVMATCH_HOST, else 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port. Default: REVMATCH_PORT, else 8300.")
@click.option("--database", metavar="URL", help="Default: REVMATCH_DATABASE_URL, else a SQLite file revmatch.db here.")
def serve(host: str | None, port: int | None, database: str | None) -> None:
    """Serve the API with its store and a worker, in one command.

    On a loopback address no token is needed. On any other address it refuses to start without REVMATCH_TOKEN
    or REVMATCH_TOKEN_FILE.
    """
    with _faults_told():
        from service.server import run

        run(host=host, port=port, database_url=database)


class _Console(Console):
    """A console that leaves a reader who has seen enough to `_faults_told`."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


@contextmanager
def _faults_told() -> Iterator[None]:
    """Every error of ours as one readable message on standard error, with every fault listed."""
    try:
        yield
    except MatchingError as error:
        console = _Console(stderr=True)
        console.print(f"[bold red]{escape(error.title)}[/] [dim]({error.code})[/]")
        issues = error.issues if isinstance(error, InputError) else ()
        for issue in issues[:ISSUES_SHOWN]:
            console.print(f"  {escape(str(issue))}", highlight=False)
        if len(issues) > ISSUES_SHOWN:
            console.print(f"  and {len(issues) - ISSUES_SHOWN} more")
        if not issues:
            console.print(f"  {escape(error.detail)}", highlight=False)
        failed = isinstance(error, SolverError | AuditError | StorageError | MemoryLimitError)
        failed = failed and not isinstance(error, SolverRangeError)
        sys.exit(ENGINE_FAILED if failed else INPUT_ERROR)
    except BrokenPipeError:
        # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        _Console(stderr=True).print(f"[bold red]{escape(str(error))}[/]", highlight=False)
        sys.exit(INPUT_ERROR)


@contextmanager
def _bar(hidden: bool = False) -> Iterator[Callable[[Report], None]]:
    """A progress bar on standard error; silent where that is no terminal."""
    console = Console(stderr=True)
    progress = Progress(
        TextColumn("{task.description:<36}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=hidden or not console.is_terminal,
    )
    with progress:
        task = progress.add_task("reading", total=1.0)

        def tell(report: Report) -> None:
            progress.update(task, completed=report.fraction, description=PHASES.get(report.phase, report.phase))

        yield tell


def _print_pairs(console: Console, venue: Venue, found: AssignmentPlan, only: set[str]) -> None:
    names = {reviewer.id: reviewer.name or reviewer.id for reviewer in venue.reviewers}
    by_submission: dict[str, list[Any]] = {}
    for pair in found.assignments:
        by_submission.setdefault(pair.submission, []).append(pair)
    for submission in venue.submissions:
        if only and submission.id not in only:
            continue
        head = Text(f"{submission.id}  ", style="bold cyan")
        head.append(submission.title, style="bold")
        console.print(head)
        table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
        table.add_column(width=2)
        table.add_column(justify="right", style="green", width=5)
        table.add_column(width=5, style="dim", no_wrap=True)
        table.add_column(min_width=20, max_width=24, overflow="fold")
        table.add_column(ratio=1)
        for pair in by_submission.get(submission.id, []):
            table.add_row(
                "",
                f"{pair.affinity:.2f}",
                pair.reviewer,
                Text(names[pair.reviewer]),
                Text("; ".join(pair.reasons), style="dim"),
            )
        console.print(table)


def _reached(found: AssignmentPlan, proof: str) -> list[str]:
    """What was maximised, how far, and where rules are missed."""
    from service.commands.plan import reached, slack

    if not (lines := reached(found)):
        total = f"total affinity {found.value:.4f}, bound {found.bound:.4f}, gap {found.gap:.2g} ({proof})"
        return [total, *map(escape, slack(found))]
    return [
        f"total affinity {found.report['totals']['affinity']:.4f} ({proof})",
        *map(escape, lines),
        *map(escape, slack(found)),
    ]


def _print_summary(console: Console, found: AssignmentPlan, notices: tuple[Notice, ...]) -> None:
    from service.commands.plan import by_role

    report = found.report
    totals, loads = report["totals"], report["loads"]
    proof = "audited: the bound was recomputed without a solver" if found.certificate.audited else "nothing is proven"
    style = {"optimal": "bold green", "feasible_at_limit": "bold yellow"}.get(str(found.status), "bold red")
    lines = [
        f"[{style}]{found.status}[/]   {totals['reviews_assigned']} of {totals['reviews_needed']} reviews assigned to "
        f"{totals['submissions']} submissions by {totals['reviewers']} reviewers",
        *_reached(found, proof),
        f"loads: {', '.join(f'{count} x {load}' for load, count in loads['distribution'].items())} "
        f"(reviewers x reviews), {loads['reviewers_at_their_limit']} at their limit",
        *map(escape, by_role(found)),
    ]
    spread = report["per_submission"]
    if spread["min"] is not None:
        lines.append(
            f"affinity a submission: lowest {spread['min']:.2f}, lowest tenth {spread['p10']:.2f}, "
            f"median {spread['median']:.2f}, highest {spread['max']:.2f}"
        )
        worst = report["worst_served"][:3]
        lines.append(
            "worst served: " + ", ".join(f"{escape(entry['submission'])} ({entry['affinity']:.2f})" for entry in worst)
        )
    lines.append(f"conflicts kept out: {totals['conflicts']} pairs")
    if text := found.provenance.get("text"):
        model = text.get("model")
        lines.append(f"texts compared by: {text['scorer']}" + (f" ({escape(model['name'])})" if model else ""))
    console.print(Panel("\n".join(lines), title="plan", title_align="left", border_style="dim", highlight=False))
    for sentence in found.diagnosis.get("sentences", ()):
        console.print(f"[red]![/] {escape(sentence)}", highlight=False)
    for notice in notices[:NOTICES_SHOWN]:
        console.print(f"[yellow]-[/] {escape(notice.message)}", highlight=False)
    if len(notices) > NOTICES_SHOWN:
        console.print(f"[yellow]-[/] and {len(notices) - NOTICES_SHOWN} more notices, all in the plan file")


if __name__ == "__main__":
    main()
