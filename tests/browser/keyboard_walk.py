"""A person who does a lab in JupyterLab with keys alone, for the browser tests."""

from __future__ import annotations

_HERE = """() => { const e = document.activeElement, cell = e.closest('.jp-Cell');
  const name = e.labels?.[0]?.innerText ?? e.getAttribute('aria-label') ?? e.innerText;
  return {tag: e.tagName, kind: e.type ?? '', name, whole: cell === e,
    cell: cell ? Number(cell.dataset.windowedListIndex) : null,
    value: e.type === 'checkbox' ? e.checked : e.value ?? null,
    in_output: Boolean(e.closest('.jp-OutputArea'))}; }"""
_PANEL = ".jp-NotebookPanel:not(.lm-mod-hidden)"
_BELOW = f"""i => document.querySelector(
  `{_PANEL} [data-windowed-list-index='${{i}}'] .jp-Cell-outputArea`)"""
_SAID = f"i => ({_BELOW})(i)?.innerText ?? ''"
_TOLD = f"i => ({_BELOW})(i)?.querySelector('[role=status]')?.innerText"
_DRAWN = f"""i => {{ const canvas = ({_BELOW})(i).querySelector('canvas');
  const on = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let sum = 7;
  for (const part of new Int32Array(on.data.buffer)) sum = (31 * sum + part) | 0;
  return sum; }}"""
_STARTS = """start => jupyterapp.shell.currentWidget.content.widgets
  .findIndex(cell => cell.model.sharedModel.source.startsWith(start))"""
_READY = """async () => { const panel = jupyterapp.shell.currentWidget; await panel.revealed;
  await panel.context.ready; await panel.context.sessionContext.ready; }"""
_DONE = """async () => { const panel = jupyterapp.shell.currentWidget;
  await panel.context.sessionContext.session.kernel.requestExecute({code: ''}).done; }"""
_PAINTED = "() => new Promise(f => requestAnimationFrame(() => requestAnimationFrame(f)))"
_KEYS = {"range": ("ArrowRight", "ArrowLeft"), "number": ("ArrowUp", "ArrowDown"),
         "select-one": ("ArrowDown", "ArrowUp"), "checkbox": (" ", " ")}  # fmt: skip


class Walk:
    """What is pressed on a page, where that leads, and what can be read there."""

    def __init__(self, notebook):
        self.page = notebook.page

    @property
    def here(self):
        """What has the focus: its tag, kind, name and value, its cell, whether it is the cell."""
        return self.page.evaluate(_HERE)

    def press(self, *keys):
        """Where these keys lead."""
        for key in keys:
            self.page.keyboard.press(key)
        return self.here

    def type(self, words):
        self.page.keyboard.type(words)

    def tab_to(self, wanted, key="Tab", most=40):
        """Tab until `wanted` says yes to what has the focus."""
        seen = []
        for _ in range(most):
            here = self.press(key)
            if wanted(here):
                return here
            seen.append((here["tag"], here["name"]))
        raise AssertionError(f"{key} doesn't lead there, but to {seen}")

    def opened(self):
        """Wait until the notebook that was chosen is there, with its kernel."""
        self.page.wait_for_selector(f"{_PANEL} .jp-CodeCell")
        self.page.evaluate(_READY)
        self.page.wait_for_function("document.activeElement.closest('.jp-Cell')")

    def cell(self, start):
        """The number of the cell that begins so."""
        return self.page.evaluate(_STARTS, start)

    def go(self, cell):
        """To a cell, by arrows from another."""
        here = self.press("Escape")
        while here["cell"] != cell:
            before = here["cell"]
            here = self.press("ArrowDown" if before < cell else "ArrowUp")
            assert here["whole"] and abs(here["cell"] - before) == 1, here

    def run(self, cell):
        """What a cell says that is run where it stands."""
        self.go(cell)
        self.press("Control+Enter")
        self.page.evaluate(_DONE)
        self.page.evaluate(_PAINTED)
        return self.page.evaluate(_SAID, cell)

    def write_last_line(self, cell, words):
        """Into a cell of code, its last line replaced, out of it and run."""
        self.go(cell)
        self.press("Enter", "Control+End", "Shift+Home")
        self.type(words)
        assert self.run(cell).strip() == ""

    def into(self, cell):
        """From a cell to the first control below it."""
        self.go(cell)
        self.page.locator(
            f"[data-windowed-list-index='{cell}'] :is(input, button)"
        ).first.wait_for()
        return self.tab_to(lambda here: here["in_output"], most=4)

    def told(self, cell):
        """The sentence of an explorer, once what was pressed is painted."""
        self.page.evaluate(_PAINTED)
        return self.page.evaluate(_TOLD, cell)

    def drawn(self, cell):
        """A number that stands for an explorer's picture, once what was pressed is painted."""
        self.page.evaluate(_PAINTED)
        return self.page.evaluate(_DRAWN, cell)

    def move_every_knob(self, cell):
        """Each control in Tab's order, moved and moved back by the keys of its kind; the names."""
        here, names = self.into(cell), []
        while here["in_output"]:
            assert here["name"], f"no name: {here}"
            names.append(here["name"])
            if here["tag"] == "BUTTON":
                self.press(*([" ", " "] if here["name"] == "play" else [" "]))
            else:
                self._there_and_back(cell, here, *_KEYS[here["kind"]])
            here = self.press("Tab")
        self.tab_to(lambda here: here["in_output"], key="Shift+Tab")
        return names

    def _there_and_back(self, cell, here, on, back):
        before = self.drawn(cell)
        moved = self.press(on)
        if moved["value"] == here["value"]:
            on, back = back, on
            moved = self.press(on)
        assert moved["value"] != here["value"], f"{on} doesn't move {here}"
        assert self.drawn(cell) != before, f"{here['name']} shows nothing new"
        assert self.press(back)["value"] == here["value"]
        assert self.drawn(cell) == before
