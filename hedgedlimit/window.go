package hedgedlimit

import (
	"time"

	"github.com/holdfast-go/holdfast/gradient"
)

const (
	// Two windows are kept, so an estimate rests on one to two of them. 1,000
	// samples put the error of a 95th percentile's rank at 0.7 points. After 10 s
	// the samples that an estimate needs are enough, so that moderate traffic does
	// not remember last hour's latency.
	windowSamples = 1000
	windowAge     = 10 * time.Second
)

// window keeps the latencies of the recent past in two histograms: one is filled,
// the other is put aside when it is full. It has no lock; zero is ready.
type window struct {
	now, before *gradient.Histogram // nil until the first sample: they are large
	began       time.Time           // the window now
}

// add counts a latency. A histogram is put aside when it is full, or is old and has
// the samples that an estimate needs.
func (w *window) add(now time.Time, latency time.Duration, censored bool, full, enough int) {
	if w.now == nil {
		w.now, w.before = new(gradient.Histogram), new(gradient.Histogram)
		w.began = now
	}
	if n := w.now.Count(); n >= max(full, enough) || (n >= enough && now.Sub(w.began) >= windowAge) {
		w.now, w.before = w.before, w.now
		w.now.Reset()
		w.began = now
	}
	if censored {
		w.now.AddCensored(latency)
	} else {
		w.now.Add(latency)
	}
}

// count returns how many latencies are kept.
func (w *window) count() int {
	if w.now == nil {
		return 0
	}
	return w.now.Count() + w.before.Count()
}

// merge adds what is kept to h.
func (w *window) merge(h *gradient.Histogram) {
	if w.now != nil {
		h.Merge(w.before)
		h.Merge(w.now)
	}
}
