"""The error that a command answers with one sentence and exit code 2."""


class UsageError(Exception):
    """What was asked can't be done; the message says why and the way out, in one sentence."""
