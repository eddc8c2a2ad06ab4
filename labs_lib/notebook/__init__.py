"""Notebooks as files: lenient reading, cells and their roles, answer regions, atomic writing."""
