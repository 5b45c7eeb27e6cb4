package grpcmw_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/hedgedlimit"
)

func parse(t testing.TB, document string) *grpcmw.ServiceConfig {
	t.Helper()
	c, err := grpcmw.ParseServiceConfig(document)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Rules V9 and V10.
func TestTheMostSpecificConfigOfAMethodAppliesAsAWhole(t *testing.T) {
	const named = `{"methodConfig":[
		{"name":[{"service":"shop.Stock","method":"Get"}],"timeout":"1s"},
		{"name":[{"service":"shop.Stock"},{"service":"shop.Bill","method":"Pay"}],"hedgingPolicy":{"maxAttempts":2}},
		{"timeout":"3s"}`
	without := parse(t, named+`]}`)
	with := parse(t, named+`,{"name":[{}],"timeout":"4s"}]}`)
	for _, c := range []struct{ method, without, with string }{
		{"/shop.Stock/Get", "1s", "1s"},
		{"/shop.Stock/List", "0s hedged", "0s hedged"},
		{"/shop.Stock/", "0s hedged", "0s hedged"},
		{"/shop.Bill/Pay", "0s hedged", "0s hedged"},
		{"/shop.Bill/Void", "none", "4s"},
		{"/shop.Stock", "none", "4s"},
		{"shop.Stock/Get", "none", "4s"},
		{"/Stock/Get", "none", "4s"},
		{"/", "none", "4s"},
		{"", "none", "4s"},
	} {
		for _, config := range []struct {
			*grpcmw.ServiceConfig
			want string
		}{{without, c.without}, {with, c.with}, {nil, "none"}} {
			got := "none"
			if m, ok := config.Method(c.method); ok {
				got = m.Timeout.String()
				if m.Hedging != nil {
					got += " hedged"
				}
			}
			if got != config.want {
				t.Errorf("%q: %s, want %s", c.method, got, config.want)
			}
		}
	}
}

func TestMethodDoesNotAllocate(t *testing.T) {
	c := parse(t, `{"methodConfig":[{"name":[{"service":"s","method":"m"}]},{"name":[{"service":"t"}]},{"name":[{}]}]}`)
	for _, method := range []string{"/s/m", "/t/m", "/u/m"} {
		if n := testing.AllocsPerRun(100, func() { c.Method(method) }); n != 0 {
			t.Errorf("%s: %v allocations", method, n)
		}
	}
}

func BenchmarkMethod(b *testing.B) {
	c := parse(b, `{"methodConfig":[{"name":[{"service":"shop.Stock","method":"Get"}]},{"name":[{}]}]}`)
	for _, method := range []string{"/shop.Stock/Get", "/shop.Bill/Pay"} {
		b.Run(strings.ReplaceAll(method[1:], "/", "."), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Method(method)
			}
		})
	}
}

func TestTheChannelGetsAllButWhatIsObeyedHere(t *testing.T) {
	for _, c := range []struct{ document, want string }{
		{`{}`, `{}`},
		{`{"retryThrottling":{"maxTokens":1,"tokenRatio":1}}`, `{}`},
		{`{"methodConfig":null,"retryThrottling":null}`, `{"methodConfig":null}`},
		{`{"methodConfig":[]}`, `{"methodConfig":[]}`},
		{method(`"timeout":"1s"`), `{"methodConfig":[{"name":[{"service":"s","method":"m"}]}]}`},
		{`{"methodConfig":[{"name":[{}],"timeout":"1s","waitForReady":true,"hedgingPolicy":{"maxAttempts":2}}]}`,
			`{"methodConfig":[{"name":[{}],"waitForReady":true}]}`},
		{`{"methodConfig":[{"name":[{}],"timeout":null,"retryPolicy":null,"maxRequestMessageBytes":1,"maxResponseMessageBytes":2}]}`,
			`{"methodConfig":[{"name":[{}],"maxRequestMessageBytes":1,"maxResponseMessageBytes":2}]}`},
		// A config that has but its names left keeps the default from its methods.
		{`{"methodConfig":[{"name":[{"service":"s"}],"timeout":"1s"},{"name":[{}],"waitForReady":true}]}`,
			`{"methodConfig":[{"name":[{"service":"s"}]},{"name":[{}],"waitForReady":true}]}`},
		// The rest is as it was written, also where the same names mean something else.
		{`{"loadBalancingConfig" : [ {"x" : {"timeout" : 1.50, "retryPolicy":[ 1e400 ]}} ], "\u0061":"\ud83d\ude00<&>"}`,
			`{"loadBalancingConfig":[ {"x" : {"timeout" : 1.50, "retryPolicy":[ 1e400 ]}} ],"\u0061":"\ud83d\ude00<&>"}`},
		{`{"timeout":1,"hedgingPolicy":2,"methodConfig":[{"retryThrottling":3}]}`,
			`{"timeout":1,"hedgingPolicy":2,"methodConfig":[{"retryThrottling":3}]}`},
		// A name may be written with escapes.
		{`{"retry\u0054hrottling":{"maxTokens":1,"tokenRatio":1},"method\u0043onfig":[{"\u0074imeout":"1s"}]}`,
			`{"method\u0043onfig":[{}]}`},
	} {
		if got := parse(t, c.document).ChannelJSON(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.document, got, c.want)
		}
	}
	var none *grpcmw.ServiceConfig
	if got := none.ChannelJSON(); got != "{}" {
		t.Errorf("no config: %s", got)
	}
}

func TestAServiceConfigIsMadeOfGoValues(t *testing.T) {
	c, err := grpcmw.NewServiceConfig(grpcmw.ServiceConfigOptions{
		Methods: []grpcmw.MethodConfig{{
			Names:   []grpcmw.MethodName{{"shop.Stock", "Get"}, {"shop.Bill", ""}},
			Timeout: time.Second,
			Retry: &grpcmw.RetryPolicy{MaxAttempts: 9, InitialBackoff: time.Millisecond, MaxBackoff: time.Second, BackoffMultiplier: 1.5,
				Retryable: []codes.Code{codes.Unavailable, codes.Aborted, codes.Unavailable}},
		}, {
			Names:   []grpcmw.MethodName{{}},
			Hedging: &grpcmw.HedgingPolicy{MaxAttempts: 3, Delay: time.Millisecond, NonFatal: []codes.Code{codes.Internal}},
		}, {
			Timeout: time.Minute,
		}},
		Throttling: &grpcmw.Throttling{MaxTokens: 10, TokenRatio: 0.1 + 0.2},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "shop.Stock/Get shop.Bill/ timeout 1s retry 5 1ms 1s ×1.5 [Aborted Unavailable]; " +
		"/ hedge 3 1ms [Internal]; timeout 1m0s; throttle 10 0.3"
	if got := describe(c); got != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}
	if got := c.ChannelJSON(); got != "{}" {
		t.Errorf("the channel is handed %s", got)
	}
	if c, err := grpcmw.NewServiceConfig(grpcmw.ServiceConfigOptions{}); err != nil || describe(c) != "" || c.Throttling() != nil {
		t.Errorf("no options: %v, %v", c, err)
	}
}

func TestAnErrorOfGoValuesNamesTheField(t *testing.T) {
	hedge := func(p grpcmw.HedgingPolicy) grpcmw.MethodConfig { return grpcmw.MethodConfig{Hedging: &p} }
	retry := func(change func(*grpcmw.RetryPolicy)) grpcmw.MethodConfig {
		p := grpcmw.RetryPolicy{MaxAttempts: 2, InitialBackoff: 1, MaxBackoff: 1, BackoffMultiplier: 1, Retryable: []codes.Code{14}}
		change(&p)
		return grpcmw.MethodConfig{Retry: &p}
	}
	methods := func(list ...grpcmw.MethodConfig) grpcmw.ServiceConfigOptions {
		return grpcmw.ServiceConfigOptions{Methods: list}
	}
	throttle := func(tokens, ratio float64) grpcmw.ServiceConfigOptions {
		return grpcmw.ServiceConfigOptions{Throttling: &grpcmw.Throttling{MaxTokens: tokens, TokenRatio: ratio}}
	}
	named := func(names ...grpcmw.MethodName) grpcmw.MethodConfig { return grpcmw.MethodConfig{Names: names} }
	for _, c := range []struct {
		rule    string
		options grpcmw.ServiceConfigOptions
		want    string
	}{
		{"V1", methods(hedge(grpcmw.HedgingPolicy{})), "Methods[0].Hedging.MaxAttempts: 0 is below 2"},
		{"V4", methods(hedge(grpcmw.HedgingPolicy{MaxAttempts: 2, Delay: -1})), "Methods[0].Hedging.Delay: -1ns is negative"},
		{"V5", methods(hedge(grpcmw.HedgingPolicy{MaxAttempts: 2, NonFatal: []codes.Code{14, 0}})), "Methods[0].Hedging.NonFatal[1]: OK is not a failure"},
		{"V5", methods(hedge(grpcmw.HedgingPolicy{MaxAttempts: 2, NonFatal: []codes.Code{17}})), "Methods[0].Hedging.NonFatal[0]: 17 is not a status code"},
		{"V6", methods(named(), grpcmw.MethodConfig{Retry: &grpcmw.RetryPolicy{}, Hedging: &grpcmw.HedgingPolicy{}}), "Methods[1]: has both Retry and Hedging"},
		{"R7", methods(retry(func(p *grpcmw.RetryPolicy) { p.MaxAttempts = 1 })), "Methods[0].Retry.MaxAttempts: 1 is below 2"},
		{"R6", methods(retry(func(p *grpcmw.RetryPolicy) { p.InitialBackoff = 0 })), "Methods[0].Retry.InitialBackoff: 0s is not above 0"},
		{"R6", methods(retry(func(p *grpcmw.RetryPolicy) { p.MaxBackoff = -1 })), "Methods[0].Retry.MaxBackoff: -1ns is not above 0"},
		{"R6", methods(retry(func(p *grpcmw.RetryPolicy) { p.BackoffMultiplier = math.NaN() })), "Methods[0].Retry.BackoffMultiplier: NaN is not a number above 0"},
		{"R6", methods(retry(func(p *grpcmw.RetryPolicy) { p.BackoffMultiplier = math.Inf(1) })), "Methods[0].Retry.BackoffMultiplier: +Inf is not a number above 0"},
		{"R6", methods(retry(func(p *grpcmw.RetryPolicy) { p.Retryable = nil })), "Methods[0].Retry.Retryable: is empty"},
		{"V7", throttle(0, 1), "Throttling.MaxTokens: 0 is not a number above 0 and at most 1000"},
		{"V7", throttle(math.NaN(), 1), "Throttling.MaxTokens: NaN is not a number above 0 and at most 1000"},
		{"V7", throttle(math.Inf(1), 1), "Throttling.MaxTokens: +Inf is not a number above 0 and at most 1000"},
		{"V7", throttle(1.0005, 1), "Throttling.MaxTokens: 1.0005 has more than three decimals"},
		{"V8", throttle(1, 0.0009), "Throttling.TokenRatio: 0.0009 is not a number of at least 0.001"},
		{"V8", throttle(1, math.Inf(1)), "Throttling.TokenRatio: +Inf is not a number of at least 0.001"},
		{"V9", methods(named(grpcmw.MethodName{"", "m"})), `Methods[0].Names[0]: has the method "m" and no service`},
		{"V9", methods(named(grpcmw.MethodName{}), named(grpcmw.MethodName{})), "Methods[1].Names[0]: the default is named in Methods[0].Names[0] already"},
		{"S", methods(named(grpcmw.MethodName{"/s", ""})), `Methods[0].Names[0].Service: "/s" begins with a slash`},
		{"S", methods(named(grpcmw.MethodName{"s", "a/b"})), `Methods[0].Names[0].Method: "a/b" contains a slash`},
		{"S", methods(grpcmw.MethodConfig{Timeout: -time.Second}), "Methods[0].Timeout: -1s is negative"},
	} {
		config, err := grpcmw.NewServiceConfig(c.options)
		if want := "grpcmw: service config: " + c.want; config != nil || err == nil || err.Error() != want {
			t.Errorf("%s: %v, %v, want %s", c.rule, config, err, want)
		}
	}
}

func TestAServiceConfigKeepsNothingOfTheCallers(t *testing.T) {
	o := grpcmw.ServiceConfigOptions{
		Methods: []grpcmw.MethodConfig{
			{Names: []grpcmw.MethodName{{"s", "m"}}, Hedging: &grpcmw.HedgingPolicy{MaxAttempts: 9, NonFatal: []codes.Code{14, 13}}},
			{Names: []grpcmw.MethodName{{"s", "n"}}, Retry: &grpcmw.RetryPolicy{MaxAttempts: 9, InitialBackoff: 1, MaxBackoff: 1, BackoffMultiplier: 1, Retryable: []codes.Code{14, 13}}},
		},
		Throttling: &grpcmw.Throttling{MaxTokens: 10, TokenRatio: 1},
	}
	written := func() string { text, _ := json.Marshal(o); return string(text) }
	before := written()
	c, err := grpcmw.NewServiceConfig(o)
	if err != nil {
		t.Fatal(err)
	}
	if after := written(); after != before {
		t.Errorf("the options were changed from %s to %s", before, after)
	}
	want := describe(c)
	o.Methods[0].Names[0].Service, o.Methods[0].Hedging.MaxAttempts, o.Methods[0].Hedging.NonFatal[0] = "t", 2, 1
	o.Methods[1].Retry.MaxAttempts, o.Methods[1].Retry.Retryable[1] = 2, 1
	o.Methods[1].Timeout, o.Throttling.MaxTokens, c.Throttling().MaxTokens = 1, 1, 2
	if got := describe(c); got != want {
		t.Errorf("the config was changed from %s to %s", want, got)
	}
	if m, ok := c.Method("/s/m"); !ok || !reflect.DeepEqual(m, c.Options().Methods[0]) {
		t.Errorf("/s/m has %v, %v", m, ok)
	}
}

// Rule V8: "Up to 3 decimal places are supported", and the others are cut off. What
// comes of it is the same account to the last thousandth in hedgedlimit.
func TestThrottlingIsExactToAThousandth(t *testing.T) {
	now := time.Now()
	check := func(text string, thousandths int) {
		t.Helper()
		c := parse(t, throttling(`"maxTokens":1000,"tokenRatio":`+text))
		number, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		inGo, err := grpcmw.NewServiceConfig(grpcmw.ServiceConfigOptions{Throttling: &grpcmw.Throttling{MaxTokens: 1000, TokenRatio: number}})
		if err != nil {
			t.Fatal(err)
		}
		throttling := *c.Throttling()
		if *inGo.Throttling() != throttling {
			t.Errorf("%s: %v from a document, %v in Go", text, throttling, *inGo.Throttling())
		}
		account, err := hedgedlimit.NewThrottle(throttling.MaxTokens, throttling.TokenRatio)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			account.Answered(now, hedgedlimit.AnswerNonFatal)
		}
		account.Answered(now, hedgedlimit.AnswerSuccess)
		if got, want := account.Balance(now), float64(500_000-3000+thousandths)/1000; got != want {
			t.Errorf("%s: the balance is %v, want %v", text, got, want)
		}
	}
	for n := 1; n <= 3000; n++ {
		text := fmt.Sprintf("%d.%03d", n/1000, n%1000)
		check(text, n)
		check(text+"9", n)
	}
	for n := 1; n <= 1000_000; n += 333 {
		c := parse(t, throttling(fmt.Sprintf(`"maxTokens":%d.%03d,"tokenRatio":1`, n/1000, n%1000)))
		account, err := hedgedlimit.NewThrottle(c.Throttling().MaxTokens, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := account.Balance(now), float64(n)/2/1000; got != want {
			t.Errorf("%v: the balance is %v, want %v", c.Throttling().MaxTokens, got, want)
		}
	}
}

// Rule V5: "specified as an integer or as a string", in any case.
func TestEveryStatusCodeHasItsNumberAndItsName(t *testing.T) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		name := codeName(code)
		var theirs codes.Code
		if err := theirs.UnmarshalJSON([]byte(strconv.Quote(name))); err != nil || theirs != code {
			t.Fatalf("%s is %v to grpc-go, want %v: %v", name, theirs, code, err)
		}
		for _, text := range []string{strconv.Itoa(int(code)), strconv.Quote(name), strconv.Quote(strings.ToLower(name))} {
			m, _ := parse(t, codesOf(`[`+text+`]`)).Method("/s/m")
			if got := m.Hedging.NonFatal; len(got) != 1 || got[0] != code {
				t.Errorf("%s is %v, want %v", text, got, code)
			}
		}
	}
}

// codeName makes ALREADY_EXISTS of the AlreadyExists that grpc-go prints.
func codeName(code codes.Code) string {
	if code == codes.Canceled {
		return "CANCELLED"
	}
	var b strings.Builder
	for i, r := range code.String() {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}
