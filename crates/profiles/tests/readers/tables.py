"""Reads all tables of a folder with DuckDB and with Polars and prints their rows as JSON. Fails where the two differ, or where
a table is not compressed as it should be.

Usage: tables.py FOLDER
"""
import json
import pathlib
import sys

import duckdb
import polars

tables = {}
for file in sorted(pathlib.Path(sys.argv[1]).glob("*.parquet")):
    relation = duckdb.read_parquet(str(file))
    duck = [dict(zip(relation.columns, row)) for row in relation.fetchall()]
    frame = polars.read_parquet(file)
    polar = frame.to_dicts()
    assert relation.columns == frame.columns, f"{file}: columns {relation.columns} and {frame.columns}"
    assert duck == polar, f"{file}: DuckDB reads {duck}, Polars {polar}"
    # A query that passes by what the statistics rule out finds the largest all the same.
    for column in frame.columns if polar else []:
        largest = frame[column].max()
        if largest is not None:
            found = duckdb.execute(f"SELECT count(*) FROM '{file}' WHERE {column} >= ?", [largest]).fetchone()[0]
            assert found == (frame[column] == largest).sum(), f"{file}: {column} by statistics"
    codecs = duckdb.execute(f"SELECT DISTINCT compression FROM parquet_metadata('{file}')").fetchall()
    assert codecs in ([("ZSTD",)], []), f"{file}: {codecs}"
    tables[file.stem] = polar
print(json.dumps(tables))
