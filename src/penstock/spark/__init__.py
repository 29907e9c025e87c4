"""From the plan to DataFrames: the only package besides `runtime` that imports pyspark."""
