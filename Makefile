# The commands of this repository. What is longer than a line is a script in .ci/.

FUZZTIME ?= 10s
COUNT    ?= 6

.PHONY: help run demo test build bench results fuzz lint generate deps clean
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

run: build ## build, then the daemon on this machine's real links with a live view
	bin/mihfd --live

demo: build ## build, then play a recorded walk through the whole path
	bin/mihctl demo

test: deps ## all set-up, then every check
	@.ci/test

build: ## bin/mihfd, bin/mihctl and the other programs of cmd/
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...

bench: build ## benchmarks with their bare counterparts (COUNT=6)
	@COUNT=$(COUNT) .ci/bench

results: build ## reproduce docs/results with full counts (long)
	@.ci/results

fuzz: ## every fuzz target (FUZZTIME=10s each)
	@FUZZTIME=$(FUZZTIME) .ci/fuzz

lint: ## the linters alone
	@.ci/tool golangci-lint run --allow-parallel-runners
	@.ci/tool buf lint proto

generate: ## generated code from its sources
	@.ci/tool buf generate proto --template proto/buf.gen.yaml -o proto

deps: ## what the checks need beyond Go (CI=true or YES=1 as root installs it)
	@.ci/deps

clean: ## remove what was built
	rm -rf bin dist
