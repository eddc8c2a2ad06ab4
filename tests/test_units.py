import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs_lib.arithmetic import Bytes, Quantity, is_about, kv_bytes, right_number_wrong_unit
from labs_lib.config import AttentionConfig


def test_the_cache_of_llama_2_70b_in_both_units():
    shared = AttentionConfig.named("llama-2-70b")
    own = AttentionConfig(8192, 64)
    assert str(kv_bytes(own, 80).MiB) == "2.50 MiB"
    assert f"{kv_bytes(shared, 80).MiB:.4f}" == "0.3125 MiB"
    whole = kv_bytes(own, 80, 4096)
    assert (str(whole.GB), str(whole.GiB)) == ("10.74 GB", "10.00 GiB")
    assert whole == 8 * kv_bytes(shared, 80, 4096)


def test_decimal_and_binary_quantities_are_never_equal():
    size = Bytes(2**30 * 10**9)
    assert size.GiB != size.GB
    assert (size.GiB == size.GB) is False
    assert size.GB == size.MB
    assert size.GiB == size.MiB
    assert len({size.GB, size.MB, size.GiB, size.KiB}) == 2
    assert size.GB.bytes == size.GiB.bytes == size
    assert float(size.GB) != size.GB


@pytest.mark.parametrize("other", [Bytes(5).GiB, Bytes(5), 5, 5.0])
def test_a_quantity_adds_and_orders_only_within_its_family(other):
    size = Bytes(10**9).GB
    for operation in (
        lambda: size + other,
        lambda: other + size,
        lambda: size - other,
        lambda: size < other,
        lambda: size <= other,
        lambda: other < size,
    ):
        with pytest.raises(TypeError):
            operation()


def test_the_refusal_names_the_way_out():
    with pytest.raises(
        TypeError, match=r"GiB cannot be added to GB: convert first, with \.bytes\.GB"
    ):
        Bytes(1).GB + Bytes(1).GiB


def test_quantities_of_one_family_add_and_order():
    assert Quantity.of(2.005, "GB") == Bytes(2 * 10**9).GB + Bytes(5 * 10**6).MB
    assert Bytes(2**30).GiB - Bytes(2**20).MiB == Quantity.of(1023, "MiB")
    assert Bytes(5).kB < Bytes(6).TB
    assert Bytes(5).KiB <= Bytes(5).TiB
    assert sorted([Bytes(9).MB, Bytes(4).GB])[0].n_bytes == 4


def test_bytes_stay_bytes_under_sums_and_multiples():
    total = sum([Bytes(3), Bytes(4)])
    for value in (total, Bytes(3) + 4, 4 + Bytes(3), 7 * Bytes(1), Bytes(1) * 7, Bytes(9) - 2):
        assert isinstance(value, Bytes)
        assert value == 7
    assert Bytes(10) / Bytes(4) == 2.5
    assert str(Bytes(2_621_440)) == "2,621,440 B"
    assert f"{Bytes(2_621_440):,}" == "2,621,440"


@pytest.mark.parametrize("value", [1.5, 2.0, "3", True, None])
def test_a_fraction_of_a_byte_is_refused(value):
    with pytest.raises(TypeError, match="not a whole number of bytes"):
        Bytes(value)


def test_a_quantity_is_fixed_and_its_unit_known():
    with pytest.raises(AttributeError):
        Bytes(1).GB.n_bytes = 2
    with pytest.raises(ValueError, match="unit 'Gb' is not known; kB, MB"):
        Quantity.of(1, "Gb")


@given(st.integers(10**6, 10**13), st.sampled_from(["MB", "GB", "MiB", "GiB"]))
def test_the_right_number_is_right_only_in_its_own_unit(n_bytes, unit):
    size = Bytes(n_bytes)
    other = {"MB": "MiB", "GB": "GiB", "MiB": "MB", "GiB": "GB"}[unit]
    value = Quantity(size, unit).value
    assert is_about(value, size, unit)
    assert not is_about(value, size, other)
    assert right_number_wrong_unit(value, size, unit) is None
    assert f"that is {Quantity(size, unit)}" in right_number_wrong_unit(value, size, other)
    assert right_number_wrong_unit(value * 1.7, size, unit) is None


def test_the_lesson_s_10_2_is_recognised_as_two_units_mixed():
    size = kv_bytes(AttentionConfig(8192, 64), 80, 4096)
    assert "right number, wrong unit: that is 10.00 GiB" in right_number_wrong_unit(10, size, "GB")
    assert "two units mixed: that is 10240.00 MiB" in right_number_wrong_unit(10.2, size, "GB")
    assert right_number_wrong_unit(10.74, size, "GB") is None
