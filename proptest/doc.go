// Package proptest holds property tests that can be run on code of your own: give
// it an algorithm, and it shows it windows of every kind and checks that it keeps
// the promises that a limiter relies on.
//
//	func TestMyAlgorithm(t *testing.T) {
//		proptest.TestAlgorithm(t, 1, 500, func() gradient.Algorithm { return newMine() })
//	}
//
// A pool of permits or a semaphore, whoever made it, is put into a [Pool] and shown
// to keep what a limit promises:
//
//	func TestMySemaphore(t *testing.T) {
//		proptest.TestPool(t, func(limit int) proptest.Pool {
//			s := semaphore.NewWeighted(int64(limit))
//			release := func() func() { return sync.OnceFunc(func() { s.Release(1) }) }
//			return proptest.Pool{
//				TryAcquire: func() (func(), bool) { return release(), s.TryAcquire(1) },
//				Acquire:    func(ctx context.Context) (func(), error) { return release(), s.Acquire(ctx, 1) },
//			}
//		})
//	}
//
// Every check is repeated with other random input, and a failure is shrunk to a
// short one. The number of repetitions is that of pgregory.net/rapid: its flag
// -rapid.checks, or RAPID_CHECKS in the environment.
//
// The folder mutants holds a program that plants faults in this module, one at a
// time, and shows that a test finds each.
package proptest
