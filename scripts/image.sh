#!/bin/sh
# Builds the image from the Dockerfile without a container engine, and tries it: needs root, buildah and debootstrap.
# The base is made here from Debian's own packages and kept in the cache; everything else is built again.
# Not part of the tests: the first time takes minutes.
set -eu

SUITE=bookworm
BASE=localhost/ballast-base:$SUITE
IMAGE=localhost/ballast:try
repository=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ballast/images
work=$(mktemp -d)
export BUILDAH_ISOLATION=chroot
export STORAGE_DRIVER=vfs
# Short-lived names go where this run's own files are: nothing is left in /run.
export XDG_RUNTIME_DIR="$work"

say() { printf 'image: %s\n' "$*"; }

fail() {
  printf 'image: %s\n' "$*" >&2
  exit 1
}

images() { buildah --root "$cache" --runroot "$work/run" "$@"; }

clean() {
  if [ -n "${container:-}" ]; then images rm "$container" >/dev/null 2>&1 || true; fi
  images rmi "$IMAGE" >/dev/null 2>&1 || true
  rm -rf "$work"
}

# A Debian with Python, as an image.
make_base() {
  if images inspect --type image "$BASE" >/dev/null 2>&1; then return 0; fi
  say "making a base of Debian $SUITE"
  debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$SUITE" "$work/base" >"$work/log" 2>&1 ||
    fail "debootstrap failed: $(tail -n 5 "$work/log")"
  rm -rf "$work"/base/var/cache/apt/* "$work"/base/var/lib/apt/lists/*
  container=$(images from scratch)
  images copy -q "$container" "$work/base" / >/dev/null
  images commit -q "$container" "$BASE" >/dev/null
  images rm "$container" >/dev/null
  container=
  rm -rf "$work/base"
}

# What the image's own user gets to see of a command.
inside() { images run "$container" -- "$@"; }

try_image() {
  container=$(images from "$IMAGE")
  inside ballast --help >"$work/help" || fail "ballast --help failed in the image"
  inside ballast run --help >/dev/null || fail "ballast run --help failed in the image"
  inside ballast release --help >/dev/null || fail "ballast release --help failed in the image"
  who=$(inside id -u)
  [ "$who" = 65532 ] || fail "the image runs as user $who and not as 65532"
  if inside python -c 'import pytest' 2>/dev/null; then fail "the image holds what only tests need"; fi
  if inside touch /opt/ballast/written 2>/dev/null; then fail "the program can write its own files"; fi
  mounted=$(images mount "$container")
  say "works as user $who; /opt/ballast has $(du -sm "$mounted/opt/ballast" | cut -f 1) MiB"
}

[ "$(id -u)" -eq 0 ] || fail "run this as root"
for tool in buildah debootstrap; do
  command -v $tool >/dev/null 2>&1 || fail "$tool is missing: apt-get install --no-install-recommends buildah debootstrap"
done
mkdir -p "$cache"
trap clean EXIT
make_base
started=$(date +%s)
images bud -q --build-arg "BASE=$BASE" --volume /etc/ssl/certs:/etc/ssl/certs:ro --tag "$IMAGE" "$repository" \
  >"$work/log" 2>&1 || fail "the build failed: $(tail -n 20 "$work/log")"
say "built in $(($(date +%s) - started)) s"
try_image
