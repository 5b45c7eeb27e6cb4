# make check       what must pass before a change lands; .ci/run is the same and installs what it needs
# make check-deep  minutes to hours: planted faults, long property tests, fuzzing, stress
.PHONY: check check-deep test race fmt bench peers results report-check sim hedge storm size soak bench-ledger bench-limiter bench-http bench-grpc mutants fuzz stress long interop

BENCHSTAT = golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
FUZZTIME ?= 60s
CHECKS ?= 20000
STRESS ?= 60s
SOAK ?= 10m
ROUNDS ?= 10
BENCHTIME ?= 200ms

check:
	.ci/run

test:
	go test ./... ./bench/...

race:
	go test -race ./... ./bench/...

fmt:
	gofmt -w .

# The five experiments over both protocols. It exits with 1 if a law is broken, and with 3 if the
# target was missed, or cannot be judged on a machine as busy as this.
bench:
	go run ./bench

# This module beside a plain client, hedgedhttp and failsafe-go, in about seven minutes. It exits
# with 3 if it is not ahead.
peers:
	go run ./bench peers

# The tables of bench/RESULTS.md. A target that is missed is told there, and ends nothing here.
results:
	-go run ./bench -protocol http -duration 6s -markdown bench/RESULTS.md
	-go run ./bench -protocol http -duration 6s -cancel ignore -markdown bench/RESULTS.md
	-go run ./bench -protocol http -duration 6s -slots 4 -cancel ignore -markdown bench/RESULTS.md
	-go run ./bench -protocol http -rate 2700 -duration 3s -markdown bench/RESULTS.md
	-go run ./bench -protocol grpc -markdown bench/RESULTS.md
	-go run ./bench peers -markdown bench/RESULTS.md

# The page of -report in headless Chromium, narrow and wide, with screenshots in
# out/report-check. Chromium is installed if there is none.
report-check:
	bench/report-check.sh

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

# Ten minutes of overload, aborts, resets and lost bodies through the transport of httpmw: it
# exits with 1 if a permit, a body, a goroutine or memory stays behind.
soak:
	go run ./bench soak -time $(SOAK)

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

# An HTTP call beside its rivals, medians of ten rounds that take turns: the tables of
# httpmw/BENCHMARKS.md.
bench-http:
	go test -c -o bench-http.test ./bench
	: > http.txt
	for round in $$(seq $(ROUNDS)); do \
		./bench-http.test -test.run '^$$' -test.bench '^BenchmarkHTTP$$' -test.benchtime $(BENCHTIME) >> http.txt || exit 1; \
	done
	go run $(BENCHSTAT) -col /impl http.txt

# A gRPC call beside its rivals, medians of ten rounds that take turns: the tables of
# grpcmw/BENCHMARKS.md.
bench-grpc:
	go test -c -o bench-grpc.test ./bench
	: > grpc.txt
	for round in 1 2 3 4 5 6 7 8 9 10; do \
		./bench-grpc.test -test.run '^$$' -test.bench '^BenchmarkGRPC$$' -test.benchtime 200ms >> grpc.txt || exit 1; \
	done
	go run $(BENCHSTAT) -col /impl grpc.txt

check-deep: mutants fuzz stress long interop report-check
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

# The hedge rate over 200,000 calls and more a row, and the fan-out over 500,000; all cases of
# the sizing.
long:
	HOLDFAST_LONG=1 go test -v -run 'ShareOfHedged|FanOut' ./hedgedlimit
	HOLDFAST_LONG=1 go test -v -run TestCases ./bench/internal/sizing

# The HTTP middleware beside nginx, curl and Python's websockets, which are installed by apt
# where they are missing; the client and the server of grpcmw with another implementation of
# gRPC, which needs npm.
interop:
	httpmw/interop/nginx.sh
	grpcmw/interop/run.sh
