// Package proptest holds property tests that can be run on code of your own: give
// it an algorithm, and it shows it windows of every kind and checks that it keeps
// the promises that a limiter relies on.
//
//	func TestMyAlgorithm(t *testing.T) {
//		proptest.TestAlgorithm(t, 1, 500, func() gradient.Algorithm { return newMine() })
//	}
//
// Every check is repeated with other random input, and a failure is shrunk to a
// short one. The number of repetitions is that of pgregory.net/rapid: its flag
// -rapid.checks, or RAPID_CHECKS in the environment.
//
// The folder mutants holds a program that plants faults in this module, one at a
// time, and shows that a test finds each.
package proptest
