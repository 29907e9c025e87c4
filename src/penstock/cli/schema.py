"""`penstock schema`: the JSON Schema by which editors complete and check the YAML."""

from __future__ import annotations

import json
import sys


def schema() -> None:
    """Print the JSON Schema of topology files.

    For completion in an editor: `penstock schema > penstock.schema.json`, and put
    `# yaml-language-server: $schema=penstock.schema.json` on the first line of the topology.
    """
    from penstock.connectors.registry import catalogue
    from penstock.topology.json_schema import json_schema

    json.dump(json_schema(catalogue()), sys.stdout, indent=2)
    sys.stdout.write("\n")
