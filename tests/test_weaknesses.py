"""S8: known weaknesses of what askbook is built on, and bandit's rules over its own code (as ruff has them)."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.row("S8")


def test_bandits_rules_find_nothing() -> None:
    """S101 is `assert`; what else is passed over says why at its own line."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "S", "--ignore", "S101", "src"]
    told = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert told.returncode == 0, told.stdout


@pytest.mark.torture
def test_no_dependency_has_a_known_weakness() -> None:
    if importlib.util.find_spec("pip_audit") is None:
        pytest.skip("the audit needs pip-audit and an advisory service, and neither is here")
    command = [sys.executable, "-m", "pip_audit", "--require-hashes", "--disable-pip", "-r", "requirements.lock"]
    told = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600)
    assert told.returncode == 0, told.stdout + told.stderr
