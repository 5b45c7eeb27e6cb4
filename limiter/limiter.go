package limiter

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/permit"
)

// A Limiter bounds the work in flight by a limit that adapts.
//
// Do runs a function under a permit; Acquire and TryAcquire hand out the permit
// itself. All methods may be called from any number of goroutines. A Limiter
// must be made by New, and starts no goroutine of its own.
type Limiter struct {
	// Immutable after New.
	config Config
	pool   *permit.Pool
	shadow *permit.Pool // of those outside the limit; nil without Config.Shadow
	// sampler is the algorithm if it learns from single calls, and nil if not.
	sampler gradient.Sampler
	base    time.Time // one reading of the wall clock; all else is time since then

	// meter has its own locks, which are taken before the pool's, never after.
	meter meter

	// pace is what the last window has shown.
	pace pace

	// lastPressure is since base, in ns; 0 = never. It is atomic and never falls.
	lastPressure atomic.Int64
}

// New returns a limiter with nothing in flight. On a bad field it returns nil and
// an error that names the field and the value.
func New(config Config) (*Limiter, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	if config.Algorithm == nil {
		algorithm, err := gradient.New(gradient.Config{})
		if err != nil {
			return nil, err
		}
		config.Algorithm = algorithm
	}
	if config.Classify == nil {
		config.Classify = DefaultClassify
	}
	if config.OnPanic == nil {
		name := config.Name
		config.OnPanic = func(value any, stack []byte) {
			slog.Error("limiter: panic in a callback", "limiter", name, "panic", value, "stack", string(stack))
		}
	}
	if config.LIFOAfter == HalfMaxWait {
		config.LIFOAfter = max(config.MaxWait/2, 1)
	}
	l := &Limiter{config: config, base: time.Now()}
	l.sampler, _ = config.Algorithm.(gradient.Sampler)
	first := config.Algorithm.Start(l.base)
	first.Limit = possible(first.Limit)
	ledger := permit.Config{
		Limit:        first.Limit,
		Base:         l.base,
		LIFOAfter:    config.LIFOAfter,
		OnLeak:       l.leaked,
		StackEvery:   config.StackEvery,
		ReclaimLeaks: config.ReclaimLeaks,
	}
	pool, err := permit.NewPool(ledger)
	if err != nil {
		return nil, err
	}
	l.pool = pool
	if config.Shadow {
		ledger.Limit = permit.MaxLimit
		if l.shadow, err = permit.NewPool(ledger); err != nil {
			return nil, err
		}
	}
	l.meter.init(first)
	return l, nil
}

// possible is the limit of a pool that comes next to what an algorithm says.
func possible(limit int) int { return min(max(limit, 1), permit.MaxLimit) }

// leaked passes on what the pool found.
func (l *Limiter) leaked(leak permit.Leak) {
	if leak.Reclaimed {
		l.meter.forget(l.since(), leak.Permits)
	}
	if l.config.OnLeak != nil {
		defer l.catch()
		l.config.OnLeak(leak)
		return
	}
	slog.Error("limiter: a permit was lost without a Release",
		"limiter", l.config.Name, "held", leak.Held, "reclaimed", leak.Reclaimed, "stack", leak.Stack)
}

// since returns the monotonic time since the limiter was made. Calls of one
// goroutine never see it fall.
func (l *Limiter) since() time.Duration { return time.Since(l.base) }

// Do takes a permit as a primary, runs fn in this goroutine, and releases the
// permit when fn has returned, also by a panic or runtime.Goexit. It returns the
// error of fn unchanged. If no permit was to be had it returns ErrLimitExceeded,
// ErrClosed or ctx.Err(), and fn has not been run.
//
// The permit covers fn alone: work that fn leaves running elsewhere is not
// counted. What fn's error teaches the limit is decided by Config.Classify; a
// panic teaches nothing.
func (l *Limiter) Do(ctx context.Context, fn func(context.Context) error) (err error) {
	if fn == nil {
		return errors.New("limiter: Do with a nil function")
	}
	p, err := l.Acquire(ctx, Primary)
	if err != nil {
		return err
	}
	outcome := permit.Ignored // stays so if fn or Classify does not return
	defer func() { p.Release(outcome) }()
	err = fn(ctx)
	outcome = l.config.Classify(err)
	return err
}

// Acquire takes a permit for an attempt of the given kind. If none is free a
// Hedge is refused at once, and the other kinds wait as far as MaxWaiting and
// MaxWait allow, unless the deadline of ctx would pass before: the time that those ahead
// take to get out of the way, as the last window tells, and its median latency. It
// returns ErrLimitExceeded if the attempt is refused, ErrClosed
// after Close, and ctx.Err() if ctx has ended before or ends while it waits. On
// error no permit is held.
func (l *Limiter) Acquire(ctx context.Context, kind Kind) (p Permit, err error) {
	if kind == Hedge {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		p, ok := l.TryAcquire(Hedge)
		if !ok {
			return p, ErrLimitExceeded
		}
		return p, nil
	}
	if l.shadow != nil {
		return l.acquireShadow(ctx, kind)
	}
	var x permit.Permit
	if l.config.MaxWaiting == 0 {
		x, err = l.pool.AcquireWithin(ctx, 0)
		if err == permit.ErrQueueFull { //nolint:errorlint // the pool returns the sentinel itself
			l.reject(kind, rejectedLimit)
			return p, ErrLimitExceeded
		}
	} else {
		if deadline, ok := ctx.Deadline(); ok && l.late(deadline) {
			// The estimate has no say in whether there is room.
			x, err = l.pool.AcquireWithin(ctx, 0)
			if err == permit.ErrQueueFull { //nolint:errorlint // as above
				l.reject(kind, rejectedDeadline)
				return p, ErrLimitExceeded
			}
		} else {
			x, err = l.wait(ctx)
		}
	}
	if err != nil {
		return p, l.refuse(ctx, kind, err)
	}
	// Field by field: a copy of the whole at once would have to wait for the single
	// words to get out of the way, 8 ns.
	p.limiter, p.permit, p.mark = l, x, l.admit(x, kind)
	return p, nil
}

// wait takes a permit or waits for one, as far as the configuration allows.
func (l *Limiter) wait(ctx context.Context) (permit.Permit, error) {
	if l.config.MaxWaiting == Unbounded && l.config.MaxWait == 0 {
		return l.pool.Acquire(ctx)
	}
	if l.config.MaxWait == 0 {
		return l.pool.AcquireWithin(ctx, l.config.MaxWaiting)
	}
	// First as if nobody may wait, so that a call which finds a free permit pays
	// for no timer. Without room it is not asked, since it would count a refusal.
	if l.pool.InFlight() < l.pool.Limit() {
		x, err := l.pool.AcquireWithin(ctx, 0)
		if err != permit.ErrQueueFull { //nolint:errorlint // the pool returns the sentinel itself
			return x, err
		}
	}
	// The timer would be made in vain, and a refusal allocates nothing.
	if most := l.config.MaxWaiting; most != Unbounded && l.pool.Waiting() >= most {
		return l.pool.AcquireWithin(ctx, 0)
	}
	waiting, cancel := context.WithTimeout(ctx, l.config.MaxWait)
	defer cancel()
	if l.config.MaxWaiting == Unbounded {
		return l.pool.Acquire(waiting)
	}
	return l.pool.AcquireWithin(waiting, l.config.MaxWaiting)
}

// TryAcquire takes a permit if one is free at once and nobody waits, and returns
// false otherwise. A Hedge leaves the reserve free besides. On false no permit is
// held and the returned value does nothing.
func (l *Limiter) TryAcquire(kind Kind) (p Permit, ok bool) {
	if l.shadow != nil {
		p, err := l.acquireShadow(context.Background(), kind)
		return p, err == nil
	}
	x, ok := l.try(kind)
	if !ok {
		l.reject(kind, rejectedLimit)
		return p, false
	}
	p.limiter, p.permit, p.mark = l, x, l.admit(x, kind)
	return p, true
}

// try takes a permit if one is free at once, and is not to be left to others.
func (l *Limiter) try(kind Kind) (permit.Permit, bool) {
	reserve := 0
	if kind == Hedge {
		reserve = l.reserve(l.pool.Limit())
	}
	x, ok := l.pool.TryAcquireLeaving(reserve)
	if ok && kind == Hedge {
		// The limit may have changed since the reserve was worked out. What counts
		// is the limit of the grant.
		if g := x.Grant(); g.InFlight+l.reserve(g.Limit) > g.Limit {
			x.Release(permit.Ignored)
			return permit.Permit{}, false
		}
	}
	return x, ok
}

// reserve is how many permits a hedge must leave free under a limit.
func (l *Limiter) reserve(limit int) int {
	switch l.config.Reserve {
	case NoReserve:
		return 0
	case 0:
		return max(1, limit/10)
	}
	return l.config.Reserve
}

// admit enters a granted permit into the statistics.
func (l *Limiter) admit(x permit.Permit, kind Kind) mark {
	grant := x.Grant()
	if grant.Waited && kind.teaches() {
		l.press(grant.At)
	}
	inFlight := grant.InFlight
	if l.shadow != nil {
		inFlight = l.InFlight()
	}
	return newMark(kind, l.meter.begin(kind, grant, inFlight))
}

// refuse counts an attempt that got no permit, and says it in the limiter's words.
func (l *Limiter) refuse(ctx context.Context, kind Kind, err error) error {
	switch {
	case err == permit.ErrQueueFull: //nolint:errorlint // the pool returns the sentinel itself
		// It did not wait, and its context had not ended when it asked.
		l.reject(kind, rejectedQueueFull)
	case ctx.Err() != nil:
		l.meter.cell().rejected[0][rejectedCanceled].Add(1)
		return ctx.Err()
	case err == permit.ErrClosed: //nolint:errorlint // as above
		l.meter.cell().rejected[0][rejectedClosed].Add(1)
		return ErrClosed
	default: // MaxWait is over
		l.reject(kind, rejectedMaxWait)
	}
	return ErrLimitExceeded
}

// reject counts a refusal for lack of room. A refused primary is pressure, and
// may find a window due: a service that stands still ends no attempt that could.
func (l *Limiter) reject(kind Kind, reason rejection) {
	c := l.meter.cell()
	if !kind.teaches() {
		c.rejected[0][reason].Add(1)
		return
	}
	count := &c.rejected[1][reason]
	if reason == rejectedLimit && !c.reads(count.Load()+1) {
		count.Add(1)
		return
	}
	now := l.since()
	l.meter.open(now)
	n := count.Add(1)
	if reason == rejectedLimit {
		c.read(n, now)
	}
	l.press(now)
	if l.meter.mayBeDue(now) {
		l.closeWindow(now)
	}
}

// press notes that somebody wanted a permit and found none.
func (l *Limiter) press(now time.Duration) {
	at := max(int64(now), 1)
	for old := l.lastPressure.Load(); old < at; old = l.lastPressure.Load() {
		if l.lastPressure.CompareAndSwap(old, at) {
			return
		}
	}
}

// closeWindow lets the algorithm see the window if it is due, and puts its decision in
// force. It must be called without locks.
func (l *Limiter) closeWindow(now time.Duration) {
	for {
		if !l.meter.asked.Load() {
			l.meter.asked.Store(true)
		}
		if !l.meter.closing.TryLock() {
			return // another is at it, and will see that we have asked
		}
		change, decided, changed := l.decide(now)
		if changed && l.config.OnLimitChange != nil {
			defer l.catch()
			l.config.OnLimitChange(change)
		}
		// After a decision the next event may look again. Without one, what somebody
		// entered meanwhile may have been all that was missing.
		if decided || !l.meter.asked.Load() {
			return
		}
	}
}

// decide does the work of closeWindow. meter.closing must be held, and is let go on
// every path, a panic of the algorithm included.
func (l *Limiter) decide(now time.Duration) (change Change, decided, changed bool) {
	defer l.meter.closing.Unlock()
	defer l.catch()
	w, decided := l.meter.take(now, l.pool.Limit())
	if !decided {
		return Change{}, false, false
	}
	if l.config.MaxWaiting != 0 {
		l.pace.note(w)
	}
	d := l.config.Algorithm.Next(l.base.Add(now), w)
	d.Limit = possible(d.Limit)
	l.meter.put(l.since(), d)
	if d.Limit == w.Limit {
		return Change{}, true, false
	}
	if err := l.pool.Resize(d.Limit); err != nil {
		panic("limiter: internal error: " + err.Error())
	}
	return Change{Old: w.Limit, New: d.Limit, Reason: d.Reason}, true, true
}

// catch reports a panic of a callback. It must be deferred. A panic of OnPanic
// itself is logged and ends there.
func (l *Limiter) catch() {
	v := recover()
	if v == nil {
		return
	}
	defer func() {
		if w := recover(); w != nil {
			slog.Error("limiter: panic in OnPanic", "panic", w, "while reporting", v)
		}
	}()
	l.config.OnPanic(v, debug.Stack())
}

// Name returns the name that the limiter was configured with.
func (l *Limiter) Name() string { return l.config.Name }

// Limit returns the limit in force.
func (l *Limiter) Limit() int { return l.pool.Limit() }

// InFlight returns how many permits are out, of all kinds.
func (l *Limiter) InFlight() int {
	n := l.pool.InFlight()
	if l.shadow != nil {
		n += l.shadow.InFlight()
	}
	return n
}

// Classify says what err teaches the limit, by the configured rule.
func (l *Limiter) Classify(err error) permit.Outcome { return l.config.Classify(err) }

// LastPressure returns when a primary or retry was last refused or had to wait,
// and the zero Time if that never happened. Of refusals that come in quick succession
// one in 64 reads the clock, so it may be too early by what 63 of them take.
func (l *Limiter) LastPressure() time.Time {
	at := l.lastPressure.Load()
	if at == 0 {
		return time.Time{}
	}
	return l.base.Add(time.Duration(at))
}

// Close refuses all further attempts, wakes those who wait with ErrClosed, and
// waits until every permit has been released. It returns nil then, or ctx.Err()
// if ctx ends before; the limiter stays closed, and Close may be called again.
func (l *Limiter) Close(ctx context.Context) error {
	if l.shadow != nil {
		return l.closeShadow(ctx)
	}
	return l.pool.Close(ctx)
}
