"""Runs a program as on a CPU without VNNI.

    gdb -q -batch -x bench/older_cpu.py --args .venv/bin/python bench/reader_bench.py

ONNX Runtime asks the CPU what it has by the instruction `cpuid`. gdb stops at each in ONNX Runtime's libraries and
takes VNNI and AVX-512 out of the answer, as a CPU with AVX2 alone gives it. What runs then is the code for such a CPU,
at full speed. OLDER=avx512 leaves AVX-512 in and takes VNNI alone. Needs gdb and objdump, on x86-64 Linux.
"""

from __future__ import annotations

import os
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

gdb: Any = import_module("gdb")
"""There is such a module inside gdb alone."""

LIBRARY = "onnxruntime"
VNNI_512, VNNI_256 = 1 << 11, 1 << 4
"""Leaf 7: in ECX of the first part, in EAX of the second."""
AVX512 = sum(1 << bit for bit in (16, 17, 21, 26, 27, 28, 30, 31))
"""In EBX of the first part."""
MORE_AVX512 = sum(1 << bit for bit in (1, 6, 11, 12, 14))
"""In ECX of the first part: what AVX-512 brought besides."""
AMX = sum(1 << bit for bit in (22, 24, 25))
"""In EDX of the first part."""
KEEPS_AVX512 = os.environ.get("OLDER") == "avx512"


def take_out(leaf: int, part: int) -> None:
    if leaf != 7:
        return
    if part == 0:
        if not KEEPS_AVX512:
            clear("ebx", AVX512)
        clear("ecx", VNNI_512 if KEEPS_AVX512 else MORE_AVX512)
        clear("edx", AMX)
    elif part == 1:
        clear("eax", VNNI_256)


def read(register: str) -> int:
    return int(gdb.parse_and_eval(f"(unsigned int)${register}"))


def clear(register: str, bits: int) -> None:
    gdb.execute(f"set ${'r' + register[1:]} = {read(register) & ~bits}")


def find_questions(file: str) -> list[int]:
    told = subprocess.run(["objdump", "-d", "--no-show-raw-insn", file], capture_output=True, text=True, check=True)
    return [int(line.split(":")[0], 16) for line in told.stdout.splitlines() if line.endswith("\tcpuid")]


def base_of(file: str) -> int:
    maps = Path(f"/proc/{gdb.selected_inferior().pid}/maps").read_text(encoding="utf-8")
    return min(int(line.split("-")[0], 16) for line in maps.splitlines() if line.endswith(file))


def main() -> None:
    for line in ("set breakpoint pending on", "set pagination off", "set confirm off", "set print thread-events off"):
        gdb.execute(line)
    gdb.execute(f"catch load {LIBRARY}")
    gdb.execute("run")
    known: set[str] = set()
    changed = 0
    while gdb.selected_inferior().pid:
        for library in (one.filename for one in gdb.objfiles() if LIBRARY in Path(one.filename or "").name):
            if library not in known:
                known.add(library)
                for place in find_questions(library):
                    gdb.Breakpoint(f"*{base_of(library) + place}", internal=True)
        pc = int(gdb.parse_and_eval("(unsigned long)$pc"))
        if bytes(gdb.selected_inferior().read_memory(pc, 2)) == b"\x0f\xa2":
            leaf, part = read("eax"), read("ecx")
            gdb.execute("stepi", to_string=True)
            take_out(leaf, part)
            changed += leaf == 7
        gdb.execute("continue", to_string=True)
    without = "VNNI" if KEEPS_AVX512 else "VNNI and AVX-512"
    print(f"the CPU was asked for its features {changed} times, and answered without {without}")


main()
