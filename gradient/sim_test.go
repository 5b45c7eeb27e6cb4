package gradient_test

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
)

// phase is a stretch of traffic and service.
type phase struct {
	length  float64 // seconds
	rate    float64 // offered per second, Poisson
	workers int     // first-in first-out
	service func(*rand.Rand) float64
	expire  float64 // if not 0, every call ends after so long, with a deadline error
}

func logNormal(mean, sigma float64) func(*rand.Rand) float64 {
	mu := math.Log(mean) - sigma*sigma/2
	return func(r *rand.Rand) float64 { return math.Exp(mu + sigma*r.NormFloat64()) }
}

// result is what a phase came to.
type result struct {
	good     float64 // share of min(offered, capacity) that ended within 500 ms
	rejected float64
	p50, p99 float64 // ms
	limits   []float64
	at       []float64 // seconds into the phase, for limits
}

type event struct {
	at    float64
	kind  int // 0 arrival, 1 a worker is done, 2 expired
	start float64
	epoch int
	phase int
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

// simulate drives an algorithm against a server with a queue, in virtual time: the
// limiter's part (admission, windows, epochs) in its simplest form.
func simulate(t testing.TB, a gradient.Algorithm, seed uint64, phases ...phase) []result {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	origin := time.Unix(1_700_000_000, 0)
	moment := func(s float64) time.Time { return origin.Add(time.Duration(s * 1e9)) }
	d := a.Start(origin)
	var (
		queue              events
		waiting            []event
		busy, inFlight     int
		epoch              int
		settled, begin     float64
		integral, last     float64
		hist               gradient.Histogram
		w                  gradient.Window
		results            = make([]result, len(phases))
		latencies          = make([][]float64, len(phases))
		good, offered, rej = make([]int, len(phases)), make([]int, len(phases)), make([]int, len(phases))
		current            int
		phaseStart         float64
	)
	reset := func(now float64) {
		begin, last, integral = now, now, 0
		w = gradient.Window{MaxInFlight: inFlight}
		hist.Reset()
	}
	tick := func(now float64) {
		if begin < settled && now >= settled {
			reset(settled)
		}
		integral += float64(inFlight) * (now - last)
		last = now
	}
	closeIfDue := func(now float64) {
		elapsed := now - begin
		if (now < settled && w.Drops < 5) || !d.Due(time.Duration(elapsed*1e9), hist.Count(), w.Drops) {
			return
		}
		w.Limit, w.Elapsed, w.Latency = d.Limit, time.Duration(elapsed*1e9), &hist
		if elapsed > 0 {
			w.InFlight = integral / elapsed
		}
		d = a.Next(moment(now), &w)
		if d.Limit < 1 {
			t.Fatalf("limit %d", d.Limit)
		}
		results[current].limits = append(results[current].limits, float64(d.Limit))
		results[current].at = append(results[current].at, now-phaseStart)
		if d.NewEpoch {
			epoch++
		}
		reset(now)
		settled = now + d.Settle.Seconds()
	}
	end := func(now float64, e event, expired bool) {
		tick(now)
		inFlight--
		w.Completed++
		l := now - e.start
		if e.epoch == epoch {
			if expired {
				w.Drops++
				hist.AddCensored(time.Duration(l * 1e9))
			} else {
				hist.Add(time.Duration(l * 1e9))
			}
		}
		if !expired && l <= 0.5 {
			good[e.phase]++
		}
		latencies[e.phase] = append(latencies[e.phase], l*1000)
		closeIfDue(now)
	}
	now := 0.0
	for i, p := range phases {
		current, phaseStart = i, now
		until := now + p.length
		next := now + r.ExpFloat64()/p.rate
		for {
			if len(queue) > 0 && queue[0].at <= min(next, until) {
				e := heap.Pop(&queue).(event)
				now = e.at
				if e.kind == 1 {
					busy--
				}
				for busy < p.workers && len(waiting) > 0 {
					x := waiting[0]
					waiting = waiting[1:]
					x.at, x.kind = now+p.service(r), 1
					heap.Push(&queue, x)
					busy++
				}
				end(now, e, e.kind == 2)
				continue
			}
			if next > until {
				now = until
				break
			}
			now = next
			next += r.ExpFloat64() / p.rate
			tick(now)
			offered[i]++
			if inFlight >= d.Limit {
				rej[i]++
				w.Refused++
				w.Saturated = true
				closeIfDue(now)
				continue
			}
			inFlight++
			w.Admitted++
			w.MaxInFlight = max(w.MaxInFlight, inFlight)
			w.Saturated = w.Saturated || inFlight >= d.Limit
			e := event{start: now, epoch: epoch, phase: i}
			switch {
			case p.expire > 0:
				e.at, e.kind = now+p.expire, 2
				heap.Push(&queue, e)
			case busy < p.workers:
				e.at, e.kind = now+p.service(r), 1
				heap.Push(&queue, e)
				busy++
			default:
				waiting = append(waiting, e)
			}
		}
		mean := 0.0
		for range 10000 {
			mean += p.service(r) / 10000
		}
		ideal := min(float64(offered[i]), p.length*float64(p.workers)/mean)
		l := latencies[i]
		slices.Sort(l)
		results[i].good = float64(good[i]) / ideal
		results[i].rejected = float64(rej[i]) / float64(offered[i])
		if len(l) > 0 {
			results[i].p50, results[i].p99 = l[len(l)/2], l[len(l)*99/100]
		}
	}
	return results
}

func newGradient(t testing.TB) *gradient.Gradient {
	t.Helper()
	g, err := gradient.New(gradient.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestOverloadIsHeldAtCapacity(t *testing.T) {
	for seed := range uint64(3) {
		got := simulate(t, newGradient(t), seed, phase{length: 120, rate: 3000, workers: 20, service: logNormal(0.010, 0.3)})[0]
		t.Logf("seed %d: good %.1f %%, p50 %.1f ms, p99 %.1f ms, last limit %v", seed, 100*got.good, got.p50, got.p99, got.limits[len(got.limits)-1])
		if got.good < 0.97 || got.p50 > 13 {
			t.Errorf("seed %d: good %.3f, p50 %.1f ms; want at least 0.97 and at most 13 ms", seed, got.good, got.p50)
		}
	}
}

func TestLimitFollowsCapacityDownAndUp(t *testing.T) {
	service := logNormal(0.010, 0.3)
	for seed := range uint64(3) {
		got := simulate(t, newGradient(t), seed,
			phase{length: 60, rate: 1500, workers: 20, service: service},
			phase{length: 60, rate: 1500, workers: 5, service: service},
			phase{length: 60, rate: 1500, workers: 20, service: service})
		for i, g := range got {
			t.Logf("seed %d phase %d: good %.1f %%, rejected %.2f %%, p50 %.1f ms, p99 %.1f ms", seed, i, 100*g.good, 100*g.rejected, g.p50, g.p99)
		}
		if got[1].good < 0.95 || got[1].p99 > 80 || got[2].good < 0.97 {
			t.Errorf("seed %d: %.3f good at p99 %.0f ms after the drop, %.3f good after the return", seed, got[1].good, got[1].p99, got[2].good)
		}
	}
}

func TestOutageClosesTheLimitAndItComesBack(t *testing.T) {
	service := logNormal(0.010, 0.3)
	got := simulate(t, newGradient(t), 1,
		phase{length: 60, rate: 1600, workers: 20, service: service},
		phase{length: 120, rate: 1600, workers: 20, service: service, expire: 1},
		phase{length: 60, rate: 1600, workers: 20, service: service})
	for i, at := range got[1].at {
		if at > 15 && got[1].limits[i] > 3 {
			t.Errorf("limit %v after %.1f s of an outage", got[1].limits[i], at)
			break
		}
	}
	t.Logf("back: good %.1f %%, rejected %.2f %%", 100*got[2].good, 100*got[2].rejected)
	if got[2].good < 0.90 {
		t.Errorf("%.3f good in the minute after the outage", got[2].good)
	}
}

func TestNoRejectionsWithoutOverload(t *testing.T) {
	pareto := func(r *rand.Rand) float64 {
		return min(2, 0.010/3*math.Pow(1-r.Float64(), -1/1.5))
	}
	for name, p := range map[string]phase{
		"heavy tail": {length: 120, rate: 1000, workers: 20, service: pareto},
		"slow mix": {length: 60, rate: 1000, workers: 100, service: func(r *rand.Rand) float64 {
			s := 0.005
			if r.Float64() < 0.5 {
				s = 0.1
			}
			return s * (0.9 + 0.2*r.Float64())
		}},
	} {
		got := simulate(t, newGradient(t), 7, p)[0]
		t.Logf("%s: rejected %.2f %%, good %.1f %%", name, 100*got.rejected, 100*got.good)
		if got.rejected > 0.02 {
			t.Errorf("%s: %.2f %% rejected", name, 100*got.rejected)
		}
	}
}

func TestLargePoolIsFoundFromASmallLimit(t *testing.T) {
	got := simulate(t, newGradient(t), 3, phase{length: 60, rate: 6000, workers: 200, service: logNormal(0.050, 0.3)})[0]
	t.Logf("good %.1f %%, p50 %.1f ms, last limit %v", 100*got.good, got.p50, got.limits[len(got.limits)-1])
	if got.good < 0.93 {
		t.Errorf("%.3f good in the first minute", got.good)
	}
}

func TestSmallSlowPool(t *testing.T) {
	got := simulate(t, newGradient(t), 3, phase{length: 180, rate: 60, workers: 3, service: logNormal(0.100, 0.3)})[0]
	t.Logf("good %.1f %%, p50 %.1f ms, last limit %v", 100*got.good, got.p50, got.limits[len(got.limits)-1])
	if got.good < 0.88 || got.p50 > 220 {
		t.Errorf("%.3f good at p50 %.0f ms", got.good, got.p50)
	}
}
