"""The tables that a person reads."""
from .contest import show


def _grid(header, rows):
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        cells = [str(cell).ljust(w) if i == 0 else str(cell).rjust(w)
                 for i, (cell, w) in enumerate(zip(row, widths))]
        yield "  " + "  ".join(cells).rstrip()


def _missing(rows, key):
    """The systems that did not take part, by reason."""
    names = {}
    for row in rows:
        if "missing" in row:
            names.setdefault(row["missing"], []).append(row[key])
    for reason, who in names.items():
        yield f"  {reason}: {', '.join(who)}"


def _contest(mode):
    metrics = mode["metrics"]
    ways = [row["name"] for row in mode["rows"] if row["kind"] == "laterd" and row["samples"]]
    # One ratio for each way, of the mode's main metric: the first one; for lateness the 99th
    # percentile.
    key = next((m["key"] for m in metrics if m["key"] == "p99_ms"), metrics[0]["key"])
    title = next(m["title"] for m in metrics if m["key"] == key)
    header = ["median"] + [f"{m['title']} {m['unit']}".strip() for m in metrics]
    rows = []
    for row in mode["rows"]:
        if not row["samples"]:
            continue
        name = row["name"] + (f" ({row['note']})" if row["note"] else "")
        rows.append([name, *(show(row["median"][m["key"]]) for m in metrics)])
    yield from _grid(header, rows)
    rivals = [row for row in mode["rows"] if row["kind"] != "laterd" and row["samples"]]
    if ways and rivals:
        yield ""
        rows = [[row["name"], *(show(row["laterd_ratio"].get(way, {}).get(key)) for way in ways)]
                for row in rivals]
        yield from _grid([f"laterd ÷ it, {title}", *(way.removeprefix("laterd, ") for way in ways)], rows)
    yield from _missing(mode["rows"], "name")


def _cell(value):
    if isinstance(value, list):
        return "; ".join(value) or "none"
    return value if isinstance(value, str) else show(value)


def _lines(mode):
    columns = mode["columns"]
    there = [row for row in mode["lines"] if "missing" not in row]
    yield from _grid([title for _, title in columns],
                     [[_cell(row.get(key)) for key, _ in columns] for row in there])
    yield from _missing(mode["lines"], "case")


def text(report):
    out = [f"{report['version']}, Redis {report['redis']}, {report['processors']} processors, "
           f"{report['rounds']} rounds, load {report['load_before']:.2f} before and "
           f"{report['load_after']:.2f} after"]
    for name, mode in report["modes"].items():
        out += ["", f"{name}: {mode['title']}"]
        out += _contest(mode) if "rows" in mode else _lines(mode)
    return "\n".join(out)
