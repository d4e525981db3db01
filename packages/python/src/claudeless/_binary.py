"""Finds the binary: in the wheel, named by CLAUDELESS_BIN, or on PATH."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path


class BinaryNotFound(RuntimeError):
    """No claudeless binary was found; the message gives advice."""


def find() -> str:
    """Returns the path of the binary. CLAUDELESS_BIN takes precedence over the one of the wheel."""
    if given := os.environ.get("CLAUDELESS_BIN"):
        if not os.access(given, os.X_OK):
            raise BinaryNotFound(f"CLAUDELESS_BIN names {given}, which is not there or cannot be run")
        return given
    name = "claudeless.exe" if sys.platform == "win32" else "claudeless"
    carried = Path(__file__).with_name("bin") / name
    if carried.exists():
        return str(carried)
    own_script = Path(sys.argv[0]).resolve()
    if (found := shutil.which("claudeless")) and not is_python(Path(found), own_script):
        return found
    raise BinaryNotFound(
        f"this installation carries no binary for {sys.platform}/{platform.machine()}: "
        "install a wheel for this platform, or build one (`go build ./cmd/claudeless`) and name it in CLAUDELESS_BIN"
    )


def is_python(found: Path, own_script: Path) -> bool:
    """Reports whether the program on PATH is the script of this package, which would find and call itself for ever."""
    if found.resolve() == own_script:
        return True
    with found.open("rb") as file:
        return file.read(2) == b"#!"
