from __future__ import annotations

import pytest

from ballast.errors import InvalidField
from ballast.spark.source import PrometheusDataSource

NEEDED = {"url": "http://prometheus:9090", "query": "up", "step": "15s", "start": "now-1h"}


@pytest.mark.parametrize("option", [{"delay": "2m"}, {"maxspanpertrigger": "1h"}])
def test_an_option_that_only_a_stream_heeds_is_refused_for_a_batch(option: dict[str, str]) -> None:
    source = PrometheusDataSource({**NEEDED, **option})
    with pytest.raises(InvalidField, match=rf"(?i){next(iter(option))}: .*leave it out, it is for streams"):
        source.reader(source.schema())
    assert source.streamReader(source.schema())


def test_an_option_that_only_a_batch_heeds_is_refused_for_a_stream() -> None:
    source = PrometheusDataSource({**NEEDED, "end": "now"})
    with pytest.raises(InvalidField, match="end: 'now': leave it out"):
        source.streamReader(source.schema())
    assert source.reader(source.schema())
