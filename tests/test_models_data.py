import json

import jsonschema
import pytest

from labs_lib import paths
from labs_lib.arithmetic import ModelShape, attention_params, kv_bytes, model_params
from labs_lib.config import AttentionConfig, LatentAttention, model_rows

ROWS = {row["name"]: row for row in model_rows()}
DENSE = [name for name, row in ROWS.items() if row["mla"] is None]
LATENT = [name for name, row in ROWS.items() if row["mla"] is not None]
REBUILT = [name for name, row in ROWS.items() if row["params_within"] is not None]

# n_head * head_dim differs from d_model in these; the course shows that it may.
WIDER_OR_NARROWER = {
    "gpt3-xl": (3072, 2048),
    "gpt3-13b": (5120, 5140),
    "palm-540b": (12_288, 18_432),
    "qwen3-0.6b": (2048, 1024),
    "qwen3-4b": (4096, 2560),
    "qwen3-32b": (8192, 5120),
    "qwen3-235b-a22b": (8192, 4096),
    "gemma-7b": (4096, 3072),
    "gemma-2-9b": (4096, 3584),
    "gemma-2-27b": (4096, 4608),
    "gemma-3-1b": (1024, 1152),
    "gemma-3-4b": (2048, 2560),
    "gemma-3-12b": (4096, 3840),
    "gemma-3-27b": (4096, 5376),
    "t5-3b": (4096, 1024),
    "t5-11b": (16_384, 1024),
    "deepseek-v2": (16_384, 5120),
    "deepseek-v3": (16_384, 7168),
}


def read_json(name):
    with open(paths.data() / name, encoding="utf-8") as file:
        return json.load(file)


def attention_of(name):
    kind = AttentionConfig if ROWS[name]["mla"] is None else LatentAttention
    return kind.named(name)


def test_the_models_file_keeps_its_schema():
    schema = read_json("models.schema.json")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(read_json("models.json"), schema, jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    "damage",
    [
        {"n_head": 0},
        {"n_head": "12"},
        {"n_kv_head": None},
        {"params_within": None, "note": ""},
        {"params_within": 0.2},
        {"stack": {"norm": "scale", "bias": True}},
        {"source": ""},
        {"colour": "red"},
    ],
)
def test_the_schema_refuses_a_damaged_row(damage):
    schema = read_json("models.schema.json")
    models = {"about": "one row", "models": [ROWS["gpt2-small"] | damage]}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(models, schema, jsonschema.Draft202012Validator)


def test_every_model_has_its_own_name():
    assert len(ROWS) == len(model_rows())
    assert len({row["title"] for row in model_rows()}) == len(ROWS)


@pytest.mark.parametrize("name", DENSE)
def test_a_named_configuration_is_legal_and_as_published(name):
    row, config = ROWS[name], AttentionConfig.named(name)
    assert (config.d_model, config.n_head) == (row["d_model"], row["n_head"])
    assert (config.n_kv_head, config.head_dim) == (row["n_kv_head"], row["head_dim"])


@pytest.mark.parametrize("name", REBUILT)
def test_the_published_parameter_total_is_rebuilt_from_the_row(name):
    row = ROWS[name]
    off = abs(model_params(ModelShape.named(name)) - row["params"])
    assert off <= row["params_within"] * row["params"]


def test_enough_models_are_rebuilt_to_the_last_parameter():
    exact = [name for name in REBUILT if ROWS[name]["params_within"] == 0]
    assert len(exact) >= 25
    assert {"gpt2-small", "llama-2-7b", "falcon-40b", "qwen3-8b", "gemma-2-9b"} <= set(exact)


@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("andrea-12m", 12_780_288),
        ("andrea-120m", 98_698_752),
        ("andrea-480m", 480_513_024),
        ("gpt2-small", 124_439_808),
        ("llama-2-7b", 6_738_415_616),
    ],
)
def test_totals_known_by_heart_come_out(name, total):
    assert model_params(ModelShape.named(name)) == total


@pytest.mark.parametrize("name", [n for n in ROWS if ROWS[n]["kv_bytes_per_token"]])
def test_the_cache_of_a_token_is_as_listed(name):
    row = ROWS[name]
    assert kv_bytes(attention_of(name), row["n_layer"]) == row["kv_bytes_per_token"]


def test_the_models_whose_heads_are_not_as_wide_as_the_model_are_these():
    found = {
        name: (attention_of(name).width, row["d_model"])
        for name, row in ROWS.items()
        if attention_of(name).width != row["d_model"]
    }
    assert found == WIDER_OR_NARROWER


@pytest.mark.parametrize("name", [n for n in ROWS if ROWS[n]["stack"] is None])
def test_a_model_that_is_no_single_stack_says_why(name):
    with pytest.raises(ValueError, match=r"experts|encoder"):
        ModelShape.named(name)


def test_gpt3_xl_as_printed_does_not_give_its_printed_total():
    printed = model_params(ModelShape.named("gpt3-xl"))
    saved = attention_params(AttentionConfig(2048, 24, head_dim=128))
    saved -= attention_params(AttentionConfig(2048, 16, head_dim=128))
    assert printed > 1.5e9
    assert abs(printed - 24 * saved - 1.3e9) < 0.02 * 1.3e9


@pytest.mark.parametrize(
    ("wrong", "offered"), [("gpt2-smal", "gpt2-small"), ("Llama-2-7b", "llama-2-7b"), ("v3", "v3")]
)
def test_an_unknown_name_is_refused_with_the_nearest(wrong, offered):
    with pytest.raises(ValueError, match=f"no model is named '{wrong}'.*{offered}"):
        AttentionConfig.named(wrong)


def test_latent_attention_is_not_passed_off_as_heads():
    assert set(LATENT) == {"deepseek-v2", "deepseek-v2-lite", "deepseek-v3"}
    with pytest.raises(ValueError, match=r"LatentAttention\.named\('deepseek-v2'\)"):
        AttentionConfig.named("deepseek-v2")
    with pytest.raises(ValueError, match=r"AttentionConfig\.named\('gpt2-small'\)"):
        LatentAttention.named("gpt2-small")
