"""What is kept on disk: names, whole files, tables, records of runs, checkpoints."""
