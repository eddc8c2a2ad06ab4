"""What the tests of the trainings share."""

import pytest

from labs_lib.training.layers import sdpa


@pytest.fixture
def stop_at_call():
    """Make torch's attention with one interrupt at a call, as the stop button sends it."""

    def make(number):
        calls = 0

        def attend(q, k, v, mask):
            nonlocal calls
            calls += 1
            if calls == number:
                raise KeyboardInterrupt
            return sdpa(q, k, v, mask)

        return attend

    return make
