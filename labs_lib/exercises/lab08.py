"""Lab 08, the cache and shared heads: what is asked."""

from __future__ import annotations

from . import lab08_cases as cases
from . import lab08_latent as latent
from . import lab08_rules as rules
from .kit import Exercise, Lab, Rule
from .lab08_quiz import QUIZ
from .refusals import call_or_refused

LAB = Lab(
    number=8,
    slug="the_cache_and_shared_heads",
    title="The cache and shared heads",
    minutes=135,
    question=(
        "A model writes one token after another. What does it have to remember of the text, how "
        "many bytes is that, and how few can it be?"
    ),
)

REPEATS = (
    "The numbers are right, but a tensor larger than K was made: every key is copied for each\n"
    "query head of its group. Products over broadcast axes copy too. Let the queries of a group\n"
    "be rows of one product."
)

UNPACKS = (
    "The numbers are right, but there are as many multiplications as if all keys (or all values)\n"
    "were unpacked. A product of three matrices can be taken in two orders. Begin with the small\n"
    "one: the query where it meets keys, the weights where they meet values."
)

KV_CACHE = Exercise(
    name="lab08.kv_cache",
    symbol="KVCache",
    title="keys and values of the tokens so far, kept",
    stub='''
class KVCache:
    """Keys and values of up to capacity tokens of each text.

    append(k, v) keeps the next tokens, k and v [batch, n_kv_head, new, head_dim], and returns
    all keys and all values so far, [batch, n_kv_head, length, head_dim], oldest first. `length`
    is the number of tokens kept. What the caller does to k and v afterwards changes nothing.
    ValueError if the tokens don't fit; then the cache is as it was.

    cache = KVCache(1, 2, 4, 8); cache.append(k, v) with three tokens in k and v
    returns two tensors [1, 2, 3, 4]; after two more tokens it returns [1, 2, 5, 4].
    """

    def __init__(self, batch, n_kv_head, head_dim, capacity, dtype=torch.float32):
        raise NotImplementedError

    def append(self, k, v):
        raise NotImplementedError
''',
    cases=cases.cache_cases,
    call=cases.call_cache,
    axes=("batch", "n_kv_head", "length", "head_dim"),
    forbidden=("labs_lib.attention.cache.KVCache", "labs_lib.models.KVCache"),
    hints=(
        "What must outlive a call belongs to self, and is made in __init__: a name on the class\n"
        "or a default list would be shared by all caches.",
        "Two tensors with room for capacity tokens and a counter will do. New tokens go into the\n"
        "slots from length on; all so far are the slots before the new length.",
        "Compare length + new with capacity before anything is written. Assigning to a slice of a\n"
        "tensor copies the numbers in; keeping k itself would keep the caller's tensor.",
    ),
    minutes=12,
)  # fmt: skip

DECODE_STEP = Exercise(
    name="lab08.decode_step",
    title="one step of a causal layer: new tokens attend to the kept ones and to themselves",
    stub='''
def decode_step(x, W_Q, W_K, W_V, W_O, n_head, rotate, cache=None):
    """A causal layer's output for the next tokens x, and the cache with them in it.

    x is [batch, new, d_model], W_Q, W_K, W_V [d_model, n_head * head_dim], W_O
    [n_head * head_dim, d_model]. cache is None at the start of a text, else the pair (k, v) of
    the tokens before, each [batch, n_head, past, head_dim]. rotate(t, start) turns t
    [..., seq, head_dim], whose first token stands at position start: queries and keys before
    they meet, never values. Keys are kept turned.
    Returns out [batch, new, d_model] and the new pair (k, v).

    out, cache = decode_step(x[:, :4], ..., rotate)          cache[0] has 4 tokens
    out, cache = decode_step(x[:, 4:5], ..., rotate, cache)  cache[0] has 5 tokens
    """
    raise NotImplementedError
''',
    cases=cases.step_cases,
    call=cases.call_steps,
    axes=("batch", "new", "d_model"),
    hints=(
        "Only the new tokens are projected. At which position does the first of them stand, if\n"
        "the cache holds `past` tokens?",
        "Put the new keys behind the kept ones first (torch.cat makes a new tensor and leaves the\n"
        "old pair alone), then attend: a token sees itself as well.",
        "The mask has as many rows as there are new tokens and as many columns as all. New token\n"
        'i sees key j when j <= past + i. given("lab01.causal_mask") makes it from the two sizes.',
    ),
    minutes=15,
)  # fmt: skip

KV_BYTES = Exercise(
    name="lab08.kv_bytes",
    title="how many bytes a cache takes, in bytes, GB and GiB",
    stub='''
def kv_bytes(n_layer, n_head, n_kv_head, head_dim, seq, batch=1, element_bytes=2):
    """The size of a cache of seq tokens for each of batch texts.

    Returns a dictionary: "bytes", "GB" (of 10**9 bytes) and "GiB" (of 2**30 bytes).

    kv_bytes(1, 4, 1, 8, 1000)  ->  {"bytes": 32000, "GB": 3.2e-05, "GiB": 2.98...e-05}
    """
    raise NotImplementedError
''',
    cases=cases.bytes_cases,
    forbidden=("labs_lib.arithmetic.kv_bytes", "labs_lib.arithmetic.cached_elements"),
    hints=(
        "What does one layer keep of one token? Count its numbers, then the layers, the tokens,\n"
        "the texts.",
        "Two kinds of tensor are kept, and each has n_kv_head heads.",
        "Get the bytes first, as a whole number. GB and GiB are that number divided, once by\n"
        "10**9 and once by 2**30, and never one made from the other.",
    ),
    minutes=6,
)  # fmt: skip

GROUPED = Exercise(
    name="lab08.grouped_query_attention",
    title="query heads that share keys and values, without a copy of them",
    stub='''
def grouped_query_attention(q, k, v, mask=None):
    """The answers of n_head query heads that share n_kv_head keys and values.

    q is [batch, n_head, seq_q, head_dim], k [batch, n_kv_head, seq_k, head_dim], v
    [batch, n_kv_head, seq_k, d_v]; mask is bool, True = may attend, [seq_q, seq_k] or
    [batch, n_head, seq_q, seq_k]. Query head h uses key/value head h // (n_head // n_kv_head).
    Returns [batch, n_head, seq_q, d_v]. No key or value is copied for the heads that share it.
    ValueError if n_kv_head does not divide n_head.

    6 query heads and 3 key/value heads: heads 0 and 1 use 0, heads 2 and 3 use 1, 4 and 5 use 2
    """
    raise NotImplementedError
''',
    cases=cases.grouped_cases,
    call=call_or_refused,
    rules=(
        Rule(
            name="repeats_no_key",
            text="no key and no value is copied for the heads that share it",
            kept=rules.repeats_no_key,
            broken=REPEATS,
            by_torch=True,
        ),
    ),
    axes=("batch", "n_head", "seq_q", "d_v"),
    forbidden=(
        "torch.nn.functional.scaled_dot_product_attention",
        "labs_lib.attention.grouped.grouped_query_attention",
        "labs_lib.attention.flash.flash_attention",
    ),
    hints=(
        "All query heads of a group meet the same keys. What could be rows of one product?",
        "n_head = n_kv_head * group, and the heads of a group are neighbours: q can be reshaped\n"
        "to [batch, n_kv_head, group * seq_q, head_dim], and then q @ k.mT fits as it stands.",
        "The scores come out as [batch, n_kv_head, group * seq_q, seq_k]. The same numbers in the\n"
        "same order are [batch, n_head, seq_q, seq_k]: mask and softmax there, then back for v.",
    ),
    minutes=15,
)  # fmt: skip

POOLING = Exercise(
    name="lab08.mha_to_gqa",
    title="ordinary heads made into shared ones: the mean of each group",
    stub='''
def mha_to_gqa(W_K, W_V, n_head, n_kv_head):
    """W_K and W_V with the n_head heads merged to n_kv_head, each the mean of its group.

    Both are [d_model, n_head * head_dim], head h's columns from h * head_dim on. Neighbouring
    heads make a group. Returns two matrices [d_model, n_kv_head * head_dim].
    ValueError if n_kv_head does not divide n_head.

    Four heads of one number become two: [[1., 3., 10., 30.]]  ->  [[2., 20.]]
    """
    raise NotImplementedError
''',
    cases=cases.pooling_cases,
    call=call_or_refused,
    axes=("d_model", "n_kv_head * head_dim"),
    forbidden=("labs_lib.attention.grouped.mha_to_gqa",),
    hints=(
        "Give the columns axes of their own: which group, which head in it, which number.",
        "The order is [d_model, n_kv_head, group, head_dim]: groups are blocks of neighbours.",
        "Which of the four axes disappears in the mean? What is left has to be a matrix again:\n"
        "which axes have to be joined?",
    ),
    minutes=8,
)  # fmt: skip

COMPRESS = Exercise(
    name="lab08.mla_compress",
    title="a latent and one rotary key are kept, and unpacked into keys and values",
    stub='''
def mla_compress(x, W_DKV, W_KR, W_UK, W_UV, n_head, rotate, cache=None):
    """Keys and values of all tokens so far, unpacked, and what is kept: a pair of packed ones.

    x is [batch, new, d_model], the next tokens. Kept are latents x @ W_DKV
    [batch, tokens, rank] and rotary keys [batch, tokens, rope], which are x @ W_KR turned by
    rotate(t, start), as in decode_step; cache is None or the pair (latents, rotary keys) of the
    tokens before. W_UK [rank, n_head * nope] and W_UV [rank, n_head * d_v] unpack latents.
    A head's key is its own nope numbers and then the rotary key, which all heads share.
    Returns k [batch, n_head, tokens, nope + rope], v [batch, n_head, tokens, d_v], the new pair.

    After 3 tokens, with rank 512 and rope 64, the pair holds 3 * 576 numbers for any n_head.
    """
    raise NotImplementedError
''',
    cases=latent.compress_cases,
    call=cases.call_steps,
    axes=("batch", "n_head", "tokens", "width"),
    forbidden=(
        "labs_lib.attention.latent.mla_compress",
        "labs_lib.attention.latent.MultiHeadLatentAttention",
    ),
    hints=(
        "Pack first: two products with x. Only one of the two is turned, and only the new tokens\n"
        "of it. Then put both behind what was kept.",
        "Unpack all latents, the kept ones too, with W_UK and W_UV and cut them into heads as in\n"
        'lab 02. given("lab02.split_heads") helps.',
        "The rotary keys have no axis for heads. Give them one, expand it to n_head, and join\n"
        "them to the heads' own numbers along the last axis. The pair that you return is packed.",
    ),
    minutes=14,
)  # fmt: skip

ABSORB = Exercise(
    name="lab08.mla_absorb",
    title="attention on latents alone: no key is ever unpacked",
    stub='''
def mla_absorb(q, q_rotary, latent, rotary_key, W_UK, W_UV, mask=None):
    """The heads' answers from packed keys and values, which are never unpacked.

    q is [batch, n_head, seq_q, nope], q_rotary [batch, n_head, seq_q, rope], turned already; latent
    [batch, seq_k, rank] and rotary_key [batch, seq_k, rope], turned already, are what was kept.
    W_UK is [rank, n_head * nope], W_UV [rank, n_head * d_v]; mask is bool, True = may attend.
    A score is (query times unpacked key + rotary query times rotary key) / sqrt(nope + rope).
    Returns [batch, n_head, seq_q, d_v], in fewer operations than unpacking the keys would take.

    One head: q @ (latent @ W_UK).mT and (q @ W_UK.mT) @ latent.mT are the same numbers.
    """
    raise NotImplementedError
''',
    cases=latent.absorb_cases,
    rules=(
        Rule(
            name="unpacks_no_latent",
            text="fewer operations than unpacking the keys would take",
            kept=rules.unpacks_no_latent,
            broken=UNPACKS,
            by_torch=True,
        ),
    ),
    axes=("batch", "n_head", "seq_q", "d_v"),
    forbidden=(
        "labs_lib.attention.latent.mla_absorb",
        "labs_lib.attention.latent.MultiHeadLatentAttention",
    ),
    hints=(
        "Each head has a block of W_UK's columns. Cut both matrices into heads first:\n"
        "[n_head, rank, nope].",
        "Bring the queries over to the latents' side, q @ W_UK.mT, head by head: rank numbers\n"
        "each. Then all heads meet the same latents. The rotary scores are added before the scale.",
        "weights @ latent gives each head a mean of latents, [batch, n_head, seq_q, rank]. That\n"
        "mean is unpacked, once for each query.",
    ),
    minutes=15,
)  # fmt: skip

FUNCTIONS = (KV_CACHE, DECODE_STEP, KV_BYTES, GROUPED, POOLING, COMPRESS, ABSORB)
EXERCISES = (*FUNCTIONS, *QUIZ)
