import numpy as np
import pytest
import torch


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


@pytest.fixture
def close(dtype):
    tolerance = {torch.float32: 1e-5, torch.float64: 1e-12}[dtype]

    def check(got, wanted, scale=1.0):
        torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance * scale)

    return check


@pytest.fixture
def numbers(dtype):
    """Distinct numbers of standard deviation `std`, equal on every machine."""
    rng = np.random.Generator(np.random.PCG64(20))

    def draw(*shape, std=2.0, grad=False):
        values = rng.uniform(-1, 1, shape) * std * 3**0.5
        return torch.tensor(values, dtype=dtype, requires_grad=grad)

    return draw


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
