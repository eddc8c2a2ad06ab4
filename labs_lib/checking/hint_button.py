"""A button below a check that hasn't passed: each press shows one more hint."""

from __future__ import annotations


def show(name: str) -> None:
    """Show the button where a notebook front end runs; do nothing elsewhere."""
    from IPython import get_ipython
    from IPython.display import display

    shell = get_ipython()
    if shell is None or getattr(shell, "kernel", None) is None:
        return
    import ipywidgets as widgets

    from .hints import hint

    button = widgets.Button(description="Show a hint", tooltip=f"Show the next hint of {name}")
    shown = widgets.Output()

    def press(_: object) -> None:
        with shown:
            hint(name)

    button.on_click(press)
    display(widgets.VBox([button, shown]))
