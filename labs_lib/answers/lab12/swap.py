"""A model's pass with another attention in lab 12: reference, right and wrong programs."""

from __future__ import annotations

from ..kit import Answer, Right, Wrong


class Swapped:
    """The right program in parts, so that a variant replaces one of them."""

    def __call__(self, model, attention):
        def read(ids, caches=None):
            return self.read(model, attention, ids, caches)

        return read

    def read(self, model, attention, ids, caches):
        x, kept = self.begin(model, ids), []
        for number, layer in self.numbered(model):
            old = self.old(caches, number)
            x, new = self.layer(layer, attention, x, number, old)
            kept.append(new)
        return self.logits(model, x), self.returned(kept, caches)

    def begin(self, model, ids):
        return model.embed[ids]

    def numbered(self, model):
        return enumerate(model.layers)

    def old(self, caches, number):
        return None if caches is None else caches[number]

    def layer(self, layer, attention, x, number, old):
        out, new = attention(layer.norm_attention(x), number, old)
        x = x + out
        return x + layer.mlp(layer.norm_mlp(x)), new

    def logits(self, model, x):
        return model.norm(x[:, -1]) @ model.embed.T

    def returned(self, kept, caches):
        return kept


def variant(**parts):
    """The right program with some of its parts replaced."""
    return type("Variant", (Swapped,), parts)()


def swap_attention(model, attention):
    """The reference under the exercise's name and signature."""
    return Swapped()(model, attention)


def _as_a_class(model, attention):
    class Read:
        def __call__(self, ids, caches=None):
            return Swapped().read(model, attention, ids, caches)

    return Read()


def _norm_first(self, model, x):
    """The norm of all tokens, then the last."""
    return (model.norm(x) @ model.embed.mT)[:, -1, :]


def _filled(model, attention):
    def read(ids, caches=None):
        caches = [None] * len(model.layers) if caches is None else list(caches)
        x = model.embed[ids]
        for i in range(len(model.layers)):
            layer = model.layers[i]
            added, caches[i] = attention(layer.norm_attention(x), i, caches[i])
            x = x + added
            x = x + layer.mlp(layer.norm_mlp(x))
        return model.norm(x)[:, -1] @ model.embed.T, tuple(caches)

    return read


RIGHT = (
    Right("parts", Swapped()),
    Right("an_object", _as_a_class),
    Right("norm_of_all_tokens", variant(logits=_norm_first)),
    Right("a_copy_of_the_list", _filled),
    Right("a_lambda", lambda *given: Swapped()(*given)),
)


def _layer(body):
    """A layer whose body gets the parts: attention's answer to a normed x, and the rest."""

    def layer(self, layer, attention, x, number, old):
        return body(layer, lambda t: attention(t, number, old), x)

    return layer


def _no_residual(layer, attend, x):
    out, new = attend(layer.norm_attention(x))
    return out + layer.mlp(layer.norm_mlp(out)), new


def _mlp_without_residual(layer, attend, x):
    out, new = attend(layer.norm_attention(x))
    return layer.mlp(layer.norm_mlp(x + out)), new


def _unnormed(layer, attend, x):
    out, new = attend(x)
    x = x + out
    return x + layer.mlp(layer.norm_mlp(x)), new


def _mlp_unnormed(layer, attend, x):
    out, new = attend(layer.norm_attention(x))
    x = x + out
    return x + layer.mlp(x), new


def _added_to_the_normed(layer, attend, x):
    normed = layer.norm_attention(x)
    out, new = attend(normed)
    x = normed + out
    normed = layer.norm_mlp(x)
    return normed + layer.mlp(normed), new


def _side_by_side(layer, attend, x):
    out, new = attend(layer.norm_attention(x))
    return x + out + layer.mlp(layer.norm_mlp(x)), new


def _mlp_of_the_answer(layer, attend, x):
    out, new = attend(layer.norm_attention(x))
    return x + out + layer.mlp(layer.norm_mlp(out)), new


def _normed_afterwards(layer, attend, x):
    out, new = attend(x)
    x = layer.norm_attention(x + out)
    return layer.norm_mlp(x + layer.mlp(x)), new


def _norms_exchanged(layer, attend, x):
    out, new = attend(layer.norm_mlp(x))
    x = x + out
    return x + layer.mlp(layer.norm_attention(x)), new


def _mlp_first(layer, attend, x):
    x = x + layer.mlp(layer.norm_mlp(x))
    out, new = attend(layer.norm_attention(x))
    return x + out, new


def _no_mlp(layer, attend, x):
    out, new = attend(layer.norm_attention(x))
    return x + out, new


def _attention_left_out(layer, attend, x):
    _, new = attend(layer.norm_attention(x))
    return x + layer.mlp(layer.norm_mlp(x)), new


def _last_layer(self, layer, attention, x, number, old):
    """Only the last layer's attention is the new one; the others add nothing."""
    if number < self.count - 1:
        _, new = attention(layer.norm_attention(x), number, old)
        return x + layer.mlp(layer.norm_mlp(x)), new
    return Swapped.layer(self, layer, attention, x, number, old)


def _counted(self, model):
    self.count = len(model.layers)
    return enumerate(model.layers)


def _changed_in_place(self, kept, caches):
    if caches is None:
        return kept
    caches[:] = kept
    return caches


def _appended(self, kept, caches):
    return kept if caches is None else [*caches, *kept]


class _RemembersTheText(Swapped):
    """The caches live in the function: a new text goes on with the one before."""

    def __call__(self, model, attention):
        self.last = None
        return super().__call__(model, attention)

    def read(self, model, attention, ids, caches):
        if caches is None and ids.shape[1] == 1:
            caches = self.last
        logits, self.last = super().read(model, attention, ids, caches)
        return logits, self.last


class _OneCacheForAll(Swapped):
    def read(self, model, attention, ids, caches):
        x, cache = self.begin(model, ids), None if caches is None else caches[0]
        for number, layer in enumerate(model.layers):
            x, cache = self.layer(layer, attention, x, number, cache)
        return self.logits(model, x), [cache] * len(model.layers)


def _one_norm_for_both(layer, attend, x):
    out, new = attend(layer.norm_mlp(x))
    x = x + out
    return x + layer.mlp(layer.norm_mlp(x)), new


def _attention_added_to_the_normed(layer, attend, x):
    normed = layer.norm_attention(x)
    out, new = attend(normed)
    x = normed + out
    return x + layer.mlp(layer.norm_mlp(x)), new


def _mlp_added_to_the_normed(layer, attend, x):
    out, new = attend(layer.norm_attention(x))
    normed = layer.norm_mlp(x + out)
    return normed + layer.mlp(normed), new


def _mlps_answer_normed(layer, attend, x):
    out, new = attend(layer.norm_attention(x))
    x = x + out
    return x + layer.norm_mlp(layer.mlp(x)), new


def _only_remembered(model, attention):
    """What has been read is kept in the function, and the caches that come in are not used."""
    kept = [None] * len(model.layers)

    def read(ids, caches=None):
        x = model.embed[ids]
        for number, layer in enumerate(model.layers):
            out, kept[number] = attention(layer.norm_attention(x), number, kept[number])
            x = x + out
            x = x + layer.mlp(layer.norm_mlp(x))
        return model.norm(x[:, -1]) @ model.embed.T, list(kept)

    return read


def _not_unpacked(layer, attend, x):
    return x + attend(layer.norm_attention(x)), None


class _CachesFirst(Swapped):
    def read(self, model, attention, ids, caches):
        return super().read(model, attention, ids, caches)[::-1]


TO_THE_NORMED = (
    "The answers are added to the normed x. The norm is for reading only: add to x itself."
)
RESIDUAL = (
    "What the attention (or the mlp) gives takes the place of x. It is added to x, so that what\n"
    "earlier layers wrote is still there."
)

WRONG = (
    Wrong("residual_forgotten", variant(layer=_layer(_no_residual)), RESIDUAL),
    Wrong("mlp_without_residual", variant(layer=_layer(_mlp_without_residual)), RESIDUAL),
    Wrong("added_to_the_normed", variant(layer=_layer(_added_to_the_normed)),
        TO_THE_NORMED),
    Wrong("attention_added_to_the_normed", variant(layer=_layer(_attention_added_to_the_normed)),
        TO_THE_NORMED),
    Wrong("mlp_added_to_the_normed", variant(layer=_layer(_mlp_added_to_the_normed)),
        TO_THE_NORMED),
    Wrong("mlps_answer_normed", variant(layer=_layer(_mlps_answer_normed)),
        "The mlp reads x without its norm, and its answer is normed. The norm comes before."),
    Wrong("one_norm_for_both", variant(layer=_layer(_one_norm_for_both)),
        "The attention reads norm_mlp(x). It has a norm of its own, norm_attention."),
    Wrong("attention_reads_unnormed", variant(layer=_layer(_unnormed)),
        "The attention reads x without its norm. norm_attention comes first."),
    Wrong("mlp_reads_unnormed", variant(layer=_layer(_mlp_unnormed)),
        "The mlp reads x without its norm. norm_mlp comes first."),
    Wrong("norm_afterwards", variant(layer=_layer(_normed_afterwards)),
        "The norms come after the sums, as in the paper of 2017. This model norms what is read,\n"
        "and x itself is never normed inside a layer."),
    Wrong("norms_exchanged", variant(layer=_layer(_norms_exchanged)),
        "The two norms of a layer are exchanged: the attention reads norm_attention(x)."),
    Wrong("side_by_side", variant(layer=_layer(_side_by_side)),
        "Attention and mlp both read the same x. The mlp reads the x to which the attention has\n"
        "been added."),
    Wrong("mlp_of_the_answer", variant(layer=_layer(_mlp_of_the_answer)),
        "The mlp reads what the attention gave, alone. It reads the sum."),
    Wrong("mlp_first", variant(layer=_layer(_mlp_first)),
        "The mlp comes before the attention. In a layer the attention is first."),
    Wrong("mlp_forgotten", variant(layer=_layer(_no_mlp)),
        "The mlp is never used: these are layers of attention alone."),
    Wrong("attention_not_added", variant(layer=_layer(_attention_left_out)),
        "The attention is computed and its answer is used nowhere."),
    Wrong("last_layer_only", variant(numbered=_counted, layer=_last_layer),
        "Only the last layer has the new attention. Every layer has."),
    Wrong("layer_number_0", variant(
        layer=lambda self, layer, attention, x, number, old: Swapped.layer(
            self, layer, attention, x, 0, old)),
        "Every layer is told that it is number 0, and so all use the weights of the first."),
    Wrong("layer_number_from_1", variant(
        layer=lambda self, layer, attention, x, number, old: Swapped.layer(
            self, layer, attention, x, max(number - 1, 0), old)),
        "The layers' numbers are off by one. They count from 0, as model.layers does."),
    Wrong("layers_backwards", variant(
        numbered=lambda self, model: list(enumerate(model.layers))[::-1]),
        "The layers run from the last to the first."),
    Wrong("a_layer_left_out", variant(
        numbered=lambda self, model: list(enumerate(model.layers))[:-1] or [(0, model.layers[0])]),
        "The last layer is left out."),
    Wrong("caches_ignored", variant(old=lambda self, caches, number: None),
        "The caches that come in are never used: each step sees its own tokens and nothing\n"
        "before."),
    Wrong("one_cache_for_all", _OneCacheForAll(),
        "All layers write into one cache. Each layer has its own keys and values: a list."),
    Wrong("first_layers_cache", variant(
        old=lambda self, caches, number: None if caches is None else caches[0]),
        "Every layer is handed the cache of layer 0. Its own is caches[number]."),
    Wrong("no_caches_indexed", variant(old=lambda self, caches, number: caches[number]),
        "caches is None where a new text begins, and None has no parts to take out. What is each\n"
        "layer to be handed then?"),
    Wrong("all_caches_handed_over", variant(old=lambda self, caches, number: caches),
        "attention is handed the whole list of caches. It takes the cache of one layer, that of\n"
        "its number."),
    Wrong("old_caches_returned", variant(
        returned=lambda self, kept, caches: kept if caches is None else caches),
        "The caches that came in are returned: what this step added is lost."),
    Wrong("caches_added_up", variant(returned=_appended),
        "The new caches stand behind the old ones in one list. There is one cache a layer, and\n"
        "the new one holds the old one's tokens."),
    Wrong("last_cache_alone", variant(returned=lambda self, kept, caches: kept[-1:]),
        "Only the last layer's cache is returned. Each layer's is needed."),
    Wrong("list_changed_in_place", variant(returned=_changed_in_place),
        "The list that came in is changed. Somebody may still go on from it in another way, so\n"
        "begin a new list in each read."),
    Wrong("goes_on_with_the_last_text", _RemembersTheText(),
        "A read without caches goes on with the text before: something is remembered between\n"
        "calls. Without caches a new text begins."),
    Wrong("only_remembered", _only_remembered,
        "What has been read is kept outside read, and the caches that come in are not used: a\n"
        "new text goes on with the one before. All that is known of a text is in its caches."),
    Wrong("last_norm_forgotten", variant(logits=lambda self, model, x: x[:, -1] @ model.embed.T),
        "The last norm is missing: model.norm comes before the tokens are compared with x."),
    Wrong("first_token", variant(
        logits=lambda self, model, x: model.norm(x[:, 0]) @ model.embed.T),
        "The logits are those after the first token. What follows the text is wanted: the last."),
    Wrong("embed_called", variant(begin=lambda self, model, ids: model.embed(ids)),
        "model.embed is a tensor, a row for each token, and no module that is called. Rows are\n"
        "picked out by their numbers: model.embed[ids]."),
    Wrong("embed_multiplied", variant(begin=lambda self, model, ids: ids @ model.embed),
        "The numbers of the tokens are multiplied with embed. They say which of its rows are\n"
        "meant: pick these out, as in model.embed[...]."),
    Wrong("last_text", variant(logits=lambda self, model, x: model.norm(x[-1]) @ model.embed.T),
        "x[-1] is the last text of the batch, with all its tokens. Wanted is the last token of\n"
        "each text."),
    Wrong("columns_of_embed", variant(
        logits=lambda self, model, x: model.norm(x[:, -1]) @ model.embed),
        "embed is [vocab, d_model], and x has d_model numbers: it is with each row of embed that\n"
        "x is compared. Which of the two has to be turned?"),
    Wrong("caches_first", _CachesFirst(),
        "The two results come in the wrong order: first the logits, then the caches."),
    Wrong("not_unpacked", variant(layer=_layer(_not_unpacked)),
        "attention(...) returns two things, what is added to x and the layer's new cache. Take\n"
        "them apart before you add."),
    Wrong("all_tokens", variant(logits=lambda self, model, x: model.norm(x) @ model.embed.T),
        "There are logits for every token, [batch, seq, vocab]. Wanted are those after the last."),
    Wrong("probabilities", variant(
        logits=lambda self, model, x: Swapped.logits(self, model, x).softmax(-1)),
        "These are probabilities. Logits are wanted, before any softmax."),
)  # fmt: skip

SWAP = Answer(reference=swap_attention, wrong=WRONG, right=RIGHT)
