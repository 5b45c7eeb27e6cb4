package grpcmw_test

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/grpcmw"
)

// Rules H10, H11 and H12, and H18 for the header.
func TestServersAskInPlainNumbers(t *testing.T) {
	for _, c := range []struct {
		values []string
		want   int // -1 if it cannot be read
	}{
		{[]string{"0"}, 0}, {[]string{"1"}, 1}, {[]string{"250"}, 250}, {[]string{"2147483647"}, math.MaxInt32},
		{[]string{"-1"}, -1}, {[]string{"-0"}, -1}, {[]string{"-2147483648"}, -1}, {[]string{"-2147483649"}, -1},
		{[]string{"+5"}, -1}, {[]string{"007"}, -1}, {[]string{"00"}, -1}, {[]string{"2147483648"}, -1},
		{[]string{"9999999999"}, -1}, {[]string{"18446744073709551617"}, -1}, {[]string{strings.Repeat("9", 1<<20)}, -1},
		{[]string{""}, -1}, {[]string{" 5"}, -1}, {[]string{"5 "}, -1}, {[]string{"5\x00"}, -1}, {[]string{"1.0"}, -1},
		{[]string{"1e3"}, -1}, {[]string{"0x1"}, -1}, {[]string{"1_000"}, -1}, {[]string{"٣"}, -1}, {[]string{"5,5"}, -1},
		{[]string{"5", "5"}, -1}, {[]string{"0", "-1"}, -1}, {[]string{"", ""}, -1},
	} {
		checkNumbers(t, c.values, c.want)
	}
	if d, ok, present := grpcmw.ParsePushback(nil); d != 0 || ok || present {
		t.Errorf("no pushback: %v, %v, %v", d, ok, present)
	}
	if n, ok := grpcmw.ParseAttempts(nil); n != 0 || !ok {
		t.Errorf("no header: %v, %v, want the first attempt", n, ok)
	}
}

func checkNumbers(t *testing.T, values []string, want int) {
	t.Helper()
	d, ok, present := grpcmw.ParsePushback(values)
	if !present || ok != (want >= 0) || ok && d != time.Duration(want)*time.Millisecond || !ok && d != 0 {
		t.Errorf("pushback %.80q: %v, %v, %v, want %d ms", values, d, ok, present, want)
	}
	n, ok := grpcmw.ParseAttempts(values)
	if ok != (want >= 0) || ok && n != want || !ok && n != 0 {
		t.Errorf("attempts %.80q: %v, %v, want %d", values, n, ok, want)
	}
}

// The oracle reads any integer and asks whether it would be written like that.
func FuzzPushback(f *testing.F) {
	for _, text := range []string{"", "0", "-0", "1", "-1", "+1", "01", "2147483647", "2147483648", " 1", "1 ", "1_0", "0b1", "١"} {
		f.Add(text, "", uint8(1))
		f.Add(text, "1", uint8(2))
	}
	f.Fuzz(func(t *testing.T, a, b string, n uint8) {
		values := []string{a, b}[:1+n%2]
		want := -1
		number, ok := new(big.Int).SetString(a, 10)
		if ok && len(values) == 1 && number.String() == a && number.Sign() >= 0 && number.BitLen() <= 31 {
			want = int(number.Int64())
		}
		checkNumbers(t, values, want)
	})
}
