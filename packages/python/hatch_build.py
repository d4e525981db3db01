"""Builds the binary in the wheel, and names the platform of the wheel.

Nothing is fetched when a test runs: `go build` happens here, once. With GOOS and
GOARCH set the wheel is for that platform; with CLAUDELESS_BIN set it carries that
binary.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Go's names for platforms as wheels name them. The binary is static, so that any
# Linux of that processor runs it.
TAGS = {
    ("linux", "amd64"): "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    ("linux", "arm64"): "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    ("darwin", "amd64"): "macosx_12_0_x86_64",
    ("darwin", "arm64"): "macosx_12_0_arm64",
    ("windows", "amd64"): "win_amd64",
    ("windows", "arm64"): "win_arm64",
}


def version() -> str:
    """The version of the binary, which is that of this package."""
    return (source(Path(__file__).parent) / "internal" / "cli" / "version.txt").read_text().strip()


def source(here: Path) -> Path:
    """The directory of the Go module: next to this file in an sdist, above it in a checkout."""
    for place in (here / "go", here.parent.parent):
        if (place / "cmd" / "claudeless" / "main.go").exists():
            return place
    raise RuntimeError(f"the Go source of claudeless is neither beside nor above {here}")


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # CLAUDELESS_BIN or PATH names the binary then
        given = os.environ.get("CLAUDELESS_BIN")
        platform = given_platform() if given else target()
        name = "claudeless.exe" if platform[0] == "windows" else "claudeless"
        self._dir = Path(tempfile.mkdtemp(prefix="claudeless-wheel-"))
        binary = self._dir / name
        if given:
            shutil.copy(given, binary)
        else:
            build(source(Path(self.root)), binary)
        binary.chmod(0o755)
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + TAGS[platform]
        build_data["force_include"][str(source(Path(self.root)) / "LICENSE")] = "claudeless/LICENSE"
        build_data["force_include"][str(binary)] = f"claudeless/bin/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "_dir"):
            shutil.rmtree(self._dir, ignore_errors=True)


def target() -> tuple[str, str]:
    """The operating system and processor that `go build` builds for."""
    try:
        out = subprocess.run(["go", "env", "GOOS", "GOARCH"], check=True, capture_output=True, text=True).stdout
    except FileNotFoundError:
        raise RuntimeError("building this wheel needs Go 1.26 or newer on PATH, or CLAUDELESS_BIN=/path/to/claudeless") from None
    goos, goarch = out.split()
    if (goos, goarch) not in TAGS:
        raise RuntimeError(f"no wheel can be named for {goos}/{goarch}; set CLAUDELESS_BIN and install from a checkout")
    return goos, goarch


def given_platform() -> tuple[str, str]:
    """The platform of a given binary: this machine's, unless GOOS and GOARCH are set."""
    goos, _, machine = sysconfig.get_platform().partition("-")
    goos = {"win": "windows", "macosx": "darwin"}.get(goos, goos)
    arch = "arm64" if machine.endswith(("aarch64", "arm64")) else "amd64"
    return os.environ.get("GOOS", goos), os.environ.get("GOARCH", arch)


def build(source: Path, binary: Path) -> None:
    command = ["go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", str(binary), "./cmd/claudeless"]
    subprocess.run(command, cwd=source, check=True, env={**os.environ, "CGO_ENABLED": "0"})
