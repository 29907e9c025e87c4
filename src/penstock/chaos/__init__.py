"""Kill a running topology in every way there is, and compare what it delivered with an undisturbed run."""
