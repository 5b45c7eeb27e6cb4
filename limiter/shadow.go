package limiter

import (
	"context"

	"github.com/holdfast-go/holdfast/permit"
)

// Under Config.Shadow there are two ledgers. The pool has the limit, and those who are
// inside it; shadow has no limit, and those who would have been refused. So each keeps the
// law of the ledger, and whether there is room inside depends on those inside alone:
// in a single ledger without a limit, those who would not have run would take
// the places of those who would.

// acquireShadow takes a permit inside the limit if one is free, and one outside if not.
func (l *Limiter) acquireShadow(ctx context.Context, kind Kind) (p Permit, err error) {
	if err := ctx.Err(); err != nil {
		return p, l.refuse(ctx, kind, err)
	}
	if x, ok := l.try(kind); ok {
		p.limiter, p.permit, p.mark = l, x, l.admit(x, kind)
		return p, nil
	}
	x, err := l.shadow.Acquire(ctx)
	if err != nil {
		return p, l.refuse(ctx, kind, err)
	}
	l.reject(kind, rejectedNot)
	// As Bypass it counts as in flight, and nothing else.
	epoch := l.meter.begin(Bypass, x.Grant(), l.InFlight())
	p.limiter, p.permit, p.mark = l, x, newMark(kind, epoch)|outside
	return p, nil
}

// ledger adds up both ledgers. Each obeys its identities, and so does the sum.
func (l *Limiter) ledger() permit.Stats {
	s := l.pool.Stats()
	if l.shadow == nil {
		return s
	}
	x := l.shadow.Stats()
	s.InFlight += x.InFlight
	s.Overhang += x.Overhang
	s.Oldest = max(s.Oldest, x.Oldest)
	s.Granted += x.Granted
	for o := range s.Released {
		s.Released[o] += x.Released[o]
	}
	s.Refused = x.Refused // those of the pool were not turned away
	s.Leaked += x.Leaked
	return s
}

// closeShadow closes both ledgers, and then waits for both.
func (l *Limiter) closeShadow(ctx context.Context) error {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = l.shadow.Close(ended) // it says that permits are out; they are waited for below
	if err := l.pool.Close(ctx); err != nil {
		return err
	}
	return l.shadow.Close(ctx)
}
