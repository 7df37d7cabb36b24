"""Files in and out: one module for each outside format, reader and writer side by side."""

from matching.formats.bundle import bundle_files, read_bundle, write_bundle, write_bundle_zip
from matching.formats.fixtures import FIXTURE_LICENCE, FIXTURES, fixture_path, load_fixture
from matching.formats.folder import read_folder
from matching.formats.openreview import read_dataset
from matching.formats.plans import (
    read_plan_json,
    write_openreview_alternates,
    write_openreview_assignments,
    write_openreview_manifest,
    write_plan_csv,
    write_plan_json,
    write_probabilities_csv,
)
from matching.formats.table import (
    read_bids,
    read_conflicts,
    read_demands,
    read_loads,
    read_locks,
    read_scores,
    read_table,
)
from matching.formats.table_out import (
    write_bids,
    write_conflicts,
    write_demands,
    write_loads,
    write_locks,
    write_scores,
)

__all__ = [
    "FIXTURES",
    "FIXTURE_LICENCE",
    "bundle_files",
    "fixture_path",
    "load_fixture",
    "read_bids",
    "read_bundle",
    "read_conflicts",
    "read_dataset",
    "read_demands",
    "read_folder",
    "read_loads",
    "read_locks",
    "read_plan_json",
    "read_scores",
    "read_table",
    "write_bids",
    "write_bundle",
    "write_bundle_zip",
    "write_conflicts",
    "write_demands",
    "write_loads",
    "write_locks",
    "write_openreview_alternates",
    "write_openreview_assignments",
    "write_openreview_manifest",
    "write_plan_csv",
    "write_plan_json",
    "write_probabilities_csv",
    "write_scores",
]
