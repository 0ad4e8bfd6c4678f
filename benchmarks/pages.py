"""Tables of README and docs, made of `docs/results.json` by ``python -m benchmarks.results``: one function for each table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

Results = dict[str, Any]

FIELDS = {
    "2d": ("the paper's 2-D test", "20,000 × 2"),
    "2d, noisy": ("the same with noise, error to the truth", "20,000 × 2"),
    "combustion": ("combustion source term", "11,136 × 3"),
    "heaton": ("satellite field with holes (Heaton et al. 2019)", "105,569 × 2"),
    "rio": ("magnetic survey, Rio", "30,174 × 2"),
    "baja": ("bathymetry, Baja California", "66,376 × 2"),
    "ozone": ("ozone model field", "53,568 × 2"),
    "britain": ("magnetic survey, Britain", "487,357 × 2"),
}
PEERS = {"xgboost": "XGBoost", "knn": "KNN", "scipy rbf, 100 neighbours": "scipy RBF, 100 neighbours"}
PROCESS = {"gaussian process": "Gaussian process"}
METHODS = {
    "stitchwork": "**stitchwork**",
    "stitchwork, fixed": "stitchwork, fixed hyperparameters",
    "stitchwork, by hand": "stitchwork, fixed by hand",
    "scipy 50": "scipy RBF, 50 neighbours",
    "scipy 100": "scipy RBF, 100 neighbours",
    "XGBoost": "XGBoost, 500 trees",
    "LightGBM": "LightGBM, 500 trees",
    "KNN": "KNN",
    "KernelRidge": "KernelRidge",
    "SVGP": "SVGP (GPyTorch)",
    "MuyGPyS": "MuyGPyS, 50 neighbours",
    "ferreus_rbf": "ferreus_rbf, cubic",
}
CASES = {
    "2d 1e4": "2-D, 10⁴",
    "2d 1e5": "2-D, 10⁵",
    "2d 1e6": "2-D, 10⁶",
    "2d 1e7": "2-D, 10⁷",
    "8d 1e4": "8-D, 10⁴",
    "8d 1e5": "8-D, 10⁵",
    "8d 316228": "8-D, 316,228",
    "rbf25 100": "3-D, 52,850 (treverhines/RBF#25)",
    "britain all": "magnetic survey of Britain, 487,357",
}
LABELS = {
    "satellite field": "satellite field (its published holes)",
    "ozone": "ozone model",
    "rio": "magnetic field of Rio",
    "wind": "wind, Jason-3",
    "forest": "forest heights",
}


def figure(value: float | list[float] | None, digits: int = 3) -> str:
    """A number as pages print it: 1.17e-5, 0.417, 136; a range of several runs: 1.6 to 2.1; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, list):
        return " to ".join(figure(one, digits) for one in value)
    rounded = float(f"{value:.{digits}g}")
    if abs(rounded) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    text = f"{rounded:.{digits}g}"
    if 0 < abs(rounded) < 1e-3 and "e" not in text:
        mantissa, _, exponent = f"{rounded:.{digits - 1}e}".partition("e")
        text = f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{exponent}"
    return text.replace("e-0", "e-")


def least_bold(values: Sequence[float | None], digits: int = 3) -> list[str]:
    """Numbers as cells, the least one in bold type."""
    known = [value for value in values if value is not None]
    return [f"**{figure(v, digits)}**" if v is not None and v == min(known) else figure(v, digits) for v in values]


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(line) + " |" for line in ([*heads], *map(list, rows))]
    lines = [re.sub(r"\|  (?=\|)", "| ", line) for line in lines]
    return "\n".join([lines[0], "|" + "---|" * lines[0][1:].count("|"), *lines[1:]])


def measured(*entries: dict[str, Any]) -> str:
    """Which versions measured some figures: "0.2.0", or "0.1.0 and 0.2.0"."""
    return " and ".join(sorted({entry["version"] for entry in entries}))


def fields(results: Results) -> str:
    """Errors of the default and of peers on fields."""
    own, others = results["accuracy"], results["accuracy, peers"]
    rows = [
        [*FIELDS[name], *least_bold([own[name]["value"], *(others[name]["value"].get(peer) for peer in PEERS)])] for name in FIELDS
    ]
    ours, theirs = (measured(*(each[name] for name in FIELDS)) for each in (own, others))
    used = f"Measured with {ours}; the others with {theirs}."
    return f"{table(['fields', 'n × d', 'stitchwork', *PEERS.values()], rows)}\n\n{used}"


def tables(results: Results) -> str:
    """Errors of the default and of peers on tables, by their ratio."""
    from benchmarks.accuracy import JUDGED

    own, others, rows = results["tables"], results["tables, peers"], {}
    peers = {**PEERS, **PROCESS}
    for name, entry in own.items():
        errors = [others[name]["value"].get(peer) for peer in peers]
        rows[name] = entry["value"]["rmse"] / min(error for error in errors if error is not None), [entry["value"]["rmse"], *errors]
    lines = [
        [name, f"{own[name]['value']['n']:,} × {own[name]['value']['d']}", *least_bold(errors), figure(ratio, 3)]
        for name, (ratio, errors) in sorted(rows.items(), key=lambda item: -item[1][0])
    ]
    mean = np.exp(np.mean([np.log(rows[name][0]) for name in JUDGED if name in rows]))
    heads = ["table", "n × d", "stitchwork", *peers.values(), "ratio to the best other"]
    said = f"The geometric mean of the ratios of {', '.join(name for name in JUDGED if name in rows)} is {mean:.2f}."
    used = f"Measured with {measured(*own.values())}; the others with {measured(*(others[name] for name in own))}."
    return f"{table(heads, lines)}\n\n{said} {used}"


def noisy(results: Results) -> str:
    """Errors of values and gradients of smooth functions hidden in noise."""
    own, rows = results["noisy"], []
    for name, entry in own.items():
        value = entry["value"]
        cells = [", ".join(figure(part) for part in value[way] if part is not None) for way in value["ways"]]
        rows.append([name, value["size"], *cells, figure(value["cpu"], 2)])
    heads = ["", "n × d", "default", "regions of 100 points", '`kernel="matern52"`', "scipy RBF, 100 neighbours", "fit, CPU s"]
    return f"{table(heads, rows)}\n\nMeasured with {measured(*own.values())}."


def speed_rows(results: Results, case: str, methods: Iterable[str]) -> list[list[str]]:
    """Method, CPU seconds of the fit, memory, µs a query, error, and the version that measured them."""
    own, rows = results["speed"], []
    for method in methods:
        entry = own.get(f"{case}, {method}")
        if entry is None or "failed" in entry["value"]:
            continue
        value = entry["value"]
        fit, query, error = figure(value["fit_cpu"], 2), figure(value["query_us"], 2), figure(value["rmse"], 2)
        memory = f"{value['fit_gb']:.2f}" if "fit_gb" in value else ""
        rows.append([METHODS[method], fit, memory, query, error, entry["version"]])
    return rows


def speed_of(*cases: str) -> Callable[[Results], str]:
    """The table of some cases, with all methods that were measured."""

    def block(results: Results) -> str:
        rows = []
        for case in cases:
            found = speed_rows(results, case, METHODS)
            rows += [[CASES[case] if not k else "", *row] for k, row in enumerate(found)]
        return table(["points", "", "fit, CPU s", "memory, GB", "query, µs", "RMSE", "measured with"], rows)

    return block


def speed_short(results: Results) -> str:
    """The paper's 2-D function with 10⁵ and 10⁶ points, beside what users take most."""
    rows, methods = [], ("stitchwork", "stitchwork, fixed", "scipy 100", "XGBoost", "LightGBM")
    for case in ("2d 1e5", "2d 1e6"):
        found = speed_rows(results, case, methods)
        rows += [[CASES[case].removeprefix("2-D, ") if not k else "", row[0], row[1], *row[3:]] for k, row in enumerate(found)]
    return table(["n", "", "fit, CPU s", "query, µs", "RMSE", "measured with"], rows)


def speed_queries(results: Results) -> str:
    """What one query costs the default, in the plane."""
    own, cases = results["speed"], ("2d 1e5", "2d 1e6")
    entries = [own[f"{case}, stitchwork"] for case in cases]
    lines = {
        "batch of 10⁵, from C: value": "c_value_us",
        "with gradient": "c_gradient_us",
        "with Hessian": "c_hessian_us",
        "one row, value and gradient, from Python": "single_us",
        "the same from C, random order": "c_single_us",
        "opening the file in C until the first answer, s": "c_open_s",
        "two threads, times as fast: predict": "threads_predict",
        "two threads, times as fast: fit": "threads_fit",
        "fit, times its floor": "over_floor",
    }
    rows = [[text, *(figure(entry["value"].get(key), 2) for entry in entries)] for text, key in lines.items()]
    rows = [row for row in rows if any(row[1:])]
    used = f"Measured with {measured(*entries)}."
    return f"{table(['2-D, µs a query', *(f'n = {CASES[case][5:]}' for case in cases)], rows)}\n\n{used}"


def speed_growth(results: Results) -> str:
    """Cost by dimension, region size and outputs."""
    own = results["speed, profile"]
    rows = [[name, figure(entry["value"]["fit"], 3), figure(entry["value"]["query"], 3)] for name, entry in own.items()]
    heads = ["fixed hyperparameters, 20,000 points", "fit, CPU ms per thousand points", "query, µs"]
    return f"{table(heads, rows)}\n\nMeasured with {measured(*own.values())}."


def satellite(results: Results) -> str:
    """Scores of the satellite field, beside those that Heaton et al. print."""
    from benchmarks.uncertainty import PUBLISHED

    own = results["uncertainty"]["satellite"]
    value = own["value"]
    rows = [["**stitchwork**", f"{value['crps']:.3f}", f"{value['score']:.2f}", f"{value['inside']:.3f}"]]
    rows += [[name, f"{row[0]:.2f}", f"{row[1]:.2f}", f"{row[2]:.2f}"] for name, row in PUBLISHED.items()]
    near, far = (f"{100 * value[part]:.1f} %" for part in ("near", "far"))
    near = f"Within three pixels of the data {near} lie in their 95 % intervals, farther away {far}."
    return f"{table(['', 'CRPS', 'interval score, 95 %', 'coverage of 95 %'], rows)}\n\n{near} Measured with {own['version']}."


def beside_gpboost(results: Results) -> str:
    """The default and GPBoost on three fields."""
    own, rows = results["uncertainty, GPBoost"], []
    for name, entry in own.items():
        for k, (peer, value) in enumerate(entry["value"]["scores"].items()):
            cells = (figure(value["rmse"], 4), figure(value["crps"]), f"{100 * value['inside']:.1f} %", f"{value['cpu']:.0f}")
            rows.append([*((LABELS.get(name, name), f"{entry['value']['n']:,}") if not k else ("", "")), peer, *cells])
    heads = ["", "points", "", "RMSE", "CRPS", "in 95 % intervals", "CPU s"]
    return f"{table(heads, rows)}\n\nMeasured with {measured(*own.values())}."


def intervals(kind: str) -> Callable[[Results], str]:
    """Shares inside of intervals, by field or by table."""

    def block(results: Results) -> str:
        own = results[f"uncertainty, {kind}"]
        rows = [
            ["inside 50 % intervals", *(f"{100 * entry['value']['50']:.1f} %" for entry in own.values())],
            ["inside 90 % intervals", *(f"{100 * entry['value']['90']:.1f} %" for entry in own.values())],
        ]
        ratios = [entry["value"].get("ratio") for entry in own.values()]
        said = ""
        if any(ratios):
            rows.append(["CRPS, ratio", *(figure(ratio) for ratio in ratios)])
            mean = np.exp(np.mean([np.log(ratio) for ratio in ratios if ratio]))
            said = f"The geometric mean of the ratios is {mean:.2f}. "
        return f"{table(['', *(LABELS.get(name, name) for name in own)], rows)}\n\n{said}Measured with {measured(*own.values())}."

    return block


GROUPS = {
    "flamelets": ("flamelets", "every fifth of 87"),
    "rio": ("Rio, magnetic survey", "a tenth of 137 lines"),
    "baja": ("Baja, soundings", "a tenth of 265 tracks"),
    "jason3": ("Jason-3, wind speed", "a tenth of 1,008 passes"),
    "parkinsons": ("parkinsons, supports", "a fifth of 42 subjects"),
}


def groups(results: Results) -> str:
    """Whole lines held out: errors, what leave-one-out promised, and shares inside of 90 % intervals."""
    own, rows = results["groups"], []
    for name, entry in own.items():
        value = entry["value"]
        errors = least_bold([value.get("others"), value["default"][0], value["groups"][0]])
        promised = [f"{figure(value[way][1])}, {100 * value[way][2]:.0f} %" for way in ("default", "groups")]
        rows.append([*GROUPS[name], errors[0], errors[1], promised[0], errors[2], promised[1]])
    said = ["default", "promised, inside", "with `groups`", "promised, inside"]
    heads = ["data", "held out", "scipy, 100 neighbours (best of three splines)", *said]
    return f"{table(heads, rows)}\n\nMeasured with {measured(*own.values())}."


def losses(results: Results) -> str:
    """Tables of which another method has a smaller error."""
    own, others, rows, used = results["tables"], results["tables, peers"], [], []
    for name, entry in own.items():
        error, peers = entry["value"]["rmse"], others[name]["value"]
        best = min(peers, key=peers.__getitem__)
        if peers[best] < error:
            size = f"{name}, {entry['value']['n']:,} rows of {entry['value']['d']} features"
            rows.append([size, figure(error), f"{(PEERS | PROCESS)[best]} {figure(peers[best])}", f"`benchmarks.accuracy {name}`"])
            used.append(entry)
    return f"{table(['data', 'stitchwork', 'better', 'source'], rows)}\n\nMeasured with {measured(*used)}."


def surrogates(results: Results) -> str:
    """Few runs of simulations: errors over those of the best peer, by the number of runs."""
    own, rows = results["surrogates"], []
    for n, entry in own.items():
        value = entry["value"]
        ratio, worst, name = value["error"]
        cells = (figure(ratio, 2), f"{figure(worst)} ({name})", figure(value["gradient"][0], 2), f"{value['inside']:.2f}")
        rows.append([n, *cells, figure(value["cpu"], 2)])
    heads = ["n", "ratio to the best peer", "worst", "gradients", "share inside 90 %", "CPU s"]
    return f"{table(heads, rows)}\n\nMeasured with {measured(*own.values())}."


GROWN = {"2d": "paper's 2-D test", "ring": "steep ring", "peak": "peak in 3-D", "ignition": "ignition delay, 3-D"}
ASKED = {"ours": "`suggest`", "random": "random", "sobol": "Sobol", "learner-nd": "`LearnerND`", "process": "Gaussian process"}


def growing(results: Results) -> str:
    """Points needed for the error of 1,000 random ones, and errors of 400 points, by who asks for them."""
    own, rows = results["growing"], []
    for method in ("ours", "sobol"):
        needed = [entry["value"]["needed"][method] for entry in own.values()]
        rows.append([f"points needed, {ASKED[method]}", *(f"{n:,}" if n else "more than 1,000" for n in needed)])
    columns = [least_bold([entry["value"]["errors"][method].get("400") for method in ASKED], 2) for entry in own.values()]
    rows += [[f"RMSE of 400: {title}", *(column[k] for column in columns)] for k, title in enumerate(ASKED.values())]
    return f"{table(['', *(GROWN[name] for name in own)], rows)}\n\nMeasured with {measured(*own.values())}."


def gross_errors(results: Results) -> str:
    """Errors of robust and of plain fits, relative to those without the wrong rows, by the share of these."""
    own, rows = results["errors, gross"], []
    for name, entry in own.items():
        shares, size = entry["value"]["shares"], f"{name}, {entry['value']['n']:,} × {entry['value']['d']}"
        wrong = [f"{figure(one['error'])} ({figure(one['plain'], 2)})" for share, one in shares.items() if share != "0"]
        lost, cost = (max(one[kind] for one in shares.values()) for kind in ("lost", "cost"))
        rows.append([size, figure(shares["0"]["error"]), *wrong, f"{100 * lost:.1f} %", figure(cost, 2)])
    heads = ["data", "none wrong", "1 %: robust (default)", "5 %", "10 %", "good rows left out", "time, at most"]
    return f"{table(heads, rows)}\n\nMeasured with {measured(*own.values())}."


def known_errors(results: Results) -> str:
    """The error relative to the exact process, and shares inside of intervals by fifths of the errors."""
    entry = results["errors, known"]["factor of 100"]
    value = entry["value"]
    inside = [f"{100 * a:.1f} ± {100 * b:.1f} %" for a, b in zip(value["inside"], value["standard error"], strict=True)]
    mean, least, most = (100 * share for share in value["truth"])
    truth = (
        f"at {mean:.0f} % of places the truth is inside 90 % intervals of the function (single fields {least:.0f} to {most:.0f} %)"
    )
    heads = ["", "least errors", "second fifth", "third", "fourth", "largest errors"]
    ratio = f"root mean squared error to the truth is {figure(value['ratio'])} times that of the exact process"
    said = f"The {ratio}, over {value['fields']} fields;\n{truth}. Measured with {measured(entry)}."
    return f"{table(heads, [['inside', *inside]])}\n\n{said}"


def compact(results: Results) -> str:
    """Files with coefficients in single precision: their size, and what rounding changes."""
    own, rows = results["compact"], []
    for name, entry in own.items():
        value = entry["value"]
        size = "refused" if value["share"] is None else f"{value['share']:.2f}"
        changes = [figure(value[key], 2) for key in ("value", "gradient", "of_loo")]
        rows.append([FIELDS[name][0].split(", error")[0], f"{value['points']:,}", size, *changes])
    heads = ["", "points", "size of the file", "change of values", "of gradients", "in leave-one-out errors"]
    return f"{table(heads, rows)}\n\nMeasured with {measured(*own.values())}."


def refits(results: Results) -> str:
    """Fields on the same points: what it costs to fit them with the hyperparameters of one, in fits."""
    own, rows = results["refits"], []
    for points, entry in own.items():
        value = entry["value"]
        for t in (1, 100, 1000):
            rows.append([points, f"{t:,}", figure(value[f"refit_{t}_fits"], 2), figure(value[f"refit_{t}_gb"], 2)])
    heads = ["", "fields", "CPU time in fits with fixed hyperparameters", "memory beside the fields, GB"]
    return f"{table(heads, rows)}\n\nMeasured with {measured(*own.values())}, at most a hundred fields at a time."


BLOCKS: dict[str, Callable[[Results], str]] = {
    "fields": fields,
    "tables": tables,
    "noisy": noisy,
    "speed short": speed_short,
    "speed plane": speed_of("2d 1e4", "2d 1e5", "2d 1e6", "2d 1e7"),
    "speed more": speed_of("rbf25 100", "8d 1e4", "8d 1e5", "8d 316228", "britain all"),
    "speed 100000": speed_of("2d 1e5"),
    "speed queries": speed_queries,
    "speed growth": speed_growth,
    "satellite": satellite,
    "gpboost": beside_gpboost,
    "surrogates": surrogates,
    "growing": growing,
    "groups": groups,
    "gross errors": gross_errors,
    "known errors": known_errors,
    "refits": refits,
    "compact": compact,
    "losses": losses,
    "intervals of fields": intervals("fields"),
    "intervals of tables": intervals("tables"),
}
