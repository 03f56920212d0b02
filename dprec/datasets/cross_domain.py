"""Data sets with two item domains and shared users, for recommendation across domains."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dprec.arrays import Bools
from dprec.components import option
from dprec.crossdomain import CrossDomainRatings, joined
from dprec.datasets.base import Dataset, locate
from dprec.datasets.files import FileDataset
from dprec.datasets.published import MovieLens100K, film_genres
from dprec.datasets.synthetic import Synthetic
from dprec.datasets.table import DelimitedColumns
from dprec.errors import InputError
from dprec.randomness import generator
from dprec.ratings import Ratings


@dataclass(frozen=True, kw_only=True)
class MovieLensGenres(FileDataset):
    """MovieLens 100K as two domains: the genres, by number of films, go to A and B in turn.

    A film goes to the domain that has more of its genres; ties go to A and B in turn
    (Guerraoui et al. [guerraoui2017], section 6).
    """

    kind: Literal["movielens-genres"] = "movielens-genres"
    documented = MovieLens100K.documented
    target: Literal["A", "B"] = option("The target domain; the other one is the source.", "B")

    def load(self) -> Ratings:
        """Return the ratings of both domains; InputError names the file and line at fault."""
        ratings = MovieLens100K(path=self.path, duplicates=self.duplicates).load()
        folder = locate(self.path, MovieLens100K.file).parent
        films, genres = film_genres(locate(str(folder), "u.item"))
        in_b = genres_in_b(genres)
        known = dict(zip(films.tolist(), in_b.tolist(), strict=True))
        missing = [item for item in ratings.item_ids.tolist() if item not in known]
        if missing:
            raise InputError(f"{folder / 'u.item'}", f"no film {missing[0]}", "a line for every rated film")
        second = np.array([known[item] for item in ratings.item_ids.tolist()])
        parts = ratings.select(~second[ratings.items]), ratings.select(second[ratings.items])
        return joined(*parts, ("A", "B")) if self.target == "B" else joined(*parts[::-1], ("B", "A"))

    def item_names(self) -> dict[str, str]:
        """Return the titles of the films in either domain."""
        titles = MovieLens100K(path=self.path).item_names()
        return {f"{domain}:{film}": title for domain in ("A", "B") for film, title in titles.items()}


def genres_in_b(genres: Bools) -> Bools:
    """Return which films go to domain B."""
    by_size = np.argsort(-genres.sum(axis=0), kind="stable")
    first, second = genres[:, by_size[::2]].sum(axis=1), genres[:, by_size[1::2]].sum(axis=1)
    in_b: Bools = second > first
    in_b[np.flatnonzero(first == second)[1::2]] = True
    return in_b


@dataclass(frozen=True, kw_only=True)
class DelimitedDomains(DelimitedColumns):
    """Two delimited text files in one layout: ratings of the source's items, and of the target's.

    The file at `path` is the source's, that at `target_path` the target's. The scale is that of both
    files together; users with the same identifier are the same user.
    """

    kind: Literal["csv-domains"] = "csv-domains"
    target_path: str = option("The file of the target domain's ratings.")

    def load(self) -> Ratings:
        """Return the ratings of both files; InputError names the file and line at fault."""
        tables = [self.read(path) for path in (self.path, self.target_path)]
        values = np.concatenate([table.values for table in tables])
        scale = self.scale(values, f"{tables[0].source}, {tables[1].source}")
        source, target = (Ratings.from_rows(table, scale, duplicates=self.duplicates) for table in tables)
        return joined(source, target, ("source", "target"))


@dataclass(frozen=True, kw_only=True)
class SyntheticDomains(Dataset):
    """Made from a seed: synthetic ratings of items in two domains, some users rating in both."""

    kind: Literal["synthetic-domains"] = "synthetic-domains"
    documented = Synthetic.documented
    users: int = option("Number of users.", 943, ge=1, le=2**31 - 1)
    items: int = option("Number of items; every second one is in the target domain.", 1682, ge=2)
    ratings: int = option("Number of ratings before users are limited to one domain.", 100_000, ge=1)
    straddling: float = option("Share of the users who rate in both domains.", 0.5, gt=0, le=1)
    seed: int = option("Seed of the data; a run's own seed does not change them.", 0, ge=0)

    def load(self) -> CrossDomainRatings:
        """Return the ratings; InputError when there are more than users x items."""
        whole = Synthetic(users=self.users, items=self.items, ratings=self.ratings, seed=self.seed).load()
        random = generator(self.seed, "synthetic domains")
        straddles = random.random(self.users) < self.straddling
        second_only = random.random(self.users) < 0.5
        second = (whole.items % 2).astype(np.bool_)
        allowed = straddles[whole.users] | (second == second_only[whole.users])
        return joined(whole.select(allowed & ~second), whole.select(allowed & second), ("source", "target"))
