"""A topology in pure Python: sensors made up on the spot, those too hot counted.

Run it with `penstock run examples/pure-python` or with `python examples/pure-python/topology.py`.
"""

from penstock import Topology


def warnings(reading):
    """One tuple for every reading above 90 degrees."""
    if reading.degrees > 90:
        yield reading.sensor, "hot"


topology = (
    Topology("hot-sensors")
    .source(
        "readings",
        generator={"sensor": "choice(kitchen, cellar, roof)", "degrees": "int(0, 100)"},
        count=10_000,
        seed=7,
    )
    .custom(warnings, emits="sensor string, what string", name="warnings")
    .count("sensor", "what", name="hot")
    .sink("shown", console=True)
)

if __name__ == "__main__":
    topology.run()
