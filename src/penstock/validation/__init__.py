"""Topology in, problems out: everything that can be known to be wrong before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.topology.catalogue import Catalogue
from penstock.topology.join import Join
from penstock.topology.model import Explode, Filter, Select, Topology
from penstock.topology.problems import Problem
from penstock.topology.window import Window
from penstock.validation.cases import check_cases
from penstock.validation.columns import check_keys
from penstock.validation.connectors import check_connectors
from penstock.validation.custom_code import check_custom_code
from penstock.validation.delivery import check_delivery
from penstock.validation.enrichments import check_enrichments
from penstock.validation.graph import check_graph
from penstock.validation.input_ports import check_input_ports
from penstock.validation.keeping import check_kept
from penstock.validation.keyed import check_keyed
from penstock.validation.names import check_names
from penstock.validation.on_error import check_on_error
from penstock.validation.replicas import check_replicas
from penstock.validation.routing import check_routing
from penstock.validation.schemas import Schemas, check_inputs_agree, stream_schemas
from penstock.validation.settings import check_settings

__all__ = ["stream_schemas", "validate"]


def validate(topology: Topology, catalogue: Catalogue) -> list[Problem]:
    """Every problem of a topology, in the order of its lines; empty when it can be run.

    Errors keep a topology from running, warnings do not. One mistake makes one problem: what cannot
    be known because of it is not checked. Imports the user's own code, and starts nothing.
    """
    schemas = stream_schemas(topology)
    found = (
        *check_names(topology),
        *check_graph(topology),
        *check_settings(topology),
        *check_replicas(topology),
        *check_routing(topology),
        *check_connectors(topology, catalogue),
        *check_delivery(topology, catalogue),
        *check_inputs_agree(topology, schemas),
        *check_input_ports(topology, schemas),
        *check_enrichments(topology, schemas),
        *check_keys(topology, schemas),
        *_check_sql(topology, schemas),
        *check_custom_code(topology, schemas),
        *check_kept(topology, schemas),
        *check_keyed(topology, schemas),
        *check_on_error(topology),
        *check_cases(topology, schemas),
    )
    return sorted(dict.fromkeys(found), key=lambda problem: (problem.where.file, problem.where.line))


def _check_sql(topology: Topology, schemas: Schemas) -> Iterator[Problem]:
    if any(isinstance(operator, Filter | Select | Explode) for operator in topology.operators):
        # Here, because it imports sqlglot, and a topology without SQL should not wait for that.
        from penstock.validation.expressions import check_expressions

        yield from check_expressions(topology, schemas)
    if any(isinstance(operator, Window) for operator in topology.operators):
        from penstock.validation.windows import check_windows

        yield from check_windows(topology, schemas)
    if any(isinstance(operator, Join) for operator in topology.operators):
        from penstock.validation.joins import check_joins

        yield from check_joins(topology, schemas)
