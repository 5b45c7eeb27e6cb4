package arena

import (
	"fmt"
	"runtime/debug"
	"testing"
	"testing/synctest"
)

// inBubble runs f with a clock of its own, which begins at midnight of 1 January 2000
// and moves only while f sleeps. It returns the error of f, or an error that tells
// of its panic.
//
// A bubble wants a *testing.T, which a program does not have; an empty one does as
// long as nothing fails it, and so a panic must not get there. TestBubble is the
// canary: it runs what this relies on under each version of Go.
func inBubble(f func() error) (err error) {
	synctest.Test(&testing.T{}, func(*testing.T) {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("arena: panic in the simulation: %v\n%s", v, debug.Stack())
			}
		}()
		err = f()
	})
	return err
}
