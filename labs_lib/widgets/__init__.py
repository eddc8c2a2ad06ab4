"""What a student moves: one control panel with n_head and d_model per lab.

panel.py           the base: controls, one figure, a sentence, and what happens on an error
tour.py            lab 00: a width cut into heads
attention_row.py   lab 01: move the query, a key, the mask and the scale; watch one row of weights
"""
