"""The logical plan: a graph of steps made from a topology, its rewrites, and how it is shown."""
