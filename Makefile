# make check       what must pass before a change lands; .ci/run is the same and installs what it needs
# make check-deep  minutes to hours: planted faults, long property tests, fuzzing, stress
.PHONY: check check-deep test race fmt bench sim hedge storm size bench-ledger bench-limiter mutants fuzz stress long

BENCHSTAT = golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
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

# The limit and its rivals in virtual time: the tables of bench/ARENA.md. It exits with 3
# if the limit missed a target.
sim:
	go run ./bench sim -limit all -report out/arena

# Hedging in virtual time, beside no hedging: the tables of bench/HEDGING.md. It exits with
# 3 if hedging hurt anywhere.
hedge:
	go run ./bench hedge -policy all -limit all -report out/hedging

# The retry storm in virtual time: the table of bench/STORM.md. It exits with 3 if a target
# was missed.
storm:
	go run ./bench storm

# Sizing, held against what is known to be best: the table of bench/SIZING.md. It exits with 3
# if it is too far off.
size:
	go run ./bench size -cases

# The ledger beside its rivals, medians of ten: the tables of permit/BENCHMARKS.md.
bench-ledger:
	go test -run '^$$' -bench 'Fixed|Held|Sampled|Refusal|HandOff' -benchtime 200ms -count 10 ./permit > ledger.txt
	go test -run '^$$' -bench 'GiveUp|Stats' -benchtime 200ms -count 10 ./permit >> ledger.txt
	go run $(BENCHSTAT) -col /impl ledger.txt

# The limiter beside its floor and a semaphore, medians of ten: the tables of
# limiter/BENCHMARKS.md.
bench-limiter:
	go test -run '^$$' -bench 'AcquireRelease|Refusal|Window' -benchtime 200ms -count 10 ./limiter > limiter.txt
	go run $(BENCHSTAT) -col /impl limiter.txt

check-deep: mutants fuzz stress long
	RAPID_CHECKS=$(CHECKS) go test -race -timeout 60m ./permit ./gradient ./limiter ./hedgedlimit ./httpmw ./grpcmw ./proptest

# Every planted fault must be caught by a test. Before that, the ledger's tests must pass
# with goroutines that step aside at every statement of it.
mutants:
	go run ./proptest/mutants -sound -race -jitter -timeout 5m -run '^permit/'
	go run ./proptest/mutants

fuzz:
	go test -run '^$$' -fuzz FuzzLedger -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./permit
	for target in ParseServiceConfig Pushback Thousandths; do \
		go test -run '^$$' -fuzz "^Fuzz$$target\$$" -fuzztime $(FUZZTIME) ./grpcmw || exit 1; done

stress:
	HOLDFAST_STRESS=$(STRESS) go test -race -run Stress -timeout 60m ./permit ./hedgedlimit

# The hedge rate over 200,000 calls and more a row, and the fan-out over 500,000.
long:
	HOLDFAST_LONG=1 go test -v -run 'ShareOfHedged|FanOut' ./hedgedlimit
