"""What is said of a class's fields in the docstrings below them; read only by whoever shows it."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache
from itertools import pairwise


def read_field_docs(owner: type) -> Mapping[str, str]:
    """Each field's docstring, on one line."""
    return _read_classes(owner.__module__).get(owner.__name__, {})


@cache
def _read_classes(module: str) -> dict[str, dict[str, str]]:
    return {
        shape.name: {
            field.target.id: " ".join(said.value.value.split())
            for field, said in pairwise(shape.body)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
            if isinstance(said, ast.Expr) and isinstance(said.value, ast.Constant) and isinstance(said.value.value, str)
        }
        for shape in ast.parse(inspect.getsource(sys.modules[module])).body
        if isinstance(shape, ast.ClassDef)
    }
