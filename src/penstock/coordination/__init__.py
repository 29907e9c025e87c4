"""What replicas agree on: small entries, written once, read by all."""
