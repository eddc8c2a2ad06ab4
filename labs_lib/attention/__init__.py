"""Reference implementations of attention, one step of the course per file.

In the order of the course; each is proved equal to the one before it, with copied weights:

    single_head   scores, mask, weights and output of one head
    heads         one width split into heads and merged again
    per_head      a small matrix for each head, and the loop over heads
    fused         one large matrix for all heads, no loop
    multi_head    the heads merged by W_O: the whole layer
    measures      what weights say of a head: entropy, token before, first token
    silencing     a head silent, a head's importance, heads pruned
    induction     heads that copy what came next: their score, their means, and their silence
    int8          numbers as 8-bit integers and a scale
    grouped       query heads that share keys and values; ordinary heads merged into shared ones
    rotary        positions as angles
    cache         keys and values made once and kept for the tokens that follow
    latent        a short latent kept in their place, and attention on latents alone
    online_softmax  a row of scores that arrives in blocks, in three passes, two, one
    flash         tiles of queries and keys, and no n x n tensor, forward and back
"""
