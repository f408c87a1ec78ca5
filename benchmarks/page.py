"""Writes BENCHMARKS.md and its picture from the results in this folder.

Each results file was written by `llmcl bench --scaling --json benchmarks/NAME.json` on one device.
"""

import json
from pathlib import Path

from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # told apart without color vision too


def table(report: dict) -> list[str]:
    """The comparisons of one device as a Markdown table."""
    lines = ["| what | ours | peer | peer's | ratio |", "|---|---|---|---|---|"]
    for r in report["results"]:
        ours, theirs = (f"{r[side] * 1e3:.2f} ms" for side in ("ours", "theirs"))
        if r["work"]:
            ours, theirs = (
                f"{r['work'] / r[side]:,.0f} {r['unit']}" for side in ("ours", "theirs")
            )
        lines.append(f"| {r['what']} | {ours} | {r['peer']} | {theirs} | **{r['ratio']:.2f}** |")
    if limits := report.get("limits"):
        lines += [
            "",
            f"The device copies {limits['bytes_per_s'] / 1e9:,.0f} GB/s and makes "
            f"{limits['flop_per_s'] / 1e9:,.0f} GFLOP/s in float32, measured by two kernels of "
            "`kernels/roofline.cl`.",
        ]
    return lines


def picture(reports: dict[str, dict], path: Path) -> None:
    """Cost of a token against context and width, and memory against context."""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    axes = figure.subplots(1, 3)
    plots = (
        ("context", "us_per_token", "time a token, µs"),
        ("width", "us_per_token", "time a token, µs"),
        ("context", "bytes_per_token", "memory a token, bytes"),
    )
    for axis, (grows, value, label) in zip(axes, plots, strict=True):
        for (name, report), color in zip(reports.items(), COLORS, strict=False):
            rows = [r for r in report["scaling"] if r["grows"] == grows and value in r]
            if not rows:
                continue
            axis.plot(
                [r["size"] for r in rows], [r[value] for r in rows], "o-", color=color, label=name
            )
        axis.set(xscale="log", yscale="log", xlabel=grows, ylabel=label)
        sizes = sorted({r["size"] for report in reports.values() for r in report["scaling"]})
        axis.set_xticks(sizes, [str(size) for size in sizes], minor=False)
        axis.minorticks_off()
    axes[2].set_ylim(1e3, 1e6)
    axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def main() -> None:
    """Reads the results, writes the page."""
    paths = sorted(HERE.glob("*.json"))
    reports = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    picture({n: r for n, r in reports.items() if r.get("scaling")}, HERE / "scaling.png")
    parts = [(HERE / "words.md").read_text(encoding="utf-8").rstrip()]
    for name, report in reports.items():
        parts += ["", f"## {name}", "", f"{report['device']}; {report['date']}.", ""]
        parts += table(report)
    parts += ["", (HERE / "ladder.md").read_text(encoding="utf-8").rstrip()]
    text = "\n".join(parts) + "\n"
    (HERE.parent / "BENCHMARKS.md").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
