// Package bubble runs simulations in virtual time: [Run] runs one, and [Each] runs many
// on all processors.
package bubble

import (
	"fmt"
	"runtime/debug"
	"testing"
	"testing/synctest"
)

// Run runs f with a clock of its own, which begins at midnight of 1 January 2000
// and moves only while f, and every goroutine that it started, waits. It returns the
// error of f, or an error that tells of its panic, once all those goroutines have ended;
// if none of them can go on, the program ends.
//
// A bubble wants a *testing.T, which a program does not have; an empty one does as
// long as nothing fails it, and so a panic must not get there. TestRun is the
// canary: it runs what this relies on under each version of Go.
func Run(f func() error) (err error) {
	synctest.Test(&testing.T{}, func(*testing.T) {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("bubble: panic in the simulation: %v\n%s", v, debug.Stack())
			}
		}()
		err = f()
	})
	return err
}

// Settle, in a bubble, waits until every other goroutine of it waits for something:
// what follows from this instant has then happened.
func Settle() { synctest.Wait() }
