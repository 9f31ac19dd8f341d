"""Comments in text that another program reads, such as YAML or Spark's properties."""

from __future__ import annotations


def comment(text: str) -> str:
    """`text` on one line behind `# `. A line break in a name of a user's file would begin what is read and applied."""
    return f"# {' '.join(text.splitlines())}"
