package grpcmw

import (
	"strconv"
	"strings"
)

// mostThousandths is where thousandths stops counting: far beyond what an account of
// 1000 tokens can tell apart.
const mostThousandths = 1e15

// thousandths returns the number that text is, cut toward zero to whole thousandths,
// and whether nothing was cut off. It works on the digits, since 1.001 as a float64 is
// less than 1.001, and in constant space, since an exponent may be anything. It is not
// ok if text is not a JSON number.
func thousandths(text string) (n int64, exact, ok bool) {
	number, negative := strings.CutPrefix(text, "-")
	shift := 0
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		exponent := number[i+1:]
		if !digits(exponent) && (exponent == "" || exponent[0] != '+' && exponent[0] != '-' || !digits(exponent[1:])) {
			return 0, false, false
		}
		// Beyond an int it is the largest one. Of more digits than a document has, no
		// exponent makes a number in between.
		shift, _ = strconv.Atoi(exponent)
		shift = min(max(shift, -4*maxDocument), 4*maxDocument)
		number = number[:i]
	}
	whole, decimals, hasDecimals := strings.Cut(number, ".")
	if !digits(whole) || hasDecimals && !digits(decimals) {
		return 0, false, false
	}
	all := whole + decimals
	significant := strings.TrimLeft(all, "0")
	// The first end digits are the whole thousandths.
	end := len(whole) + 3 + shift - (len(all) - len(significant))
	switch {
	case significant == "":
		return 0, true, true
	case end <= 0:
		return 0, false, true
	case end > len("1000000000000000"):
		n, exact = mostThousandths, true
	default:
		kept := significant[:min(end, len(significant))]
		n, _ = strconv.ParseInt(kept+strings.Repeat("0", end-len(kept)), 10, 64) // 16 digits at most
		n, exact = min(n, mostThousandths), strings.Trim(significant[len(kept):], "0") == ""
	}
	if negative {
		n = -n
	}
	return n, exact, true
}
