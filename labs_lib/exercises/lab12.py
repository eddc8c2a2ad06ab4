"""Lab 12, your attention speaks: what is asked."""

from __future__ import annotations

from . import lab12_cases as cases
from .kit import Exercise, Lab, Rule
from .lab08_cases import call_steps
from .lab12_launch import KERNEL_ATTENTION
from .lab12_pass import call_generate, call_swapped, each_token_once, generate_cases, swap_cases
from .lab12_quiz import QUIZ

LAB = Lab(
    number=12,
    slug="your_attention_speaks",
    title="Your attention speaks",
    minutes=120,
    question=(
        "All pieces are there: heads, masks, a cache, shared keys, a kernel. Put in the place of a "
        "real model's attention, do they say the same next word?"
    ),
)

READ_AGAIN = (
    "The words are right, but {read} tokens went through the model and {most} are enough: old\n"
    "ones are read again although the caches hold them. After the prompt, hand over the one new\n"
    "token and the caches that came back."
)

ASSEMBLE = Exercise(
    name="lab12.assemble",
    title="one layer's attention in five steps: project, split, attend, merge, W_O",
    stub='''
def assemble(x, W, n_head, n_kv_head, rotate, attend, cache=None):
    """What a causal layer's attention adds for the next tokens x, and its cache with them in it.

    x is [batch, new, d_model]. W holds W_Q [d_model, n_head * head_dim], W_K and W_V
    [d_model, n_kv_head * head_dim] and W_O [n_head * head_dim, d_model]. rotate(t, start) turns
    t [..., seq, head_dim], whose first token stands at position start. attend(q, k, v, mask)
    wants as many heads in k and v as in q, and a bool mask [new, seq_k], True = may attend. Query
    head h uses key/value head h // (n_head // n_kv_head). cache is None at the start of a text,
    else the pair (k, v) of the tokens before, [batch, n_kv_head, past, head_dim], keys turned.
    Returns out [batch, new, d_model] and the new pair (k, v).

    x [1, 5, 576], 9 heads of 64 that share 3: out is [1, 5, 576], k and v are [1, 3, 5, 64].
    """
    raise NotImplementedError
''',
    cases=cases.assemble_cases,
    call=call_steps,
    axes=("batch", "new", "d_model"),
    hints=(
        "Project and split: q has n_head heads, k and v have n_kv_head, all of the same head_dim.\n"
        'given("lab02.split_heads")(t, number_of_heads) cuts. Turn q and k from `past` on.',
        "Join the new keys and values to the kept ones before anything is repeated: what is kept\n"
        "has n_kv_head heads. Then each kept head is needed by several query heads that stand\n"
        "side by side.",
        "The mask has a row for each new token and a column for each key, as in lab 08. attend\n"
        'gives [batch, n_head, new, head_dim]; given("lab02.merge_heads") and W_O do the rest.',
    ),
    minutes=15,
)  # fmt: skip

LOAD = Exercise(
    name="lab12.load_real_weights",
    title="a layer's four matrices out of a model's file, as `x @ W` and rotate want them",
    stub='''
def load_real_weights(tensors, layer, n_head, n_kv_head):
    """The matrices of one layer, as assemble takes them: {"W_Q", "W_K", "W_V", "W_O"}.

    tensors maps the names of a model's file to tensors, each [d_out, d_in]. Those of layer 7 are
    blk.7.attn_q.weight, blk.7.attn_k.weight, blk.7.attn_v.weight and blk.7.attn_output.weight.
    assemble computes x @ W, so each W is [d_in, d_out].

    rotate turns number i of a head together with number i + head_dim / 2. The file keeps two that
    turn together side by side: output 2i of a head in attn_q and attn_k is number i, output
    2i + 1 is number i + head_dim / 2. v and the output are in plain order.

    A head of 6, in the file 0 3 1 4 2 5; wanted 0 1 2 3 4 5.
    """
    raise NotImplementedError
''',
    cases=cases.file_cases,
    axes=("d_in", "d_out"),
    forbidden=("labs_lib.models.gguf_reading.halves_from_pairs",),
    hints=(
        "Four names, four tensors, each turned round: rows of the file become columns. Transpose;\n"
        "a reshape to the same shape would mix the numbers.",
        "Do q and k on the file's rows, before they become columns: n_head blocks of head_dim\n"
        "rows in q, n_kv_head blocks in k.",
        "A head's rows are head_dim / 2 pairs. Give heads, pairs and the place within a pair an\n"
        "axis each. Wanted are all first ones of a head and then all second ones: which of these\n"
        "axes change places?",
    ),
    minutes=12,
)  # fmt: skip

SWAP = Exercise(
    name="lab12.swap_attention",
    title="a model's pass with another attention in every layer",
    stub='''
def swap_attention(model, attention):
    """A function read(ids, caches=None): the model's pass, with attention(...) in every layer.

    read returns logits [batch, vocab] for the token after the last of ids [batch, seq], and a
    list of all layers' caches; caches is None at the start of a text, else such a list, which
    stays as it is. attention(x, number, cache) returns what layer `number` adds for the tokens
    x [batch, seq, d_model], and the layer's new cache; cache is None at the start of a text.

    The model has embed [vocab, d_model], a row for each token, which at the end also tells how
    well each token fits; layers, and norm(x). Each layer has norm_attention(x), norm_mlp(x) and
    mlp(x), which all keep the shape of x. In a layer first the attention, then the mlp reads the
    normed x and adds to x.

    read = swap_attention(model, attention)
    logits, caches = read(prompt); logits, caches = read(one_more_token, caches)
    """
    raise NotImplementedError
''',
    cases=swap_cases,
    call=call_swapped,
    axes=("batch", "vocab"),
    hints=(
        "Follow one token. Which row is its first x? What is added to it in a layer, how often,\n"
        "and what does each of these read? What happens to it behind the last layer?",
        "Each of the two reads its own norm of x, and adds to x itself, not to the normed x. The\n"
        "mlp reads the x to which the attention has been added.",
        "A layer's number picks its cache out of the list that comes in. That list stays as it\n"
        "is, so what the layers give back needs another. Of all tokens, whose x is compared with\n"
        "the rows of model.embed at the end, and what has to be done to it first?",
    ),
    minutes=15,
)  # fmt: skip

GENERATE = Exercise(
    name="lab12.generate",
    title="write on, token by token: greedy or by temperature, with a cache, up to an end",
    stub='''
def generate(read, prompt, max_new, ends, temperature=0.0, draw=None):
    """The tokens that a model writes after a prompt [1, seq]: a list of whole numbers.

    read(ids, caches) returns logits [1, vocab] for the token after the last of ids [1, n], and
    the new caches. ids are the tokens that are not in the caches yet; caches is None for a new
    text. Each token is read once. Writing stops at max_new tokens, or before the first that is
    in ends, which is not returned.

    With temperature 0 the likeliest token is written. Else p = softmax(logits / temperature), as
    a vector [vocab], and draw(p) says which.

    generate(read, prompt, 20, {2})  ->  [57, 3, 11], if the fourth token would be 2.
    """
    raise NotImplementedError
''',
    cases=generate_cases,
    call=call_generate,
    rules=(
        Rule(
            name="each_token_once",
            text="each token goes through the model once",
            kept=each_token_once,
            broken=READ_AGAIN,
        ),
    ),
    forbidden=("labs_lib.models.generation.stream",),
    hints=(
        "The prompt is read once, with caches of None. What has not been read after that, at any\n"
        "time? As ids [1, n], how large is n?",
        "The caches that read gives back are handed to the next read, and to no other. All that a\n"
        "call remembers lives in its own variables.",
        "Each round reads, chooses, looks for an end, keeps, and looks whether there are enough.\n"
        "In which order is no end kept, and no token read that nobody asks about? (read wants a\n"
        "tensor of two axes; `in ends` and the list want a number.)",
    ),
    minutes=12,
)  # fmt: skip

FUNCTIONS = (ASSEMBLE, LOAD, SWAP, GENERATE, KERNEL_ATTENTION)
EXERCISES = (*FUNCTIONS, *QUIZ)
