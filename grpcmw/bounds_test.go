package grpcmw_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/grpcmw"
)

// A document costs a few hundred bytes for each of its own, however it is built: what a
// path costs does not grow with its length.
func TestTheCostOfADocumentIsBoundedByItsSize(t *testing.T) {
	const size = 1 << 18
	fill := func(open, item, end string) string {
		return open + strings.Repeat(item, (size-len(open)-len(end))/len(item)) + end
	}
	deep := strings.Repeat(`{"`+strings.Repeat("x", 64)+`":`, 62)
	for _, c := range []struct{ what, document string }{
		{"elements", fill(`{"a":[1`, `,1`, `]}`)},
		{"elements far down", fill(deep+`[1`, `,1`, `]`+strings.Repeat("}", 62))},
		{"lists", fill(`{"a":[[]`, `,[]`, `]}`)},
		{"objects far down", fill(deep+`[{"":1}`, `,{"":1}`, `]`+strings.Repeat("}", 62))},
		{"configs", fill(`{"methodConfig":[{}`, `,{}`, `]}`)},
		{"codes", fill(`{"methodConfig":[{"hedgingPolicy":{"maxAttempts":2,"nonFatalStatusCodes":[1`, `,14`, `]}}]}`)},
		{"an exponent", fill(`{"retryThrottling":{"maxTokens":1,"tokenRatio":1e`, `9`, `}}`)},
		{"digits", fill(`{"retryThrottling":{"maxTokens":1,"tokenRatio":1.`, `9`, `}}`)},
		{"a string", fill(`{"methodConfig":[{"timeout":"`, `1`, `"}]}`)},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := grpcmw.ParseServiceConfig(c.document)
		runtime.ReadMemStats(&after)
		if err != nil && c.what != "a string" {
			t.Errorf("%s: %.300s", c.what, err.Error())
		}
		if cost := (after.TotalAlloc - before.TotalAlloc) / size; cost > 400 {
			t.Errorf("%s: %d bytes for each of the document", c.what, cost)
		}
	}
}
