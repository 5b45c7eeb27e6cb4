package arena

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/holdfast-go/holdfast/bench/internal/bubble"
)

// exponential is a service without memory: the one that queueing theory knows best.
type exponential float64

func (e exponential) Mean(float64) float64                 { return float64(e) }
func (e exponential) Draw(r *rand.Rand, _ float64) float64 { return float64(e) * r.ExpFloat64() }
func (e exponential) String() string                       { return fmt.Sprintf("exponential(%g ms)", 1000*float64(e)) }

// limitedTo makes limits of so many calls; unlimited are more than ever come.
func limitedTo(n int) *Maker {
	return &Maker{Name: "limit", New: func(float64) (Contender, error) {
		return &counted{semaphore: semaphore.NewWeighted(int64(n)), limit: n}, nil
	}}
}

const unlimited = 1 << 30

func onePhase(p Phase) *Scenario { return &Scenario{ID: "T", Phases: []Phase{p}} }

// erlangB is the share that a server of c workers and no queue turns away, with a
// workers' worth of calls.
func erlangB(c int, a float64) float64 {
	b := 1.0
	for k := 1; k <= c; k++ {
		b = a * b / (float64(k) + a*b)
	}
	return b
}

// erlangC is the share that must wait for one of c workers.
func erlangC(c int, a float64) float64 {
	b, rho := erlangB(c, a), a/float64(c)
	return b / (1 - rho*(1-b))
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s is %.4g, and theory says %.4g ± %g %%", what, got, want, 100*tolerance)
	}
}

// The mean time in the system is that of Pollaczek and Khinchine for one worker, and
// that of Erlang for many. By Little's law, which each run checks to the nanosecond, the
// mean number in flight follows.
func TestWaitingTimeOfTheory(t *testing.T) {
	const s, seconds = 0.010, 1000
	for _, tt := range []struct {
		name      string
		rate      float64
		workers   int
		law       Law
		want      float64 // mean time in the system
		tolerance float64
	}{
		{"M/D/1 at 0.8", 80, 1, logNormal{s, s, 0}, s + 0.8*s/(2*0.2), 0.04},
		{"M/M/1 at 0.7", 70, 1, exponential(s), s / 0.3, 0.04},
		{"M/G/1 at 0.6", 60, 1, mix{0.005, 0.055, 0.1, 0}, s + 60*(0.9*0.005*0.005+0.1*0.055*0.055)/(2*0.4), 0.04},
		{"M/M/5 at 0.8", 400, 5, exponential(s), s + erlangC(5, 4)*s/(5-4), 0.04},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := Phase{Length: seconds * time.Second, Rate: tt.rate, Workers: tt.workers, Service: tt.law}
			f, r := simulated(t, onePhase(p), limitedTo(unlimited), 1)
			near(t, "mean time in the system", r.record.sojourn.Seconds()/float64(f.Phases[0].Admitted), tt.want, tt.tolerance)
			near(t, "mean number in flight", r.record.integral.Seconds()/seconds, tt.rate*tt.want, tt.tolerance+0.01)
			near(t, "offered", float64(f.Phases[0].Offered), tt.rate*seconds, 0.01)
		})
	}
}

// simulated is Simulate, with the run.
func simulated(t *testing.T, s *Scenario, m *Maker, seed uint64) (f *Figures, r *run) {
	t.Helper()
	err := bubble.Run(func() (err error) {
		if r, err = newRun(s, m, seed, Options{}); err != nil {
			return err
		}
		if err := r.play(); err != nil {
			return err
		}
		f = r.figures()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f, r
}

// A limit without a queue loses what Erlang's formula says, whatever the service: in S1
// a limit of exactly c keeps 93 % of the ideal, because a worker idles until the next
// call, and some more than c keeps all of it.
func TestFixedLimitsInS1(t *testing.T) {
	s := find(t, "S1")
	p := &s.Phases[0]
	p.Length = 30 * time.Second
	a := p.Rate * p.Service.Mean(0)
	f, _ := simulated(t, s, limitedTo(p.Workers), 1)
	near(t, "good at a limit of c", f.Phases[0].GoodPercent, 100*a*(1-erlangB(p.Workers, a))/float64(p.Workers), 0.005)
	near(t, "refused at a limit of c", f.Phases[0].RejectedPercent, 100*erlangB(p.Workers, a), 0.01)
	f, _ = simulated(t, s, limitedTo(2*p.Workers), 1)
	near(t, "good at a limit of 2c", f.Phases[0].GoodPercent, 100, 0.005)
	// Room that is free is geometric with a ratio of 2000/3000, so 38 are in flight on the
	// mean, and 2000 leave in a second.
	near(t, "p50 at a limit of 2c", f.Phases[0].P50, 19, 0.02)
}

// In contention n calls on c workers are served at the rate of c/(1 + (n/c − 1)/2).
func TestContention(t *testing.T) {
	s := find(t, "S8")
	s.Phases = s.Phases[:1]
	s.Phases[0].Length = 20 * time.Second
	f, _ := simulated(t, s, limitedTo(40), 1)
	// Nearly always 40 are in flight, so it is 1/1.5, and a little more.
	near(t, "good at a limit of 2c", f.Phases[0].GoodPercent, 100/1.5, 0.03)
}

// The laws have the means that they claim.
func TestLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, tt := range []struct {
		law       Law
		at        float64
		tolerance float64
	}{
		{usual, 0, 0.005},
		{logNormal{0.010, 0.040, 0.3}, 0.5, 0.005},
		{heavyTail, 0, 0.02},
		{mix{0.005, 0.1, 0.5, 0.1}, 0, 0.01},
		{slower{usual, 1.5}, 0, 0.005},
	} {
		const n = 400_000
		sum := 0.0
		for range n {
			sum += tt.law.Draw(r, tt.at)
		}
		near(t, "mean of "+tt.law.String(), sum/n, tt.law.Mean(tt.at), tt.tolerance)
	}
}
