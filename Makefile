# What a person and CI call. `make help` lists the targets.
export CGO_ENABLED ?= 0
GO      ?= go
BIN     := bin
TOOLS   := .cache/tools
SLURM   ?= /tmp/megatron-ops-slurm
N       ?= 100
SEED    ?= 1
# The folders that make mutate draws from: all that is not a stand-in or a page writer.
MUTATE  ?= $(shell $(GO) list -f '{{.Dir}}' ./slurm/... ./knowledge/... ./internal/... ./bot/... ./mcp/... | sed 's,$(CURDIR)/,,' | grep -v -e test -e internal/docs -e internal/demo -e flaggen)
GOLANGCI_VERSION := v2.15.0
GOFUMPT_VERSION  := v0.12.0
GOTESTSUM_VERSION := v1.13.0
# The last one that builds with the Go that go.mod names.
GORELEASER_VERSION := v2.14.0

.PHONY: slack-gallery site help build demo test test-slurm test-clients unit lint fmt generate mutate conformance evals bench-diagnose bench-speed soak snapshot image slurm-up slurm-down setup clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## one static binary: bin/megatron-ops
	$(GO) build -trimpath -o $(BIN)/megatron-ops ./cmd/megatron-ops

demo: build ## the main job on the embedded back end, on this machine
	$(BIN)/megatron-ops demo

# A test that failed is run once more, alone: of thousands that start real daemons, one may
# lose a race on a busy machine. It is told as flaky, and is a fault to mend.
# The limit of a package only ends what hangs: at load 25 one package needed over 20 minutes.
test: setup build $(TOOLS)/goreleaser $(TOOLS)/gotestsum ## set up everything, then every test
	$(TOOLS)/gotestsum --format pkgname-and-test-fails --jsonfile .cache/tests.json --packages ./... \
		--rerun-fails=1 --rerun-fails-max-failures=5 --rerun-fails-run-root-test -- -timeout 60m
	$(GO) run ./tools/testverdicts <.cache/tests.json

test-clients: build ## the vendors' agents (1.1 GB of npm packages) against the MCP server
	.ci/setup clients
	$(GO) test -tags clients -timeout 20m ./mcp

test-slurm: ## the back ends' tests on a real Slurm: the one in SLURM_PREFIX, or on the PATH
	SLURM_PREFIX=$(SLURM_PREFIX) $(GO) test -count=1 -timeout 20m ./slurm/cluster ./slurm/watch

# A folder in memory that runs programs and has 2 GB left; empty where there is none.
MEMORY = $(shell grep -qs '^[^ ]* /dev/shm [^ ]* [^ ]*noexec' /proc/mounts || df -Pk /dev/shm 2>/dev/null | awk '$$6 == "/dev/shm" && $$4 > 2e6 {print $$6}')

# Linking and short runs leave little to collect: rarer collections save a fifth of the processor time.
# Tests write tens of thousands of small files: in memory they cost little. Some tests wait for a process
# or a clock: one package more than there are processors fills that time.
unit: ## the tests that need nothing but Go
	GOGC=400 $(if $(MEMORY),TMPDIR=$(MEMORY)) $(GO) test -p $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )) -short ./...

setup: ## Debian packages, npm packages and servers that the tests need
	.ci/setup

lint: $(TOOLS)/golangci-lint ## go vet, golangci-lint, gofumpt; and that it builds for a Mac
	$(GO) vet ./...
	$(GO) vet -tags clients ./mcp
	GOOS=darwin GOARCH=arm64 $(GO) build -o /dev/null ./cmd/megatron-ops
	$(TOOLS)/golangci-lint run ./...

fmt: $(TOOLS)/gofumpt ## format as gofumpt wants it
	$(TOOLS)/gofumpt -w $$(git ls-files '*.go')

$(TOOLS)/golangci-lint:
	GOBIN=$(abspath $(TOOLS)) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

$(TOOLS)/goreleaser:
	GOBIN=$(abspath $(TOOLS)) $(GO) install github.com/goreleaser/goreleaser/v2@$(GORELEASER_VERSION)

$(TOOLS)/gotestsum:
	GOBIN=$(abspath $(TOOLS)) $(GO) install gotest.tools/gotestsum@$(GOTESTSUM_VERSION)

$(TOOLS)/gofumpt:
	GOBIN=$(abspath $(TOOLS)) $(GO) install mvdan.cc/gofumpt@$(GOFUMPT_VERSION)

generate: ## write what is generated from code: docs, skills' tables, manifests
	$(GO) generate ./...

site: ## docs/ as a static site, in dist/site; a link that leads nowhere fails
	.ci/setup site
	cd tools/site && npx --no-install vitepress build .

mutate: ## change N places of the core at random, one at a time (SEED), and ask whether its tests notice
	$(GO) run ./tools/mutate -v -n $(N) -seed $(SEED) $(MUTATE)

GALLERY ?= dist/slack-gallery
slack-gallery: ## play a day in front of the strict fake Slack, and draw every picture of it: light, dark, phone
	$(GO) test ./bot -count=1 -run TestADayPlayedByItsLabels -gallery $(abspath $(GALLERY))
	for page in $(GALLERY)/*.html; do \
		size=720,18000; case $$page in *phone*) size=390,24000;; esac; \
		! command -v chromium >/dev/null || chromium --headless --no-sandbox --hide-scrollbars --screenshot=$$page.png --window-size=$$size $$page 2>/dev/null; \
	done
	@ls $(GALLERY)

conformance: ## score rules, lint, diagnosis and answers, by topic
	$(GO) test -count=1 -v -run 'Conformance|Verdicts|Agrees|Floor' ./knowledge/... ./slurm/lint ./slurm/diagnose

evals: ## twenty tasks done on a real Slurm by a scripted agent; MODEL=1: by the model of OPENAI_BASE_URL and OPENAI_MODEL
	@.ci/setup slurm
	$(GO) test -count=1 -v -timeout 60m $(if $(MODEL),-tags model -run TestAModel) ./evals/agents

SOAK ?= 30m
soak: ## the service under load for SOAK, everything below it failing by turns; the report is dist/soak.md
	@mkdir -p dist
	$(GO) test ./internal/soak -count=1 -v -timeout 24h -for $(SOAK) -report $(abspath dist/soak.md) -keep $(abspath dist/soak-serve.log)

bench-diagnose: ## diagnosis of 3.3 GB of logs beside ripgrep; makes its own data
	$(GO) test -run '^$$' -bench Folder -benchtime 3x ./slurm/diagnose

bench-speed: ## submit beside sbatch, list of 10,000 jobs beside squeue, status; on a real Slurm
	$(GO) test -run '^$$' -bench 'Submit|ListTen|Status' -benchtime 21x ./cmd/megatron-ops

snapshot: $(TOOLS)/goreleaser ## archives, deb, rpm, checksums, SBOMs and MCP bundles in dist/, nothing published
	$(TOOLS)/goreleaser release --snapshot --clean --skip=publish
	$(GO) run ./packaging/mcpb dist

image: build ## a container image in dist/megatron-ops.tar, for docker load or podman
	packaging/generate
	@mkdir -p dist
	$(GO) run ./packaging/image $(BIN)/megatron-ops dist/megatron-ops.tar

slurm-up: ## start a real Slurm on loopback: four nodes of eight fake GPUs
	@.ci/setup slurm
	@$(GO) run ./slurm/slurmtest/cmd up $(abspath $(SLURM))

slurm-down: ## end that Slurm, and nothing else
	@$(GO) run ./slurm/slurmtest/cmd down $(abspath $(SLURM))

clean: ## remove what was built and set up here
	rm -rf $(BIN) .cache dist dist-files
