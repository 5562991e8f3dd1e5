"""Prints what was measured as a table in Markdown."""

import statistics

from part import ENGINES, Measure, Options, Part

TITLES = {"alluvium": "Alluvium", "duckdb": "DuckDB", "pathway": "Pathway"}


def number(value: float) -> str:
    """Writes a number with three digits that count, at least."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def values_of(key: str, reports: list[dict[str, object]]) -> list[float]:
    """Returns the values of a measure in all runs; a run may have measured it several times."""
    found = [report["figures"][key] for report in reports if key in report.get("figures", {})]
    return [value for values in found for value in (values if isinstance(values, list) else [values])]


def cell(values: list[float]) -> str:
    if not values:
        return ""
    median = number(statistics.median(values))
    if len(values) == 1:
        return median
    return f"{median} ({number(min(values))} to {number(max(values))})"


def ratio(measure: Measure, ours: list[float], theirs: list[float]) -> str:
    """Says how many times as good Alluvium is."""
    if not ours or not theirs:
        return ""
    ours_median, theirs_median = statistics.median(ours), statistics.median(theirs)
    if measure.more_is_better:
        ours_median, theirs_median = theirs_median, ours_median
    return number(theirs_median / ours_median) if ours_median > 0 and theirs_median > 0 else ""


def markdown(parts: dict[str, Part], results: dict[str, dict[str, list[dict[str, object]]]], options: Options) -> str:
    ran = [engine for engine in ENGINES if any(engine in runs for runs in results.values())]
    others = [engine for engine in ran if engine != "alluvium"]
    heads = ["measure", "unit", *(TITLES[engine] for engine in ran), *(f"against {TITLES[engine]}" for engine in others)]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    remarks: list[str] = []
    for name, part in parts.items():
        for engine, reports in results[name].items():
            for report in reports:
                if "error" in report:
                    remarks.append(f"{name}, {TITLES[engine]}: `{report['error']}`")
        for key, measure in part.measures.items():
            values = {engine: values_of(key, results[name].get(engine, [])) for engine in ran}
            if not any(values.values()):
                continue
            failed = {engine for engine in ran if any("error" in report for report in results[name].get(engine, []))}
            cells = ["failed" if engine in failed else cell(values[engine]) for engine in ran]
            ratios = [ratio(measure, values.get("alluvium", []), values[engine]) for engine in others]
            label = measure.label.format(rows=options.rows, tuples=options.tuples, events=options.events, reads=options.reads)
            lines.append("| " + " | ".join([label, measure.unit, *cells, *ratios]) + " |")
        remarks += [remark for remark in part.remarks if remark not in remarks]
    return "\n".join(lines + [""] + [f"- {remark}" for remark in remarks])
