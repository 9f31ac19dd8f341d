"""What surrounds the series of an answer: whether it is one of Prometheus, a refusal, or not whole."""

from __future__ import annotations

import msgspec

from ballast.prometheus.endpoint import PrometheusError, shown

INCOMPLETE = "series may be missing from its answer"
"""Half of a node's series would make it look idle, so such an answer is not used."""
_OF_VALUES = "PromQL warning: "
"""Such as of histograms next to plain numbers, or of buckets without a bound, which PromQL leaves out. Any pod that is
scraped can export some that it warns of, next to those of others.
"""
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Data(msgspec.Struct, rename="camel"):
    result_type: str
    result: msgspec.Raw


class _Envelope(msgspec.Struct, rename="camel"):
    status: str = ""
    data: msgspec.Raw = msgspec.Raw(b"null")
    error_type: str = ""
    error: str = ""
    warnings: list[str] | None = None
    is_partial: bool = False
    """VictoriaMetrics' own word."""

    @property
    def missing(self) -> list[str]:
        """What the server says of series that are missing, as Thanos does of a store that did not answer."""
        of_series = [each for each in self.warnings or () if not each.startswith(_OF_VALUES)]
        return [*of_series, *(["isPartial"] if self.is_partial else [])]

    @property
    def refusal(self) -> str:
        return shown(": ".join(filter(None, (self.error_type, self.error))))


# Built when this module is loaded: msgspec 0.22 crashes where several threads are the first to decode a type at once.
_ENVELOPE, _DATA, _NAMES = msgspec.json.Decoder(_Envelope), msgspec.json.Decoder(Data), msgspec.json.Decoder(list[str])


def data_of(body: bytes) -> Data:
    """Of an answer that is whole. Raises PrometheusError, with the server's own words where it has some."""
    try:
        return _DATA.decode(_data(body))
    except UNREADABLE:
        raise PrometheusError("its answer is not one of Prometheus") from None


def names_of(body: bytes) -> list[str]:
    """The values of a label, each once. Raises PrometheusError."""
    try:
        return sorted(set(_NAMES.decode(_data(body))))
    except UNREADABLE:
        raise PrometheusError("its answer is not one of Prometheus") from None


def refusal_of(body: bytes) -> str:
    """The server's words in an answer that is none; empty where it has none."""
    try:
        return _ENVELOPE.decode(body).refusal
    except UNREADABLE:
        return ""


def _data(body: bytes) -> msgspec.Raw:
    envelope = _ENVELOPE.decode(body)
    if envelope.status != "success":
        raise PrometheusError(envelope.refusal or "its answer is not one of Prometheus")
    if envelope.missing:
        raise PrometheusError(f"{INCOMPLETE}; the server warns: {shown('; '.join(envelope.missing))}")
    return envelope.data
