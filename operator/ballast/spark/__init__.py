"""Ballast's data on Spark. The only importer of `pyspark`."""

from importlib.util import find_spec

if find_spec("pyspark") is None:
    raise ImportError(
        "ballast.spark needs PySpark, which is not here: run this with spark-submit, or install ballast-operator[spark]"
    )
