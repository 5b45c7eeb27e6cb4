package grpcmw

import (
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	// pushbackKey is the trailer by which a server asks for time before the next attempt.
	pushbackKey = "grpc-retry-pushback-ms"
	// attemptsKey is the header of an attempt that others preceded; its value is how many.
	attemptsKey = "grpc-previous-rpc-attempts"
)

// parsePushback reads the values of the trailer pushbackKey. present says whether there
// are any. If ok, the next attempt is to follow after d; otherwise none is to follow:
// the server said so by a negative number, or what it said cannot be read, which gRFC
// A6 takes for the same. That includes more values than one.
func parsePushback(values []string) (d time.Duration, ok, present bool) {
	if len(values) == 0 {
		return 0, false, false
	}
	n, ok := plainInt32(values)
	return time.Duration(n) * time.Millisecond, ok, true
}

// parseAttempts reads the values of the header attemptsKey: how many attempts preceded
// this one. There were none if there is no value. It is not ok if the value cannot be
// read, or is not the only one.
func parseAttempts(values []string) (previous int, ok bool) {
	if len(values) == 0 {
		return 0, true
	}
	n, ok := plainInt32(values)
	return int(n), ok
}

// plainInt32 returns the number that the only value is: 0 or more, of 32 bits with the
// sign, in ASCII digits, with no plus sign, space or leading zero.
func plainInt32(values []string) (n int32, ok bool) {
	if len(values) != 1 {
		return 0, false
	}
	text := values[0]
	if len(text) > len("2147483647") || !digits(text) || text != "0" && strings.HasPrefix(text, "0") {
		return 0, false
	}
	wide, err := strconv.ParseInt(text, 10, 64)
	if err != nil || wide > math.MaxInt32 {
		return 0, false
	}
	return int32(wide), true
}
