#!/bin/sh
# Makes the part of ECharts that the dashboard draws with (npm on PATH; asks its registry).
set -eu

ECHARTS=6.1.0
ESBUILD=0.25.12
page=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)/operator/ballast/cli/console/page
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --silent --no-save "echarts@$ECHARTS" "esbuild@$ESBUILD"
cat >entry.js <<'END'
import {use} from "echarts/core";
import {CustomChart} from "echarts/charts";
import {GridComponent} from "echarts/components";
import {CanvasRenderer} from "echarts/renderers";
use([CustomChart, GridComponent, CanvasRenderer]);
export {init} from "echarts/core";
END
npx esbuild entry.js --bundle --minify --format=esm --legal-comments=none --log-level=warning --outfile=bundle.js
{
  echo "// ECharts $ECHARTS, Apache License 2.0, with zrender (BSD 3-Clause) and tslib (0BSD): see NOTICE."
  cat bundle.js
} >"$page/echarts.js"
echo "echarts: $(wc -c <"$page/echarts.js") bytes"
