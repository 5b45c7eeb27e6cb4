// Package hedgearena lets hedging stand trial in virtual time: does it ever make anything
// worse? Ten scenarios of replicas that queue, stall and slow down, each from idle to
// overloaded, behind several limits.
//
// What runs is the library itself, hedgedlimit.Do under limiter.Limiter, in a bubble of
// package bubble, beside other ways to hedge. Each call has a goroutine of its own, as in
// a program: so one costs 6 µs without hedging and 15 with it.
//
// A [Scenario] is a set of replicas and what happens to them; a [Policy] is a way to make
// calls; a [Limit] stands in front. [Simulate] runs one [Case] of them with one seed and
// returns the [Figures]. A [Sweep] runs many, and a [Row] of it is held against its base:
// the same calls without hedging.
//
// # What is random
//
// When calls come hangs on the seed; where an attempt goes and how long it takes on the seed,
// the number of the call and that of the attempt, and not on what else happens. So every
// policy meets the same calls.
//
// Calls are goroutines, and in which order those run that something has woken in one instant
// is not told. An attempt that begins in such an instant is therefore kept back for a random
// moment of up to a microsecond, which hangs on the same numbers. With that, figures of a seed
// have been the same on every run. What is left is the order in which permits that come back
// in one instant are released, and who of two in one instant gets the last token of a budget:
// neither has been seen to matter.
package hedgearena
