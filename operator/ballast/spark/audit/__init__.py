"""Proof, micro-batch by micro-batch, that a streaming query lost and duplicated no record.

Storm's acker in Spark's terms: each stage of a query records how many ids it consumed and emitted, and their XOR.
"""

from ballast.spark.audit.stages import Audit

__all__ = ["Audit"]
