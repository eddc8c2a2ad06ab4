"""The short texts on which heads are looked at; all written for this course."""

# To measure a head on.
PROSE = (
    "The ferry left the island at seven, when the fog was still lying on the water. Two "
    "fishermen stood at the rail and talked about the price of fuel, the weather, and the new "
    "harbour. One of them said that the harbour would never be finished; the other said that "
    "nothing on the island was ever finished, and that this was the best thing about the "
    "island. Behind them a child counted the gulls, lost count, and began again.",
    "A clock measures time by counting something that repeats. In an old clock, a pendulum "
    "swings, and a wheel moves on by one tooth at each swing. In a watch, a small crystal of "
    "quartz shakes more than thirty thousand times in a second, and a chip counts the shakes. "
    "The best clocks count the light that atoms give off; they would lose less than a second in "
    "the age of the universe. What repeats has changed, but the idea of the clock has not.",
)

# To judge on, never seen while heads were chosen.
HELD_OUT = (
    "When the baker opened the shop on Monday, the street was empty and the ovens were cold. He "
    "lit the first oven, weighed the flour, and put the kettle on for tea. By six the bread was "
    "in the oven and the first customer was knocking on the window. She wanted two rolls and a "
    "loaf of rye, as she did every Monday, and as every Monday she had forgotten her purse.",
    "Rivers carry more than water. Each year a large river brings millions of tons of sand and "
    "mud down from the mountains. Where the river slows, the sand settles first, then the mud, "
    "and new land is built at the edge of the sea. If a dam is built, the sand stays behind the "
    "dam, and the coast far below it begins to shrink. It may take twenty years before anyone "
    "notices.",
    "The committee met in a small room above the library. There were five members, but only "
    "four chairs, so the youngest member stood at the window. They talked about the roof, which "
    "leaked, and about the money, which was gone. In the end they decided to write a letter. "
    "The letter said that the roof leaked and that the money was gone, and it was signed by all "
    "five members.",
    "To grow tomatoes you need sun, water and patience. Sow the seeds indoors in March, and "
    "keep the pots warm until the first leaves appear. In May, when the nights are no longer "
    "cold, plant them outside against a wall that faces south. Water them in the morning, never "
    "on the leaves, and take off the side shoots every week. The first red tomatoes should be "
    "ready in July.",
)

# Pairs that say the same; every other sentence is another matter.
PAIRS = (
    ("A cat sleeps on the sofa.", "On the couch lies a sleeping kitten."),
    ("A dog sleeps on the sofa.", "There is a puppy napping on the couch."),
    ("The train was late because of snow.", "Snowfall delayed the railway service."),
    ("The plane was late because of fog.", "The flight was held up by mist."),
    ("She bought a red bicycle.", "A bike in red was what she purchased."),
    ("She bought a red car.", "The automobile that she got was red."),
    ("He can't find his glasses.", "His spectacles are lost."),
    ("He can't find his keys.", "The key ring has gone missing."),
    ("The soup is too salty.", "There is too much salt in this broth."),
    ("The coffee is too bitter.", "This espresso tastes far too sharp."),
    ("Children play football in the park.", "Kids are having a soccer game on the green."),
    ("Children swim in the lake.", "Kids are bathing in the pond."),
    ("The company raised its prices.", "The firm now charges more."),
    ("The company dismissed its director.", "The firm fired the man who ran it."),
    ("How do I reset my password?", "What are the steps to get a new login code?"),
    ("How do I delete my account?", "What are the steps to remove my user profile?"),
)  # fmt: skip
