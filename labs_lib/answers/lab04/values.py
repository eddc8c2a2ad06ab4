"""Lab 04: the two numbers."""

from __future__ import annotations

import torch

from ..kit import Answer, Right, Wrong

_LLAMA_2_7B = 6_738_415_616
_BYTES = 2 * _LLAMA_2_7B

QUARTER_VOCAB = Answer(
    reference=35_840,
    wrong=(
        Wrong(
            "places_forgotten",
            36_864,
            "That is how many rows there are when attention is a quarter, and 1,024 of them are\n"
            "places. How many are left for tokens?",
        ),
        Wrong(
            "untied",
            17_920,
            "That is right for a model with two tables of tokens. Here the output uses the first\n"
            "one again.",
        ),
        Wrong(
            "untied_without_places",
            18_432,
            "That is two tables of tokens and no places. Here it is one table, and 1,024 rows of\n"
            "places belong to the embeddings too.",
        ),
        Wrong(
            "places_added",
            37_888,
            "The places were added to the rows. They are some of the rows already.",
        ),
        Wrong(
            "mlp_forgotten",
            109_568,
            "Here the tables alone are three times attention. The MLP is part of the rest too.",
        ),
        Wrong(
            "nominal_total",
            44_634,
            "That is the vocabulary at which this model has 120M parameters. Attention is then\n"
            "23.6 % of it.",
        ),
        Wrong(
            "a_fifth",
            72_704,
            "Then attention is a fifth. With a quarter, everything else is three times attention.",
        ),
        Wrong(
            "its_own_vocabulary",
            8_449,
            "That is the vocabulary which the lesson's model has, and there attention is 28.7 %.",
        ),
        Wrong(
            "one_layer",
            2_048,
            "That is one layer. This model has twelve, and the tables stand once.",
        ),
        Wrong(
            "two_tables_of_places",
            34_816,
            "The places were taken off twice. They are 1,024 of the rows, once.",
        ),
        *(
            Wrong(
                f"read_off_the_figure_{guess}",
                guess,
                "That is near it, as read off the figure. Arithmetic gives it to the last token.",
            )
            for guess in range(34_000, 38_001, 500)
        ),
        Wrong(
            "parameters",
            27_525_120,
            "That is how many parameters the table of tokens has. How many tokens are these?",
        ),
    ),
    right=(
        Right("a_float", 35_840.0),
        Right("a_0d_tensor", torch.tensor(35_840)),
    ),
    because="The MLP is twice attention, so the tables are as large as attention: 36,864 rows, "
    "1,024 of them places.",
)

WEIGHTS_GIB = Answer(
    reference=_BYTES / 2**30,
    wrong=(
        Wrong(
            "gigabytes",
            _BYTES / 10**9,
            "Right number, wrong unit: 13.48 is what it is in GB, steps of 1,000. GiB have steps\n"
            "of 1,024.",
        ),
        Wrong(
            "mebibytes",
            _BYTES / 2**20,
            "Right number, wrong unit: these are MiB. One step of 1,024 is missing.",
        ),
        Wrong(
            "megabytes",
            _BYTES / 10**6,
            "Right number, wrong unit: these are MB, and GiB were asked.",
        ),
        Wrong(
            "bytes",
            _BYTES,
            "Right number, wrong unit: these are bytes.",
        ),
        Wrong(
            "one_thousand_among_them",
            _BYTES / 2**20 / 1000,
            "Two units mixed: MiB divided by 1,000 is neither GB nor GiB.",
        ),
        Wrong(
            "one_1024_among_them",
            _BYTES / 10**6 / 1024,
            "Two units mixed: MB divided by 1,024 is neither GB nor GiB.",
        ),
        Wrong(
            "one_byte_each",
            _LLAMA_2_7B / 2**30,
            "That is one byte for each parameter. Here each has two.",
        ),
        Wrong(
            "four_bytes_each",
            4 * _LLAMA_2_7B / 2**30,
            "That is four bytes for each parameter, as in float32. Here each has two.",
        ),
        Wrong(
            "four_bytes_in_gb",
            4 * _LLAMA_2_7B / 10**9,
            "That is four bytes for each parameter, and in GB. Here each has two, and GiB are\n"
            "wanted.",
        ),
        Wrong("one_decimal", 12.6, "Rounded too early: give at least two decimals."),
        Wrong("cut_off", 12.5, "Cut off too early: give at least two decimals."),
        Wrong("no_decimal", 13, "Rounded too early: give at least two decimals."),
        Wrong(
            "one_byte_in_gb",
            _LLAMA_2_7B / 10**9,
            "That is the number of parameters in billions. Each weighs two bytes.",
        ),
        Wrong(
            "gibibits",
            8 * _BYTES / 2**30,
            "These are Gibit. A byte is eight bits, and bytes were asked.",
        ),
        Wrong(
            "seven_billion",
            14e9 / 2**30,
            "That is what the name says, 7 billion. The model has 6,738,415,616 parameters.",
        ),
        Wrong(
            "seven_billion_in_gb",
            14.0,
            "That is 7 billion times two bytes in GB. Take the model's own count, and GiB.",
        ),
    ),
    right=(
        Right("two_decimals", 12.55),
        Right("three_decimals", 12.551),
        Right("a_0d_tensor", torch.tensor(_BYTES / 2**30, dtype=torch.float64)),
    ),
    because="13.48 GB and 12.55 GiB are the same bytes. A card sold with 12 GB of memory holds "
    "neither.",
)
