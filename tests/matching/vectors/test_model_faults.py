"""Model folders that somebody else filled: whatever is wrong with them is said as `invalid-file`, never as a crash."""

import json
import types

import numpy as np
import pytest

from matching.errors import InvalidFileError
from matching.vectors import EncoderVectorizer
from matching.vectors import onnx as graphs
from matching.vectors.model import open_model
from tests.tiny_bert import CONFIG, VOCABULARY, drawn_weights, safetensors, tokenizer_json, write_model

pytestmark = pytest.mark.usefixtures("no_sockets")

DOCUMENTS, SUBMISSIONS = ["graph kernel protein", "deep learning"], ["graph kernels", "auction theory"]
HUGE = 10**30
VOCAB = tokenizer_json()["model"]["vocab"]
DEEP = "[" * 100_000
JSON_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "modules.json",
              "1_Pooling/config.json")  # fmt: skip


def fit(folder):
    return EncoderVectorizer(folder).fit(DOCUMENTS, SUBMISSIONS)


def put(folder, name, data):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def header_of(change):
    """A weight file whose header was changed by hand, the numbers as they were."""
    whole = safetensors(drawn_weights())
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    text = json.dumps(change(header)).encode()
    return len(text).to_bytes(8, "little") + text + whole[8 + length :]


@pytest.mark.parametrize("name", JSON_FILES)
@pytest.mark.parametrize("text", ["", "{", DEEP, "null", "3", '"x"', b"\xff\xfe{}", '{"a": ' + "9" * 5000 + "}"])
def test_files_that_are_no_json_object_or_list_are_named(tmp_path, name, text):
    """Cut downloads, error pages, bombs: the name of the file is in the message, the machine's folder is not."""
    folder = write_model(tmp_path / "model")
    put(folder, name, text)
    with pytest.raises(InvalidFileError, match=name) as caught:
        fit(folder)
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_no_message_tells_where_on_the_machine_a_folder_lies(tmp_path, name):
    """Through the service these words reach whoever asked for a plan."""
    folder = write_model(tmp_path / "model")
    (folder / name).unlink()
    with pytest.raises(InvalidFileError) as caught:
        fit(folder)
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hidden_size", HUGE), ("num_hidden_layers", HUGE), ("max_position_embeddings", HUGE), ("hidden_act", []),
        ("hidden_act", {}), ("num_attention_heads", HUGE), ("layer_norm_eps", float("nan")), ("layer_norm_eps", True),
        ("hidden_size", True), ("model_type", "albert"), ("position_embedding_type", []),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_are_refused_at_once(tmp_path, field, value):
    """A number of layers with thirty digits is no reason to count up to it."""
    folder = write_model(tmp_path, config={**CONFIG, field: value})
    with pytest.raises(InvalidFileError, match="position" if field == "max_position_embeddings" else field):
        fit(folder)


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        *(("model", "max_input_chars_per_word", value) for value in (None, [], {}, "x", "100", 0, -1, 1.5, True)),
        *(("model", "unk_token", value) for value in (None, 3, [])),
        *(("model", "continuing_subword_prefix", value) for value in (None, 3, [])),
        *(("normalizer", "lowercase", value) for value in (None, "false", 0)),
        *(("normalizer", "handle_chinese_chars", value) for value in (None, "x")),
        ("normalizer", "strip_accents", "false"),
        *(("model", "vocab", {**VOCAB, "graph": value}) for value in (-5, True, HUGE, 1.0)),
    ],
)  # fmt: skip
def test_odd_settings_of_a_tokeniser_are_refused_and_never_guessed(tmp_path, part, field, value):
    """The text "false" is true in Python, and the number -5 counts from the end: both would only make bad vectors."""
    folder = write_model(tmp_path)
    content = tokenizer_json()
    content[part][field] = value
    put(folder, "tokenizer.json", json.dumps(content))
    with pytest.raises(InvalidFileError, match=r"tokenizer|vocabulary"):
        fit(folder)


@pytest.mark.parametrize(
    "settings", [{"do_lower_case": "false"}, {"strip_accents": "no"}, {"tokenize_chinese_chars": 1}]
)
def test_odd_settings_beside_a_word_list_are_refused(tmp_path, settings):
    """The same for the older form of a tokeniser."""
    folder = write_model(tmp_path, vocabulary="vocab.txt")
    put(folder, "tokenizer_config.json", json.dumps(settings))
    with pytest.raises(InvalidFileError, match=next(iter(settings))):
        fit(folder)


def test_settings_that_say_nothing_take_their_defaults(tmp_path):
    """strip_accents is null in most folders there are."""
    folder = write_model(tmp_path)
    content = tokenizer_json()
    content["normalizer"]["strip_accents"] = None
    del content["normalizer"]["handle_chinese_chars"], content["model"]["max_input_chars_per_word"]
    put(folder, "tokenizer.json", json.dumps(content))
    assert open_model(folder).tokenizer.encode("graph 图", 9) == [
        2,
        VOCABULARY.index("graph"),
        VOCABULARY.index("图"),
        3,
    ]


@pytest.mark.parametrize("modules", [{}, {"a": {"type": "x.Dense"}}, [1], [None], [{}], [{"type": 3}],
                                     [{"type": "x.Dense"}]])  # fmt: skip
def test_modules_that_cannot_be_computed_are_refused(tmp_path, modules):
    """A dense layer after the pooling, skipped without a word, would make other vectors than the model's."""
    folder = write_model(tmp_path)
    put(folder, "modules.json", json.dumps(modules))
    with pytest.raises(InvalidFileError, match=r"modules\.json"):
        fit(folder)


def test_pooling_that_is_asked_for_and_not_described_is_refused(tmp_path):
    """Whoever copies a folder without its subfolders has lost which pooling the model was trained with."""
    folder = write_model(tmp_path)
    put(folder, "modules.json", json.dumps([{"type": "x.Transformer"}, {"type": "x.Pooling", "path": "1_Pooling"}]))
    with pytest.raises(InvalidFileError, match="1_Pooling"):
        fit(folder)


FIRST = "embeddings.word_embeddings.weight"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dtype", []), ("dtype", {}), ("dtype", None), ("shape", [HUGE, 0]), ("shape", ["31", "32"]), ("shape", "31"),
        ("shape", [31.5, 32]), ("shape", [-31, -32]), ("shape", {}), ("data_offsets", [float("inf"), 1]),
        ("data_offsets", [0.5, 3968.5]), ("data_offsets", "01"), ("data_offsets", [HUGE, 2 * HUGE]),
        ("data_offsets", [0, True]),
    ],
)  # fmt: skip
def test_a_header_that_lies_is_found_out(tmp_path, field, value):
    """Only whole numbers that fit the file are believed."""
    folder = write_model(tmp_path)
    put(folder, "model.safetensors", header_of(lambda header: {**header, FIRST: {**header[FIRST], field: value}}))
    with pytest.raises(InvalidFileError, match=r"model\.safetensors"):
        fit(folder)


@pytest.mark.parametrize("header", [DEEP, "[]", "null", "{}", '{"a": 3}'])
def test_a_header_of_another_kind_is_found_out(tmp_path, header):
    """Among them one whose brackets would end the interpreter."""
    folder = write_model(tmp_path)
    put(folder, "model.safetensors", len(header).to_bytes(8, "little") + header.encode())
    with pytest.raises(InvalidFileError, match=r"model\.safetensors"):
        fit(folder)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("embeddings.token_type_embeddings.weight", np.s_[:0]),
        ("embeddings.word_embeddings.weight", np.s_[:0]),
        ("encoder.layer.0.intermediate.dense.weight", np.s_[:10]),
        ("encoder.layer.0.intermediate.dense.bias", np.s_[:1]),
        ("encoder.layer.1.output.dense.weight", np.s_[:, :10]),
        ("encoder.layer.1.attention.self.key.bias", np.s_[:3]),
        ("embeddings.LayerNorm.weight", np.s_[:1]),
    ],
)
def test_tensors_that_do_not_fit_each_other_are_named(tmp_path, name, part):
    """A bias of one number would be spread over all by numpy and make a vector of nonsense."""
    weights = drawn_weights()
    weights[name] = np.ascontiguousarray(weights[name][part])
    with pytest.raises(InvalidFileError, match=r"does not fit|pieces"):
        fit(write_model(tmp_path, weights=weights))


def test_several_tensors_at_fault_are_told_together(tmp_path):
    """Mending a folder one tensor a run is no fun."""
    weights = drawn_weights()
    del weights["embeddings.LayerNorm.bias"], weights["encoder.layer.1.output.dense.bias"]
    with pytest.raises(InvalidFileError, match=r"LayerNorm.bias is missing; .*layer.1.output.dense.bias is missing"):
        fit(write_model(tmp_path, weights=weights))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("name", [FIRST, "encoder.layer.1.output.LayerNorm.weight",
                                  "encoder.layer.0.attention.self.query.weight"])  # fmt: skip
def test_weights_that_are_no_numbers_are_damaged_and_nothing_is_printed(tmp_path, name, value):
    """Said as a fault, without warnings of the number library on the chair's screen."""
    weights = drawn_weights()
    weights[name] = np.full_like(weights[name], value)
    with pytest.raises(InvalidFileError, match=r"not finite|damaged"):
        fit(write_model(tmp_path, weights=weights))


def test_one_bad_number_anywhere_is_found_before_anything_is_computed(tmp_path):
    """Otherwise the run would end hours later, at the first text with that word."""
    weights = drawn_weights()
    weights[FIRST][VOCABULARY.index("market"), 3] = np.nan
    with pytest.raises(InvalidFileError, match=FIRST):
        open_model(write_model(tmp_path, weights=weights))


def test_weights_that_make_every_text_nothing_are_refused(tmp_path):
    """All zero, as a file is that was allocated and never filled: every pair would look alike."""
    weights = {name: np.zeros_like(numbers) for name, numbers in drawn_weights().items()}
    with pytest.raises(InvalidFileError, match="damaged"):
        fit(write_model(tmp_path, weights=weights))


def test_very_long_words_cost_no_more_than_their_length(tmp_path):
    """With a limit of characters that does not limit, a word of a megabyte is cut in one pass."""
    folder = write_model(tmp_path)
    content = tokenizer_json()
    content["model"]["max_input_chars_per_word"] = HUGE
    put(folder, "tokenizer.json", json.dumps(content))
    tokenizer = open_model(folder).tokenizer
    assert tokenizer.encode("graph" + "ing" * 300_000, 10**7) == [
        2, VOCABULARY.index("graph"), *[VOCABULARY.index("##ing")] * 300_000, 3
    ]  # fmt: skip


class _Session:
    """An onnxruntime session as far as it is used, with a shape that is not known and a run that fails."""

    def __init__(self, outputs, result):
        self._outputs, self._result = outputs, result

    def get_inputs(self):
        return [types.SimpleNamespace(name="input_ids")]

    def get_outputs(self):
        return self._outputs

    def run(self, names, given):
        if isinstance(self._result, Exception):
            raise self._result
        return [self._result]


@pytest.mark.parametrize(
    ("shape", "result"),
    [
        (None, np.ones((1, 3, 4), dtype=np.float32)),
        (("b", "n", 4), RuntimeError("index 31 is out of range")),
        (("b", "n", 4), np.ones((4,), dtype=np.float32)),
        (("b", "n", 4), np.ones((1, 0, 4), dtype=np.float32)),
        (("b", 4), np.float32(3)),
        (("b", 4), np.array([["x"]], dtype=object)),
        (("b", 4), np.zeros((0, 4), dtype=np.float32)),
    ],
)
def test_graphs_that_fail_or_give_something_else_are_told_so(tmp_path, monkeypatch, shape, result):
    """The library's exceptions have no common root, and a graph may give whatever it likes."""
    session = _Session([types.SimpleNamespace(name="states", shape=shape)], result)
    runtime = types.SimpleNamespace(SessionOptions=types.SimpleNamespace, InferenceSession=lambda *_, **__: session)
    monkeypatch.setattr(graphs, "has_onnxruntime", lambda: True)
    monkeypatch.setattr(graphs, "import_module", lambda name: runtime)
    with pytest.raises(InvalidFileError, match=r"model\.onnx"):
        graphs.OnnxEncoder(tmp_path / "model.onnx").encode([2, 5, 3])
