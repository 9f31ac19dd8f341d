"""Ballast's data on Spark. The only importer of `pyspark`."""
