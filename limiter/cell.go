package limiter

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/permit"
)

const (
	// pending is how many latencies a cell keeps until they go into the histogram of the
	// window: the lock of the window is taken once for so many, and a cell stays small
	// where a histogram of its own would be 7 KB.
	pending = 64

	// maxStride is how many refusals share one reading of the clock. See cell.reads.
	maxStride = 64
	// quick is how long they may take to come, or the stride shrinks.
	quick = time.Millisecond
)

// A cell takes in what happens to the attempts of some goroutines, by and large those
// of one processor, so that others need neither its lock nor its cache lines. collect
// empties it.
type cell struct {
	mu sync.Mutex // a leaf
	// Guarded by mu.

	// out counts the grants entered here less the ends entered here, and times is the
	// sum of the times of those ends less that of those grants, in ns. Most attempts end in
	// the cell where they began, but each of the two may be negative; times wraps.
	// Invariants, over all cells and the meter, with nothing between pool and cell:
	//
	//	Σ out   == in flight
	//	Σ times == Σ ended (end − grant) − Σ in flight grant   (mod 2⁶⁴)
	out   int
	times int64

	admitted, waited, completed, drops int
	maxInFlight                        int
	saturated                          bool

	// latencies[:n] wait to be put into the histogram; one that is a lower bound is
	// kept as its complement, which is negative.
	n         int
	latencies [pending]int64
	// taught counts the latencies since the last collect, those put into the histogram
	// meanwhile as well.
	taught int

	// Guarded by meter.mu: how many of the refusals have been collected.
	collected uint64

	// Atomic.

	// rejected counts attempts that got no permit, by whether they teach. It never falls.
	rejected [2][numRejections]atomic.Uint64
	// Which refusal reads the clock next, by their count; at what distance it was; and
	// when the last one did. These may lag behind each other: whatever they say, some
	// refusal within maxStride reads the clock.
	readsNext atomic.Uint64
	stride    atomic.Uint64
	readLast  atomic.Int64

	_ [64]byte // two cells never share a cache line
}

// cell returns the cell that the calling goroutine uses, by where its stack lies, as
// the ledger does. Any answer is right.
func (m *meter) cell() *cell {
	var here byte
	const golden = 0x9e3779b97f4a7c15
	return &m.cells[uint64(uintptr(unsafe.Pointer(&here))>>11)*golden>>m.cellShift]
}

// newCells returns a power of two of cells, enough that the processors need not meet
// and few enough that a window is closed in no time, and what cell shifts by.
func newCells() (cells []cell, shift uint) {
	n, bits := 1, uint(0)
	for n < min(2*runtime.GOMAXPROCS(0), 16) {
		n, bits = 2*n, bits+1
	}
	return make([]cell, n), 64 - bits
}

// begin enters an attempt that has been granted a permit. mu must be held, as for all
// that follow.
func (c *cell) begin(kind Kind, grant permit.Grant, inFlight int) {
	c.out++
	c.times -= int64(grant.At)
	c.maxInFlight = max(c.maxInFlight, inFlight)
	if kind.teaches() {
		c.admitted++
		if grant.Waited {
			c.waited++
		}
		// A hedge in the last place is no sign that the limit is too small.
		if grant.Waited || grant.InFlight >= grant.Limit {
			c.saturated = true
		}
	}
}

// leave enters that n attempts are over.
func (c *cell) leave(now time.Duration, n int) {
	c.out -= n
	c.times += int64(now) * int64(n)
}

// teach enters what an attempt of the present epoch has shown. There must be room for
// its latency.
func (c *cell) teach(o permit.Outcome, latency time.Duration) {
	switch o {
	case permit.Success:
		c.add(int64(max(latency, 0)))
	case permit.Overload:
		c.drops++
	case permit.Expired:
		c.drops++
		c.add(^int64(max(latency, 0)))
	case permit.Canceled:
		c.add(^int64(max(latency, 0)))
	case permit.Ignored:
	}
}

func (c *cell) add(latency int64) {
	c.latencies[c.n] = latency
	c.n++
	c.taught++
}

// refused is how many primaries and retries were refused here, for want of room.
func (c *cell) refused() uint64 {
	of := &c.rejected[1]
	return of[rejectedLimit].Load() + of[rejectedQueueFull].Load() + of[rejectedMaxWait].Load() +
		of[rejectedDeadline].Load() + of[rejectedNot].Load()
}

// reads reports whether the refusal that is the n-th in this cell reads the clock.
// A clock costs more than all the rest of a refusal, and those that come in quick
// succession learn nothing new from it. What is quick is known only from the clock, so
// the stride doubles as long as all within it come within a millisecond, and is 1
// again when they do not: refusals that come seldom read the clock each. So do the
// first after a grant or an end in this cell.
func (c *cell) reads(n uint64) bool { return n >= c.readsNext.Load() }

// read enters that the n-th refusal has read the clock.
func (c *cell) read(n uint64, now time.Duration) {
	last, stride := time.Duration(c.readLast.Load()), c.stride.Load()
	if now-last < quick {
		stride = min(max(2*stride, 1), maxStride)
	} else {
		stride = 1
	}
	c.readLast.Store(int64(now))
	c.stride.Store(stride)
	c.readsNext.Store(n + stride)
}

// readAgain has the next refusal read the clock.
func (c *cell) readAgain() {
	if c.readsNext.Load() != 0 {
		c.readsNext.Store(0)
	}
}

// never is a time that does not come, and a number that is not reached.
const never = math.MaxInt64

// after adds times and stops at never.
func after(at, d time.Duration) time.Duration {
	if d > never-at {
		return never
	}
	return at + d
}

// least returns the least x > low for which ok holds, and never if there is none. ok
// must not hold for low, and must go on to hold where it once does.
func least(low int64, ok func(int64) bool) int64 {
	high := low
	for step := int64(1); !ok(high); step *= 2 {
		if high == never {
			return never
		}
		low = high
		if high += step; high < low || step < 0 {
			high = never
		}
	}
	for low+1 < high {
		if mid := low + (high-low)/2; ok(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}
