"""The fault scoreboard: faults are injected into real runs, and a line each says whether everything held.

    python -m benchmarks.faults [--full] [--only F1,F2] [--repeats N] [--write]

What holds for every line, whatever the fault:

1. No finished trial is lost. Finished means: its `record.json` was renamed into its place.
2. None counts twice, and none that has its result is bought again.
3. No file under its final name is torn.
4. Three seconds later no process of the run is alive, and no home of it is left.
5. The exit status is not 0 when anything planned is missing.
6. The report can be made from the journal alone.
"""
