package limiter_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/permit"
)

// process calls the dependency for each job of the queue, for as many at a time as the
// limiter allows: that is the width of the pool. While there is no room one job waits for
// it and the others stay in the queue, and whoever fills it is held up as by any channel
// that is full. It returns when
// the queue is closed, or when ctx ends, and all work has ended.
func process(ctx context.Context, lim *limiter.Limiter, queue <-chan int, call func(context.Context, int) error) error {
	var workers sync.WaitGroup
	defer workers.Wait()
	for {
		var job int
		more := false
		select {
		case job, more = <-queue:
		case <-ctx.Done():
		}
		if !more {
			return ctx.Err() // nil if the queue has been closed
		}
		// Now, and not before there is a job: the time from here to Release is a latency,
		// from which the limit learns.
		p, err := lim.Acquire(ctx, limiter.Primary) // waits for room
		if err != nil {
			return fmt.Errorf("job %d has not been begun: %w", job, err)
		}
		workers.Go(func() {
			outcome := permit.Ignored // stays so if call does not return
			defer func() { p.Release(outcome) }()
			outcome = lim.Classify(call(ctx, job))
		})
	}
}

// A worker pool is as wide as its dependency can bear. The limiter is told nothing of the
// dependency, which serves 20 calls at a time at first, and half way only 5: it finds out
// from the latencies, and the pool follows. A pool of a fixed width that is right for 20
// places has most of its workers stand in line for 5.
//
// The dependency is a model, and two minutes pass at once, in a bubble of
// testing/synctest. All that a program needs is the function process, and
//
//	lim, err := limiter.New(limiter.Config{MaxWaiting: limiter.Unbounded})
func Example_workerPool() {
	fixed, err := gradient.NewFixed(32)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("as wide as the limiter allows:")
	runPool(limiter.Config{MaxWaiting: limiter.Unbounded})
	fmt.Println("32 workers:")
	runPool(limiter.Config{MaxWaiting: limiter.Unbounded, Algorithm: fixed})
	// Output:
	// as wide as the limiter allows:
	//   20 places, 100 % busy; half of the calls take less than 25ms
	//   5 places, 100 % busy; half of the calls take less than 25ms
	// 32 workers:
	//   20 places, 100 % busy; half of the calls take less than 25ms
	//   5 places, 100 % busy; half of the calls take less than 75ms
}

func runPool(config limiter.Config) {
	synctest.Test(&testing.T{}, func(*testing.T) {
		lim, err := limiter.New(config)
		if err != nil {
			fmt.Println(err)
			return
		}
		queue := make(chan int)
		d := newDependency(20, 10*time.Millisecond, 0.3)
		go func() {
			defer close(queue)
			d.feed(queue)
			d.change(5, 10*time.Millisecond)
			d.feed(queue)
		}()
		if err := process(context.Background(), lim, queue, d.call); err != nil {
			fmt.Println(err)
		}
	})
}

// A dependency serves some calls at a time, and the others in their turn. How long it
// takes is log-normal, with a mean.
type dependency struct {
	mu        sync.Mutex
	rand      *rand.Rand
	mean      time.Duration
	sigma     float64     // of the logarithm; 0 makes all calls the same
	busyUntil []time.Time // of each place
	took      []time.Duration
}

func newDependency(places int, mean time.Duration, sigma float64) *dependency {
	return &dependency{rand: rand.New(rand.NewPCG(1, 2)), mean: mean, sigma: sigma, busyUntil: make([]time.Time, places)}
}

func (d *dependency) call(context.Context, int) error {
	d.mu.Lock()
	now, place := time.Now(), 0
	for i, t := range d.busyUntil {
		if t.Before(d.busyUntil[place]) {
			place = i
		}
	}
	begin := d.busyUntil[place]
	if begin.Before(now) {
		begin = now
	}
	work := math.Exp(d.sigma*d.rand.NormFloat64() - d.sigma*d.sigma/2)
	end := begin.Add(time.Duration(work * float64(d.mean)))
	d.busyUntil[place] = end
	d.took = append(d.took, end.Sub(now))
	d.mu.Unlock()
	time.Sleep(time.Until(end))
	return nil
}

// change gives it so many places, and another mean.
func (d *dependency) change(places int, mean time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mean = mean
	d.busyUntil = append(d.busyUntil[:min(places, len(d.busyUntil))], make([]time.Time, max(0, places-len(d.busyUntil)))...)
}

// forget forgets the calls until now, and tells how many there were.
func (d *dependency) forget() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.took)
	d.took = nil
	return n
}

// feed fills the queue for half a minute, and tells how the second half of that went.
func (d *dependency) feed(queue chan<- int) {
	const half = 15 * time.Second
	for start := time.Now(); time.Since(start) < half; {
		queue <- 0
	}
	d.forget()
	for start := time.Now(); time.Since(start) < half; {
		queue <- 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.Sort(d.took)
	places, calls := len(d.busyUntil), len(d.took)
	busy := float64(calls) * 10 / float64(places) / float64(half.Milliseconds())
	step := 25 * time.Millisecond
	fmt.Printf("  %d places, %.0f %% busy; half of the calls take less than %v\n",
		places, 10*math.Round(10*busy), d.took[calls/2].Truncate(step)+step)
}
