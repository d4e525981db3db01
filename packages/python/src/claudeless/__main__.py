"""`claudeless` and `python -m claudeless`: run the binary of the wheel."""

from __future__ import annotations

import os
import subprocess
import sys

from ._binary import BinaryNotFound, find


def main() -> int:
    try:
        binary = find()
    except BinaryNotFound as error:
        print(f"claudeless: error: {error}", file=sys.stderr)
        return 1
    if sys.platform == "win32":
        return subprocess.run([binary, *sys.argv[1:]], check=False).returncode
    os.execv(binary, [binary, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
