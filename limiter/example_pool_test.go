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
		d := &dependency{rand: rand.New(rand.NewPCG(1, 2)), busyUntil: make([]time.Time, 20)}
		go func() {
			defer close(queue)
			d.feed(queue)
			d.shrink(5)
			d.feed(queue)
		}()
		if err := process(context.Background(), lim, queue, d.call); err != nil {
			fmt.Println(err)
		}
	})
}

// A dependency serves some calls at a time, for 10 ms each more or less, and the others
// in their turn.
type dependency struct {
	mu        sync.Mutex
	rand      *rand.Rand
	busyUntil []time.Time // of each place
	took      []time.Duration
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
	work := 10 * math.Exp(0.3*d.rand.NormFloat64()-0.045) // log-normal, 10 on average
	end := begin.Add(time.Duration(work * float64(time.Millisecond)))
	d.busyUntil[place] = end
	d.took = append(d.took, end.Sub(now))
	d.mu.Unlock()
	time.Sleep(time.Until(end))
	return nil
}

// shrink leaves so many places.
func (d *dependency) shrink(places int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busyUntil = d.busyUntil[:places]
}

// feed fills the queue for half a minute, and tells how the second half of that went.
func (d *dependency) feed(queue chan<- int) {
	const half = 15 * time.Second
	for start := time.Now(); time.Since(start) < half; {
		queue <- 0
	}
	d.mu.Lock()
	d.took = nil
	d.mu.Unlock()
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
