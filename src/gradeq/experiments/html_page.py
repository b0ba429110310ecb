"""A page of HTML that asks for nothing outside: its style is inside, and nothing else may run or load."""

from __future__ import annotations

import base64
import hashlib
from html import escape

STYLE = """
:root { color-scheme: light; }
body { margin: 0 auto; max-width: 1080px; padding: 24px 20px 80px; background: #fbfbf9; color: #191c20;
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; font-variant-numeric: tabular-nums; }
h1 { font-size: 28px; line-height: 1.28; font-weight: 600; }
h2 { font-size: 20px; margin: 52px 0 8px; }
h3 { font-size: 17px; margin: 0; }
a { color: #0b5cad; }
figure { margin: 0 0 52px; padding-top: 20px; border-top: 1px solid #cfcfc8; }
img { display: block; max-width: 100%; height: auto; margin: 12px 0; background: #fff; }
.where { color: #646b76; font-size: 13px; margin: 2px 0 0; }
dl { display: grid; grid-template-columns: 9.5em 1fr; gap: 6px 14px; margin: 0; }
dt { color: #646b76; } dd { margin: 0; }
table { border-collapse: collapse; font-size: 13px; margin-top: 10px; }
th { text-align: right; font-weight: 500; color: #646b76; vertical-align: bottom; }
th[scope=row], thead th:first-child { text-align: left; color: #191c20; font-weight: 400; }
td { text-align: right; } th, td { padding: 3px 14px 3px 0; border-bottom: 1px solid #e4e4df; }
table.text td, table.text th { text-align: left; vertical-align: top; }
table.text th[scope=row] { white-space: nowrap; }
pre { background: #f1f1ec; padding: 8px 12px; overflow-x: auto; font-size: 13px; }
code { font-size: 13px; }
.skipped { color: #8a5200; }
summary { cursor: pointer; color: #0b5cad; font-size: 13px; margin-top: 10px; }
ul { padding-left: 1.2em; }
@media (max-width: 640px) { dl { grid-template-columns: 1fr; } .scroll { overflow-x: auto; } }
@media print { figure { break-inside: avoid; } }
"""


def html_page(title: str, body: str) -> str:
    """The whole page."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>",
            body,
            "</body></html>\n",
        ]
    )
