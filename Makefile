export GORACE = atexit_sleep_ms=0
export CGO_ENABLED = 0
export GOFLAGS ?= -trimpath
GOFUMPT   = go run mvdan.cc/gofumpt@v0.12.0
GOTESTSUM = go run gotest.tools/gotestsum@v1.13.0
FUZZTIME  ?= 10000x
SOAK      ?= 10m
TEST      ?= go test
SYNC      = $(if $(filter output-sync,$(.FEATURES)),-Otarget)
PACKAGES  ?= ./tests/scripts ./mcp ./tests/docs ./internal/cli ./...

.PHONY: help build test race race-full lint fmt update docs fuzz mutate bench soak policy determinism generated interop conformance parity parity-full follow e2e packages balancer portable release release-check ci nightly

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "%-12s %s\n", $$1, $$2}' Makefile
build: ## build bin/claudeless, static and stripped
	go build -trimpath -ldflags='-s -w' -o bin/claudeless ./cmd/claudeless
test: ## run every test once, in random order, those that take longest first; vet is part of lint
	$(TEST) -vet=off -shuffle=on -timeout 30m -p 3 -parallel 4 $(PACKAGES)
race: ## run the packages with concurrency under the race detector; one that fails without a data race gets one more run
	tests/race.sh
race-full: ## run every package and script under the race detector
	tests/race.sh ./...
lint: ## vet, modernizers, the house linters, workflows, prose of documents and help, dead code
	go vet ./...
	go fix -diff ./...
	go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run ./...
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 -shellcheck= -pyflakes= .github/workflows/*.yml internal/cli/help/files/ci.yml examples/*/ci.yml && mkdir -p bin && for c in "" exec serve check verify import parity mcp debug screens; do go run ./cmd/claudeless $$c --help || exit 1; done >bin/help.txt && CGO_ENABLED=1 go run github.com/errata-ai/vale/v3/cmd/vale@v3.17.1 --output line README.md docs/*.md docs/wire/*.md examples/README.md examples/*/README.md bin/help.txt
	@dead=$$(go run golang.org/x/tools/cmd/deadcode@v0.52.0 -test ./...) && test -z "$$dead" || { echo "$$dead"; exit 1; }
fmt: ## format the tree
	$(GOFUMPT) -w .
update: docs ## rewrite everything that is generated, expected outputs of scripts included
	go test ./tests/scripts ./tests/docs ./tests/structure -run '^(TestScripts|TestPackageTable|TestFlagTable|TestCompatibilityStates|TestCast)$$' -update
docs: ## regenerate the reference pages and schemas
	go generate ./...
fuzz: ## run each fuzz target for FUZZTIME (a number of runs: a time ends now and then in a false alarm)
	FUZZTIME=$(FUZZTIME) tests/fuzz.sh
mutate: ## change conditions of PKG (./internal/parity/permissions) one by one; fail if its own tests notice less than 90 % of the changes
	go run github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 unleash --workers 1 --timeout-coefficient 20 --threshold-efficacy 90 $(PKG)
bench: ## print the ratios of docs/performance.md, measured in one run
	go test ./tests/bench -run '^$$' -bench . -benchtime 1x
soak: ## keep the binary busy for SOAK, and fail if memory, files or processes grow
	CLAUDELESS_SOAK=$(SOAK) go test -count=1 -timeout 2h -v ./tests/soak
policy: ## the rules of the tree: imports, sizes, documents
	@ugly=$$($(GOFUMPT) -l .) && test -z "$$ugly" || { echo "not formatted:"; echo "$$ugly"; exit 1; }
	go test ./tests/structure -ratchet
determinism: ## two runs of one scenario are the same bytes
	go test -count=2 ./tests/scripts -run '^TestScripts$$/^determinism'
interop: ## run programs of the Agent SDKs, other SDKs and public MCP servers (npm, PyPI, Go, crates.io, pinned, cached); in CI a missing one fails
	CLAUDELESS_INTEROP=$${CLAUDELESS_INTEROP:-$(if $(CI),require,1)} INTEROP_REQUIRE=$(if $(CI),1) go test -short -count=1 -p 2 -timeout 40m -tags interop ./tests/interop ./tests/interop/mcp
generated: docs ## fail if a generated file is not the committed one
	git diff --exit-code
conformance: build ## run the official MCP suite and the own tests of the Anthropic SDKs (npm, PyPI, Go, pinned, cached), all at the same time: they mostly wait
	tests/conformance/install.sh >/dev/null && $(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j3 $(SYNC)) conformance-server conformance-run-client conformance-api
conformance-%:
	tests/conformance/$*.sh $(CURDIR)/bin/claudeless
parity: build ## compare a third of tests/parity with the real CLI (npm, pinned, cached); in CI a missing one fails
	tests/parity/run.sh bin/claudeless
parity-full: build ## compare all of tests/parity with every version of the real CLI that is claimed, and logins under each fault of OAuth
	tests/parity/run.sh bin/claudeless full && INTEROP_REQUIRE=$(if $(CI),1) go test -count=1 -timeout 30m -tags interop -run OAuthSessions ./tests/interop/mcp && bin/claudeless screens capture --claude npm:2.1.330 && go test -count=1 ./internal/screens/emulator -run TestBooksLikeTmux -books "$$(bin/claudeless screens where)"
follow: build ## compare VERSION of the real CLI with the one that is played, and write bin/follow-VERSION.md with draft rows of internal/claudecode
	tests/parity/follow.sh bin/claudeless $(VERSION)
e2e: ## run the breakpoint page in a real browser (Debian's chromium)
	cd tests/e2e && { command -v chromium >/dev/null || { apt-get -qq update && apt-get -qq install -y chromium; }; } && go test -count=1 ./...
packages: build ## build the packages for Python and npm as users install them, and run their tests
	packages/check.sh bin/claudeless
balancer: ## run three replicas of serve behind HAProxy (Debian's)
	{ command -v haproxy >/dev/null || { apt-get -qq update && apt-get -qq install -y --no-install-recommends haproxy; }; } && PAGES_RUNNERS=haproxy go test -count=1 ./tests/docs -run '^TestExamples$$/^serve-replicas$$'
portable: ## vet and build every test for Windows and macOS
	tests/portable.sh
release: ## make everything that a release publishes in dist/, the same bytes every time; VERSION=X.Y.Z must be the one of the tree
	VERSION=$(VERSION) packages/release.sh
release-check: ## make the release twice, compare, install each artefact in a clean directory, and run a green and a red test
	VERSION=$(VERSION) packages/release-check.sh
ci: export TEST = mkdir -p bin && $(GOTESTSUM) --format standard-quiet --jsonfile bin/tests.json --
ci: export PACKAGES = ./tests/scripts ./mcp ./tests/docs ./internal/cli $$$$(go list ./... | grep -v /tests/structure)
ci: ## everything that says the same of the same tree twice, cheapest first; at the end the time of each part
	@for part in policy lint test race determinism generated "conformance e2e -j4 $(SYNC)" interop parity packages; do start=$$(date +%s); $(MAKE) --no-print-directory $$part || exit 1; times="$$times $${part% -j*} $$(($$(date +%s) - start)),"; done; echo "seconds:$${times%,}" && echo "the ten slowest tests:" && $(GOTESTSUM) tool slowest --num 10 --threshold 1ms --jsonfile bin/tests.json
nightly: race-full parity-full fuzz soak portable balancer release-check ## what takes too long for every change
