"""CPU seconds and memory of what a user waits for first: `dprec list`, and runs on MovieLens 100K."""

from measuring import ANEW, DATA, Line, dprec_run, main

MOVIELENS = (
    f"dataset={{kind: movielens-100k, path: {DATA / 'ml-100k'}}}",
    "split={kind: predefined, fold: u1}",
)
ALONE = dprec_run("blp-mf", *MOVIELENS, "simulation.backend=local")

LINES = (
    Line("`dprec list protocols`", ("-m", "dprec", "list", "protocols")),
    Line("`dprec run blp-mf`, default backend", dprec_run("blp-mf", *MOVIELENS), settings=ANEW),
    Line("`dprec run blp-mf`, in one process", ALONE, settings=ANEW),
)

if __name__ == "__main__":
    main(__file__, __doc__, LINES)
