"""`python -m tests.licenses`: may everything that is installed with Ballast be given away with it?

Goes by what each package says of itself, from Ballast's own requirements on, extras included. Ends with 1 where a
license is not among those that an Apache-2.0 program may need, or where a package names none.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution

ROOT = "ballast-operator"
FINE = re.compile(r"\b(MIT(-0)?|Apache|0?BSD|PSF|Python Software Foundation|MPL|Mozilla|ISC|Zlib|CC0)\b", re.IGNORECASE)
AVOIDED = re.compile(r"\b(A?GPL|SSPL|BUSL|Affero|GNU General|Commons Clause|Proprietary)\b", re.IGNORECASE)
READ_BY_HAND = {"resvg-py": "MIT"}
"""Packages whose metadata name no license, and what the license file that comes with them is."""


def main() -> int:
    found = {package.name: license_of(package) for package in needed(ROOT)}
    wrong = {name: words for name, words in found.items() if not fine(words)}
    for name, words in sorted(wrong.items()):
        print(f"{name}: {words or 'names no license'}", file=sys.stderr)
    print(f"{len(found)} packages, {len(wrong)} with a license to look at")
    return 1 if wrong else 0


def fine(words: str) -> bool:
    return FINE.search(words) is not None and AVOIDED.search(words) is None


def needed(root: str) -> Iterator[Distribution]:
    """The package and all that it needs, as far as it is installed: what other platforms need is not."""
    seen, waiting = set[str](), [root]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        yield package
        wanted = (each for each in package.requires or () if name == ROOT or "extra ==" not in each)
        waiting += [re.split(r"[^A-Za-z0-9_.-]", each, maxsplit=1)[0] for each in wanted]


def license_of(package: Distribution) -> str:
    """In the package's own words, and in those of the classifiers where it has them."""
    named = (each for field in ("License-Expression", "License") for each in package.metadata.get_all(field) or ())
    said = [each.partition("\n")[0] for each in named]
    classifiers = package.metadata.get_all("Classifier") or ()
    said += [each.rpartition("::")[2] for each in classifiers if each.startswith("License")]
    return " ".join(filter(None, said)) or READ_BY_HAND.get(package.name.lower().replace("_", "-"), "")


if __name__ == "__main__":
    sys.exit(main())
