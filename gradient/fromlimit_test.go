package gradient_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/proptest"
)

var _ gradient.Sampler = (*gradient.External)(nil)

type told struct {
	start, rtt int64
	inFlight   int
	dropped    bool
}

// diary is a Limit that writes down what it is told, and says what it is set to.
type diary struct {
	limit int
	told  []told
}

func (d *diary) EstimatedLimit() int { return d.limit }
func (d *diary) OnSample(start, rtt int64, inFlight int, dropped bool) {
	d.told = append(d.told, told{start, rtt, inFlight, dropped})
}

func TestFromLimitPassesSamplesOnAsTheyAre(t *testing.T) {
	d := &diary{limit: 7}
	e := must[*gradient.External](t)(gradient.FromLimit(d))
	if got := e.Start(origin); got.Limit != 7 || got.Reason != gradient.ReasonStart {
		t.Errorf("start: %+v", got)
	}
	e.Sample(time.Second, 10*time.Millisecond, 3, false)
	e.Sample(2*time.Second, time.Second, 7, true)
	e.Sample(3*time.Second, -time.Second, -1, false)
	at := func(s int) int64 { return origin.Add(time.Duration(s) * time.Second).UnixNano() }
	want := []told{{at(1), 10e6, 3, false}, {at(2), 1e9, 7, true}, {at(3), 0, 0, false}}
	if !slices.Equal(d.told, want) {
		t.Errorf("told %v, want %v", d.told, want)
	}
	d.limit = 9
	if got := e.Next(origin.Add(time.Second), steady(7, true, 0)); got.Limit != 9 || got.Reason != gradient.ReasonExternal {
		t.Errorf("next: %+v", got)
	}
	if len(d.told) != len(want) {
		t.Error("a window told it of calls for a second time")
	}
}

func TestFromLimitBoundsWhatItIsTold(t *testing.T) {
	for says, want := range map[int]int{math.MinInt: 1, -1: 1, 0: 1, 1: 1, 500: 500, math.MaxInt: 1 << 24} {
		e := must[*gradient.External](t)(gradient.FromLimit(&diary{limit: says}))
		if got := e.Start(origin).Limit; got != want {
			t.Errorf("the limit says %d, and %d is put in force", says, got)
		}
	}
}

func TestFromLimitOfNil(t *testing.T) {
	for _, l := range []gradient.Limit{nil, (*diary)(nil)} {
		if e, err := gradient.FromLimit(l); e != nil || err == nil || !strings.Contains(err.Error(), "FromLimit") {
			t.Errorf("%T: %v, %v", l, e, err)
		}
	}
}

func TestFromLimitKeepsThePromises(t *testing.T) {
	proptest.TestAlgorithm(t, 5, 5, func() gradient.Algorithm {
		return must[*gradient.External](t)(gradient.FromLimit(&diary{limit: 5}))
	})
}

// The limit itself need not be safe for concurrent use. The race detector judges.
func TestFromLimitSerialisesCalls(t *testing.T) {
	d := &diary{limit: 5}
	e := must[*gradient.External](t)(gradient.FromLimit(d))
	e.Start(origin)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				e.Sample(time.Second, time.Millisecond, 1, false)
				e.Next(origin, nil)
			}
		})
	}
	all.Wait()
	if len(d.told) != 800 {
		t.Errorf("told of %d calls, want 800", len(d.told))
	}
}

// vegas is the limit of that name in its simplest form: as many may queue as alpha to
// beta, reckoned from the shortest latency seen.
type vegas struct {
	limit  float64
	lowest int64
}

func (v *vegas) EstimatedLimit() int { return int(v.limit) }
func (v *vegas) OnSample(_, rtt int64, inFlight int, dropped bool) {
	if dropped {
		v.limit--
		return
	}
	if v.lowest == 0 || rtt < v.lowest {
		v.lowest = max(rtt, 1)
	}
	queued := v.limit * (1 - float64(v.lowest)/float64(max(rtt, 1)))
	switch {
	case 2*inFlight < int(v.limit):
	case queued < 3:
		v.limit += 1 / v.limit
	case queued > 6:
		v.limit -= 1 / v.limit
	}
}

func TestFromLimitAtWork(t *testing.T) {
	v := &vegas{limit: 60}
	e := must[*gradient.External](t)(gradient.FromLimit(v))
	// Latencies without noise, which is all that so simple a limit can take.
	got := simulate(t, e, 1, phase{length: 30, rate: 3000, workers: 20, mean: 0.010, service: constant(0.010)})[0]
	t.Logf("limit %d, good %.1f %%", got.last(), 100*got.good)
	if got.last() < 18 || got.last() > 30 || got.good < 0.9 {
		t.Errorf("limit %d, %.3f good; 20 can be busy", got.last(), got.good)
	}
}

func ExampleFromLimit() {
	// Any limit with EstimatedLimit and OnSample will do in the place of vegas.
	algorithm, err := gradient.FromLimit(&vegas{limit: 20})
	if err != nil {
		panic(err)
	}
	fmt.Println(algorithm.Start(time.Now()).Limit)
	// Output: 20
}
