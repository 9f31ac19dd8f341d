"""Writes what is generated from the chart: manifests/ballast.yaml, the chart's README and dashboards."""

from tests.charts import dashboards, kustomization, readme

dashboards.write()
readme.write()
kustomization.write()
