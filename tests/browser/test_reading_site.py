"""The reading site: whole, without an answer, and alive when its pages are opened from a disk."""

from __future__ import annotations

import html
import json
import re
from urllib.parse import unquote

import nbformat
import pytest

from labs_lib.authoring import site
from labs_lib.authoring.release import _GEOMETRY, plan, solution_file
from labs_lib.errors import UsageError
from labs_lib.exercises import exercise, labs
from labs_lib.notebook.cells import exercise_name, role
from labs_lib.notebook.regions import split_region
from labs_lib.paths import home
from labs_lib.widgets.flash_tiles import flash_tiles
from labs_lib.widgets.head_split import head_split

pytestmark = pytest.mark.slow
LIVE = {"00": 1, "01": 1, "02": 2, "03": 2, "04": 2, "05": 2, "06": 2, "07": 1}
LIVE |= {"08": 2, "09": 2, "10": 2, "11": 1, "12": 1}
LINK = re.compile(r'(?:href|src)="([^"]*)"')


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """The site in a folder whose name is awkward: page's stem -> its file."""
    folder = tmp_path_factory.mktemp("reading") / "eine Séite"
    written = site.build(folder)
    return {file.stem: file for file in written}


@pytest.fixture
def opened(chromium, pages):
    """Opens pages in a browser; what it complained of and asked for is checked afterwards."""
    made, errors, asked = [], [], []

    def open_(stem, **options):
        page = chromium.new_page(viewport={"width": 1000, "height": 900}, **options)
        made.append(page)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
        page.on("request", lambda request: asked.append(request.url))
        page.goto(pages[stem].as_uri())
        return page

    yield open_
    for page in made:
        page.close()
    assert errors == []
    assert [url for url in asked if not url.startswith(("file://", "data:"))] == []


def labelled(pages):
    return {lab.number: pages[lab.stem] for lab in labs()}


def text_of(file):
    """What a reader of a page sees, without its tags."""
    body = re.sub(r"<script.*?</script>", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "", body))


def bare(text):
    return "".join(text.split())


def test_every_lab_has_a_page_with_its_prose_and_stubs(pages):
    for lab in labs():
        text = bare(text_of(pages[lab.stem]))
        for cell in plan(lab)[1].cells:
            if cell.cell_type == "code":
                assert bare(cell.source) in text, f"{lab.name}: {cell['id']}"
        assert f'href="{lab.stem}.html"' in pages["index"].read_text(encoding="utf-8")


def test_no_line_of_an_answer_and_no_verdict_is_on_a_page_or_in_a_script(pages):
    folder = pages["index"].parent
    scripts = bare("".join(f.read_text(encoding="utf-8") for f in folder.glob("assets/*.js")))
    for lab in labs():
        source, student = plan(lab)
        seen = bare(pages[lab.stem].read_text(encoding="utf-8")) + bare(text_of(pages[lab.stem]))
        open_ = bare("".join(cell.source for cell in student.cells))
        for cell in source.cells:
            for line in split_region(cell.source)[1].split("\n") if role(cell) == "answer" else ():
                line, geometry = line.partition("#")[0], _GEOMETRY.match(line)
                if len(bare(line)) >= 25 and not geometry and bare(line) not in open_:
                    assert bare(line) not in seen + scripts, f"{exercise_name(cell)}: {line}"
        for cell in nbformat.read(solution_file(lab), as_version=4).cells:
            if role(cell) == "check":
                said = cell.outputs[0]["text"].split("\n")[0]
                assert said.startswith("PASS") and bare(said) not in seen


def test_every_link_leads_to_a_page_or_out_and_nothing_is_fetched_from_outside(pages):
    for file in pages.values():
        text = file.read_text(encoding="utf-8")
        for target in LINK.findall(re.sub(r"<pre.*?</pre>", "", text, flags=re.DOTALL)):
            if not re.match(r"https?://|#|data:", target):
                assert (file.parent / unquote(target.partition("#")[0])).is_file(), target
        assert not re.search(r'(?:src|<link[^>]*href)="(?:https?:)?//', text), file.name


def test_no_page_knows_where_it_was_made(pages):
    folder = pages["index"].parent
    for file in folder.rglob("*"):
        if file.suffix in (".html", ".js", ".css"):
            text = file.read_text(encoding="utf-8")
            assert str(home()) not in text and str(folder) not in text, file.name
            assert "file://" not in text and not re.search(r"/home/|/Users/|C:\\\\Users", text)


def test_each_explorer_has_a_picture_and_a_sentence_where_no_script_runs(pages, opened):
    page = opened("02_splitting_the_width", java_script_enabled=False)
    still = page.locator("[data-explorer] figure").first
    assert still.locator("img").evaluate("i => i.complete && i.naturalWidth > 300")
    told = head_split(n_head=12, d_model=768, seq=10).message
    assert still.locator("figcaption").inner_text() == told
    assert told in still.locator("img").get_attribute("alt")
    assert page.locator("canvas").count() == 0


def serious_faults(page, **options):
    """What axe finds of a page that bars somebody from it: a name for each, with a line of it."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"preload": False, "resultTypes": ["violations"], **options})
    violations = found.response["violations"]
    return [
        (v["id"], v["nodes"][0]["html"])
        for v in violations
        if v["impact"] in ("serious", "critical")
    ]


def test_every_page_draws_all_in_a_narrow_window_and_keeps_nobody_out(pages, opened):
    """Contrast, which takes long, is measured on three pages; the colours are the same on all."""
    page = opened("index")
    page.set_viewport_size({"width": 600, "height": 900})
    contrast_aside = {"color-contrast": {"enabled": False}}
    for stem, file in pages.items():
        page.goto(file.as_uri())
        wanted = page.locator("[data-explorer]").count()
        assert wanted >= LIVE.get(stem[:2], 0), stem
        page.wait_for_function(f"document.querySelectorAll('canvas[data-rev]').length === {wanted}")
        told = page.locator(".labs-explorer [role=status]").all_inner_texts()
        assert len(told) == wanted and not [words for words in told if "raised" in words]
        assert page.locator("[data-explorer] figure").count() == 0, "the still picture has gone"
        assert page.evaluate("document.documentElement.scrollWidth") <= 600, stem
        faults = serious_faults(page, runOnly=["wcag2a", "wcag2aa"], rules=contrast_aside)
        assert not faults, f"{stem}: {faults}"


def status(page):
    return page.locator(".labs-explorer [role=status]").first


def test_an_explorer_is_moved_by_keys_and_says_what_python_says(pages, opened):
    page = opened("02_splitting_the_width")
    page.get_by_label("seq", exact=True).first.focus()
    page.keyboard.press("ArrowRight")
    told = head_split(n_head=12, d_model=768, seq=11).message
    page.wait_for_function(
        f"document.querySelector('[role=status]').textContent === {json.dumps(told)}"
    )
    page.get_by_label("n_head, typed", exact=True).first.fill("7")
    page.keyboard.press("Enter")
    page.locator(".labs-offers button").first.wait_for()
    assert "Not allowed: d_model=768" in status(page).inner_text()


def test_tiles_are_played_on_a_page(pages, opened):
    page = opened("11_flash_attention", reduced_motion="no-preference")
    page.get_by_role("button", name="play").first.press("Enter")
    told = [flash_tiles(step=step).message for step in range(8, 24)]  # a busy browser misses one
    page.wait_for_function(
        f"{json.dumps(told)}.includes(document.querySelector('[role=status]').textContent)"
    )
    page.get_by_role("button", name="pause").first.press("Enter")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("stem", ["index", "00_start_here", "glossary"])
def test_pages_are_fit_to_be_read_in_both_schemes_and_widths(opened, kept, stem, scheme):
    page = opened(stem, color_scheme=scheme)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    for width in (1000, 600):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.screenshot(path=kept / f"page-{stem}-{scheme}-{width}.png")
    assert not serious_faults(page)


def test_a_reader_may_choose_the_other_scheme(opened):
    page = opened("02_splitting_the_width", color_scheme="light")
    canvas = page.locator("canvas[data-rev]").first
    before = int(canvas.get_attribute("data-rev"))
    page.get_by_role("button", name="Dark or light").click()
    page.wait_for_function(
        "getComputedStyle(document.body).backgroundColor !== 'rgb(255, 255, 255)'"
    )
    page.wait_for_function(f"document.querySelector('canvas').dataset.rev > {before}")


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="something else"):
        site.build(tmp_path)
    assert (tmp_path / "thesis.txt").read_text(encoding="utf-8") == "mine"


def test_a_lab_whose_source_was_edited_since_is_not_published(tmp_path, monkeypatch):
    monkeypatch.setattr(site, "source_hash", lambda lab: "another")
    with pytest.raises(UsageError, match="labs release 00"):
        site.build(tmp_path / "site")


def test_every_stub_on_a_page_is_marked_as_the_readers_own(pages):
    for lab in labs():
        text = pages[lab.stem].read_text(encoding="utf-8")
        names = [exercise_name(c) for c in plan(lab)[1].cells if role(c) == "answer"]
        assert text.count('<p class="role">Yours to write:') == len(names)
        for name in names:
            assert html.escape(exercise(name).title) in text
