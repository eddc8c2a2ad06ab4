"""Writing on, token by token, in lab 12: reference, right programs and wrong programs."""

from __future__ import annotations

import torch

from labs_lib.exercises.lab12 import READ_AGAIN

from ..kit import Answer, Right, Wrong


class Writing:
    """The right program in parts, so that a variant replaces one of them."""

    def __call__(self, read, prompt, max_new, ends, temperature=0.0, draw=None):
        written, unread, caches = [], prompt, None
        while len(written) < max_new:
            logits, caches = self.step(read, prompt, unread, caches, written)
            token = self.choose(self.take(logits), temperature, draw)
            if token in ends:
                return self.ended(written, token)
            written.append(token)
            unread = self.following(unread, token)
        return written

    def step(self, read, prompt, unread, caches, written):
        return read(unread, caches)

    def take(self, logits):
        return logits[0]

    def choose(self, logits, temperature, draw):
        if temperature == 0:
            return int(logits.argmax())
        return int(draw(self.probabilities(logits, temperature)))

    def probabilities(self, logits, temperature):
        return (logits / temperature).softmax(dim=-1)

    def following(self, unread, token):
        return torch.tensor([[token]])

    def ended(self, written, token):
        return written


def variant(**parts):
    """The right program with some of its parts replaced."""
    return type("Variant", (Writing,), parts)()


def generate(read, prompt, max_new, ends, temperature=0.0, draw=None):
    """The reference under the exercise's name and signature."""
    return Writing()(read, prompt, max_new, ends, temperature, draw)


def _one_read_more(read, prompt, max_new, ends, temperature=0.0, draw=None):
    """Reads the last token too, although nobody asks what follows it."""
    logits, caches = read(prompt)
    written = []
    for _ in range(max_new):
        token = Writing().choose(logits[0, :], temperature, draw)
        if token in ends:
            break
        written += [token]
        logits, caches = read(torch.as_tensor([token])[None], caches)
    return written


def _prompt_token_by_token(self, read, prompt, unread, caches, written):
    for place in range(unread.shape[1]):
        logits, caches = read(unread[:, place : place + 1], caches)
    return logits, caches


def _a_generator(read, prompt, max_new, ends, temperature=0.0, draw=None):
    caches, unread = None, prompt
    for _ in range(max_new):
        logits, caches = read(unread, caches)
        token = Writing().choose(logits.squeeze(0), temperature, draw)
        if token in ends:
            return
        yield token
        unread = prompt.new_tensor([[token]])


RIGHT = (
    Right("parts", Writing()),
    Right("one_read_more_at_the_end", _one_read_more),
    Right("prompt_token_by_token", variant(step=_prompt_token_by_token)),
    Right("a_generator", _a_generator),
    Right("largest_by_topk", variant(
        choose=lambda self, logits, t, draw: logits.topk(1).indices.item() if not t
        else draw(torch.exp(logits / t - (logits / t).logsumexp(-1))))),
    Right("a_lambda", lambda *given, **more: Writing()(*given, **more)),
)  # fmt: skip


def _whole_text_anew(self, read, prompt, unread, caches, written):
    text = torch.cat([prompt, torch.tensor([written], dtype=prompt.dtype)], dim=1)
    return read(text, None)


def _whole_text_into_the_caches(self, read, prompt, unread, caches, written):
    text = torch.cat([prompt, torch.tensor([written], dtype=prompt.dtype)], dim=1)
    return read(text, caches)


def _old_caches_forgotten(self, read, prompt, unread, caches, written):
    return read(unread, None)


class _FirstCaches(Writing):
    """The caches of the prompt in every step."""

    def step(self, read, prompt, unread, caches, written):
        if not written:
            logits, self.first = read(unread, None)
            return logits, self.first
        return read(unread, self.first)[0], None


class _CachesOutlive(Writing):
    """The caches stand outside of the function: the next text goes on with the last one."""

    reader = kept = None

    def __call__(self, read, *more, **given):
        if self.reader is not read:
            self.reader, self.kept = read, None
        return super().__call__(read, *more, **given)

    def step(self, read, prompt, unread, caches, written):
        logits, self.kept = read(unread, self.kept)
        return logits, self.kept


class _WrittenOutlives(Writing):
    """The list is made once, as a default argument is; each text's tokens come behind it."""

    def __init__(self):
        self.all, self.reader = [], None

    def __call__(self, read, prompt, max_new, ends, temperature=0.0, draw=None):
        if self.reader is not read:
            self.reader, self.all = read, []
        self.all.extend(super().__call__(read, prompt, max_new, ends, temperature, draw))
        return list(self.all)


def _two_at_a_time(self, unread, token):
    return torch.tensor([[int(unread[0, -1]), token]])


def _last_again(self, unread, token):
    return unread[:, -1:]


def _everything_so_far(self, unread, token):
    return torch.cat([unread, torch.tensor([[token]])], dim=1)


def _end_too(self, written, token):
    return [*written, token]


class _PromptToo(Writing):
    def __call__(self, read, prompt, *more, **given):
        return prompt[0].tolist() + super().__call__(read, prompt, *more, **given)


def _limited(by):
    """Writes so many tokens more or less than asked."""

    class Limited(Writing):
        def __call__(self, read, prompt, max_new, *more, **given):
            return super().__call__(read, prompt, max(max_new + by, 0), *more, **given)

    return Limited()


class _NeverEnds(Writing):
    def __call__(self, read, prompt, max_new, ends, *more, **given):
        return super().__call__(read, prompt, max_new, (), *more, **given)


class _PromptCounts(Writing):
    """max_new counts the whole text."""

    def __call__(self, read, prompt, max_new, *more, **given):
        room = max(max_new - prompt.shape[1], 0)
        return super().__call__(read, prompt, room, *more, **given)


def _always_greedy(self, logits, temperature, draw):
    return int(logits.argmax())


def _likeliest_as_a_tensor(self, logits, temperature, draw):
    return logits.argmax() if temperature == 0 else Writing.choose(self, logits, temperature, draw)


def _with_temperature(probabilities):
    return variant(probabilities=lambda self, logits, t: probabilities(logits, t))


def _divided_first(self, logits, temperature, draw):
    p = (logits / temperature).softmax(dim=-1)
    return int(p.argmax()) if temperature == 0 else int(draw(p))


ONE_LOGIT = (
    "Of all logits only the last is looked at: they are [1, vocab] here, those of one token,\n"
    "without an axis of tokens."
)
NO_PROBABILITIES = (
    "What draw is given doesn't add up to 1: logits, or probabilities that were divided by the\n"
    "temperature afterwards. It wants the softmax of the divided logits."
)

WRONG = (
    Wrong("cache_never_engaged", variant(step=_whole_text_anew), READ_AGAIN),
    Wrong("whole_text_into_the_caches", variant(step=_whole_text_into_the_caches),
        "The whole text is read in every step, and the caches hold it already: the model sees\n"
        "everything twice. Read the tokens only that are not in them."),
    Wrong("text_so_far_as_unread", variant(following=_everything_so_far),
        "The whole text is read in every step, and the caches hold it already: the model sees\n"
        "everything twice. Read the tokens only that are not in them."),
    Wrong("caches_forgotten", variant(step=_old_caches_forgotten),
        "Every step reads the new token without caches, as if it were a whole text. Hand over\n"
        "the caches that the read before gave back."),
    Wrong("caches_of_the_prompt", _FirstCaches(),
        "Every step goes on from the prompt's caches, so what was written since is forgotten.\n"
        "Each read returns new ones: use the latest."),
    Wrong("caches_outlive_the_call", _CachesOutlive(),
        "A new text goes on with the caches of the one before. They live in a default argument or\n"
        "outside the function; begin each call with None."),
    Wrong("list_outlives_the_call", _WrittenOutlives(),
        "The tokens of an earlier call come back with the new ones: the list is made once for all\n"
        "calls, as a default argument is. Make it inside."),
    Wrong("one_token_twice", variant(following=_two_at_a_time),
        "The token before the new one is read once more. It is in the caches already."),
    Wrong("last_token_again", variant(following=_last_again),
        "After the prompt its last token is read again and again, and never what was written."),
    Wrong("end_is_returned", variant(ended=_end_too),
        "The end is returned with the text. It says that the text is over and is no part of it."),
    Wrong("never_ends", _NeverEnds(),
        "Writing goes on after an end. Stop as soon as a token of ends is chosen. (ends holds\n"
        "numbers: a tensor is never `in` it, so make a number of the token first.)"),
    Wrong("end_looked_for_as_a_tensor", variant(choose=_likeliest_as_a_tensor),
        "At temperature 0 writing goes on after an end. Is the chosen token still a tensor? ends\n"
        "holds numbers, and a tensor is never `in` it: make a number of the token first."),
    Wrong("prompt_is_returned", _PromptToo(),
        "The prompt is returned with what was written. Wanted are the new tokens alone."),
    Wrong("one_too_many", _limited(1),
        "One token too many is written. Look at when the count is compared with max_new."),
    Wrong("one_too_few", _limited(-1),
        "One token too few is written. Look at when the count is compared with max_new."),
    Wrong("prompt_counts", _PromptCounts(),
        "max_new is taken as the length of the whole text. It counts new tokens."),
    Wrong("always_greedy", variant(choose=_always_greedy),
        "The temperature changes nothing: the likeliest token is always written, and draw is\n"
        "never asked. Dividing logits doesn't change which is the largest."),
    Wrong("temperature_multiplied", _with_temperature(lambda z, t: (z * t).softmax(-1)),
        "The logits are multiplied by the temperature. A high one then makes the model surer, and\n"
        "it is to be the other way round."),
    Wrong("temperature_ignored", _with_temperature(lambda z, t: z.softmax(-1)),
        "draw is asked with the probabilities of temperature 1, whatever was given. Divide the\n"
        "logits: probabilities that are divided and made to add up to 1 again are as before."),
    Wrong("logits_to_draw", _with_temperature(lambda z, t: z / t),
        NO_PROBABILITIES),
    Wrong("divided_after_the_softmax", _with_temperature(lambda z, t: z.softmax(-1) / t),
        NO_PROBABILITIES),
    Wrong("draws_without_a_temperature", variant(choose=lambda self, z, t, draw: int(
            draw(self.probabilities(z, t)))),
        "draw is asked at temperature 0 too, where there is none. Then the likeliest token is\n"
        "written, and nothing is divided by 0."),
    Wrong("divided_by_zero", variant(choose=_divided_first),
        "The logits are divided by a temperature of 0 before anybody looks at it: all are NaN\n"
        "then, and argmax takes the first. With temperature 0 nothing is divided."),
    Wrong("one_logit", variant(take=lambda self, logits: logits[0, -1]), ONE_LOGIT),
    Wrong("one_logit_as_a_vector", variant(take=lambda self, logits: logits[:, -1]), ONE_LOGIT),
    Wrong("least_likely", variant(choose=lambda self, z, t, draw: int(z.argmin()) if not t
        else Writing.choose(self, z, t, draw)),
        "Without temperature the least likely token is written."),
)  # fmt: skip

GENERATE = Answer(reference=generate, wrong=WRONG, right=RIGHT)
