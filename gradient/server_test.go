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

// phase is a stretch of traffic and of service. Times are in seconds.
type phase struct {
	length  float64
	rate    float64 // offered per second, Poisson; +Inf keeps every client at its limit
	workers int     // first-in first-out
	mean    float64 // of the service
	// service is the time that a call takes which begins at that time of the phase,
	// with as many in flight at the server. Nil is log-normal with sigma 0.3.
	service func(r *rand.Rand, at float64, inFlight int) float64

	hits      float64 // this share takes a millisecond beside the queue
	expire    float64 // if not 0, every call ends after so long, with a deadline error
	impatient float64 // this share of callers gives up after patience
	patience  float64
	room      int     // if not 0, as many may wait at the server; it refuses the others in 100 µs
	lost      float64 // this share runs into a deadline of 500 ms, whatever the load
	failing   float64 // this share is refused by the server in 100 µs, whatever the load
}

// capacity is what the server can do in a second.
func (p phase) capacity() float64 { return float64(p.workers) / (p.mean * (1 - p.hits)) }

// logNormal draws from a log-normal law with this mean.
func logNormal(r *rand.Rand, mean, sigma float64) float64 {
	return mean * math.Exp(sigma*r.NormFloat64()-sigma*sigma/2)
}

// pareto draws from a Pareto law with exponent 1.5 and this mean, cut at 2 s.
func pareto(r *rand.Rand, mean float64) float64 {
	return min(2, mean/3*math.Pow(1-r.Float64(), -1/1.5))
}

// constant takes as long every time.
func constant(seconds float64) func(*rand.Rand, float64, int) float64 {
	return func(*rand.Rand, float64, int) float64 { return seconds }
}

// decided is one decision of an algorithm, at a time of its phase.
type decided struct {
	at     float64
	limit  int
	reason gradient.Reason
}

// result is what a phase came to.
type result struct {
	good     float64 // share of min(offered, capacity) that ended within 500 ms
	rejected float64
	p50, p99 float64   // ms, of what was admitted
	mean     float64   // of the limits of all clients, over time
	trace    []decided // of the first client
	fairness float64   // Jain's index of what the clients got done
}

// secondsTo returns how far into the phase the limit first was at least l.
func (r result) secondsTo(l float64) float64 {
	for _, d := range r.trace {
		if float64(d.limit) >= l {
			return d.at
		}
	}
	return math.Inf(1)
}

// last is the limit at the end of the phase.
func (r result) last() int { return r.trace[len(r.trace)-1].limit }

// call is an attempt that holds a permit.
type call struct {
	client *client
	start  float64
	among  int // in flight when it was admitted
	epoch  int
	phase  int
	ended  bool // its caller has gone; the server may still work on it
}

const (
	served  = iota // the server is done with it
	beside         // answered beside the queue
	expired        // the deadline of the caller
	gaveUp         // the caller cancelled
	refused        // by the server
)

type event struct {
	at   float64
	what int
	call *call
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

// client does the limiter's part in its simplest form: admission, windows, epochs.
type client struct {
	algorithm gradient.Algorithm
	tick      float64 // its clock moves in such steps; 0 = it is exact

	d              gradient.Decision
	inFlight       int
	epoch          int
	settled, begin float64
	integral, last float64
	hist           gradient.Histogram
	w              gradient.Window
	done           int // good calls of this phase
	limitTime      float64
	limitSince     float64
}

func (c *client) clock(now float64) float64 {
	if c.tick == 0 {
		return now
	}
	return math.Floor(now/c.tick) * c.tick
}

func (c *client) reset(now float64) {
	c.begin, c.last, c.integral = now, now, 0
	c.w = gradient.Window{MaxInFlight: c.inFlight}
	c.hist.Reset()
}

// advance brings the window up to now, by the client's clock.
func (c *client) advance(now float64) {
	if c.begin < c.settled && now >= c.settled {
		c.reset(c.settled)
	}
	c.integral += float64(c.inFlight) * (now - c.last)
	c.last = now
}

// admit reports whether a call may start.
func (c *client) admit(now float64) bool {
	c.advance(c.clock(now))
	if c.inFlight >= c.d.Limit {
		c.w.Refused++
		c.w.Saturated = true
		return false
	}
	c.inFlight++
	c.w.Admitted++
	c.w.MaxInFlight = max(c.w.MaxInFlight, c.inFlight)
	c.w.Saturated = c.w.Saturated || c.inFlight >= c.d.Limit
	return true
}

// end tells that a call has ended.
func (c *client) end(now float64, x *call, how int) {
	c.advance(c.clock(now))
	c.inFlight--
	if how != refused {
		c.w.Completed++
	}
	latency := time.Duration((c.clock(now) - c.clock(x.start)) * 1e9)
	if a, ok := c.algorithm.(gradient.Sampler); ok && how != gaveUp {
		a.Sample(time.Duration(x.start*1e9), latency, x.among, how == expired || how == refused)
	}
	if x.epoch != c.epoch {
		return
	}
	switch how {
	case served, beside:
		c.hist.Add(latency)
	case expired:
		c.w.Drops++
		c.hist.AddCensored(latency)
	case gaveUp:
		c.hist.AddCensored(latency)
	case refused:
		c.w.Drops++
	}
}

// closeIfDue shows the algorithm a window that is due.
func (c *client) closeIfDue(at float64) bool {
	now := c.clock(at)
	elapsed := now - c.begin
	if (now < c.settled && c.w.Drops < 5) || !c.d.Due(time.Duration(elapsed*1e9), c.hist.Count(), c.w.Drops) {
		return false
	}
	c.w.Limit, c.w.Elapsed, c.w.Latency = c.d.Limit, time.Duration(elapsed*1e9), &c.hist
	if elapsed > 0 {
		c.w.InFlight = c.integral / elapsed
	}
	c.limitTime += float64(c.d.Limit) * (at - c.limitSince)
	c.limitSince = at
	c.d = c.algorithm.Next(origin.Add(time.Duration(now*1e9)), &c.w)
	if c.d.NewEpoch {
		c.epoch++
	}
	c.reset(now)
	c.settled = now + c.d.Settle.Seconds()
	return true
}

// simulation drives algorithms against one server with a queue, in virtual time. Work
// goes on at the server when its caller has gone.
type simulation struct {
	t       testing.TB
	r       *rand.Rand
	clients []*client
	phases  []phase

	now, begin float64 // begin of the phase
	current    int
	queue      events
	waiting    []*call
	busy       int // workers
	inside     int // calls at the server

	results                 []result
	latencies               [][]float64
	good, offered, rejected []int
}

// simulate drives one algorithm through the phases.
func simulate(t testing.TB, a gradient.Algorithm, seed uint64, phases ...phase) []result {
	t.Helper()
	return simulateAll(t, []*client{{algorithm: a}}, seed, phases...)
}

// simulateAll drives many clients that share a server, and the demand evenly.
func simulateAll(t testing.TB, clients []*client, seed uint64, phases ...phase) []result {
	t.Helper()
	n := len(phases)
	s := &simulation{
		t: t, r: rand.New(rand.NewPCG(seed, 1)), clients: clients, phases: phases,
		results: make([]result, n), latencies: make([][]float64, n),
		good: make([]int, n), offered: make([]int, n), rejected: make([]int, n),
	}
	for _, c := range clients {
		c.d = c.algorithm.Start(origin)
	}
	for i, p := range phases {
		s.current, s.begin = i, s.now
		s.run(p)
		s.conclude(p)
	}
	return s.results
}

func (s *simulation) run(p phase) {
	until, endless := s.now+p.length, math.IsInf(p.rate, 1)
	next := until + 1
	if !endless {
		next = s.now + s.r.ExpFloat64()/p.rate
	}
	for {
		for _, c := range s.clients {
			for endless && c.inFlight < c.d.Limit {
				s.arrive(p, c)
				if c.inFlight == c.d.Limit {
					s.arrive(p, c) // and one more is refused
				}
			}
		}
		if len(s.queue) > 0 && s.queue[0].at <= min(next, until) {
			e := heap.Pop(&s.queue).(event)
			s.now = e.at
			s.happen(p, e)
			continue
		}
		if next > until {
			s.now = until
			return
		}
		s.now = next
		next += s.r.ExpFloat64() / p.rate
		s.arrive(p, s.clients[s.r.IntN(len(s.clients))])
	}
}

func (s *simulation) push(after float64, what int, x *call) {
	heap.Push(&s.queue, event{at: s.now + after, what: what, call: x})
}

func (s *simulation) arrive(p phase, c *client) {
	s.offered[s.current]++
	if !c.admit(s.now) {
		s.rejected[s.current]++
		s.close(c)
		return
	}
	x := &call{client: c, start: s.now, among: c.inFlight, epoch: c.epoch, phase: s.current}
	if p.impatient > 0 && s.r.Float64() < p.impatient {
		s.push(p.patience, gaveUp, x)
	}
	switch {
	case p.expire > 0:
		s.push(p.expire, expired, x)
	case p.lost > 0 && s.r.Float64() < p.lost:
		s.push(0.5, expired, x)
	case p.hits > 0 && s.r.Float64() < p.hits:
		s.push(0.001, beside, x)
	case p.failing > 0 && s.r.Float64() < p.failing, p.room > 0 && len(s.waiting) >= p.room:
		s.push(0.0001, refused, x)
	default:
		s.inside++
		s.waiting = append(s.waiting, x)
		s.work(p)
	}
}

// work gives waiting calls to idle workers.
func (s *simulation) work(p phase) {
	for s.busy < p.workers && len(s.waiting) > 0 {
		x := s.waiting[0]
		s.waiting = s.waiting[1:]
		took := 0.0
		if p.service == nil {
			took = logNormal(s.r, p.mean, 0.3)
		} else {
			took = p.service(s.r, s.now-s.begin, s.inside)
		}
		s.push(took, served, x)
		s.busy++
	}
}

func (s *simulation) happen(p phase, e event) {
	if e.what == served {
		s.busy--
		s.inside--
		s.work(p)
	}
	x := e.call
	if x.ended {
		return
	}
	x.ended = true
	x.client.end(s.now, x, e.what)
	l := s.now - x.start
	if (e.what == served || e.what == beside) && l <= 0.5 {
		s.good[x.phase]++
		x.client.done++
	}
	if e.what != refused {
		s.latencies[x.phase] = append(s.latencies[x.phase], l*1000)
	}
	s.close(x.client)
}

func (s *simulation) close(c *client) {
	if !c.closeIfDue(s.now) {
		return
	}
	if c.d.Limit < 1 {
		s.t.Fatalf("limit %d", c.d.Limit)
	}
	if c == s.clients[0] {
		r := &s.results[s.current]
		r.trace = append(r.trace, decided{at: s.now - s.begin, limit: c.d.Limit, reason: c.d.Reason})
	}
}

func (s *simulation) conclude(p phase) {
	i, r := s.current, &s.results[s.current]
	r.good = float64(s.good[i]) / min(float64(s.offered[i]), p.length*p.capacity())
	r.rejected = float64(s.rejected[i]) / float64(max(s.offered[i], 1))
	if l := s.latencies[i]; len(l) > 0 {
		slices.Sort(l)
		r.p50, r.p99 = l[len(l)/2], l[len(l)*99/100]
	}
	sum, squares := 0.0, 0.0
	for _, c := range s.clients {
		r.mean += (c.limitTime + float64(c.d.Limit)*(s.now-c.limitSince)) / p.length
		sum += float64(c.done)
		squares += float64(c.done) * float64(c.done)
		c.limitTime, c.limitSince, c.done = 0, s.now, 0
	}
	if squares > 0 {
		r.fairness = sum * sum / (squares * float64(len(s.clients)))
	}
}
