"""Take in what a class handed in: whose it is, which lab, which attempt, when."""
