"""Tiny models, trained in a lab in seconds to a minute and a half, and the recorded runs.

The models are plain torch and take `attend=`, a callable `(q, k, v, mask) -> out`, so that the
same training runs on torch's attention, on the course's reference, or on a student's own function.

    loop.py           train: seeded, interruptible, with live loss and time left
    progress.py       the one line that shows it, in a terminal or a notebook
    layers.py         one attention layer with its variants: heads, shared KV heads, slicing, no W_O
    retrieval.py      the tasks of lab 01: two rules in one head, two targets for one head
    byte_text.py      a two-layer language model over bytes
    census.py         the same model, each of its heads looked at
    growing.py        the same model, its heads watched while they learn, and cut afterwards
    pooling.py        the same model, its key/value heads merged after the training
    build_text.py     how the text in data/text was made
    runs.py           what a training leaves behind: Run and Record
    experiments.py    what is trained, with which variants and seeds; rerun
    records.py        data/records: load_record, record, `python -m labs_lib.training.records`
"""
