from __future__ import annotations

import errno

import pytest
from pyspark.errors import PySparkException

from ballast.errors import InvalidField
from ballast.spark.errors import SparkFailedError, in_own_words

TASK = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "batch_reader.py", line 81, in read
ballast.spark.errors.SourceError: http://prometheus:9090: can't be read: connection refused

 SQLSTATE: 38000
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(TASK, "http://prometheus:9090: can't be read: connection refused", id="a task of ours"),
        pytest.param("\nPath does not exist: /h\n  at Spark\n", "Path does not exist: /h", id="Spark itself"),
        pytest.param("", "Spark failed and does not say why", id="nothing"),
    ],
)
def test_what_spark_raises_is_told_in_one_sentence(text: str, told: str) -> None:
    with pytest.raises(SparkFailedError) as caught, in_own_words():
        raise PySparkException(text)
    assert str(caught.value) == told


def test_what_the_file_system_refuses_is_told_in_one_sentence() -> None:
    with pytest.raises(SparkFailedError, match=r"^/history: Permission denied$"), in_own_words():
        raise PermissionError(errno.EACCES, "Permission denied", "/history")


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(InvalidField), in_own_words():
        raise InvalidField("--from", "x", "name a day")
