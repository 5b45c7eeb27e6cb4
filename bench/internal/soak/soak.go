package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/limiter"
)

// overload is how often a server is called, as a multiple of what it can answer.
const overload = 2

// eagerLimit is the limit of the eager transport for each server: above what they can take.
const eagerLimit = 64

// Config says how to soak.
type Config struct {
	// Time is how long calls are begun. It must be positive.
	Time time.Duration
	// Capacity is how many requests each of the two servers answers at once. It must
	// be positive.
	Capacity int
	// Seed makes the draws of the calls; the times of a real machine stay its own.
	Seed uint64
	// Progress is called with what has happened so far, once in each Every, while calls
	// are begun. It runs in the goroutine of Run. Nil is allowed.
	Progress func(Snapshot)
	Every    time.Duration

	drain time.Duration // 0 is drainTime
	keep  bool          // keep a body open, to see that the verdict tells
}

// Snapshot is what has happened so far.
type Snapshot struct {
	// Elapsed is how long calls were begun, and at the end until the last of them was over.
	Elapsed  time.Duration `json:"elapsed_ns"`
	Calls    uint64        `json:"calls"`
	Answered uint64        `json:"answered"`
	Failed   uint64        `json:"failed"`  // answered with 5xx
	Refused  uint64        `json:"refused"` // by the limit
	Broken   uint64        `json:"broken"`  // ended with an error
	Panicked uint64        `json:"panicked"`
	Hedged   uint64        `json:"hedged"`
	// LostBodies is how many were dropped and then found.
	LostBodies uint64 `json:"lost_bodies"`
	InFlight   int    `json:"in_flight"` // permits
	Goroutines int    `json:"goroutines"`
	Heap       uint64 `json:"heap_bytes"` // after the last collection
}

// Result is what a run has shown.
type Result struct {
	// Last is before anything was waited for but the calls.
	Last Snapshot `json:"last"`
	// Kinds is how many calls there were of each kind.
	Kinds map[string]uint64 `json:"kinds"`
	// FirstHeap and LastHeap are the medians of the heap, in bytes after a collection,
	// in the first and the last third of the run.
	FirstHeap uint64 `json:"first_heap_bytes"`
	LastHeap  uint64 `json:"last_heap_bytes"`
	// Interrupted tells that the context ended before the time was over. Whoever writes a
	// report says so for all of it.
	Interrupted bool `json:"-"`
	// Wrong is everything that must not be. Empty, which is never nil, is a pass.
	Wrong []string `json:"wrong"`
}

// target is one server with the protocol that it speaks.
type target struct {
	name   string
	server *server
}

// run is one soak.
type run struct {
	config     Config
	base       *base
	transports []*httpmw.Transport // of which each call uses one
	targets    []*target
	began      time.Time

	callers sync.WaitGroup
	calls   atomic.Uint64
	kinds   [numKinds]atomic.Uint64
	ends    [numEnds]atomic.Uint64
	good    []atomic.Uint64 // answered, by target
	heaps   []uint64        // of the goroutine of Run

	mu    sync.Mutex
	wrong []string         // guarded by mu
	kept  []*http.Response // likewise
}

// Run soaks until the time is over or ctx has ended, and looks then for what has stayed
// behind. The error tells that it could not begin.
func Run(ctx context.Context, config Config) (Result, error) {
	switch {
	case config.Time <= 0:
		return Result{}, fmt.Errorf("soak: Time %v is not positive", config.Time)
	case config.Capacity <= 0:
		return Result{}, fmt.Errorf("soak: Capacity %d is not positive", config.Capacity)
	}
	if config.drain == 0 {
		config.drain = drainTime
	}
	goroutines := runtime.NumGoroutine()
	var http1, http2 http.Protocols
	http1.SetHTTP1(true)
	http2.SetUnencryptedHTTP2(true)
	r := &run{config: config, good: make([]atomic.Uint64, 2), wrong: []string{}}
	defer r.closeServers()
	for _, t := range []struct {
		name      string
		protocols *http.Protocols
		limited   bool
	}{{"HTTP/1.1", &http1, false}, {"HTTP/2", &http2, true}} {
		s, err := newServer(config.Capacity, t.protocols, t.limited)
		if err != nil {
			return Result{}, err
		}
		r.targets = append(r.targets, &target{t.name, s})
	}
	inner := byHost{}
	for _, t := range r.targets {
		inner[t.server.url] = &http.Transport{MaxIdleConnsPerHost: 64, Protocols: t.server.http.Protocols}
	}
	r.base = &base{inner: inner}
	for _, configure := range []func(string, *hedgedlimit.Config) error{byDefault, eagerly} {
		t, err := httpmw.NewTransport(r.base, httpmw.WithConfig(configure))
		if err != nil {
			return Result{}, err
		}
		r.transports = append(r.transports, t)
	}
	r.began = time.Now()
	interrupted := r.load(ctx)
	r.callers.Wait()
	result := Result{Interrupted: interrupted, Kinds: map[string]uint64{}, Last: r.snapshot()}
	for k := range r.kinds {
		if n := r.kinds[k].Load(); n > 0 {
			result.Kinds[kind(k).String()] = n
		}
	}
	result.FirstHeap, result.LastHeap = r.judgeHeap()
	r.drain(inner, goroutines)
	r.judgeLoad(result.Last, interrupted)
	result.Wrong = r.wrong
	return result, nil
}

// byDefault changes nothing that matters. Under so much load its gates let no hedge through.
func byDefault(_ string, c *hedgedlimit.Config) error {
	c.OnPanic = func(any, []byte) {} // planned; the callers see it
	return nil
}

// eagerly sends many hedges, whatever the load, so that there are losers.
func eagerly(host string, c *hedgedlimit.Config) error {
	algorithm, err := gradient.NewFixed(eagerLimit)
	if err != nil {
		return err
	}
	if c.Limiter, err = limiter.New(limiter.Config{Name: host, Algorithm: algorithm}); err != nil {
		return err
	}
	c.MaxAttempts, c.Delay = 3, hedgedlimit.Fixed(meanService)
	c.Gates, c.Budget = hedgedlimit.NoGates, hedgedlimit.Unlimited
	return byDefault(host, c)
}

// byHost is a transport for each server, since a transport that speaks both would speak
// HTTP/1.1 to both without TLS.
type byHost map[string]*http.Transport

func (b byHost) RoundTrip(r *http.Request) (*http.Response, error) {
	return b[r.URL.Scheme+"://"+r.URL.Host].RoundTrip(r)
}

func (r *run) closeServers() {
	for _, t := range r.targets {
		t.server.close()
	}
}

// load begins calls at random until the time is over, and reports whether ctx ended it.
// What a server answers in a second is its capacity over the mean time of service; it is
// called twice as often, whatever becomes of the calls.
func (r *run) load(ctx context.Context) (interrupted bool) {
	over := time.NewTimer(r.config.Time)
	defer over.Stop()
	heap := time.NewTicker(max(r.config.Time/60, 100*time.Millisecond))
	defer heap.Stop()
	var progress <-chan time.Time
	if r.config.Progress != nil && r.config.Every > 0 {
		t := time.NewTicker(r.config.Every)
		defer t.Stop()
		progress = t.C
	}
	random := rand.New(rand.NewPCG(r.config.Seed, 0)) //nolint:gosec // reproducible on purpose
	rate := overload * float64(len(r.targets)) * float64(r.config.Capacity) / meanService.Seconds()
	next := time.NewTimer(0)
	defer next.Stop()
	due := time.Now()
	if r.config.keep {
		r.begin(kept, random)
	}
	for {
		select {
		case <-ctx.Done():
			return true
		case <-over.C:
			return false
		case <-heap.C:
			r.sampleHeap()
		case <-progress:
			r.config.Progress(r.snapshot())
		case <-next.C:
			// Behind the times, as after a collection, all that were due are begun.
			for ; !due.After(time.Now()); due = due.Add(time.Duration(random.ExpFloat64() / rate * float64(time.Second))) {
				r.begin(draw(random), random)
			}
			next.Reset(time.Until(due))
		}
	}
}

// begin begins a call, in a goroutine of its own.
func (r *run) begin(k kind, random *rand.Rand) {
	n := random.IntN(len(r.targets))
	through := r.transports[random.IntN(len(r.transports))]
	own := rand.New(rand.NewPCG(random.Uint64(), random.Uint64())) //nolint:gosec // as above
	r.calls.Add(1)
	r.kinds[k].Add(1)
	r.callers.Go(func() {
		how, wrong := r.call(through, r.targets[n], k, own)
		r.ends[how].Add(1)
		if how == answered {
			r.good[n].Add(1)
		}
		if wrong != nil {
			r.tell("%v", wrong)
		}
	})
}

func (r *run) keep(answer *http.Response) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, answer)
}

// tell notes something that must not be, the first ones of them.
func (r *run) tell(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.wrong) < 20 {
		r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
	}
}

func (r *run) snapshot() Snapshot {
	s := Snapshot{
		Elapsed:    time.Since(r.began),
		Calls:      r.calls.Load(),
		Answered:   r.ends[answered].Load(),
		Failed:     r.ends[failed].Load(),
		Refused:    r.ends[refused].Load(),
		Broken:     r.ends[broken].Load(),
		Panicked:   r.ends[panicked].Load(),
		Goroutines: runtime.NumGoroutine(),
	}
	for _, t := range r.transports {
		stats := t.Stats()
		s.LostBodies += stats.LostBodies
		for _, h := range stats.Hosts {
			s.InFlight += h.Limiter.Ledger.InFlight
			s.Hedged += h.Hedging.Hedged
		}
	}
	if n := len(r.heaps); n > 0 {
		s.Heap = r.heaps[n-1]
	}
	return s
}

// sampleHeap notes how much is in use after a collection.
func (r *run) sampleHeap() {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.heaps = append(r.heaps, m.HeapAlloc)
}

// median returns 0 for none.
func median(of []uint64) uint64 {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}
