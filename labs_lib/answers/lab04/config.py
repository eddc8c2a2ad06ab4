"""Lab 04: the heads of a published configuration."""

from __future__ import annotations

import math
import numbers

from ..kit import Answer, Right, Wrong


def read_config(config):
    """The heads of a published model: (n_head, n_kv_head, head_dim), three ints."""
    n_head = config.get("num_attention_heads", config.get("n_head"))
    width = config.get("hidden_size", config.get("n_embd"))
    n_kv_head, head_dim = config.get("num_key_value_heads"), config.get("head_dim")
    n_kv_head = n_head if n_kv_head is None else n_kv_head
    for count in (n_head, n_kv_head):
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"{n_head} heads, {n_kv_head} for keys: ints of at least 1, please")
    if n_head % n_kv_head or (head_dim is None and width % n_head):
        raise ValueError(f"{n_head} heads, {n_kv_head} for keys, width {width}: a remainder")
    return n_head, n_kv_head, width // n_head if head_dim is None else head_dim


def _read(config):
    """The four entries as they stand, None where there is none."""
    return (
        config.get("num_attention_heads", config.get("n_head")),
        config.get("hidden_size", config.get("n_embd")),
        config.get("num_key_value_heads"),
        config.get("head_dim"),
    )


def _changed(change):
    """A reader that is right until `change` of (n_head, n_kv_head, head_dim, width)."""

    def program(config):
        sizes = read_config(config)
        return change(*sizes, _read(config)[1])

    return program


def _without(*keys):
    """A reader that never sees some of the keys."""
    return lambda config: read_config({k: v for k, v in config.items() if k not in keys})


def _loose(width_of_head=lambda width, n_head: width // n_head, checked=(), kv_default=None):
    """A reader that makes only the tests named in `checked`."""

    def program(config):
        n_head, width, n_kv_head, head_dim = _read(config)
        n_kv_head = n_head if n_kv_head is None else n_kv_head
        if "type" in checked and not all(isinstance(n, int) for n in (n_head, n_kv_head)):
            raise ValueError("no int")
        if "sign" in checked and not min(float(n_head), float(n_kv_head)) >= 1:
            raise ValueError("fewer than 1")
        if "group" in checked and n_head % n_kv_head:
            raise ValueError("the key/value heads don't divide the heads")
        if head_dim is None:
            if "remainder" in checked and width % n_head:
                raise ValueError("a remainder")
            head_dim = width_of_head(width, n_head)
        return n_head, n_kv_head, head_dim

    return program


_ALL = ("type", "sign", "group", "remainder")


def _always_divides(config):
    n_head, width, _, _ = _read(config)
    sizes = read_config(config)
    if width % n_head:
        raise ValueError("a remainder")
    return sizes


def _covers_the_width(config):
    n_head, n_kv_head, head_dim = read_config(config)
    if n_head * head_dim != _read(config)[1]:
        raise ValueError("n_head * head_dim is not the width")
    return n_head, n_kv_head, head_dim


def _zero_is_absent(config):
    config = {key: value for key, value in config.items() if value}
    if "num_attention_heads" not in config and "n_head" not in config:
        raise ValueError("no heads")
    return read_config(config)


def _from_text(config):
    whole = {k: int(v) if isinstance(v, (str, float)) else v for k, v in config.items()}
    return read_config(whole)


def _asserts(config):
    try:
        return read_config(config)
    except ValueError as error:
        raise AssertionError(str(error)) from error


def _none_where_refused(config):
    try:
        return read_config(config)
    except ValueError:
        return None


def _default_of_get(config):
    sizes = read_config(config)
    kept = config.get("num_key_value_heads", sizes[0]), config.get("head_dim", sizes[2])
    return sizes[0], *kept


def _only_new_names(config):
    read_config(config)
    n_head, width = config["num_attention_heads"], config["hidden_size"]
    return n_head, config["num_key_value_heads"] or n_head, config["head_dim"] or width // n_head


def _typed(config):
    for key in ("num_attention_heads", "n_head", "num_key_value_heads"):
        value = config.get(key)
        if value is not None and not isinstance(value, numbers.Integral):
            raise TypeError(f"{key}={value!r} is a {type(value).__name__}")
    return list(read_config(config))


def _first_of(config):
    def find(*names):
        return next((config[name] for name in names if config.get(name) is not None), None)

    n_head, width = find("n_head", "num_attention_heads"), find("n_embd", "hidden_size")
    n_kv_head = find("num_key_value_heads", "n_head", "num_attention_heads")
    if type(n_head) is not int or type(n_kv_head) is not int or min(n_head, n_kv_head) < 1:
        raise ValueError("a count is an int of at least 1")
    if n_head // n_kv_head * n_kv_head != n_head:
        raise ValueError("the groups are not equal")
    head_dim, over = divmod(width, n_head)
    if find("head_dim") is None and over:
        raise ValueError(f"{over} numbers are left over")
    return n_head, n_kv_head, find("head_dim") or head_dim


READ_CONFIG = Answer(
    reference=read_config,
    wrong=(
        Wrong(
            "head_dim_always_divided",
            _without("head_dim"),
            "head_dim is the width divided by the heads here, even where the configuration gives\n"
            "another one. Look for the key first.",
        ),
        Wrong(
            "heads_not_shared",
            _changed(lambda h, kv, hd, width: (h, h, hd)),
            "Every query head has keys and values of its own here. num_key_value_heads says how\n"
            "many key/value heads there are.",
        ),
        Wrong(
            "groups_for_kv_heads",
            _changed(lambda h, kv, hd, width: (h, h // kv, hd)),
            "The second number is how many query heads share one key/value head. Wanted is how\n"
            "many key/value heads there are.",
        ),
        Wrong(
            "kv_heads_first",
            _changed(lambda h, kv, hd, width: (kv, h, hd)),
            "The first two have changed places: heads, then key/value heads.",
        ),
        Wrong(
            "width_over_kv_heads",
            _changed(lambda h, kv, hd, width: (h, kv, width // kv)),
            "You divide the width by the number of key/value heads. It is shared out among the\n"
            "query heads.",
        ),
        Wrong(
            "width_for_head_dim",
            _changed(lambda h, kv, hd, width: (h, kv, width)),
            "The third number is the width of a token. Wanted is the width of one head.",
        ),
        Wrong(
            "always_64",
            _changed(lambda h, kv, hd, width: (h, kv, 64)),
            "head_dim is 64 here, whatever comes in. Many models have another one.",
        ),
        Wrong(
            "none_is_returned",
            _default_of_get,
            "Where the configuration says None, you return None: config.get(key, default) gives\n"
            "the default only for a key that is absent.",
        ),
        Wrong(
            "only_the_new_names",
            _only_new_names,
            "Your function looks for keys that older models don't have, and that newer ones leave\n"
            "out. Read the table of names once more, and use config.get.",
        ),
        Wrong(
            "zero_taken_for_absent",
            _zero_is_absent,
            "0 key/value heads go through: `or`, like `if not n`, takes 0 for an absent entry.\n"
            "Ask whether it is None.",
        ),
        Wrong(
            "remainder_dropped",
            _loose(checked=_ALL[:3]),
            "A remainder is dropped here: // divides without a word. Look at % first, and refuse.",
        ),
        Wrong(
            "remainder_rounded_up",
            _loose(lambda width, n_head: math.ceil(width / n_head), checked=_ALL[:3]),
            "A remainder is rounded up here, so that the heads are wider than the token. Refuse.",
        ),
        Wrong(
            "a_float",
            _loose(lambda width, n_head: width / n_head, checked=_ALL),
            "head_dim is a float here, such as 64.0: the operator / always makes one.",
        ),
        Wrong(
            "must_always_divide",
            _always_divides,
            "A remainder is refused even where head_dim is given. Then the width needn't divide.",
        ),
        Wrong(
            "heads_must_cover_the_width",
            _covers_the_width,
            "Heads that aren't as wide together as the token are refused here. Where head_dim is\n"
            "given, n_head * head_dim may be any number.",
        ),
        Wrong(
            "by_name",
            lambda config: dict(
                zip(("n_head", "n_kv_head", "head_dim"), read_config(config), strict=True)),
            "The sizes come in a dict. Wanted is a plain tuple: n_head, n_kv_head, head_dim.",
        ),
        Wrong(
            "groups_not_looked_at",
            _loose(checked=("type", "sign", "remainder")),
            "Key/value heads that don't divide the heads go through. Then some heads would have\n"
            "no key to share.",
        ),
        Wrong(
            "signs_not_looked_at",
            _loose(checked=("type", "group", "remainder")),
            "0 heads and -12 heads are not all refused with a ValueError: 768 % -12 is 0 as well.\n"
            "Ask for at least 1 before you divide.",
        ),
        Wrong(
            "types_not_looked_at",
            _loose(checked=("sign", "group", "remainder")),
            "12.0 heads go through. A count of heads is an int: isinstance(n, int) tells.",
        ),
        Wrong(
            "nothing_looked_at",
            _loose(),
            "Nothing is refused here on purpose. Test the counts before you divide.",
        ),
        Wrong(
            "text_and_floats_mended",
            _from_text,
            "\"12\" and 12.0 are changed to 12 without a word. Whoever wrote the configuration\n"
            "should hear about it: refuse them.",
        ),
        Wrong(
            "asserts",
            _asserts,
            "The tests are right, but they are asserts, and `python -O` leaves asserts out.\n"
            "Raise a ValueError, which is always there.",
        ),
        Wrong(
            "none_where_refused",
            _none_where_refused,
            "Where it should refuse, your function returns None, and the caller goes on with it.\n"
            "Raise a ValueError.",
        ),
        Wrong(
            "sizes_in_another_order",
            _changed(lambda h, kv, hd, width: (h, hd, kv)),
            "head_dim and n_kv_head have changed places: (n_head, n_kv_head, head_dim) is wanted.",
        ),
    ),
    right=(
        Right("type_error_for_types", _typed),
        Right("first_key_that_is_set", _first_of),
        Right("kept_by_tests", _loose(checked=_ALL)),
        Right("extra_default", lambda config, strict=True: read_config(config)),
    ),
)  # fmt: skip
