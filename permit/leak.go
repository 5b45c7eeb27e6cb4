package permit

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
	"weak"
)

// Leak tells of a permit that can never be released, because no handle to it is left.
type Leak struct {
	// Permits is how many: 1, or the n of AcquireN.
	Permits int
	// Held is how long it has been out, to the millisecond. It is 0 without Config.Base.
	Held time.Duration
	// Stack is where it was acquired, in the form of a panic's trace; empty if this
	// permit was not sampled.
	Stack string
	// Reclaimed tells that the permit was given back, under Config.ReclaimLeaks.
	Reclaimed bool
}

// witness stands for the handles of a permit: it is reachable from them, and from the
// pool only while its record is free. That it becomes unreachable with the record held
// therefore means a leak.
type witness struct {
	pool   *Pool
	record *record
}

// orphan finds the record of a witness that is gone. It refers to the pool weakly and
// to the record by its place: anything from which the witness can be reached would keep
// it, and the whole pool, alive for ever.
type orphan struct {
	pool        weak.Pointer[Pool]
	cell, index int
}

func (p *Pool) newWitness(r *record) *witness {
	w := &witness{pool: p, record: r}
	runtime.AddCleanup(w, orphan.found, orphan{pool: weak.Make(p), cell: p.cellIndex(r.cell), index: r.index})
	return w
}

func (p *Pool) cellIndex(c *cell) int {
	for i := range p.cells {
		if c == &p.cells[i] {
			return i
		}
	}
	panic("permit: internal error: a record of another pool")
}

// found runs on a goroutine of the runtime, some time after a collection, and holds up
// no other cleanup for longer than the hook takes.
func (o orphan) found() {
	p := o.pool.Value()
	if p == nil {
		return // the pool is gone too, and nobody can miss the permit
	}
	c := &p.cells[o.cell]
	c.mu.Lock()
	r := c.records[o.index]
	c.mu.Unlock()
	// No handle is left, so the tag stands still: nobody could change it but its holder.
	tag := r.tag.Load()
	if s := tag & stateMask; s != held && s != abandoned {
		return
	}
	leak := Leak{Permits: int(r.size.Load()), Reclaimed: p.config.ReclaimLeaks}
	if p.timed {
		leak.Held = max(0, time.Since(p.config.Base)-time.Duration(r.at.Load()))
	}
	if s := r.stack.Load(); s != nil && s.generation == tag>>stateBits {
		leak.Stack = s.String()
	}
	p.leaked.Add(uint64(leak.Permits))
	if leak.Reclaimed {
		p.finish(p.newWitness(r), tag>>stateBits, Ignored)
	}
	p.report(leak)
}

// report calls the hook, on a goroutine that it may end: a panic of the runtime's own
// would take the process with it, and runtime.Goexit all cleanups that are to come.
func (p *Pool) report(leak Leak) {
	if p.config.OnLeak == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				slog.Error("permit: panic in OnLeak", "panic", v, "stack", string(debug.Stack()))
			}
		}()
		p.config.OnLeak(leak)
	}()
	<-done
}

// stack is where the permit of one generation of a record was acquired.
type stack struct {
	generation uint64
	pcs        []uintptr
}

// maxFrames bounds what a sampled stack keeps.
const maxFrames = 32

// sample notes the stack of the calling goroutine, which has just been granted x, if it
// is one to be sampled.
func (p *Pool) sample(x Permit) {
	if p.config.StackEvery > 0 {
		p.draw(x)
	}
}

// draw decides by lot: any count would fall into step with what the program does in turns.
func (p *Pool) draw(x Permit) {
	if rand.IntN(p.config.StackEvery) != 0 {
		return
	}
	var pcs [maxFrames]uintptr
	n := runtime.Callers(2, pcs[:])
	x.witness.record.stack.Store(&stack{generation: x.generation, pcs: append([]uintptr(nil), pcs[:n]...)})
}

// String leaves out the pool's own functions, which say nothing about the caller.
func (s *stack) String() string {
	var b strings.Builder
	frames := runtime.CallersFrames(s.pcs)
	for {
		f, more := frames.Next()
		if f.Function != "" && (b.Len() > 0 || !strings.HasPrefix(f.Function, poolMethods)) {
			fmt.Fprintf(&b, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
		}
		if !more {
			return b.String()
		}
	}
}

const poolMethods = "github.com/holdfast-go/holdfast/permit.(*Pool)."
