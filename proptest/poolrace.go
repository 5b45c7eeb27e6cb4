package proptest

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing/synctest"
)

// poolRaces are the tests in which goroutines race. Each runs in a bubble, where
// goroutines run side by side as they do outside, and one that nobody will ever
// wake is seen at once.
var poolRaces = []struct {
	name string
	run  func(*poolRecord, func(int) Pool)
}{
	{"all at once", raceAllAtOnce},
	{"release at once", raceReleaseAtOnce},
	{"cancel meets grant", raceCancelMeetsGrant},
	{"churn", raceChurn},
}

// crowd are goroutines that start together.
type crowd struct {
	start chan struct{}
	ctx   context.Context // ends when all are let go
	leave context.CancelFunc
	open  atomic.Int32 // have not returned
	runs  atomic.Int32 // hold a permit, counted by themselves
	peak  atomic.Int32
}

func newCrowd() *crowd {
	c := &crowd{start: make(chan struct{})}
	c.ctx, c.leave = context.WithCancel(context.Background())
	return c
}

func (c *crowd) add(do func()) {
	c.open.Add(1)
	go func() {
		defer c.open.Add(-1)
		<-c.start
		do()
	}()
}

// goAll starts all and returns when none can go on.
func (c *crowd) goAll() {
	synctest.Wait()
	close(c.start)
	synctest.Wait()
}

// work holds a permit for as long as during takes.
func (c *crowd) work(release, during func()) {
	n := c.runs.Add(1)
	for peak := c.peak.Load(); n > peak && !c.peak.CompareAndSwap(peak, n); {
		peak = c.peak.Load()
	}
	during()
	c.runs.Add(-1)
	release()
}

// Many ask in the same instant, and hold what they get until all have asked. Then
// the rest follow one another.
func raceAllAtOnce(r *poolRecord, newPool func(int) Pool) {
	for round := 0; round < 400 && r.fault == ""; round++ {
		limit := 1 + round%4
		if round%50 == 49 {
			limit *= 16
		}
		p, c, hold := newPool(limit), newCrowd(), make(chan struct{})
		for range 3 + limit {
			c.add(func() {
				if release, ok := p.TryAcquire(); ok {
					c.work(release, func() { <-hold })
				}
			})
			c.add(func() {
				if release, err := p.Acquire(c.ctx); err == nil {
					c.work(release, func() { <-hold; runtime.Gosched() })
				}
			})
		}
		c.goAll()
		if n := int(c.runs.Load()); n != limit {
			r.failf("limit %d: %d hold a permit after all have asked at once", limit, n)
		}
		r.inFlight(p, limit)
		close(hold)
		r.rest(p, c, limit)
	}
}

// rest waits for all to return, and checks that every permit has come back.
func (r *poolRecord) rest(p Pool, c *crowd, limit int) {
	synctest.Wait()
	if n := c.open.Load(); n > 0 {
		r.failf("%d sleep and nobody will wake them; %d of %d permits are out", n, c.runs.Load(), limit)
	}
	if n := int(c.peak.Load()); n > limit {
		r.failf("%d held a permit at the same time, the limit is %d", n, limit)
	}
	c.leave()
	synctest.Wait()
	if r.fault == "" {
		r.probe(p, limit, limit)
	}
	r.end(p)
}

// Eight goroutines release one permit in the same instant.
func raceReleaseAtOnce(r *poolRecord, newPool func(int) Pool) {
	for round := 0; round < 400 && r.fault == ""; round++ {
		limit := 1 + round%3
		p, c := newPool(limit), newCrowd()
		var releases []func()
		r.doing = "TryAcquire with a permit free"
		for range limit {
			release, ok := p.TryAcquire()
			if !ok {
				r.failf("TryAcquire refused with %d of %d permits out", len(releases), limit)
				break
			}
			releases = append(releases, release)
		}
		if r.fault == "" {
			for range 8 {
				c.add(releases[0])
			}
			c.goAll()
			r.probe(p, 1, limit)
		}
		for _, release := range releases {
			release()
		}
		r.rest(p, c, limit)
	}
}

// The only permit is released while the first of two waiters leaves. It goes to
// one of them, whoever comes first.
func raceCancelMeetsGrant(r *poolRecord, newPool func(int) Pool) {
	for round := 0; round < 600 && r.fault == ""; round++ {
		p, c := newPool(1), newCrowd()
		r.doing = "TryAcquire with a permit free"
		release, ok := p.TryAcquire()
		if !ok {
			r.failf("TryAcquire refused with 0 of 1 permits out")
			return
		}
		ctx, leave := context.WithCancel(c.ctx)
		var got [2]atomic.Bool
		hold := make(chan struct{})
		wait := func(i int, ctx context.Context) {
			c.open.Add(1)
			go func() {
				defer c.open.Add(-1)
				if release, err := p.Acquire(ctx); err == nil {
					got[i].Store(true)
					c.work(release, func() { <-hold })
				}
			}()
			synctest.Wait()
		}
		wait(0, ctx)
		wait(1, c.ctx)
		switch round % 3 {
		case 0:
			c.add(leave)
			c.add(release)
		case 1:
			c.add(func() { leave(); release() })
		case 2:
			c.add(func() { release(); leave() })
		}
		c.goAll()
		if first, second := got[0].Load(), got[1].Load(); first == second {
			r.failf("a release met the leaving of the first of two waiters: the first has the permit: %v, the second: %v", first, second)
		}
		close(hold)
		r.rest(p, c, 1)
		leave()
	}
}

// Callers come and go in every way while the limit moves.
func raceChurn(r *poolRecord, newPool func(int) Pool) {
	const most, callers, times = 4, 8, 300
	p, c := newPool(most), newCrowd()
	for who := range callers {
		c.add(func() {
			for i := range times {
				r.visit(p, c, who+i)
			}
		})
	}
	if p.Resize != nil {
		c.add(func() {
			for i := range times {
				p.Resize(1 + i%most)
				runtime.Gosched()
			}
			p.Resize(most)
		})
	}
	c.goAll()
	r.rest(p, c, most)
}

// visit asks for a permit in one of four ways.
func (r *poolRecord) visit(p Pool, c *crowd, way int) {
	var release func()
	var err error
	ok := true
	switch way % 4 {
	case 0:
		release, ok = p.TryAcquire()
	case 1:
		ctx, cancel := context.WithCancel(c.ctx)
		go cancel()
		release, err = p.Acquire(ctx)
		cancel()
	default:
		release, err = p.Acquire(c.ctx)
	}
	if ok && err == nil {
		c.work(release, runtime.Gosched)
		if way%4 == 3 {
			release()
		}
	}
}
