"""The exported graphs against the same encoder in torch. Skipped without torch and onnx, which only training needs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="skipped: torch is not installed; see train/README.md")
onnx = pytest.importorskip("onnx", reason="skipped: onnx is not installed; see train/README.md")
onnxruntime = pytest.importorskip("onnxruntime")

sys.path.insert(0, str(Path(__file__).parents[2] / "train"))

export = pytest.importorskip("export")
Tensor = Any

LAYERS, WIDTH, WORDS = 3, 96, 400
HEADS = ("relevance", "answerable", "supported")


def random_state() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)

    def normal(*shape: int, scale: float = 0.08) -> np.ndarray:
        return rng.normal(0, scale, shape).astype(np.float32)

    state = {"we.weight": normal(WORDS, WIDTH), "pe.weight": normal(64, WIDTH), "te.weight": normal(2, WIDTH)}
    shapes = {"q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "o": (WIDTH, WIDTH)}
    shapes |= {"i": (4 * WIDTH, WIDTH), "u": (WIDTH, 4 * WIDTH)}
    linears = {f"layers.{n}.{at}": shape for n in range(LAYERS) for at, shape in shapes.items()}
    linears |= {f"{head}.0": (WIDTH, WIDTH) for head in HEADS} | {f"{head}.2": (1, WIDTH) for head in HEADS}
    for at, shape in (linears | {"span": (2, WIDTH)}).items():
        state |= {f"{at}.weight": normal(*shape), f"{at}.bias": normal(shape[0])}
    for at in ("n", *(f"layers.{n}.{norm}" for n in range(LAYERS) for norm in ("n1", "n2"))):
        state |= {f"{at}.weight": 1 + normal(WIDTH), f"{at}.bias": normal(WIDTH)}
    return state


def batch() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    ids = rng.integers(0, WORDS, (4, 20)).astype(np.int32)
    mask = (np.arange(20) < np.array([[20], [13], [5], [2]])).astype(np.int32)
    kinds = (np.arange(20) >= 6).astype(np.int32) * mask
    return {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": kinds}


def hidden_in_torch(state: dict[str, np.ndarray], given: dict[str, np.ndarray]) -> Tensor:
    s = {name: torch.tensor(array, dtype=torch.float32) for name, array in state.items()}
    ids, mask, kinds = (torch.tensor(given[name]).long() for name in ("input_ids", "attention_mask", "token_type_ids"))

    def norm(at: str, x: Tensor) -> Tensor:
        return torch.nn.functional.layer_norm(x, (WIDTH,), s[f"{at}.weight"], s[f"{at}.bias"], 1e-12)

    def linear(at: str, x: Tensor) -> Tensor:
        return torch.nn.functional.linear(x, s[f"{at}.weight"], s[f"{at}.bias"])

    def heads(x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], 12, -1).transpose(1, 2)

    x = norm("n", s["we.weight"][ids] + s["pe.weight"][: ids.shape[1]] + s["te.weight"][kinds])
    for n in range(LAYERS):
        at = f"layers.{n}"
        q, k, v = (heads(linear(f"{at}.{part}", x)) for part in "qkv")
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :].bool())
        x = norm(f"{at}.n1", x + linear(f"{at}.o", mixed.transpose(1, 2).reshape(x.shape)))
        x = norm(f"{at}.n2", x + linear(f"{at}.u", torch.nn.functional.gelu(linear(f"{at}.i", x))))
    return x


def read_in_torch(state: dict[str, np.ndarray], given: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    s = {name: torch.tensor(array) for name, array in state.items()}
    x = hidden_in_torch(state, given)
    linear = torch.nn.functional.linear
    scores = [
        linear(torch.tanh(linear(x[:, 0], s[f"{h}.0.weight"], s[f"{h}.0.bias"])), s[f"{h}.2.weight"], s[f"{h}.2.bias"])
        for h in HEADS
    ]
    return torch.cat(scores, 1).numpy(), linear(x, s["span.weight"], s["span.bias"]).numpy()


def run(model: Path, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    return session.run(None, {node.name: given[node.name] for node in session.get_inputs()})


def test_the_fp32_reader_computes_what_torch_computes(tmp_path: Path) -> None:
    state, given = random_state(), batch()
    export.export_reader(state, tmp_path / "reader.onnx", {}, reduce_range=False, fp32=True)
    scores, spans = run(tmp_path / "reader.onnx", given)
    expected_scores, expected_spans = read_in_torch(state, given)
    seen = given["attention_mask"].astype(bool)
    assert np.abs(scores - expected_scores).max() < 1e-4
    # Positions are stored as float16; what stands under the padding is nobody's.
    assert np.abs(spans - expected_spans)[seen].max() < 2e-3


@pytest.mark.parametrize("reduce_range", [False, True])
def test_the_int8_reader_stays_close(tmp_path: Path, reduce_range: bool) -> None:
    state, given = random_state(), batch()
    export.export_reader(state, tmp_path / "reader.onnx", {}, reduce_range)
    scores, spans = run(tmp_path / "reader.onnx", given)
    expected_scores, expected_spans = read_in_torch(state, given)
    seen = given["attention_mask"].astype(bool)
    assert np.abs(scores - expected_scores).max() < 0.25 * expected_scores.std()
    assert np.corrcoef(spans[seen].ravel(), expected_spans[seen].ravel())[0, 1] > 0.99


def test_every_matrix_of_an_int8_layer_has_a_scale_for_each_column(tmp_path: Path) -> None:
    export.export_reader(random_state(), tmp_path / "reader.onnx", {}, reduce_range=True)
    model = onnx.load(tmp_path / "reader.onnx")
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for at, columns in {"qkv": 3 * WIDTH, "o": WIDTH, "i": 4 * WIDTH, "u": WIDTH}.items():
        whole, scale = stored[f"layers.1.{at}_int8"], stored[f"layers.1.{at}_scale"]
        assert scale.shape == (columns,)
        assert (np.abs(whole).max(axis=0) == 64).all()
    assert stored["we_scale"].shape == (WORDS, 1)


def test_one_scale_for_all_columns_is_not_what_runs(tmp_path: Path) -> None:
    """A column a hundred times as large as the rest would round them away, were its scale theirs too."""
    state, given = random_state(), batch()
    for part in "qkv":
        state[f"layers.0.{part}.weight"][::4] /= 100
    export.export_embedder(state, tmp_path / "int8.onnx", "mean", reduce_range=True)
    export.export_embedder(state, tmp_path / "fp32.onnx", "mean", reduce_range=False, fp32=True)
    assert (run(tmp_path / "int8.onnx", given)[0] * run(tmp_path / "fp32.onnx", given)[0]).sum(1).min() > 0.99


@pytest.mark.parametrize("pooling", ["mean", "first", "none"])
def test_the_embedder_pools_in_the_graph(tmp_path: Path, pooling: str) -> None:
    state, given = random_state(), batch()
    given["token_type_ids"][:] = 0
    export.export_embedder(state, tmp_path / "model.onnx", pooling, reduce_range=False, fp32=True)
    (found,) = run(tmp_path / "model.onnx", given)
    hidden, mask = hidden_in_torch(state, given).numpy(), given["attention_mask"][..., None]
    if pooling == "none":
        assert np.abs((found - hidden) * mask).max() < 2e-3
        return
    expected = (hidden * mask).sum(1) if pooling == "mean" else hidden[:, 0]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert (found * expected).sum(1).min() > 0.99999


def test_the_metadata_is_the_callers(tmp_path: Path) -> None:
    export.export_reader(random_state(), tmp_path / "reader.onnx", {"window": 320}, reduce_range=False)
    session = onnxruntime.InferenceSession(str(tmp_path / "reader.onnx"), providers=["CPUExecutionProvider"])
    assert json.loads(session.get_modelmeta().custom_metadata_map["askbook_reader"]) == {"window": 320}
    assert [(node.name, node.type) for node in session.get_inputs()] == [
        (name, "tensor(int32)") for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
