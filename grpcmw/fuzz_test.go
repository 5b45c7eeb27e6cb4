package grpcmw_test

import (
	"math/big"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/grpcmw"
)

// Every error has the place, what is wrong there, and a length that can be read.
var errorForm = regexp.MustCompile(`^grpcmw: service config: (document|\w|\[)[^\n]{0,300}: [^\n]{1,300}$`)

// A document is rejected with its place, or it survives the way to the channel and the
// way through Go values, and means what it means to grpc-go if that accepts it too.
func FuzzParseServiceConfig(f *testing.F) {
	for _, c := range configs {
		if len(c.document) < 1000 {
			f.Add(c.document)
		}
	}
	channel := newChannelParser(f)
	f.Fuzz(func(t *testing.T, document string) {
		c, err := grpcmw.ParseServiceConfig(document)
		if err != nil {
			if c != nil || !errorForm.MatchString(err.Error()) {
				t.Fatalf("%v, %q", c, err.Error())
			}
			return
		}
		again, err := grpcmw.NewServiceConfig(c.Options())
		if err != nil || !reflect.DeepEqual(again.Options(), c.Options()) {
			t.Fatalf("%s\nis %s\nand from Go %v, %v", document, describe(c), again, err)
		}
		left, err := grpcmw.ParseServiceConfig(c.ChannelJSON())
		if err != nil {
			t.Fatalf("%s\nleaves %s\nwhich has %v", document, c.ChannelJSON(), err)
		}
		if left.ChannelJSON() != c.ChannelJSON() {
			t.Fatalf("%s\nleaves %s\nwhich leaves %s", document, c.ChannelJSON(), left.ChannelJSON())
		}
		checkLeft(t, c, left)
		if theirs, err := channel(document); err == nil {
			sameAsTheChannel(t, document, c, theirs)
		}
		if strings.Contains(document, "loadBalancing") {
			return // the channel may know the policy or not
		}
		theirs, err := channel(c.ChannelJSON())
		if err != nil {
			t.Fatalf("%s\nleaves %s\nto which grpc-go says %v", document, c.ChannelJSON(), err)
		}
		sameAsTheChannel(t, c.ChannelJSON(), left, theirs)
	})
}

// checkLeft checks that what is left for the channel has the names of c and nothing
// that c obeys.
func checkLeft(t *testing.T, c, left *grpcmw.ServiceConfig) {
	t.Helper()
	methods, others := c.Options().Methods, left.Options().Methods
	if len(methods) != len(others) || left.Throttling() != nil {
		t.Fatalf("%s leaves %s", describe(c), describe(left))
	}
	for i, m := range methods {
		if want := (grpcmw.MethodConfig{Names: m.Names}); !reflect.DeepEqual(others[i], want) {
			t.Fatalf("%s leaves %s", describe(c), describe(left))
		}
	}
}

// The oracle counts in fractions, which takes as much room as the exponent says.
func FuzzThousandths(f *testing.F) {
	for _, text := range []string{
		"0", "-0", "1", "1.001", "0.0004", "-0.0004", "1e3", "1e-3", "12.3456e2", "0.000e9", "1E+2", "999999999999999", "1000000000000",
		"9999999999999.9999", "", ".", "1.", ".5", "1e", "1e+", "NaN", "Inf", "+1", "1e400", "1e-400", "00012.5", "1e999999999999999999999",
	} {
		f.Add(text)
	}
	number := regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	size := regexp.MustCompile(`[eE][+-]?0*[0-9]{4,}$`)
	f.Fuzz(func(t *testing.T, text string) {
		n, exact, ok := grpcmw.Thousandths(text)
		if ok != number.MatchString(text) {
			t.Fatalf("%q: ok is %v", text, ok)
		}
		if !ok || size.MatchString(text) {
			return // too large for the oracle
		}
		x, isNumber := new(big.Rat).SetString(text)
		if !isNumber {
			t.Fatalf("%q is no number to the oracle", text)
		}
		x.Mul(x, big.NewRat(1000, 1))
		want := new(big.Int).Quo(x.Num(), x.Denom()) // toward 0
		if most := big.NewInt(1e15); want.CmpAbs(most) >= 0 {
			if want.Sign() < 0 {
				most.Neg(most)
			}
			if n != most.Int64() {
				t.Fatalf("%q: %d, want %v", text, n, most)
			}
			return
		}
		if n != want.Int64() || exact != x.IsInt() {
			t.Fatalf("%q: %d, %v, want %v of %v", text, n, exact, want, x)
		}
	})
}
