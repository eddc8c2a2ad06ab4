"""Attention Labs: reference implementations, exercises and grading for a course on attention.

Importing the package loads nothing heavy; each room is imported by its own name.
"""

__version__ = "0.1.0"
