package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
	"github.com/holdfast-go/holdfast/limiter"
)

// closedLoop makes calls as callers do who wait for one answer before they ask again.
type closedLoop struct {
	callers int
	do      func(ctx context.Context, call uint64) error
}

// run makes n calls, as load.run does.
func (l closedLoop) run(ctx context.Context, first uint64, n int, done *atomic.Int64) ([]sample, error) {
	samples := make([]sample, n)
	var next atomic.Int64
	var callers sync.WaitGroup
	for range l.callers {
		callers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				begin := time.Now()
				err := l.do(ctx, first+uint64(i))
				// Each call has an element of its own, read after Wait.
				samples[i] = sample{latency: time.Since(begin), err: err}
				done.Add(1)
			}
		})
	}
	callers.Wait()
	return samples, ctx.Err()
}

// peerRun is one contender on one workload.
type peerRun struct {
	contender contender
	service   *downstream.Process
	client    *peerClient
	run       func(ctx context.Context, first uint64, n int, done *atomic.Int64) ([]sample, error)
	samples   []sample // of complete blocks
}

// startPeer starts a service of its own for a contender. Its close must follow.
func startPeer(ctx context.Context, c contender, w *workload, seed uint64, delay time.Duration) (*peerRun, error) {
	// Ctrl-C must leave the service, which has the log of what was finished.
	service, err := downstream.Start(context.WithoutCancel(ctx), w.service(seed))
	if err != nil {
		return nil, err
	}
	client, err := newPeerClient(c, service.Addresses(), seed, delay)
	if err != nil {
		return nil, errors.Join(err, service.Close())
	}
	p := &peerRun{contender: c, service: service, client: client}
	if w.Rate > 0 {
		p.run = load{rate: w.Rate, seed: seed, do: client.do}.run
	} else {
		p.run = closedLoop{callers: w.Concurrency, do: client.do}.run
	}
	return p, nil
}

func (p *peerRun) close(ctx context.Context) error {
	return errors.Join(p.client.close(context.WithoutCancel(ctx)), p.service.Close())
}

// learnDelay calls the workload's service through ours, and returns the delay that it learns.
func learnDelay(ctx context.Context, w *workload, s *peersSettings, progress *peersProgress) (delay time.Duration, err error) {
	p, err := startPeer(ctx, oursContender(), w, s.Seed, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.close(ctx)) }()
	if _, err := progress.watch("learning the delay", s.WarmUp, func(done *atomic.Int64) ([]sample, error) { return p.run(ctx, warmUpCalls, s.WarmUp, done) }); err != nil {
		return 0, err
	}
	return p.client.learnt()
}

// runWorkload lets the contenders take turns, block by block, and returns the rows of the blocks
// that all of them have finished. It does so even if it returns an error, that of ctx included.
func runWorkload(ctx context.Context, w *workload, s *peersSettings, delay time.Duration, progress *peersProgress) (rows []peerRow, err error) {
	var runs []*peerRun
	defer func() {
		for _, p := range runs {
			err = errors.Join(err, p.close(ctx))
		}
	}()
	for _, c := range contenders() {
		p, err := startPeer(ctx, c, w, s.Seed, delay)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		runs = append(runs, p)
	}
	calls, failure := 0, error(nil)
	for b := range w.Blocks {
		n := w.Calls*(b+1)/w.Blocks - calls
		blocks := make([][]sample, len(runs))
		for k := range runs {
			i := (k + b) % len(runs) // none is always the first
			what := fmt.Sprintf("%s: block %d/%d: %s", w.Name, b+1, w.Blocks, runs[i].contender.Name)
			blocks[i], failure = progress.watch(what, w.WarmUp+n, func(done *atomic.Int64) ([]sample, error) {
				// The row was idle while the others ran, or has learnt nothing yet.
				if _, err := runs[i].run(ctx, warmUpCalls+uint64(b*w.WarmUp), w.WarmUp, done); err != nil {
					return nil, err
				}
				return runs[i].run(ctx, uint64(calls), n, done)
			})
			if failure != nil {
				break
			}
		}
		if failure != nil {
			break
		}
		calls += n
		for i, p := range runs {
			p.samples = append(p.samples, blocks[i]...)
		}
	}
	if calls == 0 {
		return nil, failure
	}
	best := newBestTail(w.Profile, s.Seed, calls)
	for _, p := range runs {
		report, err := p.service.Report()
		if err != nil {
			return rows, errors.Join(failure, fmt.Errorf("%s: %w", p.contender.Name, err))
		}
		row := p.row(report, uint64(calls))
		if w.Slots == noBound {
			row.BestP99 = milliseconds(best.p99(row.ExtraRequests))
		}
		rows = append(rows, row)
	}
	return rows, failure
}

// warmUpCalls is the number of the first call that is not counted: those that are have lower
// numbers.
const warmUpCalls = maxCalls

// row makes the figures of a row of the calls before end.
func (p *peerRun) row(report *downstream.Report, end uint64) peerRow {
	r := peerRow{Contender: p.contender, Calls: len(p.samples)}
	latency := newHistogram()
	for i := range p.samples {
		s := &p.samples[i]
		switch {
		case s.err == nil:
			record(latency, s.latency)
		case errors.Is(s.err, limiter.ErrLimitExceeded), errors.Is(s.err, adaptivelimiter.ErrExceeded):
			r.Rejected++
		default:
			r.Errors++
			if r.FirstError == "" {
				r.FirstError = s.err.Error()
			}
		}
	}
	r.P50, r.P95 = quantile(latency, 50), quantile(latency, 95)
	r.P99, r.P999 = quantile(latency, 99), quantile(latency, 99.9)
	for _, v := range report.Visits {
		if v.Call >= end {
			continue
		}
		r.Requests++
		if v.Attempt > 1 {
			r.ExtraRequests++
		}
	}
	if n := r.Requests - r.ExtraRequests; n > 0 {
		r.ExtraPercent = 100 * float64(r.ExtraRequests) / float64(n)
	}
	return r
}
