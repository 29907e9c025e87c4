"""The control plane: what is wanted of many topologies, on which nodes they run, and who may say so."""
