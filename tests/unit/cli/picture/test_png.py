from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from ballast.cli.picture import png
from ballast.cli.picture.exhibits import exhibits
from ballast.cli.picture.frame import NARROW, WIDE, Drawing, Plot
from ballast.cli.picture.png import NoRendererError, write_pngs
from ballast.errors import InvalidField
from ballast.simulation.ranking import ranking
from tests.unit.simulation.studies import study


def plot(marks: str = '<circle class="filled" cx="9" cy="9" r="5"/>') -> Plot:
    return Plot("dot", "A dot", (Drawing(WIDE, 100.0, marks), Drawing(NARROW, 100.0, marks)))


def size(path: Path) -> tuple[int, int]:
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    return width, height


def test_every_plot_of_a_study_becomes_a_picture_of_its_name(tmp_path: Path) -> None:
    made = study()
    written = write_pngs(exhibits(made, ranking(made)), tmp_path / "new")
    names = ["pareto", "imbalance-1", "imbalance-2", "moves", "nodes-before", "nodes-after"]
    assert [path.name for path in written] == [f"{name}.png" for name in names]
    assert all(size(path)[0] > 1500 for path in written)


def test_equal_plots_are_equal_pictures(tmp_path: Path) -> None:
    one, other = (write_pngs([plot()], tmp_path / name)[0] for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()


def test_marks_and_words_are_in_the_picture(tmp_path: Path) -> None:
    (full,) = write_pngs([plot()], tmp_path / "full")
    (bare,) = write_pngs([plot("")], tmp_path / "bare")
    assert full.read_bytes() != bare.read_bytes()


def test_without_the_renderer_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(NoRendererError, match=r"pip install '\.\[spark\]' from a checkout"):
        write_pngs([plot()], tmp_path)


def test_without_a_font_it_draws_nothing_rather_than_no_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(png, "plain", lambda: "svg text { font-family: 'No Such Font' }")
    with pytest.raises(NoRendererError, match="fonts-dejavu-core"):
        write_pngs([plot()], tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidField, match=r"--png.*file"):
        write_pngs([plot()], tmp_path / "file")
