"""The settings of components: options, registries, and user-defined classes."""

from dprec.components.options import *
from dprec.components.settings import *
from dprec.components.user_defined import *

__all__ = [
    "Deviation",
    "Options",
    "Registry",
    "Values",
    "as_in_a_file",
    "as_tuple",
    "as_values",
    "deviations",
    "fill",
    "first_error",
    "group_of",
    "import_folders",
    "import_from",
    "imported",
    "imported_function",
    "importing_only",
    "is_importable",
    "is_ours",
    "kind_of",
    "naming",
    "one_of",
    "one_of_classes",
    "option",
    "packed",
    "parse_json",
    "plain",
    "published_of",
    "read",
    "redefined",
    "reference_of",
    "schema_of",
    "sources_of",
    "sources_of_functions",
    "summary_of",
    "unpacked",
    "user_defined_classes",
]
