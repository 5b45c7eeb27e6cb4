package hedgedlimit

import (
	"sync/atomic"
	"unsafe"
)

// A goroutine begins with a small stack, as a rule of 2 KiB, and one that calls deep, such
// as a round trip of net/http, has it copied to a larger one, frame by frame, once or twice on
// its way. To make it large at the first statement, when there is next to nothing to copy,
// saves 18 % of an HTTP call over a transport that answers at once and 3 % of one over
// loopback (BenchmarkHTTP in bench/, processor time); for a function that needs no more than
// the first 2 KiB it would cost a quarter of the call (BenchmarkCall). So it is done once an
// attempt of the hedger has been seen to need it.

// room is how large a frame is that needs a stack of 8 KiB.
const room = 5 << 10

// depth learns whether the attempts of a hedger outgrow their first stack. The zero value
// is ready.
type depth struct{ deep atomic.Bool }

// address returns where a variable on the stack is now. It is a number that is only
// compared: it changes if the stack has moved in between, and so has grown. (The garbage
// collector moves it too, to shrink one that has grown.)
func address(v *byte) uintptr { return uintptr(unsafe.Pointer(v)) }

// observe notes that a variable on the stack of an attempt was at one address at first and
// is at another now, if it is.
func (d *depth) observe(before, now uintptr) {
	if before != now && !d.deep.Load() {
		d.deep.Store(true)
	}
}

// grow makes the stack of the goroutine large if d is deep.
func (d *depth) grow() {
	if d.deep.Load() {
		roomy(0)
	}
}

// roomy has a frame of room bytes, which the stack must have before it runs. It writes to
// none of them unless n is positive, which it never is: to clear them would be dear.
//
//go:noinline
func roomy(n int) byte {
	if n <= 0 {
		return 0
	}
	var frame [room]byte
	return last(frame[:n])
}

// last keeps the compiler from seeing that the frame is not needed.
//
//go:noinline
func last(p []byte) byte { return p[len(p)-1] }
