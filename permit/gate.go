package permit

import "fmt"

// MaxLimit is the highest limit of a pool: 2³⁰−1 permits.
const MaxLimit = 1<<30 - 1

// gate is all that an admission depends on, in one word, so that it is one load to
// refuse and one compare-and-swap to admit.
//
//	bit   63       61…32     31        30        29…0
//	      closed   limit     waiting   frozen    in flight
//
// Invariants:
//
//	1 ≤ limit ≤ MaxLimit
//	0 ≤ in flight; it rises only by swaps of a word that fits, so that in flight ≤ limit
//	    in the word that admitted
//	waiting ⇔ the queue is not empty, whenever mu is free
//	frozen  ⇒ mu is held, by Stats
//	closed never becomes false again, and closed ⇒ the queue is empty, whenever mu is free
//
// The flags are changed under mu only. While waiting or closed is set nobody is
// admitted but by the holder of mu: newcomers cannot overtake the queue.
type gate uint64

const (
	gateClosed  gate = 1 << 63
	gateWaiting gate = 1 << 31
	gateFrozen  gate = 1 << 30

	gateLimitShift = 32
)

func newGate(limit int) gate { return gate(limit) << gateLimitShift }

func (g gate) inFlight() int { return int(g & MaxLimit) }

func (g gate) limit() int { return int(g >> gateLimitShift & MaxLimit) }

// fits says whether n more may be out, with reserve free besides. Both are at least
// 0 and may be huge: in this form nothing overflows, on 32 bits neither.
func (g gate) fits(n, reserve int) bool {
	free := g.limit() - g.inFlight() // negative after a Resize downwards
	return n <= free && reserve <= free-n
}

// refuses says whether n are refused at once, whoever asks.
func (g gate) refuses(n, reserve int) bool {
	return g&(gateClosed|gateWaiting) != 0 || !g.fits(n, reserve)
}

func (g gate) withLimit(limit int) gate {
	const mask = gate(MaxLimit) << gateLimitShift
	return g&^mask | newGate(limit)
}

func checkLimit(what string, n int) error {
	switch {
	case n < 1:
		return fmt.Errorf("permit: %s %d is below 1", what, n)
	case n > MaxLimit:
		return fmt.Errorf("permit: %s %d is above MaxLimit %d", what, n, MaxLimit)
	}
	return nil
}
