"""A sentence encoder of a few kilobytes, as a model folder, and what it should say, computed the plain way."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import erf

WIDTH, LAYERS, HEADS, INNER, POSITIONS = 32, 2, 4, 48, 40
WORDS = (
    "graph", "kernel", "protein", "fold", "auction", "theory", "deep", "learning", "image", "robot", "soft", "grasp",
    "market", "price", "the", "of", "and", "a", "on",
)  # fmt: skip
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, "##s", "##ing", "##ed", ".", ",", "!", "图", "e"]

CONFIG: Mapping[str, Any] = {
    "model_type": "bert", "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
    "intermediate_size": INNER, "max_position_embeddings": POSITIONS, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
}  # fmt: skip


def tokenizer_json() -> dict[str, Any]:
    return {
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": {word: at for at, word in enumerate(VOCABULARY)},
        },
    }  # fmt: skip


def drawn_weights(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray:
        return rng.normal(0.0, 0.3, shape).astype(np.float32)

    found = {
        "embeddings.word_embeddings.weight": draw(len(VOCABULARY), WIDTH),
        "embeddings.position_embeddings.weight": draw(POSITIONS, WIDTH),
        "embeddings.token_type_embeddings.weight": draw(2, WIDTH),
    }
    norms = ["embeddings.LayerNorm"]
    for at in range(LAYERS):
        name = f"encoder.layer.{at}"
        norms += [f"{name}.attention.output.LayerNorm", f"{name}.output.LayerNorm"]
        for part, outputs, inputs in (
            ("attention.self.query", WIDTH, WIDTH), ("attention.self.key", WIDTH, WIDTH),
            ("attention.self.value", WIDTH, WIDTH), ("attention.output.dense", WIDTH, WIDTH),
            ("intermediate.dense", INNER, WIDTH), ("output.dense", WIDTH, INNER),
        ):  # fmt: skip
            found[f"{name}.{part}.weight"], found[f"{name}.{part}.bias"] = draw(outputs, inputs), draw(outputs)
    for name in norms:
        found[f"{name}.weight"], found[f"{name}.bias"] = 1.0 + draw(WIDTH), draw(WIDTH)
    return found


def stored(weights: Mapping[str, np.ndarray], kind: str) -> tuple[dict[str, bytes], dict[str, np.ndarray]]:
    """Bytes of each tensor in a number format, and the values that these bytes mean."""
    raw, meant = {}, {}
    for name, numbers in weights.items():
        if kind == "BF16":
            upper = (numbers.view(np.uint32) >> 16).astype("<u2")
            raw[name], meant[name] = upper.tobytes(), (upper.astype(np.uint32) << 16).view(np.float32)
        else:
            typed = numbers.astype({"F64": "<f8", "F32": "<f4", "F16": "<f2"}[kind])
            raw[name], meant[name] = typed.tobytes(), typed.astype(np.float32)
    return raw, meant


def safetensors(weights: Mapping[str, np.ndarray], kind: str = "F32", pad: int = 0) -> bytes:
    """A .safetensors file; `pad` blanks behind the header shift the numbers."""
    raw, _ = stored(weights, kind)
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, data in raw.items():
        header[name] = {"dtype": kind, "shape": list(weights[name].shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8 + pad)
    return len(text).to_bytes(8, "little") + text + b"".join(raw.values())


def write_model(
    folder: Path,
    *,
    config: Mapping[str, Any] = CONFIG,
    weights: Mapping[str, np.ndarray] | None = None,
    kind: str = "F32",
    prefix: str = "",
    pooling: Mapping[str, Any] | None = None,
    vocabulary: str = "tokenizer.json",
) -> Path:
    """A model folder; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(dict(config)))
    named = {prefix + name: numbers for name, numbers in (weights or drawn_weights()).items()}
    (folder / "model.safetensors").write_bytes(safetensors(named, kind))
    if vocabulary == "vocab.txt":
        (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
        (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))
    else:
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json()))
    if pooling is not None:
        (folder / "1_Pooling").mkdir(exist_ok=True)
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(dict(pooling)))
    return folder


def reference(
    weights: Mapping[str, np.ndarray], texts: Sequence[Sequence[int]], activation: str = "gelu", pooling: str = "mean"
) -> np.ndarray:
    """Unit vectors of padded batches with a mask, in double precision, written after the papers and nothing else."""
    w = {name: numbers.astype(np.float64) for name, numbers in weights.items()}
    longest = max(map(len, texts))
    ids = np.array([[*text, *[0] * (longest - len(text))] for text in texts])
    mask = np.array([[1.0] * len(text) + [0.0] * (longest - len(text)) for text in texts])

    def dense(x: np.ndarray, name: str) -> np.ndarray:
        return np.einsum("bti,oi->bto", x, w[f"{name}.weight"]) + w[f"{name}.bias"]

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    def active(x: np.ndarray) -> np.ndarray:
        if activation == "relu":
            return np.where(x > 0, x, 0.0)
        if activation == "gelu":
            return x * 0.5 * (1.0 + erf(x / math.sqrt(2.0)))
        return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))

    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][None, :longest]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for at in range(LAYERS):
        name = f"encoder.layer.{at}"
        split = [
            dense(x, f"{name}.attention.self.{part}").reshape(*ids.shape, HEADS, WIDTH // HEADS)
            for part in ("query", "key", "value")
        ]
        scores = np.einsum("bihd,bjhd->bhij", split[0], split[1]) / math.sqrt(WIDTH // HEADS)
        scores = np.where(mask[:, None, None, :] > 0, scores, -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        mixed = np.einsum("bhij,bjhd->bihd", shares, split[2]).reshape(*ids.shape, WIDTH)
        x = norm(x + dense(mixed, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm")
        wide = active(dense(x, f"{name}.intermediate.dense"))
        x = norm(x + dense(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm")
    pooled = x[:, 0] if pooling == "cls" else (x * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    unit: np.ndarray = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
    return unit
