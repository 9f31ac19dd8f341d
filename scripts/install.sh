#!/bin/sh
# Installs into a folder what the image holds, without an environment around it: the folder works with any Python of the
# minor version that runs this, on the processor that it is made for.
#   install.sh dependencies FOLDER ARCHITECTURE [EXTRA]   what uv.lock has for amd64 or arm64
#   install.sh program FOLDER                             Ballast itself, compiled
set -eu

uv=$(command -v uv || echo /opt/uv/bin/uv)
python=$(command -v python3)
minor=$("$python" -c 'import sys; print("{}.{}".format(*sys.version_info))')

dependencies() {
  folder=$1 extra=${3:+--extra $3}
  case $2 in
    amd64) platform=x86_64-manylinux_2_28 ;;
    arm64) platform=aarch64-manylinux_2_28 ;;
    *)
      echo "install: unknown architecture $2; there are amd64 and arm64" >&2
      exit 1
      ;;
  esac
  listed=$(mktemp)
  # shellcheck disable=SC2086 # an option and its value
  "$uv" export --quiet --frozen --no-default-groups --no-emit-project --no-hashes --no-editable $extra \
    --output-file "$listed" >/dev/null
  # An image of Spark has its own PySpark.
  sed -i '/^pyspark==/d' "$listed"
  "$uv" pip install --quiet --python "$python" --target "$folder" --only-binary :all: --no-deps \
    --python-platform "$platform" --python-version "$minor" --requirement "$listed"
  rm -rf "$listed" "$folder/bin" "$folder/kubernetes/aio" # of the client's two copies one is used
}

program() {
  folder=$1 built=$(mktemp -d)
  "$uv" build --quiet --wheel --python "$python" --out-dir "$built" .
  "$uv" pip install --quiet --python "$python" --target "$folder" --no-deps "$built"/*.whl
  rm -rf "$built" "$folder/bin" "$folder/.lock"
  # The client's 1 500 models and calls are read by no more than the command line, with a kubeconfig.
  "$python" -m compileall -q -j 0 --invalidation-mode unchecked-hash -x '/kubernetes/client/(api|models)/' "$folder"
}

command=$1
shift
"$command" "$@"
