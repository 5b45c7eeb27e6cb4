// Command bench shows what hedging and limits do to the tail of a real service,
// over HTTP and over gRPC, and proves on the way that the limit held.
//
//	go run ./bench
//
// It starts a service with two replicas on loopback, in a process of its own, and
// calls it through httpmw.NewTransport under five set-ups: no hedging, a
// conservative delay, an aggressive one, a learnt delay with a budget, and the
// same under an adaptive limit. Then it does so over gRPC, through the DialOptions
// of grpcmw. Each set-up meets the same arrivals and the same service times.
// Latencies, costs and a verdict are printed for either protocol; -json writes
// everything to a file as well, -report draws a page of it, and -protocol chooses
// one protocol.
//
// The proof takes no word of the middleware for it. Below that, the client counts the
// attempts that are under way, and whenever one begins or ends it reads how many permits
// the limiter has out, in every row. The log of the server is then held against those
// attempts, in the rows that cancel nothing.
//
// The load is light by default, so that it runs anywhere. How the set-ups differ
// near and beyond what the service can take, and why an aggressive delay is not
// the best one, is seen with
//
//	go run ./bench -slots 4 -cancel ignore
//	go run ./bench -rate 2700
//
// # Simulation
//
// The light load above says little about the limit itself. This does:
//
//	go run ./bench sim
//
// It runs the limiter in virtual time against thirteen scenarios of overload, drift,
// outage and sharing (package arena), each with five seeds and with targets, and
// prints what it made of them. With -limit all its rivals meet the same calls; -report
// draws how it went over time; -scales shows that nothing was tuned to the scenarios.
//
// In the same way
//
//	go run ./bench hedge
//
// runs hedging against replicas that queue, stall and slow down (package hedgearena), from
// idle to overloaded, beside no hedging and the ways in which it is usually done, and tells
// whether it ever made anything worse.
//
//	go run ./bench storm
//
// shows how retries keep an outage of half a minute going for ever, and what ends it (package
// storm): a budget within minutes, a limit at once.
//
// # Peers
//
//	go run ./bench peers
//
// compares with a plain client, hedgedhttp and failsafe-go over loopback, all in one run, and then
// the costs of single calls, by the benchmarks of this package.
//
// # Sizing
//
//	go run ./bench size -table "p50=40ms p90=75ms p99=900ms p99.9=2.5s" -rate 200 -workers 30
//
// says which limit, hedge delay and budget suit a dependency, and what each of them does
// (package sizing). The dependency is given by percentiles, by the result of a load generator, or
// by its address, to which load is sent then.
//
// # Soak
//
//	go run ./bench soak
//
// keeps the transport for ten minutes under an overload of everything that goes wrong with
// HTTP (package soak), and tells then whether a permit, a body, a goroutine or memory has
// stayed behind. If so it exits with 1, even after Ctrl-C, for then it judges what there was.
//
// Exit codes: 0, 1 if the run failed or a law was broken, 2 for bad flags, 3 if all
// ended well and the library missed a target, or the figures cannot tell, as on a machine that was
// too busy, 130 after Ctrl-C, when what was finished is printed. (go run itself makes 1 of all but 0,
// and prints the code.)
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
)

const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as shells do: 128 and the number of SIGINT
)

func main() {
	if downstream.IsChild() {
		os.Exit(downstream.Main())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program, and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		switch args[0] {
		case "sim":
			return simulate(ctx, args[1:], stdout, stderr)
		case "hedge":
			return hedge(ctx, args[1:], stdout, stderr)
		case "storm":
			return retryStorm(ctx, args[1:], stdout, stderr)
		case "size":
			return size(ctx, args[1:], stdout, stderr)
		case "peers":
			return comparePeers(ctx, args[1:], stdout, stderr)
		case "soak":
			return soakTransport(ctx, args[1:], stdout, stderr)
		}
	}
	return runProgram(ctx, args, stdout, stderr, func(args []string, usage io.Writer) (program, error) {
		o, err := parseFlags(args, usage)
		r := newReport(o, time.Now())
		return program{
			jsonPath: o.jsonPath, report: r,
			prepare: func() error { return errors.Join(o.prepare(), o.prepareMarkdown()) },
			fill: func(ctx context.Context, tables, stderr io.Writer) int {
				began := time.Now()
				tables, publish := o.capture(tables, &r.runInfo)
				code := r.fill(ctx, tables, stderr)
				r.ElapsedSeconds = time.Since(began).Seconds()
				if err := errors.Join(o.draw(r), publish()); err != nil {
					fmt.Fprintln(stderr, "bench:", err)
					return exitFailed
				}
				return code
			},
		}, err
	})
}

// fill runs all experiments, prints each round of them as soon as it is complete,
// and returns the exit code. Whatever it returns, the report has the rows that
// were finished.
func (r *report) fill(ctx context.Context, stdout, stderr io.Writer) int {
	s := r.Settings
	if load := s.offeredLoad(); load > 0.9 {
		fmt.Fprintf(stderr, "bench: the calls alone are %.0f %% of what the slots can take: expect queues, refusals and errors\n", 100*load)
	}
	variants := s.variants()
	all := experiments()
	p := newProgress(stderr, s, len(variants)*len(all))
	code := exitOK
	for _, v := range variants {
		round := round{Protocol: v.protocol, Cancel: v.cancel}
		var failure error
		for _, e := range all {
			p.nextRow(e.Name, v)
			row, err := runRow(ctx, e, s, v, p)
			if err != nil {
				failure = err
				break
			}
			p.finished(row)
			round.Rows = append(round.Rows, row)
		}
		round.judge()
		r.Rounds = append(r.Rounds, round)
		if len(round.Rows) > 0 {
			if err := printRound(stdout, r, &round); err != nil {
				fmt.Fprintln(stderr, "bench:", err)
				return exitFailed
			}
		}
		switch {
		case failure != nil && ctx.Err() != nil:
			r.Interrupted = true
			fmt.Fprintf(stderr, "bench: interrupted: %d of %d rows were finished\n", r.rows(), len(variants)*len(all))
			return exitInterrupted
		case failure != nil:
			fmt.Fprintln(stderr, "bench:", failure)
			return exitFailed
		case len(round.Verdict.Broken) > 0:
			code = exitFailed
		case !round.Verdict.TargetMet && code == exitOK:
			code = exitMissed
		}
	}
	return code
}
