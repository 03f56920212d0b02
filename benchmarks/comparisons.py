"""CPU seconds of comparisons that are kept with the project."""

from measuring import CPU, ELAPSED, OUT, Line, main

LINES = tuple(
    Line(
        f"`dprec compare {name}`",
        ("-m", "dprec", "compare", name, "-o", f"{OUT}/comparison", "--quiet"),
        settings="as configured in each version, which may hold other protocols",
        units=(CPU, ELAPSED),
    )
    for name in ("compare-lists", "compare-attacks", "compare-seeds")
)

if __name__ == "__main__":
    main(__file__, __doc__, LINES)
