"""Answers to the quiz questions of lab 06."""

from __future__ import annotations

from ..kit import choice

QUIZ = {
    "lab06.quiz_baseline": choice(
        "b",
        "Clark et al. 2019: prepositions 66.7 %, and a fixed offset reaches 61.8 %. The head for\n"
        "objects is the clear one, 86.8 against 40.0 %.",
        a="Before you call it that, ask what something that knows nothing would reach.",
        c="A third is much in a language of thousands of words. Compared with what?",
        d="A head that always looks at a fixed place knows no grammar. How often is it right?",
    ),
    "lab06.quiz_clones": choice(
        "c",
        "Equal weights, equal outputs, equal gradients: the step is the same for both. Only a\n"
        "difference can grow, so the random start is what sorts the heads.",
        a="Which of the two should take which niche? Nothing tells them apart.",
        b="Measured: their gradients are equal to each other, among the others' at step 0 and a\n"
        "little below at step 300. What shrinks alike never parts. Which heads do get smaller\n"
        "gradients is what the experiment with half a head shows.",
        d="That would need a difference between them. Look at the largest one in your measurement.",
    ),
    "lab06.quiz_sink": choice(
        "b",
        "In the toy the row goes to the first slot when there is nothing to fetch, and what that\n"
        "slot adds is small. Where a row may add up to less than 1, it isn't needed.",
        a="Put another word first: the weight stays on the first place.",
        c="In the toy an ordinary token in the same place gets 0.11 and becomes no sink. It takes\n"
        "a place whose value adds next to nothing.",
        d="SmolLM2 read no start mark: the sink was an ordinary word.",
    ),
    "lab06.quiz_outlier": choice(
        "c",
        "The huge numbers all belong to one token. Give each token its own scale, and only that\n"
        "one is coarse.",
        a="Then the largest number of all sets the step, and the others round to 0.",
        b="The huge token has a number in each channel, and in a few of them that number is huge:\n"
        "there it sets the step for every token. You measured what is left.",
        d="It can: only the step has to be large for that token.",
    ),
    "lab06.quiz_published": choice(
        "b",
        "Voita et al. 2019, WMT English to Russian, encoder heads of a translation model; the\n"
        "share is 79 %.",
        a="That mixes two papers. BERT is Michel et al. 2019, and there it is up to 40 %.",
        c="Michel et al. 2019 found that 8 of 96 heads matter much when one is removed alone. To\n"
        "remove one is not to remove 88.",
        d="One head is enough in many layers, taken one layer at a time; not in all at once.",
    ),
}
