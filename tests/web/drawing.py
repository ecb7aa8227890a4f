"""Pictures made here, byte by byte: small, real, and each of its kind."""

from __future__ import annotations

import math
import struct
import zlib

SVG = b"""<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="300" height="80" onload="top.canary()">
<script>top.canary(); fetch("http://evil.example/svg")</script>\
<image href="http://evil.example/x.png" width="9" height="9"/>
<rect width="300" height="80" fill="#0f6b4f"/>\
<text x="20" y="46" fill="#fff" font-family="sans-serif">Q, K and V</text></svg>"""


def draw_png(width: int = 320, height: int = 140) -> bytes:
    """A rising curve on paper."""
    line, paper = bytes((15, 107, 79)), bytes((250, 248, 240))
    heights = [height * (0.9 - 0.8 / (1 + math.exp(5 - 10 * x / width))) for x in range(width)]
    rows = b"".join(
        b"\0" + b"".join(line if abs(y - heights[x]) < 3 else paper for x in range(width)) for y in range(height)
    )
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
