"""How cost grows with the size of the venue: `revmatch bench` at several sizes, as a table, a plot and a model.

    python -m tests.benchmarks.bench_growth --sides 1000 3000 10000 30000
                                            --objective welfare   another than total
                                            --kept FILE  adds the records to a file, one a line, and reads those there
                                            --svg FILE   draws what the file holds

A size is a process of its own, so that peaks are its own. The model on paper: sweeps, first candidates and audit grow
with the pairs, and run on as many cores as there are; flow and prices grow with the active pairs to the power fitted
here, on one core.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

PAIRWISE = ("candidates", "sweeps", "audit")
LINEWISE = ("flow", "prices", "ties")
SHOWN = ("whole run", "over all pairs", "flow and prices", "one plain product")
COLOURS = ("#1d3557", "#0b6e4f", "#c2571a", "#888")
LARGE = 1_000_000


def measured(side, objective):
    """The record of one run."""
    command = (
        "from service.commands.bench import BenchParams, report;"
        f"print(report(BenchParams({side}, {side}), {[objective]!r}, True)[0])"
    )
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def row(record):
    """A row of the README's table."""
    side, other = record["submissions"], "" if record["objective"] == "total" else f", `{record['objective']}`"
    return (
        f"| {side:,}{other} | {side**2:.0e} | {record['seconds']:.3g} | {record['yardstick_seconds']:.2g} | "
        f"{record['ratio']:.0f} | {record['peak_mb']:.0f} | {record['needed_mb']:.0f} | {record['rounds']} | "
        f"{record['gap']:.2g} |"
    )


def parts(record):
    """Seconds in the order of SHOWN."""
    stages = record["stages"]
    of_pairs, of_lines = (sum(stages.get(name, 0.0) for name in names) for names in (PAIRWISE, LINEWISE))
    return record["seconds"], of_pairs, of_lines, record["yardstick_seconds"]


def power(records):
    """Exponent with which flow and prices grow, from the two largest sizes."""
    (small, less), (large, more) = ((record["submissions"], parts(record)[2]) for record in records[-2:])
    return float(np.log(more / less) / np.log(large / small))


def foretold(record, exponent, side, cores):
    """Seconds over all pairs, and of flow and prices, at another size with so many cores."""
    _, of_pairs, of_lines, _ = parts(record)
    scale = side / record["submissions"]
    return of_pairs * scale**2 * record["cores"] / cores, of_lines * scale**exponent


def drawn(records):
    """Seconds against the side, both by powers of ten, as a small SVG."""
    width, height, left, base, right = 560, 360, 64, 300, 150
    sides = [record["submissions"] for record in records]
    seconds = np.array([parts(record) for record in records])
    low, high = np.floor(np.log10(max(seconds.min(), 1e-4))), np.ceil(np.log10(seconds.max()))
    ends = np.log10([min(sides), max(sides)])

    def place(side, value):
        x = left + 10 + (np.log10(side) - ends[0]) / (ends[1] - ends[0]) * (width - left - right)
        return x, base - (np.log10(max(value, 1e-4)) - low) / (high - low) * (base - 24)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        "<title>Seconds against the number of submissions and reviewers, by powers of ten</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<path d="M{left} 20V{base}H{width - right + 24}" fill="none" stroke="#444"/>',
        f'<text x="{(left + width - right) / 2:.0f}" y="{height - 14}" text-anchor="middle">'
        "submissions, and as many reviewers</text>",
        f'<text transform="translate(16 {base / 2:.0f}) rotate(-90)" text-anchor="middle">seconds, two cores</text>',
    ]
    for exponent in range(int(low), int(high) + 1):
        y = place(sides[0], 10.0**exponent)[1]
        out.append(f'<path d="M{left} {y:.1f}H{width - right + 24}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**exponent:g}</text>')
    for side in sides:
        out.append(f'<text x="{place(side, 1)[0]:.1f}" y="{base + 18}" text-anchor="middle">{side:,}</text>')
    last = []
    for at, (label, colour) in enumerate(zip(SHOWN, COLOURS, strict=True)):
        spots = [place(side, value) for side, value in zip(sides, seconds[:, at], strict=True)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in spots]
        last.append([spots[-1][1], label, colour])
    under = -np.inf
    for y, label, colour in sorted(last):  # names stand beside their lines, none over another
        under = max(y + 4, under + 15)
        out.append(f'<text x="{width - right + 32}" y="{under:.1f}" fill="{colour}">{label}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", type=int, nargs="*", default=[])
    parser.add_argument("--objective", default="total")
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    records = []
    if options.kept and options.kept.exists():
        records = [json.loads(line) for line in options.kept.read_text(encoding="utf-8").splitlines()]
    for side in options.sides:
        record = measured(side, options.objective)
        print(row(record), flush=True)
        records.append(record)
        if options.kept:
            options.kept.write_text("".join(json.dumps(entry) + "\n" for entry in records), encoding="utf-8")
    totals = [record for record in records if record["objective"] == "total"]
    totals.sort(key=lambda record: (record["submissions"], -record["seconds"]))
    totals = list({record["submissions"]: record for record in totals}.values())  # the fastest of each size
    if len(totals) > 1:
        exponent = power(totals)
        print(f"flow and prices grow with the power {exponent:.2f} of the side")
        for cores in (2, 64, 512):
            of_pairs, of_lines = foretold(totals[-1], exponent, LARGE, cores)
            print(f"a million a side, {cores} cores: {of_pairs:,.0f} s over all pairs, {of_lines:,.0f} s of flow")
    if options.svg:
        options.svg.write_text(drawn(totals), encoding="utf-8")


if __name__ == "__main__":
    main()
