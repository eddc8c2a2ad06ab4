"""Similarity is a hint: copies are found however they are dressed, common ways are not."""

from __future__ import annotations

import random
import textwrap
import time

import pytest
from pupils import COURSE, MASK, SCORES, SDPA, dump, solved, write

from labs_lib.grading.intake.collect import Handed, Submission
from labs_lib.grading.reports.fingerprints import WINDOW, K, hashes, tokens, winnowed
from labs_lib.grading.reports.similarity import alike, similarity_files

ORIGINAL = '''
def causal_mask(seq_q, seq_k=None):
    """Mine."""
    seq_k = seq_q if seq_k is None else seq_k
    allowed = torch.zeros(seq_q, seq_k, dtype=torch.bool)
    for query in range(seq_q):
        last = query + seq_k - seq_q
        for key in range(seq_k):
            allowed[query, key] = key <= last   # not the future
    return allowed
'''
DRESSED = """
# my own work
def causal_mask(a, b = None):
    b = a if b is None else b

    m = torch.zeros(a, b, dtype = torch.bool)
    for i in range(a):
          e = i + b - a
          for j in range(b):
              m[i, j] = j <= e
    return m
"""
ALONE = """
def causal_mask(seq_q, seq_k=None):
    keys = torch.arange(seq_k or seq_q)
    return keys[None, :] - torch.arange(seq_q)[:, None] <= len(keys) - seq_q
"""
KNOWN = {MASK: []}


def texts(**answers):
    return {student: {MASK: text} for student, text in answers.items()}


def pairs_of(found):
    return {(one.first, one.second) for one in found}


def test_a_copy_with_other_names_comments_and_layout_is_found():
    assert tokens(ORIGINAL) == tokens(DRESSED)
    found = alike(texts(ann=ORIGINAL, bob=ALONE, cy=DRESSED), KNOWN)
    assert pairs_of(found) == {("ann", "cy")}
    assert found[0].likeness == 1 and found[0].exercises == (MASK,)


def test_what_the_course_gives_or_expects_is_taken_out():
    assert alike(texts(ann=ORIGINAL, cy=DRESSED), {MASK: [ORIGINAL]}) == []


def test_a_passage_long_enough_always_leaves_a_common_mark():
    rng = random.Random(1)
    words = ["(", ")", "+", "-", "1", "2", "torch", "."]
    for _ in range(50):
        shared = [rng.choice(words) for _ in range(K + WINDOW - 1)]
        one, two = (
            winnowed(hashes(" ".join([*rng.choices(words, k=before), *shared, "1"])))
            for before in (30, 7)
        )
        assert one & two


@pytest.mark.parametrize("text", ["def f(:", "'", "\x00", "é" * 5, "x" * 100_000, "%%cuda\nint #"])
def test_any_text_has_tokens_or_none_and_never_an_error(text):
    assert isinstance(winnowed(hashes(text)), set)


def test_a_ring_of_any_size_is_found_without_comparing_everybody():
    ring = {f"ring {n:03}": ORIGINAL for n in range(60)}
    found = alike(texts(**ring, other=ALONE), KNOWN)
    assert len(pairs_of(found)) >= 59 and all("other" not in pair for pair in pairs_of(found))


def test_the_work_grows_with_the_class_and_not_with_its_square():
    def seconds(students):
        rng = random.Random(0)
        made = {f"s{n}": {MASK: _program(rng), SDPA: _program(rng)} for n in range(students)}
        made["copy a"] = made["copy b"] = made["s1"]
        began = time.process_time()
        found = alike(made, {})
        assert ("copy a", "copy b") in pairs_of(found) or ("copy b", "copy a") in pairs_of(found)
        return time.process_time() - began

    seconds(10)
    assert seconds(300) < 12 * max(seconds(60), 0.01)


def _program(rng):
    names = ["torch.exp", "x.sum", "q @ k", "w[0]", "max(m, 1)", "len(v)", "y.view", "1e-9", "abs"]
    lines = [f"    n{i} = {' + '.join(rng.choices(names, k=4))}" for i in range(8)]
    return textwrap.dedent("def f(q, k, v):\n" + "\n".join(lines) + "\n    return n7")


def test_a_report_names_pairs_shows_both_texts_and_says_what_it_is():
    submissions = []
    for student, text in (("<b>ann", ORIGINAL), ("=bob", DRESSED), ("cy", None)):
        whole = solved()
        if text:
            write(whole, MASK, text + "\n# </pre><script>alert(1)</script>")
        content = dump(whole)
        file = Handed("a.ipynb", lambda content=content: content)
        submissions.append(Submission(student, (file,)))
    submissions.append(Submission("broken", (Handed("b", lambda: b"{"),)))
    files = similarity_files(submissions, [COURSE])
    table = files["similarity.csv"].decode("utf-8").splitlines()
    assert len(table) == 2 and table[1].startswith("<b>ann,'=bob,") and MASK in table[1]
    text = files["similarity.html"].decode("utf-8")
    assert "never a verdict" in text and "<script>" not in text and "&lt;b&gt;ann" in text
    assert "allowed = torch.zeros" in text and "m = torch.zeros" in text
    assert SCORES not in text, "the course's own answers make no pair"
