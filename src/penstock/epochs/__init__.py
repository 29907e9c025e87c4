"""The agreed epoch: its record, the log that holds the records, and the cutter that proposes them."""
