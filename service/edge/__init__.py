"""What every route shares: bodies, query strings, versions, pages, replays."""

from service.edge.answers import answer, csv_answer, every_page, listing, nothing, page_size, path_of, record, wants_csv
from service.edge.batch import Batch, write_batch
from service.edge.body import JsonBody, Upload
from service.edge.operation import CREATED_AT, ETAG, LINK, found, operation, path_parameters
from service.edge.services import EXTENSION, services

__all__ = [
    "CREATED_AT",
    "ETAG",
    "EXTENSION",
    "LINK",
    "Batch",
    "JsonBody",
    "Upload",
    "answer",
    "csv_answer",
    "every_page",
    "found",
    "listing",
    "nothing",
    "operation",
    "page_size",
    "path_of",
    "path_parameters",
    "record",
    "services",
    "wants_csv",
    "write_batch",
]
