package grpcmw_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/grpcmw"
)

// What is written as a document and what is made in Go are one config, and each comes
// back from the other unchanged.
func TestADocumentAndGoValuesAreOneConfig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t)
		document := writeDocument(t, o)
		inGo, err := grpcmw.NewServiceConfig(o)
		if err != nil {
			t.Fatal(err)
		}
		c, err := grpcmw.ParseServiceConfig(document)
		if err != nil {
			t.Fatalf("%s: %v", document, err)
		}
		if !reflect.DeepEqual(c.Options(), inGo.Options()) {
			t.Fatalf("%s\nis %s\nnot %s", document, describe(c), describe(inGo))
		}
		again, err := grpcmw.NewServiceConfig(c.Options())
		if err != nil || !reflect.DeepEqual(again.Options(), c.Options()) {
			t.Fatalf("%s\nis not the same the second time: %v", describe(c), err)
		}
		for _, m := range c.Options().Methods {
			for _, n := range m.Names {
				got, ok := c.Method("/" + n.Service + "/" + n.Method)
				if n.Service == "" {
					got, ok = c.Method("/no.Such/Method")
				}
				if !ok || !reflect.DeepEqual(got, m) {
					t.Fatalf("%v has %v, want %v", n, got, m)
				}
			}
		}
	})
}

func drawOptions(t *rapid.T) (o grpcmw.ServiceConfigOptions) {
	names := rapid.SliceOfDistinct(rapid.SampledFrom([]grpcmw.MethodName{
		{}, {"s", ""}, {"s", "m"}, {"s", "n"}, {"a.t", ""}, {"a.t", "m"}, {"ü", "\"\\\u2028"},
	}), func(n grpcmw.MethodName) grpcmw.MethodName { return n }).Draw(t, "names")
	duration := rapid.OneOf(rapid.Int64Range(1, 3e9), rapid.Int64Range(1, 1<<62))
	list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) codes.Code {
		return codes.Code(rapid.IntRange(1, 16).Draw(t, "code"))
	}), 1, 5)
	for len(names) > 0 {
		n := rapid.IntRange(1, len(names)).Draw(t, "names of one")
		m := grpcmw.MethodConfig{Names: names[:n:n]}
		names = names[n:]
		if rapid.Bool().Draw(t, "timeout") {
			m.Timeout = time.Duration(duration.Draw(t, "timeout"))
		}
		switch rapid.IntRange(0, 2).Draw(t, "policy") {
		case 1:
			m.Hedging = &grpcmw.HedgingPolicy{MaxAttempts: rapid.IntRange(2, 7).Draw(t, "attempts")}
			if rapid.Bool().Draw(t, "more") {
				m.Hedging.Delay = time.Duration(duration.Draw(t, "delay"))
				m.Hedging.NonFatal = list.Draw(t, "non-fatal")
			}
		case 2:
			m.Retry = &grpcmw.RetryPolicy{
				MaxAttempts:       rapid.IntRange(2, 7).Draw(t, "attempts"),
				InitialBackoff:    time.Duration(duration.Draw(t, "initial")),
				MaxBackoff:        time.Duration(duration.Draw(t, "max")),
				BackoffMultiplier: rapid.Float64Range(1e-300, 1e300).Draw(t, "multiplier"),
				Retryable:         list.Draw(t, "retryable"),
			}
		}
		o.Methods = append(o.Methods, m)
	}
	if rapid.Bool().Draw(t, "nameless") {
		o.Methods = append(o.Methods, grpcmw.MethodConfig{Timeout: time.Second})
	}
	if rapid.Bool().Draw(t, "throttling") {
		o.Throttling = &grpcmw.Throttling{
			MaxTokens:  float64(rapid.IntRange(1, 1000_000).Draw(t, "tokens")) / 1000,
			TokenRatio: rapid.Float64Range(0.001, 2000).Draw(t, "ratio"),
		}
	}
	return o
}

// writeDocument writes o as JSON, in an order and with spaces and unknown names that
// are drawn.
func writeDocument(t *rapid.T, o grpcmw.ServiceConfigOptions) string {
	var configs []string
	for _, m := range o.Methods {
		var names, members []string
		for _, n := range m.Names {
			names = append(names, object(t, `"service":`+jsonText(n.Service), `"method":`+jsonText(n.Method)))
		}
		members = append(members, `"name":[`+strings.Join(names, ",")+`]`)
		if m.Timeout != 0 {
			members = append(members, `"timeout":`+seconds(m.Timeout))
		}
		if h := m.Hedging; h != nil {
			members = append(members, `"hedgingPolicy":`+object(t, fmt.Sprintf(`"maxAttempts":%d`, h.MaxAttempts),
				`"hedgingDelay":`+seconds(h.Delay), `"nonFatalStatusCodes":`+codeList(t, h.NonFatal)))
		}
		if r := m.Retry; r != nil {
			members = append(members, `"retryPolicy":`+object(t, fmt.Sprintf(`"maxAttempts":%d`, r.MaxAttempts),
				`"initialBackoff":`+seconds(r.InitialBackoff), `"maxBackoff":`+seconds(r.MaxBackoff),
				`"backoffMultiplier":`+jsonText(r.BackoffMultiplier), `"retryableStatusCodes":`+codeList(t, r.Retryable)))
		}
		configs = append(configs, object(t, members...))
	}
	members := []string{`"methodConfig":[` + strings.Join(configs, " , ") + `]`}
	if th := o.Throttling; th != nil {
		members = append(members, `"retryThrottling":`+object(t, `"maxTokens":`+jsonText(th.MaxTokens), `"tokenRatio":`+jsonText(th.TokenRatio)))
	}
	return object(t, members...)
}

func object(t *rapid.T, members ...string) string {
	if rapid.Bool().Draw(t, "unknown") {
		members = append(members, `"unknown":[{"maxAttempts":"?"}]`)
	}
	space := rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "space")
	return "{" + space + strings.Join(rapid.Permutation(members).Draw(t, "order"), space+","+space) + space + "}"
}

func codeList(t *rapid.T, list []codes.Code) string {
	var items []string
	for _, code := range list {
		items = append(items, rapid.SampledFrom([]string{
			strconv.Itoa(int(code)), strconv.Quote(codeName(code)), strconv.Quote(strings.ToLower(codeName(code))),
		}).Draw(t, "spelling"))
	}
	return "[" + strings.Join(items, ",") + "]"
}

func seconds(d time.Duration) string {
	return fmt.Sprintf(`"%d.%09ds"`, d/time.Second, d%time.Second)
}

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and finite numbers only
	}
	return string(text)
}
