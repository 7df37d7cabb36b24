"""The forward pass against a plain one written from the papers; folders that are not what they should be."""

import json

import numpy as np
import pytest

from matching.errors import InvalidFileError
from matching.vectors.bert import ACTIVATIONS, BertEncoder
from tests.tiny_bert import CONFIG, POSITIONS, VOCABULARY, drawn_weights, reference, stored, write_model


def drawn_texts(n_texts=12, seed=1):
    rng = np.random.default_rng(seed)
    return [
        [2, *rng.integers(4, len(VOCABULARY), size=rng.integers(1, POSITIONS - 2)).tolist(), 3] for _ in range(n_texts)
    ]


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_vectors_agree_with_a_padded_and_masked_reference(tmp_path, activation, pooling):
    """Nothing is padded here, so agreeing with a padded batch also shows that padding is not missed."""
    folder = write_model(tmp_path, config={**CONFIG, "hidden_act": activation})
    texts = drawn_texts()
    found = np.stack([BertEncoder(folder, pooling).encode(text) for text in texts])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, reference(drawn_weights(), texts, activation, pooling), atol=2e-6)


@pytest.mark.parametrize("kind", ["F64", "F16", "BF16"])
def test_weights_may_be_stored_in_other_number_formats(tmp_path, kind):
    """Models are often published in half precision."""
    folder = write_model(tmp_path, kind=kind)
    meant = stored(drawn_weights(), kind)[1]
    texts = drawn_texts(4)
    found = np.stack([BertEncoder(folder).encode(text) for text in texts])
    np.testing.assert_allclose(found, reference(meant, texts), atol=2e-6)


def test_weights_saved_with_a_training_head_are_found(tmp_path):
    """Such files prefix the encoder's tensors and hold others beside them."""
    plain = BertEncoder(write_model(tmp_path / "a")).encode([2, 5, 6, 3])
    named = BertEncoder(write_model(tmp_path / "b", prefix="bert.")).encode([2, 5, 6, 3])
    np.testing.assert_array_equal(plain, named)


def test_extreme_weights_give_finite_vectors(tmp_path):
    """Attention far from uniform and activations far out must not overflow."""
    weights = {name: numbers * 30 for name, numbers in drawn_weights().items()}
    vector = BertEncoder(write_model(tmp_path, weights=weights)).encode(list(range(2, 20)))
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "roberta"}, "model_type is 'roberta'"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ({"hidden_act": "swish"}, "known: gelu"),
        ({"hidden_size": 0}, "hidden_size must be"),
        ({"num_hidden_layers": True}, "num_hidden_layers must be"),
        ({"num_attention_heads": 5}, "multiple of num_attention_heads"),
        ({"layer_norm_eps": -1}, "layer_norm_eps"),
        ({"num_hidden_layers": 3}, "encoder.layer.2.attention.self.query.weight is missing; .* and more"),
        ({"max_position_embeddings": 41}, "position_embeddings.weight has shape"),
    ],
)
def test_a_model_of_another_kind_is_refused_with_the_reason(tmp_path, change, said):
    """Computing something else than the model means would give scores that look right."""
    with pytest.raises(InvalidFileError, match=said):
        BertEncoder(write_model(tmp_path, config={**CONFIG, **change}))


@pytest.mark.parametrize("content", [None, b"{", b"[]", b"\xff"])
def test_a_config_that_cannot_be_read_is_refused(tmp_path, content):
    """A folder may be half copied."""
    folder = write_model(tmp_path)
    (folder / "config.json").unlink() if content is None else (folder / "config.json").write_bytes(content)
    with pytest.raises(InvalidFileError, match=r"config\.json"):
        BertEncoder(folder)


def test_all_faults_of_a_config_are_told_at_once(tmp_path):
    """One look is enough to see that a model does not fit."""
    folder = write_model(tmp_path)
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    with pytest.raises(InvalidFileError) as caught:
        BertEncoder(folder)
    assert all(word in str(caught.value) for word in ("gpt2", "hidden_size", "max_position_embeddings"))
