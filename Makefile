SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help build image release demo test test-fast pictures soak check format generate generated vet lint tidy arch advisories fuzz bench clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# A release is a commit with a tag. Other builds have the version of their commit, which Go writes
# into the binary.
release = $(shell git describe --tags --exact-match --dirty 2>/dev/null)

build: ## Build build/gitfleet: one static binary
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X github.com/gitfleet/gitfleet/cmd/gitfleet/version.Release=$(release)' -o build/gitfleet ./cmd/gitfleet

image: ## Build build/gitfleet-image.tar, for linux/amd64 and linux/arm64, without a container engine
	@.ci/image build/gitfleet-image.tar "$(release)"

release: ## Build archives, the image, their SBOMs and the chart, with checksums; needs a tag
	@.ci/release "$(release)"

demo: ## Run gitfleet on three local clusters; ARGS=--once ends when all is applied
	@go run ./test/demo $(ARGS)

# The tests below test/ depend on files that Go does not know of, so their results are not cached.
# Those in $(servers) start API servers. They run one package at a time, which is enough for two
# cores, and three tests of a package in parallel, since they mostly wait.
whole = ./test/...
parts = $(shell go list ./... | grep -v /test/)
servers = ./test/demo ./test/e2e ./test/fleet ./test/reading ./test/simulated
clusterless = $(filter-out $(servers:./%=github.com/gitfleet/gitfleet/%),$(shell go list $(whole)))
race = go test -json -race -timeout 30m

test: ## Run all tests with the race detector; minutes, much longer the first time
	@[ -n "$${KUBEBUILDER_ASSETS:-}" ] || .ci/patiently "compile the control planes: minutes the first time, then seconds" \
		go -C test/controlplane list -trimpath -export -deps -f '{{/* compile, and no more */}}' .
	@.ci/patiently "compile Prometheus: minutes the first time, then seconds" \
		env CGO_ENABLED=0 go -C test/prometheus build -trimpath -tags remove_all_sd tool
	@.ci/patiently "compile Gitea: minutes the first time, then seconds" \
		go -C test/gitea build -trimpath -tags='sqlite sqlite_unlock_notify' -ldflags='-s -w' -o ../../build/gitea code.gitea.io/gitea
	@.ci/patiently "compile Helm: minutes the first time, then seconds" \
		go -C test/helm build -ldflags='-s -w' -o ../../build/helm helm.sh/helm/v4/cmd/helm
	@.ci/patiently "test with the race detector: minutes to compile the first time" \
		go run ./test/tally $(race) $(parts) -- $(race) -count=1 $(clusterless) -- \
		$(race) -count=1 -p 1 -parallel 3 $(servers) -- \
		go test -json -timeout 15m -count=1 -run TestInvariantsHoldInRandomFleets ./test/scenario/simulation -- \
		go -C test/controlplane test -json -race -tags prebuilt ./... -- \
		go -C .ci/tools test -json -race ./...

test-fast: ## Run the tests that need no clusters; seconds
	@go test -short $(parts) $(whole)

# BROWSER is Chromium, or one with the same flags.
BROWSER ?= chromium

pictures: ## Write the pictures of the documentation, and the texts that they show; BROWSER=chromium
	@go test -count=1 -timeout 20m -run '^TestATeamDecidesAboutDrift$$' ./test/e2e -update
	@go test -count=1 -timeout 20m -run '^TestDashboardsShowARollout$$' ./test/e2e -pictures
	@go test -count=1 -run '^TestPicturesOfPullRequests$$' ./test/picture -pictures -browser "$(BROWSER)"

# TIME is the duration; SEED=4711 runs the simulation of that seed only, and logs what happens.
TIME ?= 10m

soak: ## Simulate random fleets for TIME=1h, or one with SEED=4711 or, with staged update runs, STAGED_SEED=4711
	@if [ -n "$(SEED)" ]; then SEED=$(SEED) go test -v -count=1 -run TestInvariantsHoldInRandomFleets ./test/scenario/simulation; \
		elif [ -n "$(STAGED_SEED)" ]; then STAGED_SEED=$(STAGED_SEED) go test -v -count=1 -run TestInvariantsHoldInStagedRuns ./test/scenario/simulation; \
		else go test -v -count=1 -timeout 0 -run TestSoak ./test/scenario/simulation -soak $(TIME); fi

check: format generated arch tidy vet lint advisories fuzz ## Check format, generated code, vet, lint, modules, import rules and known vulnerabilities, and fuzz a little

format:
	@echo "check the format"
	@files=$$(gofmt -l .ci cmd gitsource placement reconciler test); \
		[ -z "$$files" ] || { printf 'run gofmt -w on:\n%s\n' "$$files"; exit 1; }

generate: ## Write the OpenAPI schemas of the API's types
	@go generate ./reconciler/server/kubeapi

generated:
	@echo "check that the OpenAPI schemas are current"
	@file=reconciler/server/kubeapi/openapi.json; before=$$(sha256sum $$file); $(MAKE) --no-print-directory generate; \
		[ "$$before" = "$$(sha256sum $$file)" ] || { echo "$$file was out of date and is rewritten: commit it"; exit 1; }

# The control planes are checked without the Kubernetes inside them.
vet:
	@.ci/patiently "vet: minutes to compile the first time" go vet ./...
	@go -C test/controlplane vet -tags prebuilt ./...
	@go -C test/kubectl vet ./...
	@go -C .ci/tools vet ./...

lint:
	@go -C .ci/tools build -o ../../build/ tool
	@.ci/patiently "lint" build/staticcheck ./...
	@cd .ci/tools && ../../build/staticcheck ./...
	@cd test/controlplane && ../../build/staticcheck -tags prebuilt ./...

tidy:
	@echo "check that go.mod and go.sum are tidy"
	@for module in . test/controlplane test/kubectl test/prometheus test/prometheusoperator test/gitea test/helm .ci/tools; do \
		go -C $$module mod tidy -diff || { echo "run: go -C $$module mod tidy"; exit 1; }; \
	done

arch:
	@echo "check import rules and the form of the source"
	@go test -count=1 ./test/arch

advisories:
	@echo "look for known vulnerabilities"
	@go -C .ci/tools build -o ../../build/advisories ./advisories
	@build/advisories $(CURDIR)/build/vulndb ./cmd/...

fuzz:
	@.ci/patiently "fuzz for $(FUZZ) seconds: minutes to compile the first time" .ci/fuzz $(FUZZ)

FUZZ ?= 90

bench: ## Measure; BENCH=pattern chooses what; figures also in build/bench.json
	@go run ./test/bench $(ARGS)

clean: ## Remove what was built
	rm -rf build
