"""What users write: the frozen model, its YAML and Python forms, and the DADSTORM reader."""
