package gradient_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
)

// A limit of 1 must be left again however slow the service is: with one in flight
// there is no queue of our own, and no limit below to probe with.
func TestLimitOfOneIsLeftAgain(t *testing.T) {
	for _, latency := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second} {
		g, err := gradient.New(gradient.Config{Initial: 1})
		if err != nil {
			t.Fatal(err)
		}
		now := origin
		d := g.Start(now)
		for range 60 {
			elapsed := max(time.Second, 3*latency)
			h := new(gradient.Histogram)
			n := d.Limit * int(elapsed/latency)
			for range min(n, 200) {
				h.Add(latency)
			}
			now = now.Add(elapsed + d.Settle)
			d = g.Next(now, &gradient.Window{
				Limit: d.Limit, Elapsed: elapsed, InFlight: float64(d.Limit), MaxInFlight: d.Limit,
				Admitted: n, Refused: n, Completed: n, Saturated: true, Latency: h,
			})
		}
		if d.Limit < 10 {
			t.Errorf("latency %v: limit %d after 60 windows without a queue (%s)", latency, d.Limit, d.Reason)
		}
	}
}

// Calls that the other side refuses at once are no part of the throughput or of the
// latency: a steady share of them must leave the rest what it needs.
func TestRefusedShareLeavesTheRestWhatItNeeds(t *testing.T) {
	for _, percent := range []int{10, 30, 50} {
		g := newGradient(t)
		now := origin
		d := g.Start(now)
		const rate, latency = 500, 20 * time.Millisecond
		for i := range 300 {
			share := 0
			if i > 50 {
				share = percent
			}
			now = now.Add(200*time.Millisecond + d.Settle)
			good := rate / 5 * (100 - share) / 100
			need := float64(rate*(100-share)/100) * latency.Seconds()
			inFlight := min(need, float64(d.Limit))
			good = int(float64(good) * inFlight / need)
			h := new(gradient.Histogram)
			for range good {
				h.Add(latency)
			}
			d = g.Next(now, &gradient.Window{
				Limit: d.Limit, Elapsed: 200 * time.Millisecond, InFlight: inFlight, MaxInFlight: int(inFlight) + 1,
				Admitted: rate / 5, Completed: good, Drops: rate / 5 * share / 100,
				Saturated: inFlight > 0.8*float64(d.Limit), Latency: h,
			})
			if float64(d.Limit) < need && !d.Probe {
				t.Fatalf("%d %% refused, window %d: limit %d, and the rest needs %.1f (%s)", percent, i, d.Limit, need, d.Reason)
			}
		}
	}
}

// A probe whose windows cannot be read, since nothing completes or most callers do not
// wait, must not hold the limit down for as long as that lasts.
func TestUnreadProbeGivesTheLimitBack(t *testing.T) {
	cut := new(gradient.Histogram)
	for range 100 {
		cut.AddCensored(time.Millisecond)
	}
	for name, unread := range map[string]*gradient.Window{
		"stand-still": {Elapsed: time.Second, InFlight: 10, MaxInFlight: 10, Refused: 100, Saturated: true, Latency: new(gradient.Histogram)},
		"cancelled":   {Elapsed: time.Second, InFlight: 10, MaxInFlight: 10, Completed: 100, Admitted: 100, Refused: 100, Saturated: true, Latency: cut},
	} {
		g := newGradient(t)
		now := origin
		d := g.Start(now)
		before := d.Limit
		for i := 0; !d.Probe; i++ {
			if i > 1000 {
				t.Fatal("no probe")
			}
			before = d.Limit
			now = now.Add(100 * time.Millisecond)
			d = g.Next(now, live{workers: 20, service: 10 * time.Millisecond, demand: 100}.window(d.Limit, true))
		}
		// The window that made the probe due had its own step, of two or so.
		if d = g.Next(now.Add(time.Second), unread); d.Probe || d.Limit < before-4 || d.Reason != gradient.ReasonProbeEnd {
			t.Errorf("%s: %+v, and the limit was %d before the probe", name, d, before)
		}
	}
}
