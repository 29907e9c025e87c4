"""What starts, watches and replaces running topologies. No tuple passes through here."""
