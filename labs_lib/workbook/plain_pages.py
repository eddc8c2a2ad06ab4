"""HTML files that load nothing and run nothing, for words that somebody else wrote."""

from __future__ import annotations

import html


def plain_page(title: str, style: str, *body: str) -> str:
    """A whole HTML file: a title (escaped here), CSS, and a body whose words are `escaped`."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta http-equiv="Content-Security-Policy" '
            "content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escaped(title)}</title>",
            f"<style>{style}</style></head><body>",
            *body,
            "</body></html>\n",
        ]
    )


def escaped(text: str) -> str:
    """Text as HTML shows it word for word, without characters that a page must not hold."""
    kept = "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
    return html.escape(kept, quote=True)
