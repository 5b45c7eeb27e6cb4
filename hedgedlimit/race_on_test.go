//go:build race

package hedgedlimit_test

func raceEnabled() bool { return true }
