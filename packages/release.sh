#!/usr/bin/env bash
# Release archives, the same bytes every time: release.sh OUT [OS/ARCH …]
# Each holds the binary, the licence, the README, a manual page and completions; OUT/SHA256SUMS lists them all.
# VERSION sets the version; it is the tag otherwise.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: release.sh OUT [OS/ARCH …]}; shift
[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
version=${VERSION:-$(git describe --tags --abbrev=0 2>/dev/null || echo v0.1.0)}; version=${version#v}
mkdir -p "$out"; out=$(cd "$out" && pwd)
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
export CGO_ENABLED=0 TZ=UTC
flags=(-trimpath -buildvcs=false -ldflags "-s -w -buildid= -X github.com/claudeless/claudeless/internal/cli.version=$version")
go build "${flags[@]}" -o "$work/self" ./cmd/claudeless
for platform in "$@"; do
  os=${platform%/*} arch=${platform#*/} name=claudeless_${version}_${platform%/*}_${platform#*/} exe=
  [ "$os" = windows ] && exe=.exe
  dir=$work/$name; mkdir -p "$dir/completions"
  GOOS=$os GOARCH=$arch go build "${flags[@]}" -o "$dir/claudeless$exe" ./cmd/claudeless
  cp LICENSE README.md "$dir"
  "$work/self" man > "$dir/claudeless.1"
  for shell in bash zsh fish; do "$work/self" completion $shell > "$dir/completions/claudeless.$shell"; done
  find "$dir" -exec touch -h -d @0 {} +
  chmod -R u=rwX,go=rX "$dir"
  if [ "$os" = windows ]; then
    rm -f "$out/$name.zip"
    (cd "$work" && find "$name" | LC_ALL=C sort | python3 -c '
import os, stat, sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as z:
    for path in sys.stdin.read().splitlines():
        if os.path.isdir(path): continue
        info = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)); info.external_attr = stat.S_IMODE(os.stat(path).st_mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        z.writestr(info, open(path, "rb").read())' "$out/$name.zip")
  else
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$work" -cf - "$name" | gzip -n9 > "$out/$name.tar.gz"
  fi
done
cd "$out" && find . -maxdepth 1 -name 'claudeless_*' -printf '%f\n' | LC_ALL=C sort | xargs sha256sum > SHA256SUMS
