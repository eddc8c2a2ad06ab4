"""What programs of others say about the same files: transformers and llama.cpp.

`python tests/models/independent.py` writes figures.json, where `transformers`, `accelerate` and
`xllamacpp` (llama.cpp) are installed beside the course. They are no part of its environment.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from pathlib import Path

import torch

from labs_lib.models.on_disk import require

FIGURES = Path(__file__).with_name("figures.json")
TEXTS = [
    "The capital of France is",
    "Grüße aus Köln: naïve façades, Ångström",
    "日本語のテキストと中文文本",
    "مرحبا بالعالم، كيف حالك؟",
    "नमस्ते दुनिया",
    "Привет, мир! Как дела?",
    "Γειά σου Κόσμε",
    "안녕하세요 세계",
    "👩‍👩‍👧‍👦 and 🎉🇩🇪",
    "a\t\tb\n\n  c   \n     d",
    "in  12 345,67 ways: ²³½ Ⅻ ١٢٣",
    "def f(x):\n    return x**2  # don't, I'll, we've",
    "<|im_start|>user\nhi<|im_end|> [SEP] [MASK]",
    "e\u0301 \u00a0x\u3000y\u200bz",
]
TOKENS_ONLY = ["", " ", "   ", "\n", "DON'T", "\x00\x01", "a\r\nb", "𝔘𝔫𝔦", "  \n \n\n   x"]
SENTENCE = "The quick brown fox jumps over the lazy dog while the old farmer watches the quick fox."
TOP = 8


def minilm_by_transformers() -> dict:
    """Ids, sentence vectors, and each head's mean weight on the token before, of one sentence."""
    from transformers import AutoModel

    folder = require("minilm").folder
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = _bert_tokenizer(folder)
    vectors = []
    for text in TEXTS:
        with torch.no_grad():
            out = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        vectors.append(torch.nn.functional.normalize(out.mean(dim=0), dim=0))
    with torch.no_grad():
        seen = model(**tokenizer(SENTENCE, return_tensors="pt"), output_attentions=True)
    return {
        "ids": [tokenizer(text)["input_ids"] for text in TEXTS + TOKENS_ONLY],
        "vectors": _rounded(torch.stack(vectors), 6),
        "previous": _rounded(_previous(torch.cat(seen.attentions)), 5),
    }


def smollm2_by_transformers(ids_of: list[list[int]]) -> dict:
    """The likeliest next tokens after each text and their logits, and as above, from the GGUF."""
    from transformers import AutoModelForCausalLM

    folder = require("smollm2").folder
    model = AutoModelForCausalLM.from_pretrained(
        folder,
        gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf",
        dtype=torch.float32,
        attn_implementation="eager",
    ).eval()
    found: dict[str, list] = {"lse": [], "top": [], "logits": [], "said": []}
    for ids in ids_of[: len(TEXTS)]:
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0]  # [seq, vocab]
        top = logits[-1].topk(TOP)
        found["lse"].append(_rounded(logits.logsumexp(dim=-1), 4))
        found["said"].append(logits.argmax(dim=-1).tolist())
        found["top"].append(top.indices.tolist())
        found["logits"].append(_rounded(top.values, 4))
    with torch.no_grad():
        seen = model(torch.tensor([ids_of[-1]]), output_attentions=True)
    return found | {"previous": _rounded(_previous(torch.cat(seen.attentions)), 5)}


def smollm2_by_llama_cpp() -> dict:
    """Ids of all texts, and the likeliest next tokens with their log-probabilities."""
    import xllamacpp

    set_up = xllamacpp.CommonParams()
    set_up.model.path = str(require("smollm2").folder / "SmolLM2-135M-Instruct.Q4_1.gguf")
    set_up.n_ctx, set_up.n_parallel, set_up.cpuparams.n_threads = 512, 1, 1
    server = xllamacpp.Server(set_up)
    ids = [_llama_ids(server, text) for text in [*TEXTS, *TOKENS_ONLY, SENTENCE]]
    top = []
    for row in ids[: len(TEXTS)]:
        answer = server.handle_completions(
            {"prompt": row, "n_predict": 1, "n_probs": TOP, "temperature": 0}
        )
        seen = answer["choices"][0]["logprobs"]  # None where a token is a part of a letter
        first = seen["content"][0]["top_logprobs"] if seen else []
        top.append([[one["id"], round(one["logprob"], 4)] for one in first])
    return {"ids": ids, "top": top}


def _llama_ids(server, text: str) -> list[int]:
    """The server's own answer, from this machine."""
    asked = urllib.request.Request(
        f"{server.listening_address}/tokenize",
        data=json.dumps({"content": text, "parse_special": True}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(asked) as answer:
        return json.loads(answer.read())["tokens"]


def _bert_tokenizer(folder: Path):
    """A BERT tokenizer that transformers builds itself, from the vocabulary alone."""
    from transformers import BertTokenizer

    stored = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    return BertTokenizer(vocab=stored["model"]["vocab"], do_lower_case=True)


def _previous(weights: torch.Tensor) -> torch.Tensor:
    """Each head's mean weight on the token before: [n_layer, n_head] of [.., seq, seq]."""
    return weights.diagonal(-1, dim1=-2, dim2=-1).mean(dim=-1)


def _rounded(tensor: torch.Tensor, digits: int) -> list:
    return (tensor.double() * 10**digits).round().div(10**digits).tolist()


def main() -> int:
    """Write figures.json."""
    torch.set_num_threads(1)
    os.environ["HF_HUB_OFFLINE"] = "1"
    llama = smollm2_by_llama_cpp()
    figures = {
        "about": "Made by tests/models/independent.py from transformers and llama.cpp.",
        "minilm": minilm_by_transformers(),
        "smollm2": smollm2_by_transformers(llama["ids"]),
        "llama_cpp": llama,
    }
    lines = []
    for part, content in figures.items():
        if isinstance(content, str):
            lines.append(f" {json.dumps(part)}: {json.dumps(content)}")
            continue
        rows = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in content.items()]
        lines.append(f" {json.dumps(part)}: {{\n" + ",\n".join(rows) + "\n }")
    FIGURES.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{FIGURES.name}: {FIGURES.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
