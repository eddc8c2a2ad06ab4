"""What a student moves: n_head and d_model in every lab, and what they decide there.

explorer.py        what the browser computes by itself: settings, a student's function, a still
front/             its JavaScript, a module for each explorer
knobs.py, rules.py, still.py   the controls; what doesn't fit; the picture where no browser is
tour.py            lab 00: a query's numbers, shared out among heads
attention_row.py   lab 01: move the query, a key, the mask and the scale; watch one row of weights
head_split.py      lab 02: where each head lies in memory
fused_slices.py    lab 03: the wide projection matrix, cut by head
ledger.py          lab 04: which part of a model has the parameters, the operations, the bytes
w_o_mixing.py      lab 05: which head wrote which number of the output
head_atlas.py      lab 06: every head of two models, one on a sentence, and what its silence changes
head_facts.py, head_picture.py   what is recorded of the heads, its sentences, its still picture
training_scrub.py  lab 06: a small model's heads while they learn
induction.py       lab 07: type a text, and see the jump to what came after the last time
jumps.py           the head that is built by hand, and what is said of a jump
kv_cache.py        lab 08: what a token costs in the cache, and how long a text fits a card
kernel_view.py     lab 09: what the warps of a kernel touch, one instruction after the other
kernel_words.py, kernel_picture.py   its sentences and its still picture
grid_fill.py       lab 09: the blocks of a launch on the SMs of a GPU, and what a tile wastes
online_softmax.py  lab 10: a row of scores that arrives block by block
row_states.py      the states that it plays, made without a merge
flash_tiles.py     lab 11: tiles of queries and keys, what lies on the chip and what crosses
pipeline.py        lab 12: the five steps of a layer's attention, their shapes and their work
"""
