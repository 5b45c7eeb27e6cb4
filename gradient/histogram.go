package gradient

import (
	"math"
	"time"
)

const (
	// 32 buckets an octave keep the error of a quantile below 1.6 % before
	// interpolation; 26 octaves reach from 1 µs to 67 s.
	bucketsPerOctave = 32
	octaves          = 26
	numBuckets       = bucketsPerOctave * octaves
	// The upper bits of a float64 number are its octave and the linear place in
	// it, so the bucket is a shift away: no logarithm is taken.
	bucketShift = 52 - 5
	bucketBias  = 1023 << 5
)

// Histogram counts latencies from 1 µs to 67 s in buckets of about 2 to 3 %.
// Shorter and longer ones count in the first and last bucket. A latency may be a
// lower bound, when the attempt was cut short (right-censored): quantiles take it
// for what it is, by the estimator of Kaplan and Meier, so it can raise them and
// never lowers one.
//
// The zero value is empty and ready. It is not safe for concurrent use and never
// allocates. It is large (7 KB): pass a pointer.
type Histogram struct {
	events   [numBuckets]uint32
	censored [numBuckets]uint32
	n, cut   int // all, and those of them that are censored
	lo, hi   int // buckets in use: lo ≤ i < hi; hi is 0 if there are none
	sum, sq  float64
}

func bucketOf(d time.Duration) int {
	us := float64(d) / float64(time.Microsecond)
	if !(us >= 1) {
		return 0
	}
	return min(int(math.Float64bits(us)>>bucketShift)-bucketBias, numBuckets-1)
}

// lower returns the least latency of bucket i.
func lower(i int) float64 {
	within := float64(i%bucketsPerOctave) / bucketsPerOctave
	return math.Ldexp(1+within, i/bucketsPerOctave) * float64(time.Microsecond)
}

// Add counts a full latency. A negative one counts as 0.
func (h *Histogram) Add(d time.Duration) {
	h.events[h.note(d)]++
}

// AddCensored counts a latency that is only a lower bound.
func (h *Histogram) AddCensored(d time.Duration) {
	h.censored[h.note(d)]++
	h.cut++
}

func (h *Histogram) note(d time.Duration) int {
	i := bucketOf(d)
	if h.hi == 0 {
		h.lo, h.hi = i, i+1
	}
	h.lo, h.hi = min(h.lo, i), max(h.hi, i+1)
	h.n++
	seconds := max(d, 0).Seconds()
	h.sum += seconds
	h.sq += seconds * seconds
	return i
}

// Merge adds all that o has counted.
func (h *Histogram) Merge(o *Histogram) {
	if o.hi == 0 {
		return
	}
	for i := o.lo; i < o.hi; i++ {
		h.events[i] += o.events[i]
		h.censored[i] += o.censored[i]
	}
	if h.hi == 0 {
		h.lo, h.hi = o.lo, o.hi
	}
	h.lo, h.hi = min(h.lo, o.lo), max(h.hi, o.hi)
	h.n += o.n
	h.cut += o.cut
	h.sum += o.sum
	h.sq += o.sq
}

// Reset forgets everything.
func (h *Histogram) Reset() {
	clear(h.events[h.lo:h.hi])
	clear(h.censored[h.lo:h.hi])
	h.n, h.cut, h.lo, h.hi, h.sum, h.sq = 0, 0, 0, 0, 0, 0
}

// Count returns how many latencies were counted, censored ones included.
func (h *Histogram) Count() int { return h.n }

// Censored returns how many of them are lower bounds.
func (h *Histogram) Censored() int { return h.cut }

// Quantile returns the latency that a share q of the calls stays below. It is
// false if that is not known: the histogram is empty, or so many calls were cut
// short that the curve of Kaplan and Meier does not fall to 1−q. Unknown is not
// the same as the longest latency seen. Q outside (0, 1) is unknown too.
func (h *Histogram) Quantile(q float64) (time.Duration, bool) {
	if !(q > 0 && q < 1) || h.n == 0 {
		return 0, false
	}
	target := 1 - q
	alive := 1.0      // the share that lives on: the curve
	atRisk := h.n     // seen to have lasted until the bucket
	const eps = 1e-12 // rounding of a product of many factors
	for i := h.lo; i < h.hi; i++ {
		events := int(h.events[i])
		if events > 0 {
			next := alive * (1 - float64(events)/float64(atRisk))
			if next <= target+eps {
				share := (alive - target) / (alive - next)
				from := lower(i)
				d := from + min(max(share, 0), 1)*(lower(i+1)-from)
				return time.Duration(d), true
			}
			alive = next
		}
		// Those cut short in this bucket are taken to have lasted through it.
		atRisk -= events + int(h.censored[i])
	}
	return 0, false
}

// seen returns the latency that a share q of the calls had ended by, whatever ended
// them, to a bucket; 0 if there are none.
func (h *Histogram) seen(q float64) time.Duration {
	left := q * float64(h.n)
	for i := h.lo; i < h.hi; i++ {
		left -= float64(h.events[i]) + float64(h.censored[i])
		if left <= 0 {
			return time.Duration(lower(i))
		}
	}
	return 0
}

// longest returns the longest latency seen, to a bucket, or 0 if there is none. A
// quantile that Quantile does not know lies beyond it: the curve never falls to it.
func (h *Histogram) longest() time.Duration {
	if h.hi == 0 {
		return 0
	}
	return time.Duration(lower(h.hi - 1))
}

// Mean returns the mean of the latencies, a lower bound if any of them is.
func (h *Histogram) Mean() time.Duration {
	if h.n == 0 {
		return 0
	}
	return time.Duration(h.sum / float64(h.n) * float64(time.Second))
}

// CV2 returns the squared coefficient of variation of the latencies, their
// variance over their squared mean: 0 for a constant, 1 for an exponential law,
// more for a heavy tail. It is 0 if there are none.
func (h *Histogram) CV2() float64 {
	if h.n == 0 || h.sum <= 0 {
		return 0
	}
	n := float64(h.n)
	mean := h.sum / n
	return max(0, h.sq/n/(mean*mean)-1)
}
