"""What a user waits for: `dprec list`, runs on MovieLens 100K, and comparisons kept with the project."""

from measuring import ANEW, CPU, DATA, ELAPSED, OUT, Line, dprec_run, main

MOVIELENS = (
    f"dataset={{kind: movielens-100k, path: {DATA / 'ml-100k'}}}",
    "split={kind: predefined, fold: u1}",
)
ALONE = dprec_run("blp-mf", *MOVIELENS, "simulation.backend=local")
KEPT, OTHERS = ("lists", "attacks", "seeds"), "as configured in each version, which may hold other protocols"
COMPARED = "-m", "dprec", "compare", "-o", f"{OUT}/comparison", "--quiet"

LINES = (
    Line("`dprec list protocols`", ("-m", "dprec", "list", "protocols")),
    Line("`dprec run blp-mf`, default backend", dprec_run("blp-mf", *MOVIELENS), settings=ANEW),
    Line("`dprec run blp-mf`, in one process", ALONE, settings=ANEW),
    *(
        Line(f"`dprec compare {name}`", (*COMPARED, name), settings=OTHERS, units=(CPU, ELAPSED))
        for name in (f"compare-{each}" for each in KEPT)
    ),
)

if __name__ == "__main__":
    main(__file__, __doc__, LINES)
