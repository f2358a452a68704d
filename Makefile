# Everything below needs nothing installed but Go, git and make; test-page and
# screenshot need Chromium too.
# `make` or `make help` lists what there is to do.

SHELL      := /bin/bash -o pipefail
VERSION    := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT     := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
# The same bytes wherever they are built: deploy/Dockerfile builds with these flags too.
APP        := github.com/headwater-k8s/headwater/internal/app
LDFLAGS    := -s -w -buildid= -X $(APP).Version=$(VERSION) -X $(APP).Commit=$(COMMIT)
# All but the race detector compile with the same flags, so that Go compiles each package once.
export CGO_ENABLED = 0
export GOFLAGS     := $(strip $(GOFLAGS) -trimpath)
GO_BUILD   := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "$(LDFLAGS)"
LINT       := go tool -modfile=test/lint/go.mod golangci-lint
# Modules of their own with code of ours, and those that hold tools alone.
NESTED     := test/cel test/deploy test/gotest test/page
TOOLS      := test/actions test/cluster/controlplane test/kwok test/lint test/vuln
UNIT       := ./cmd/... ./configs/... ./internal/... ./protect/... ./reload/... ./sync/...
# What a release publishes, and for which platforms.
RELEASE    ?= bin/release
PLATFORMS  ?= linux/amd64 linux/arm64
MAN        ?= bin/man
WRITTEN    := $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
# The same bytes for the same files.
TAR        := tar --sort=name --mtime=@$(WRITTEN) --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --use-compress-program='gzip -n' -cf
# `go tool` would ignore GOFLAGS, and compile all of it once more.
HELM       := go -C test/deploy build -o $(CURDIR)/bin/ tool && $(CURDIR)/bin/helm
# In inputs: where it is a duration, Go fails a test that is busy when it ends (golang.org/issue/75804).
FUZZ_TIME  ?= 200x
# The end-to-end tests mostly wait: run as many packages at a time as there are CPUs, the longest first, and twice as
# many tests of each.
CPUS       := $(shell getconf _NPROCESSORS_ONLN)
E2E        := $(addprefix ./test/e2e/,reload protect sync kinds service status property) ./test/...
# Tests that are known to be red. They are left out, and `make test-known` runs them apart.
KNOWN      := $(shell sed -nE 's/^\| `(Test[A-Za-z0-9_]+)`.*/\1/p' test/KNOWN.md 2>/dev/null | paste -sd '|' -)
# `make verify` vets. The time limit ends a test that hangs, on a machine of any speed that compiles everything first.
TEST_FLAGS := -vet=off -timeout 40m
# Runs go test, tells how far it is, and how to run alone what failed. A target that uses it needs `gotest`.
GO_TEST    := $(CURDIR)/bin/gotest $(TEST_FLAGS) $(if $(KNOWN),-skip '^($(KNOWN))$$')
# Where `make test` keeps what its parts have to say at its end.
RESULTS    := $(CURDIR)/bin/results
# The race detector needs cgo, and so a C compiler. Only packages whose code or tests run at the same time as others can race.
RACE       := $(if $(shell command -v gcc || command -v clang),-race,)
RACE_TEST  := $(if $(RACE),CGO_ENABLED=1 )$(GO_TEST) $(RACE)
CONCURRENT := '^\s*go [a-z]|^\s*"sync(/atomic)?"$$|\.Go\(|AfterFunc|\.Parallel\(|httptest\.New|client-go/(tools/cache|informers)'
UNITS       = $(patsubst $(CURDIR)/%,./%,$(shell go list -f '{{.Dir}}' $(UNIT)))
RACY        = $(filter $(sort $(patsubst %/,./%,$(dir $(shell grep -rlE --include='*.go' $(CONCURRENT) $(UNIT:./%/...=%))))),$(UNITS))

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the verbs
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

.PHONY: run
run: build ## play the main job on a real control plane; KEEP=1 leaves it running, NODE=1 runs the pods, as root
	@[ -e .cluster/bin/kube-apiserver ] || echo "building the scenario, and then the control plane …"
	@go run ./test/scenario/cmd/play -binary bin/headwater -config configs/headwater.yaml $(if $(KEEP),-keep) $(if $(NODE),-node)

.PHONY: test
test: build control-plane compile-tests gotest ## all tests: unit, and end to end on a real control plane
	@rm -rf $(RESULTS)
	@export GOTEST_RESULTS=$(RESULTS); \
	{ $(MAKE) --no-print-directory -k -j2 unit chart && $(MAKE) --no-print-directory e2e; } || { cat $(RESULTS)/failed 2>/dev/null; exit 1; }
	@[ ! -e $(RESULTS)/inconclusive ] || { echo; cat $(RESULTS)/inconclusive; }

.PHONY: gotest
gotest:
	@go -C test/gotest build -o $(CURDIR)/bin/gotest .

# All that the gate runs, so that no test waits for a compiler.
.PHONY: compile
compile: build control-plane compile-tests gotest
	@echo "compiling what else the gate runs, the first time takes minutes …"
	@go list -export -deps -test -tags node,rollouts ./test/node/... ./test/rollouts >/dev/null
	@for module in $(NESTED); do go -C $$module list -export -deps -test ./... >/dev/null || exit 1; done
	@go run ./test/cluster/cmd/cluster build kwok $(if $(NODE),kubelet)

.PHONY: test-known
test-known: build control-plane gotest ## run the tests that test/KNOWN.md leaves out, and say which are green
	@.ci/known $(subst |, ,$(KNOWN))

# One after the other, before anything is tested: compilers take all CPUs, and the end-to-end tests need some.
.PHONY: compile-tests
compile-tests:
	@echo "compiling the end-to-end tests (1/3), the first time takes minutes …"
	@go list -export -deps -test $(E2E) $(filter-out $(RACY),$(UNITS)) >/dev/null
	@echo "compiling the unit tests (2/3), the first time takes minutes …"
	@$(if $(RACE),CGO_ENABLED=1 )go list -export -deps -test $(RACE) $(RACY) >/dev/null
	@echo "compiling the tests of the chart (3/3), the first time takes minutes …"
	@go -C test/deploy list -export -deps -test ./... tool >/dev/null

.PHONY: test-busy
test-busy: build control-plane ## `make test` beside four busy loops: no test may depend on how fast the machine is
	@for loop in 1 2 3 4; do (while :; do :; done) & done; trap 'kill $$(jobs -p)' EXIT; $(MAKE) --no-print-directory test

.PHONY: e2e
e2e: build control-plane gotest ## end-to-end tests alone, on a real control plane
	$(GO_TEST) -count=1 -p $(CPUS) -parallel $(shell expr $(CPUS) + $(CPUS)) $(E2E)

.PHONY: unit
unit: gotest ## unit tests alone, without a control plane
	@code=0; \
	$(RACE_TEST) $(RACY) || code=1; \
	$(GO_TEST) $(filter-out $(RACY),$(UNITS)) || code=1; \
	(cd test/gotest && $(GO_TEST) ./...) || code=1; \
	exit $$code

.PHONY: chart
chart: gotest ## lint and render the Helm chart, try the alerts, build the binary twice; UPDATE=1 writes what is made from the chart
	cd test/deploy && UPDATE=$(UPDATE) $(GO_TEST) -count=1 ./...

.PHONY: test-release
test-release: gotest ## build the files of a release for every platform, which compiles everything once more
	cd test/deploy && $(GO_TEST) -tags release -count=1 -run TestAReleaseHasBothPlatforms ./...

.PHONY: test-page
test-page: build control-plane gotest ## try the web page in a real Chromium, which must be installed
	cd test/page && $(GO_TEST) -count=1 ./...

.PHONY: test-cel
test-cel: gotest ## try what Headwater has the API server evaluate in the API server's own CEL
	cd test/cel && $(GO_TEST) -count=1 ./...

.PHONY: screenshot
screenshot: build control-plane gotest ## take new pictures of the web page for the README, in a real Chromium
	cd test/page && UPDATE=1 $(GO_TEST) -count=1 -run TestThePageIsPictured ./...

.PHONY: bench
bench: build control-plane ## measure against a floor taken in the same run; BENCH="-n 10000" for more, "-o FILE" for benchstat, UPDATE=1 writes the documents
	@go test $(TEST_FLAGS) -run '^$$' -bench . ./protect
	@go run ./test/bench $(if $(UPDATE),-figures .) $(BENCH)

.PHONY: figures
figures: build control-plane ## measure every figure of the documents and write it there; takes root, a quiet machine and two hours; SMALL=1 only tries it
	@go run ./test/figures/cmd/figures $(if $(SMALL),-small)

.PHONY: cost
cost: build control-plane ## measure what one more clone, consumer or admission costs, and estimate larger clusters; UPDATE=1 writes the documents
	@go run ./test/cost $(if $(UPDATE),-figures .) $(COST)

.PHONY: test-rollouts
test-rollouts: build control-plane gotest ## restart 200 Deployments that roll out, on kwok's fake nodes; ROLLOUTS=1000 for more
	$(GO_TEST) -tags rollouts -count=1 -v ./test/rollouts $(if $(ROLLOUTS),-args -deployments $(ROLLOUTS))

.PHONY: bench-peers
bench-peers: ## time what any controller does in the cluster of KUBECONFIG; PEERS="-help" tells how, UPDATE=1 writes the documents
	@KUBECONFIG="$(KUBECONFIG)" go run ./test/bench/peers $(if $(UPDATE),-figures .) $(PEERS)

.PHONY: chaos
chaos: build control-plane ## make replicas and the control plane fail while others work, and check the result; CHAOS="-duration 1h" for more
	@go run ./test/chaos $(CHAOS)

.PHONY: test-node
test-node: ## test and measure with running containers; takes root, containerd, runc and busybox-static
	@go run ./test/node/cmd/missing
	@$(MAKE) --no-print-directory build control-plane gotest
	$(GO_TEST) -tags node -count=1 -v -parallel $(CPUS) ./test/node/...
	@go run ./test/bench -only refresh -n 10 -unrelated 0 -rounds 3 -strict=false $(BENCH)

.PHONY: build
build: ## build bin/headwater
	@[ -e bin/headwater ] || echo "building bin/headwater, the first time takes minutes …"
	@$(GO_BUILD) -o bin/headwater ./cmd/headwater

.PHONY: release-files
release-files: ## build what a release publishes into bin/release, and publish nothing: binaries for PLATFORMS, also as a kubectl plugin, man pages, chart, checksums, notes
	@rm -rf $(RELEASE) && mkdir -p $(RELEASE)
	@for platform in $(PLATFORMS); do \
	  os=$${platform%/*} arch=$${platform#*/} suffix=; [ $$os = windows ] && suffix=.exe; \
	  GOOS=$$os GOARCH=$$arch $(GO_BUILD) -o $(RELEASE)/headwater-$$os-$$arch$$suffix ./cmd/headwater || exit 1; \
	  cp $(RELEASE)/headwater-$$os-$$arch$$suffix $(RELEASE)/kubectl-headwater$$suffix && cp LICENSE $(RELEASE)/ || exit 1; \
	  $(TAR) $(RELEASE)/kubectl-headwater-$$os-$$arch.tar.gz -C $(RELEASE) LICENSE kubectl-headwater$$suffix || exit 1; \
	  rm $(RELEASE)/LICENSE $(RELEASE)/kubectl-headwater$$suffix; \
	done
	@$(MAKE) --no-print-directory man MAN=$(abspath $(RELEASE))/man
	@$(TAR) $(RELEASE)/headwater-man.tar.gz -C $(RELEASE)/man . && rm -r $(RELEASE)/man
	@$(HELM) package $(CURDIR)/deploy/helm/headwater --destination $(abspath $(RELEASE)) >/dev/null
	@VERSION=$(VERSION) .ci/notes > $(RELEASE)/NOTES.md
	@cd $(RELEASE) && sha256sum -- headwater-* $$(ls | grep '^kubectl-') > SHA256SUMS
	@[ -z "$(PLATFORMS)" ] || VERSION=$(VERSION) .ci/krew $(RELEASE) > $(RELEASE)/krew.yaml

.PHONY: man
man: ## write the man pages of the commands into MAN
	@mkdir -p $(MAN)
	@out=$$(SOURCE_DATE_EPOCH=$(WRITTEN) MAN=$(abspath $(MAN)) go test $(TEST_FLAGS) -count=1 ./cmd/headwater -run TestEveryCommandHasAManPage) || { echo "$$out"; exit 1; }

.PHONY: release-check
release-check: ## fail unless VERSION is the version of the chart
	@grep -qx "version: $(VERSION:v%=%)" deploy/helm/headwater/Chart.yaml && grep -qx "appVersion: $(VERSION:v%=%)" deploy/helm/headwater/Chart.yaml || \
	  { echo "deploy/helm/headwater/Chart.yaml: set version and appVersion to $(VERSION:v%=%)" >&2; exit 1; }

.PHONY: control-plane
control-plane: ## build the control plane that tests run against; the first time takes minutes
	@go run ./test/cluster/cmd/cluster build

.PHONY: cluster
cluster: ## start a control plane in the background and print how to use it
	@go run ./test/cluster/cmd/cluster up

.PHONY: cluster-down
cluster-down: ## stop the control plane of `make cluster`
	@go run ./test/cluster/cmd/cluster down

.PHONY: lint
lint: ## run the linters
	$(LINT) run --allow-parallel-runners ./...
	@for module in $(NESTED); do \
	  echo "$$module"; \
	  (cd $$module && go tool -modfile=../lint/go.mod golangci-lint run --allow-parallel-runners ./...) || exit 1; \
	done

.PHONY: vulncheck
vulncheck: ## ask the Go vulnerability database, at vuln.go.dev, what the binary's code calls
	go tool -modfile=test/vuln/go.mod govulncheck $(if $(VULNDB),-db $(VULNDB)) ./...

# Go's checksum database verifies the scanner. Renovate updates its version.
# renovate: datasource=go depName=github.com/anchore/grype
GRYPE := v0.121.3

.PHONY: scan
scan: ## ask the vulnerability database of Grype about an image, such as IMAGE=registry:HOST/PATH@DIGEST
	GOFLAGS=-mod=mod go run github.com/anchore/grype/cmd/grype@$(GRYPE) $(IMAGE) --only-fixed --fail-on high

.PHONY: fmt
fmt: ## format the code
	$(LINT) fmt ./...

.PHONY: tidy
tidy: ## tidy every go.mod
	go mod tidy
	@for module in $(NESTED) $(TOOLS); do (cd $$module && go mod tidy) || exit 1; done

.PHONY: verify
verify: lint ## lint, also the workflows, and check that formatting and go.mod are as the tools leave them
	go tool -modfile=test/actions/go.mod actionlint -shellcheck= -pyflakes= .github/workflows/*.yaml
	go mod tidy -diff
	@for module in $(NESTED); do (cd $$module && go mod tidy -diff) || exit 1; done
	$(LINT) fmt --diff ./...

# Coverage guidance is of no use to so few inputs, and takes another compilation of every dependency.
.PHONY: fuzz-short
fuzz-short: ## run every fuzz test on FUZZ_TIME (200x) inputs of its own
	@work=$$(mktemp -d) && trap "rm -rf $$work" EXIT && \
	grep -rlE '^func Fuzz' --include=*_test.go . | sort | while read -r file; do \
	  cd "$(CURDIR)/$$(dirname "$$file")" && go test -c -vet=off -o "$$work/test" . || exit 1; \
	  for fuzz in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]+).*/\1/p' "$$(basename "$$file")"); do \
	    echo "$$fuzz in $$(dirname "$$file")"; \
	    "$$work/test" -test.run '^$$' -test.fuzz "^$$fuzz\$$" -test.fuzztime $(FUZZ_TIME) -test.fuzzminimizetime 50x \
	      -test.fuzzcachedir "$$work/cache" || exit 1; \
	  done; \
	done

.PHONY: clean
clean: cluster-down ## remove what was built, the control plane included
	rm -rf bin .cluster
