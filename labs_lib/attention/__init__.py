"""Reference implementations of attention, one step of the course per file.

In the order of the course; each is proved equal to the one before it, with copied weights:

    single_head   scores, mask, weights and output of one head
    heads         one width split into heads and merged again
    per_head      a small matrix for each head, and the loop over heads
    fused         one large matrix for all heads, no loop
    multi_head    the heads merged by W_O: the whole layer
    online_softmax  a row of scores that arrives in blocks, in three passes, two, one
    flash         tiles of queries and keys, and no n x n tensor, forth and back
"""
