from tests.testbed.kubelet.exposition import Sample, text


def test_samples_of_a_name_stand_together_under_their_type() -> None:
    page = text([Sample("a", 1, {"x": "1"}, "counter"), Sample("b", 2.5), Sample("a", 2, {"x": "2"}, "counter")])
    assert page == '# TYPE a counter\na{x="1"} 1\na{x="2"} 2\n# TYPE b gauge\nb 2.5\n'


def test_what_would_break_a_line_is_escaped() -> None:
    assert 'a{x="q\\"\\\\\\n"} 1' in text([Sample("a", 1, {"x": 'q"\\\n'})])
