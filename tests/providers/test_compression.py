from __future__ import annotations

import gzip
import zlib

import pytest

from pytest_tooleval.providers.compression import CompressionError, decompressed

TEXT = b'{"a": "' + b"x" * 100_000 + b'"}'


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("gzip", gzip.compress(TEXT, mtime=0)),
        (" GZip ", gzip.compress(TEXT, mtime=0)),
        ("x-gzip", gzip.compress(TEXT, mtime=0)),
        ("deflate", zlib.compress(TEXT)),
        ("gzip", gzip.compress(TEXT, mtime=0) + b"trailing"),
    ],
)
@pytest.mark.parametrize("size", [7, 1_000_000])
def test_bodies_in_whatever_chunks(encoding: str, body: bytes, size: int) -> None:
    chunks = (body[start : start + size] for start in range(0, len(body), size))
    pieces = list(decompressed(chunks, encoding))
    assert b"".join(pieces) == TEXT
    assert encoding in ("", "identity") or max(map(len, pieces)) <= 65_536


@pytest.mark.parametrize(
    ("encoding", "body", "said"),
    [
        ("br", b"x", "is compressed with br, which is not supported"),
        ("gzip, gzip", b"x", "is compressed with gzip, gzip, which is not supported"),
        ("gzip", b"no gzip", "is not valid gzip"),
        ("gzip", gzip.compress(TEXT, mtime=0)[:10] + b"\xff" * 40, "is not valid gzip"),
    ],
)
def test_what_cannot_be_undone(encoding: str, body: bytes, said: str) -> None:
    with pytest.raises(CompressionError, match=said):
        list(decompressed([body], encoding))
