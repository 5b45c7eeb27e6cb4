package grpcmw

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// maxSeconds is what a google.protobuf.Duration may hold: 10,000 years.
const maxSeconds = 315_576_000_000

// duration returns the google.protobuf.Duration that v holds in its JSON form: seconds
// with up to nine decimals and an "s". One that is longer than a time.Duration, which
// ends at 292 years, becomes the longest of them.
func (v value) duration(at path) (time.Duration, error) {
	text, err := v.string(at)
	if err != nil {
		return 0, err
	}
	number, isSeconds := strings.CutSuffix(text, "s")
	number, negative := strings.CutPrefix(number, "-")
	whole, decimals, hasDecimals := strings.Cut(number, ".")
	if !isSeconds || !digits(whole) || hasDecimals && (!digits(decimals) || len(decimals) > 9) {
		return 0, at.errorf("%s is not a duration such as \"0.5s\"", quote(text))
	}
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || seconds > maxSeconds {
		return 0, at.errorf("%s is longer than %d seconds", quote(text), int64(maxSeconds))
	}
	const longest = time.Duration(math.MaxInt64)
	d := longest
	if seconds <= int64(longest/time.Second) {
		d = time.Duration(seconds) * time.Second
		nanos, _ := strconv.Atoi((decimals + "000000000")[:9]) // nine digits
		d += min(time.Duration(nanos), longest-d)
	}
	if negative {
		d = -d
	}
	return d, nil
}

// digits reports whether s is one ASCII digit or more.
func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
