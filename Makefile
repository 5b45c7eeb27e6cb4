# make check       what must pass before a change lands; .ci/run is the same and installs what it needs
# make check-deep  minutes to hours: planted faults, long property tests, fuzzing, stress
.PHONY: check check-deep test race fmt bench mutants fuzz stress

FUZZTIME ?= 60s
CHECKS ?= 20000
STRESS ?= 60s

check:
	.ci/run

test:
	go test ./... ./bench/...

race:
	go test -race ./... ./bench/...

fmt:
	gofmt -w .

bench:
	go run ./bench

check-deep: mutants fuzz stress
	RAPID_CHECKS=$(CHECKS) go test -race -timeout 60m ./permit ./gradient ./limiter ./hedgedlimit ./httpmw

# Every planted fault must be caught by a test.
mutants:
	go run ./proptest/mutants

fuzz:
	go test -run '^$$' -fuzz FuzzLedger -fuzztime $(FUZZTIME) ./permit

stress:
	HOLDFAST_STRESS=$(STRESS) go test -race -run Stress -timeout 60m ./permit ./hedgedlimit
