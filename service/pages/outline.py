"""The OpenAPI document as what a page shows: groups, operations, parameters, fields."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["outline"]

METHODS = ("get", "post", "put", "patch", "delete")


def outline(document: Mapping[str, Any]) -> dict[str, Any]:
    """What the template needs, with every reference to parameters and responses followed.

    Parameters
    ----------
    document : mapping
        OpenAPI 3.1.

    Returns
    -------
    dict
        title, version, description, groups [{name, description, operations}], schemas [{name, description, fields}].
    """
    groups: dict[str, dict[str, Any]] = {
        tag["name"]: {"name": tag["name"], "description": tag.get("description", ""), "operations": []}
        for tag in document.get("tags", ())
    }
    for path, item in document["paths"].items():
        shared = item.get("parameters", [])
        for method in METHODS:
            if method in item:
                shown = _operation(document, path, method, item[method], shared)
                groups[item[method]["tags"][0]]["operations"].append(shown)
    schemas = [
        {"name": name, "description": schema.get("description", ""), "fields": _fields(schema)}
        for name, schema in sorted(document["components"]["schemas"].items())
    ]
    info = document["info"]
    return {
        "title": info["title"],
        "version": info["version"],
        "paragraphs": [_marked(part) for part in info.get("description", "").split("\n\n") if part.strip()],
        "groups": [group for group in groups.values() if group["operations"]],
        "schemas": schemas,
    }


def _operation(
    document: Mapping[str, Any], path: str, method: str, found: Mapping[str, Any], shared: list[Any]
) -> dict[str, Any]:
    parameters = [_follow(document, parameter) for parameter in (*shared, *found.get("parameters", ()))]
    body = found.get("requestBody", {}).get("content", {})
    return {
        "id": found["operationId"],
        "method": method.upper(),
        "path": path,
        "summary": found.get("summary", ""),
        "description": _marked(found.get("description", "")),
        "open": found.get("security") == [],
        "parameters": [
            {
                "name": parameter["name"],
                "place": parameter["in"],
                "required": parameter.get("required", False),
                "kind": _kind(parameter.get("schema", {})),
                "description": _marked(parameter.get("description", "")),
            }
            for parameter in parameters
        ],
        "bodies": [
            {"media": media, "kind": _kind(content.get("schema", {})), "examples": _examples(content)}
            for media, content in body.items()
        ],
        "responses": [_response(document, status, response) for status, response in sorted(found["responses"].items())],
    }


def _response(document: Mapping[str, Any], status: str, response: Mapping[str, Any]) -> dict[str, Any]:
    response = _follow(document, response)
    content = response.get("content", {})
    return {
        "status": status,
        "good": status < "400",
        "description": _marked(response.get("description", "")),
        "headers": sorted(response.get("headers", {})),
        "kinds": [{"media": media, "kind": _kind(part.get("schema", {}))} for media, part in content.items()],
        "examples": [text for part in content.values() for text in _examples(part)] if status < "400" else [],
    }


def _fields(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    required = set(schema.get("required", ()))
    return [
        {
            "name": name,
            "required": name in required,
            "kind": _kind(field),
            "limits": _limits(field),
            "description": _marked(field.get("description", "")),
        }
        for name, field in schema.get("properties", {}).items()
    ]


def _kind(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A type in words: pieces of text, some of them names of schemas."""
    if "$ref" in schema:
        return [{"name": schema["$ref"].rsplit("/", 1)[1]}]
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            pieces: list[dict[str, Any]] = []
            for place, part in enumerate(schema[word]):
                pieces += ([{"text": " or "}] if place else []) + _kind(part)
            return pieces
    if "enum" in schema:
        return [{"text": " | ".join(json.dumps(value) for value in schema["enum"])}]
    types = schema.get("type", "any")
    names = [types] if isinstance(types, str) else list(types)
    if "array" in names:
        ending = " or null" if "null" in names else ""
        return [{"text": "list of "}, *_kind(schema.get("items", {})), {"text": ending}]
    return [{"text": " or ".join(names)}]


def _limits(field: Mapping[str, Any]) -> str:
    """Ranges and lengths in words."""
    words = []
    for least, most, unit in (
        ("minimum", "maximum", ""), ("minLength", "maxLength", " characters"), ("minItems", "maxItems", " entries"),
    ):  # fmt: skip
        if least in field and most in field:
            words.append(f"{field[least]} to {field[most]}{unit}")
        elif least in field:
            words.append(f"at least {field[least]}{unit}")
        elif most in field:
            words.append(f"at most {field[most]}{unit}")
    if "exclusiveMinimum" in field:
        words.append(f"above {field['exclusiveMinimum']}")
    return ", ".join(words)


def _examples(content: Mapping[str, Any]) -> list[dict[str, str]]:
    found = [("Example", content["example"])] if "example" in content else []
    found += [(one.get("summary", name), one["value"]) for name, one in content.get("examples", {}).items()]
    return [
        {"title": title, "text": value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)}
        for title, value in found
    ]


def _follow(document: Mapping[str, Any], item: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in item:
        target: Any = document
        for step in item["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        item = target
    return item


def _marked(text: str) -> list[dict[str, str]]:
    """Text with `code` in back quotes as pieces."""
    return [
        {"code": piece[1:-1]} if piece.startswith("`") and len(piece) > 1 else {"text": piece}
        for piece in re.split(r"(`[^`]+`)", " ".join(text.split()))
        if piece
    ]
