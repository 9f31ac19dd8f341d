#!/bin/sh
# Looks for known vulnerabilities in the packages that are installed with Ballast, in the versions of uv.lock, and for
# licenses that its own can't be combined with. Asks the package index, so it is no part of `make test`. Ends with an
# error where a package could not be asked about, too.
set -eu

PIP_AUDIT_VERSION=2.10.1
repository=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
uv=$("$repository/scripts/setup.sh" --print-uv)
requirements=$(mktemp)
trap 'rm -f "$requirements"' EXIT

cd "$repository"
.venv/bin/python -m tests.licenses
"$uv" export --quiet --frozen --no-dev --all-extras --no-emit-project --output-file "$requirements" >/dev/null
"$uv" tool run --quiet --python /usr/bin/python3 --from "pip-audit==$PIP_AUDIT_VERSION" \
  pip-audit --strict --disable-pip --require-hashes --requirement "$requirements"
