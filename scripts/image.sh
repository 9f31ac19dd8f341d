#!/bin/sh
# Builds the image from the Dockerfile without a container engine, and tries it: needs root, buildah and debootstrap.
# The base is made here from Debian's own packages and kept in the cache; everything else is built again.
# With a folder and a version it leaves the image there as an archive (OCI). What is for arm64 is built and looked at,
# but there is no base for it here.
# Not part of the tests: the first time takes minutes.
set -eu

SUITE=bookworm
BASE=localhost/ballast-base:$SUITE
IMAGE=localhost/ballast:${2:-try}
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
  for command in '' run release; do
    # shellcheck disable=SC2086 # no word for the program itself
    inside python3 -m ballast $command --help >/dev/null || fail "ballast $command --help failed in the image"
  done
  who=$(inside id -u)
  [ "$who" = 65532 ] || fail "the image runs as user $who and not as 65532"
  if inside python3 -c 'import pytest' 2>/dev/null; then fail "the image holds what only tests need"; fi
  if inside touch /opt/ballast/written 2>/dev/null; then fail "the program can write its own files"; fi
  mounted=$(images mount "$container")
  size=$(du -sm "$mounted/opt/ballast" | cut -f 1)
  [ "$size" -le 180 ] || fail "/opt/ballast has $size MiB: what was added belongs to jobs, or is not used"
  say "works as user $who; /opt/ballast has $size MiB"
}

build() { # ARCHITECTURE TARGET TAG
  images bud -q --build-arg "BASE=$BASE" --build-arg "SPARK_BASE=$BASE" --build-arg "TARGETARCH=$1" --build-arg "BUILDPLATFORM=linux/amd64" \
    --target "$2" --volume /etc/ssl/certs:/etc/ssl/certs:ro --timestamp 0 --tag "$3" "$repository" >"$work/log" 2>&1 ||
    fail "the build for $1 failed: $(tail -n 20 "$work/log")"
}

# The processor that an extension in the folder is for, from its header: 62 is amd64, 183 is arm64.
processor() { od -An -j 18 -N 2 -t u2 "$(find "$1" -name '_multiarray_umath*.so')" | tr -d ' '; }

# On a base without Spark: that PySpark comes from an image of Spark, and all else from here.
try_spark() {
  build amd64 spark "$IMAGE-spark"
  container=$(images from "$IMAGE-spark")
  inside python3 -c 'import ballast, pandas, pyarrow' || fail "the image for jobs lacks what jobs import"
  if inside python3 -c 'import pyspark' 2>/dev/null; then fail "the image for jobs brings a PySpark of its own"; fi
  mounted=$(images mount "$container")
  say "the image for jobs adds $(du -sm "$mounted/opt/ballast" | cut -f 1) MiB to one of Spark's"
  images rm "$container" >/dev/null
  container=
  images rmi "$IMAGE-spark" >/dev/null
}

try_arm64() {
  build arm64 build "$IMAGE-arm64"
  container=$(images from "$IMAGE-arm64")
  mounted=$(images mount "$container")
  [ "$(processor "$mounted/opt/ballast")" = 183 ] || fail "what is built for arm64 is not for arm64"
  say "what is built for arm64 is for arm64"
  images rm "$container" >/dev/null
  container=
  images rmi "$IMAGE-arm64" >/dev/null
}

[ "$(id -u)" -eq 0 ] || fail "run this as root"
for tool in buildah debootstrap; do
  command -v $tool >/dev/null 2>&1 || fail "$tool is missing: apt-get install --no-install-recommends buildah debootstrap"
done
mkdir -p "$cache"
trap clean EXIT
make_base
started=$(date +%s)
build amd64 operator "$IMAGE"
say "built in $(($(date +%s) - started)) s"
try_image
if [ $# -eq 2 ]; then
  images push -q "$IMAGE" "oci-archive:$1/ballast-$2-amd64.oci.tar:ballast:$2"
  say "archived: $(du -m "$1/ballast-$2-amd64.oci.tar" | cut -f 1) MiB"
fi
images rm "$container" >/dev/null
container=
try_spark
try_arm64
