from __future__ import annotations

from typing import NoReturn, cast

import pytest
from pyspark.errors import PySparkAttributeError
from pyspark.sql import SparkSession

from ballast.spark.audit import Audit
from ballast.spark.errors import ConnectError


class Remote:
    """A session of Spark Connect (4.3): it has no JVM."""

    def __getattr__(self, name: str) -> NoReturn:
        raise PySparkAttributeError(errorClass="JVM_ATTRIBUTE_NOT_SUPPORTED", messageParameters={"attr_name": name})


def test_an_audit_over_spark_connect_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(
        ConnectError, match="a session of Spark Connect can't reach: run this query as its own application"
    ):
        Audit(cast("SparkSession", Remote()), "/nowhere")
