package main

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
)

func TestArrivals(t *testing.T) {
	l := load{rate: 500, seed: 1}
	const n = 50_000
	at := l.arrivals(7, n)
	if !slices.Equal(at, l.arrivals(7, n)) {
		t.Error("the same numbers gave other times")
	}
	if slices.Equal(at, l.arrivals(8, n)) || slices.Equal(at, load{rate: 500, seed: 2}.arrivals(7, n)) {
		t.Error("other numbers gave the same times")
	}
	if !slices.IsSorted(at) {
		t.Error("the times are not in order")
	}
	// The gaps of a Poisson process have a deviation as large as their mean.
	var sum, square float64
	last := time.Duration(0)
	for _, x := range at {
		gap := (x - last).Seconds()
		last = x
		sum += gap
		square += gap * gap
	}
	mean := sum / n
	deviation := math.Sqrt(square/n - mean*mean)
	if math.Abs(mean*500-1) > 0.02 || math.Abs(deviation*500-1) > 0.03 {
		t.Errorf("gaps of %.3f ± %.3f of their mean, want 1 ± 1", mean*500, deviation*500)
	}
}

// Arrivals do not wait for answers, and the latency counts from when a call was
// to start.
func TestLoadIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("failed")
		var running, peak, done atomic.Int64
		l := load{rate: 10, seed: 1, do: func(_ context.Context, call uint64) error {
			peak.Store(max(peak.Load(), running.Add(1)))
			time.Sleep(time.Hour)
			running.Add(-1)
			if call == 103 {
				return failure
			}
			return nil
		}}
		samples, err := l.run(t.Context(), 100, 50, &done)
		if err != nil || len(samples) != 50 || done.Load() != 50 {
			t.Fatalf("run = %d samples, %v; %d done", len(samples), err, done.Load())
		}
		if peak.Load() != 50 {
			t.Errorf("at most %d calls ran at once, want all 50", peak.Load())
		}
		for i, s := range samples {
			if s.latency != time.Hour || s.late != 0 || (s.err != nil) != (i == 3) {
				t.Errorf("sample %d = %+v", i, s)
			}
		}
	})
}

func TestLoadInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		var begun, done atomic.Int64
		l := load{rate: 10, seed: 1, do: func(ctx context.Context, _ uint64) error {
			begun.Add(1)
			<-ctx.Done()
			return ctx.Err()
		}}
		if _, err := l.run(ctx, 0, 1000, &done); !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v, want context.Canceled", err)
		}
		if begun.Load() != done.Load() || begun.Load() == 0 || begun.Load() > 50 {
			t.Errorf("%d calls were begun and %d had ended", begun.Load(), done.Load())
		}
	})
}

// The primary of a call goes to the same replica in every row, half of them to
// each, and a hedge goes to the other one.
func TestBalancer(t *testing.T) {
	pick := balancer([]string{"a", "b"}, 1)
	toA := 0
	for call := range 10_000 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, serviceURL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(downstream.CallHeader, strconv.Itoa(call))
		first := pick(r, nil)
		if again := pick(r, nil); *again != *first {
			t.Fatalf("call %d went to %v and to %v", call, first, again)
		}
		if second := pick(r, []*url.URL{first}); second.Host == first.Host {
			t.Fatalf("both attempts of call %d went to %v", call, first)
		}
		if first.Host == "a" {
			toA++
		}
	}
	if toA < 4800 || toA > 5200 {
		t.Errorf("%d of 10000 calls went to the first replica", toA)
	}
}
