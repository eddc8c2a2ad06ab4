"""What a lab's checks are to print on a run's seed, and what printed lines say in words."""
