package hedgedlimit

import (
	"fmt"
	"time"
)

// LoserPolicy says what happens to the attempts that still run when the call has
// been decided. Whatever it says, each of them holds its permit until its work
// has ended. The zero value is Cancel.
//
// When it is the caller's own context that ends, all attempts are cancelled
// under every policy: the caller does not want the work any more.
type LoserPolicy struct {
	drain time.Duration
	set   bool // made by Drain, so that its bound is checked
}

// Cancel cancels the context of a loser at once.
func Cancel() LoserPolicy { return LoserPolicy{} }

// Drain lets a loser finish by itself for at most bound after the call was
// decided, and cancels it then. Use it where cancelling does harm: over HTTP/1 it
// costs the connection, and a server that ignores cancellation goes on working
// anyway, unseen. The caller's deadline still bounds a loser that is drained; the
// caller's cancellation after the decision does not reach it.
func Drain(bound time.Duration) LoserPolicy { return LoserPolicy{drain: bound, set: true} }

// String tells the policy in words.
func (p LoserPolicy) String() string {
	if p.drain > 0 {
		return fmt.Sprintf("drain for at most %v", p.drain)
	}
	return "cancel"
}

func (p LoserPolicy) validate() error {
	if p.set && p.drain <= 0 {
		return fmt.Errorf("hedgedlimit: Losers: Drain bound %v is not positive", p.drain)
	}
	return nil
}
