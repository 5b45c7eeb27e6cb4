// Package arena lets limits stand trial in virtual time: thirteen scenarios of
// overload, drift, outage and sharing, each with a known ideal.
//
// What runs is the library itself, limiter.Limiter with gradient.Gradient, and not a
// model of it. It reads the clock by time.Now, so a simulation lives in a bubble of
// testing/synctest, whose clock moves only when the simulation sleeps: see
// package bubble. One goroutine drives everything. It takes the next event, sleeps until
// then, and calls the limit under test; there is no goroutine for a call, so a
// minute of 15 000 calls a second takes seconds.
//
// A [Scenario] is a list of phases, and a phase is traffic (Poisson, open loop: who
// is refused does not come again) and a server. A [Contender] is a limit under test.
// [Simulate] runs one against the other and returns the [Figures]; a [Target] is
// what a figure ought to be.
//
// # What is random
//
// The calls of a seed: when they come, from which client, and how long they take if
// nothing is in the way. All that is drawn for each call as it comes, whether it is
// admitted or not, so every contender meets the same calls. Figures of a seed are the
// same on every run, whatever else runs at the same time. They are the same on every
// machine of one architecture too; on another one a fused multiply-add may round a time
// differently, and an event that moves by a nanosecond makes another run, of the same
// statistics.
package arena
