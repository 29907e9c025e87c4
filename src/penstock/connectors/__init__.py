"""Sources and sinks; `base` is the contract, one file per system."""
