"""The chart for the README: a panel for each mode, a bar for each system; plain SVG for light and dark pages."""
from html import escape

from .contest import show

WIDTH = 760
LABEL = 250
VALUE = 90
BAR = 14
SYNC = 20
PANEL_HEAD = 34
PANEL_GAP = 14

# Mode, the metric that is drawn, the title.
PANELS = (("drain", "per_s", "No-op jobs a second (more is better)"),
          ("exec", "per_s", "Jobs a second, each a process of its own (more is better)"),
          ("late", "p99_ms", "Lateness of the start, 99th percentile in ms (less is better)"),
          ("herd", "last_ms", "10,000 due at one instant: last start after it in ms (less is better)"),
          ("mem", "bytes", "Redis bytes for a waiting job (less is better)"),
          ("add", "per_s", "Confirmed adds a second (more is better)"))

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.head { font-weight: 600; }
.value { text-anchor: start; }
.label { text-anchor: end; }
.laterd { fill: #2f6fdb; }
.peer { fill: #9aa4b0; }
.limit { fill: none; stroke: #9aa4b0; stroke-dasharray: 3 2; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .laterd { fill: #6ea8ff; }
  .peer { fill: #6b7683; }
  .limit { stroke: #8b949e; }
}
"""


def _panel(title, rows, y):
    """rows: (label, kind, value). -> lines of SVG, the height"""
    most = max(value for _, _, value in rows)
    room = WIDTH - LABEL - VALUE
    out = [f'<text class="head" x="0" y="{y + 18}">{escape(title)}</text>']
    for i, (label, kind, value) in enumerate(rows):
        top = y + PANEL_HEAD + i * SYNC
        width = max(1.5, room * value / most)
        out.append(f'<text class="label" x="{LABEL - 8}" y="{top + 11}">{escape(label)}</text>')
        out.append(f'<rect class="{kind}" x="{LABEL}" y="{top}" width="{width:.1f}" height="{BAR}" rx="2"/>')
        out.append(f'<text class="value" x="{LABEL + width + 6:.1f}" y="{top + 11}">{show(value)}</text>')
    return out, PANEL_HEAD + len(rows) * SYNC + PANEL_GAP


def draw(report):
    """-> the SVG of all panels for which the report has figures"""
    body, y = [], 0
    for mode, key, title in PANELS:
        rows = [(row["name"], row["kind"], row["median"][key])
                for row in report["modes"].get(mode, {}).get("rows", ())
                if row["median"].get(key) is not None]
        if not rows:
            continue
        lines, height = _panel(title, rows, y)
        body += lines
        y += height
    foot = (f"{report.get('version', 'laterd')}, Redis {report.get('redis', '?')}, "
            f"{report.get('processors', '?')} processors, medians of {report.get('rounds', '?')} rounds in turn, "
            f"{report.get('date', '')}")
    body.append(f'<text x="0" y="{y + 14}">{escape(foot)}</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 24}" width="{WIDTH}" '
            f'height="{y + 24}" role="img" aria-label="laterd beside other job systems">\n'
            f"<style>{STYLE}</style>\n" + "\n".join(body) + "\n</svg>\n")
