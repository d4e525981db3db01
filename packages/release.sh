#!/usr/bin/env bash
# Makes everything that a release publishes in dist/, with the same bytes every time. VERSION, if set, must be the version
# in internal/cli/version.txt. Tools have pinned versions; once they are in the caches of Go, pip and npm, no network is
# needed.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(cat internal/cli/version.txt)
if [ "${VERSION:-$version}" != "$version" ] && [ "${VERSION#v}" != "$version" ]; then
  echo "release: internal/cli/version.txt says $version, not $VERSION" >&2
  echo "hint: change that file; every package takes its version from it" >&2
  exit 1
fi
umask 022
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cache=${XDG_CACHE_HOME:-$HOME/.cache}/claudeless-packages; mkdir -p "$cache"
export LC_ALL=C TZ=UTC VERSION=$version SOURCE_DATE_EPOCH COMMIT_DATE PATH=$work:$PATH
# The cache of modules comes first: `go run PACKAGE@VERSION` otherwise asks the network for newer versions every time.
GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)"; export GOPROXY
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct); COMMIT_DATE=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)

# The manual page and the completions are printed by the program; SBOMs come from the finished binaries.
CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$work/self" ./cmd/claudeless
mkdir -p bin/generated/completions # where .goreleaser.yaml looks for them
"$work/self" man > bin/generated/claudeless.1
for shell in bash zsh fish; do "$work/self" completion $shell > "bin/generated/completions/claudeless.$shell"; done
GOBIN=$work go install -trimpath github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
go run github.com/goreleaser/goreleaser/v2@v2.15.1 release --snapshot --clean --skip=publish --parallelism 1 # in parallel, the installers of the winget manifest come in any order
for made in dist/claudeless_*/; do
  platform=$(basename "$made"); platform=${platform%_v[0-9]*}
  mkdir -p "$work/binaries"; mv "$made" "$work/binaries/${platform#claudeless_}"
done
sed -i "s/^ReleaseDate: .*/ReleaseDate: \"${COMMIT_DATE%T*}\"/" dist/winget/manifests/*/*/*/*/*.installer.yaml # GoReleaser takes today
rm -f dist/artifacts.json dist/config.yaml dist/metadata.json

git archive --prefix "claudeless_$version/" HEAD | gzip -n9 > "dist/claudeless_${version}_source.tar.gz"

# Wheels contain the same binaries; the source package builds one on systems without a wheel.
python=$cache/build-1/bin/python
[ -x "$python" ] || { python3 -m venv "$cache/build-1" && "$cache/build-1/bin/pip" -q install --disable-pip-version-check hatchling==1.27.0; } || { rm -rf "$cache/build-1"; exit 1; }
for binary in "$work"/binaries/*/claudeless*; do
  platform=$(basename "$(dirname "$binary")")
  (cd packages/python && CLAUDELESS_BIN=$binary GOOS=${platform%_*} GOARCH=${platform#*_} "$python" -m hatchling build -t wheel -d ../../dist >/dev/null)
done
(cd packages/python && "$python" -m hatchling build -t sdist -d ../../dist >/dev/null)

node packages/npm/pack.mjs dist "$work/binaries"

# The layers of the image are archives, which keep the modes of /tmp and of the binary when they are uploaded.
mkdir -p dist/image/linux
for arch in amd64 arm64; do
  root=$work/image-$arch
  install -d -m 1777 "$root/tmp"
  install -D -m 755 "$work/binaries/linux_$arch/claudeless" "$root/usr/local/bin/claudeless"
  tar -C "$root" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf "dist/image/linux/$arch.tar" tmp usr
done
cp packages/Dockerfile dist/image/
# The notes are the version's section of the changelog.
awk -v section="$version" '/^## /{on = $2 == section; next} on' CHANGELOG.md > dist/NOTES.md
(cd dist && find . -maxdepth 1 -type f -printf '%f\n' | sort | xargs sha256sum > "$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
