package sizing

import (
	"encoding/json"
	"fmt"
	"go/format"
	"slices"
	"strconv"
	"strings"
	"time"
)

// evidence says in a line what a set-up does at both loads.
func (e *Effects) evidence() string {
	one := func(e *Effect) string {
		return fmt.Sprintf("p50 %s, p99 %s, +%.1f %% calls, %.2f %% failed", ms(e.P50), ms(e.EqualP99), e.ExtraPercent, e.FailedPercent)
	}
	return "now " + one(&e.Present) + "; at 1.5 × " + one(&e.Heavier)
}

func ms(x float64) string { return fmt.Sprintf("%.4g ms", x) }

// Go is the configuration as a Go file, with the evidence of each number above it. R must be
// complete.
func (s *Sizing) Go(r *Recommendation) (string, error) {
	var b strings.Builder
	h := r.Hedging
	imports := []string{"github.com/holdfast-go/holdfast/gradient", "github.com/holdfast-go/holdfast/hedgedlimit", "github.com/holdfast-go/holdfast/limiter"}
	if r.usesTime() {
		imports = append([]string{"time"}, imports...)
	}
	b.WriteString("package main\n\nimport (\n")
	for i, x := range imports {
		if i == 1 && r.usesTime() {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%q\n", x)
	}
	b.WriteString(")\n\nfunc newHedger() (*hedgedlimit.Hedger, error) {\n")
	c := gradientConfig(r.Limit.Limit)
	b.WriteString("algorithm, err := gradient.New(gradient.Config{\n")
	comment(&b, "Where the limit starts; it moves by itself. "+s.limitEvidence(r.Limit))
	fmt.Fprintf(&b, "Initial: %d,\n", c.Initial)
	if c.Max != 0 {
		comment(&b, "Twice that: the default, 1000, leaves no room.")
		fmt.Fprintf(&b, "Max: %d,\n", c.Max)
	}
	b.WriteString("})\nif err != nil {\nreturn nil, err\n}\nlim, err := limiter.New(limiter.Config{\nAlgorithm: algorithm,\n")
	if w := r.Waiting; w.Wait {
		comment(&b, fmt.Sprintf("A call that does not fit waits for up to 3 × p95. Without hedging%s: %s. Refused at once: %s.", fixedAt(r.Limit), w.Waited.evidence(), w.Refused.evidence()))
		fmt.Fprintf(&b, "MaxWaiting: %d,\nMaxWait: %s,\n", w.MaxWaiting, goDuration(seconds(w.MaxWaitMS/1000)))
	} else {
		comment(&b, "MaxWaiting is 0, so a call that does not fit is refused: waiting saves no more than 0.1 points of failures at either load.")
	}
	b.WriteString("})\nif err != nil {\nreturn nil, err\n}\n")
	if h.Chosen == nil {
		comment(&b, "No hedging: "+strings.Join(h.Reasons, "; ")+".")
		b.WriteString("return hedgedlimit.New(hedgedlimit.Config{Limiter: lim, MaxAttempts: 1})\n}\n")
	} else {
		comment(&b, fmt.Sprintf("Hedges are at most %g %% of the calls. Without hedging: %s. With it: %s.", 100*h.Chosen.Ratio, r.Unhedged.evidence(), r.AsRecommended.evidence()))
		if s.Doubt != "" {
			comment(&b, "Only for calls that may be carried out twice: "+s.Doubt+".")
		}
		fmt.Fprintf(&b, "budget, err := hedgedlimit.NewRatioBudget(hedgedlimit.RatioConfig{Ratio: %v})\n", h.Chosen.Ratio)
		b.WriteString("if err != nil {\nreturn nil, err\n}\nreturn hedgedlimit.New(hedgedlimit.Config{\nLimiter: lim,\n")
		delay := h.Chosen.delay()
		if h.Chosen.Fixed {
			what := "is that quantile of what was put in"
			if h.Chosen.Gap {
				what = "of what was put in is quicker, and hardly a call takes about so long"
			}
			comment(&b, fmt.Sprintf("Fixed: %s %s.", percentile(h.Chosen.Quantile), what))
			fmt.Fprintf(&b, "Delay: hedgedlimit.Fixed(%s),\n", goDuration(delay))
		} else {
			comment(&b, fmt.Sprintf("About %v in what was put in, and learnt as it changes.", delay))
			fmt.Fprintf(&b, "Delay: hedgedlimit.Quantile(hedgedlimit.QuantileConfig{Quantile: %v}),\n", h.Chosen.Quantile)
		}
		if !h.Chosen.Gates {
			comment(&b, "They would hold back hedges that pay here. Without them nothing but the budget and the limit bounds hedges in a surge, in a standstill, while calls are refused or wait, and when hedges no longer win.")
			b.WriteString("Gates: hedgedlimit.NoGates,\n")
		}
		b.WriteString("Budget: budget,\n})\n}\n")
	}
	text, err := format.Source([]byte(b.String()))
	return string(text), err
}

// fixedAt says behind which limit set-ups were compared.
func fixedAt(l *Limit) string {
	if l.Found {
		return fmt.Sprintf(", with the limit fixed at %d", l.Limit)
	}
	return ""
}

// usesTime tells that the Go text has a time in it.
func (r *Recommendation) usesTime() bool {
	return r.Waiting.Wait || r.Hedging.Chosen != nil && r.Hedging.Chosen.Fixed
}

// delay is that of the row.
func (r *HedgeRow) delay() time.Duration { return seconds(r.DelayMS / 1000) }

// limitEvidence says why the limit is what it is.
func (s *Sizing) limitEvidence(l *Limit) string {
	if !l.Found {
		return fmt.Sprintf("The capacity is not known: %.4g calls a second hold up to %d in flight, and it is at least %d.", heavier*s.Rate, l.InFlight, defaultInitial)
	}
	var parts []string
	for _, r := range l.Rows {
		parts = append(parts, fmt.Sprintf("%d gets %.1f %% of the answers at p50 %s", r.Limit, r.GoodPercent, ms(r.P50)))
	}
	return "As a fixed limit at 1.5 × the capacity " + strings.Join(parts, ", ") + "."
}

// comment writes text as a comment, in lines that can be read.
func comment(b *strings.Builder, text string) {
	line := "//"
	// A unit stays with its number.
	const glue = "\x00"
	text = strings.NewReplacer(" ms", glue+"ms", " %", glue+"%", "× ", "×"+glue).Replace(text)
	for word := range strings.SplitSeq(text, " ") {
		if len(line)+1+len(word) > 100 && line != "//" {
			b.WriteString(line + "\n")
			line = "//"
		}
		line += " " + strings.ReplaceAll(word, glue, " ")
	}
	b.WriteString(line + "\n")
}

// goDuration is a duration as it is written in Go.
func goDuration(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Second, "Second"}, {time.Millisecond, "Millisecond"}, {time.Microsecond, "Microsecond"}} {
		if d%u.unit == 0 {
			return fmt.Sprintf("%d * time.%s", d/u.unit, u.name)
		}
	}
	return fmt.Sprintf("%d * time.Nanosecond", d)
}

// Service config, as gRFC A6 has it.
type (
	serviceConfig struct {
		MethodConfig    []methodConfig   `json:"methodConfig"`
		RetryThrottling *retryThrottling `json:"retryThrottling,omitempty"`
	}
	methodConfig struct {
		Name          []methodName   `json:"name"`
		Timeout       string         `json:"timeout"`
		HedgingPolicy *hedgingPolicy `json:"hedgingPolicy,omitempty"`
	}
	methodName struct {
		Service string `json:"service,omitempty"`
		Method  string `json:"method,omitempty"`
	}
	hedgingPolicy struct {
		MaxAttempts         int      `json:"maxAttempts"`
		HedgingDelay        string   `json:"hedgingDelay"`
		NonFatalStatusCodes []string `json:"nonFatalStatusCodes"`
	}
	retryThrottling struct {
		MaxTokens  int     `json:"maxTokens"`
		TokenRatio float64 `json:"tokenRatio"`
	}
)

// placeholder is what stands for the service of a hedgingPolicy if nobody has named it.
const placeholder = "name.your.Service"

// ServiceConfig is the gRPC service config, for a method such as pkg.Service/Method. If that is
// empty it is for all, or, with a hedgingPolicy, for a service whose name is to be put in: not all
// that a client calls may be carried out twice. R must be complete. What its numbers do is in
// ServiceConfigEvidence, since JSON has no comments.
func (s *Sizing) ServiceConfig(r *Recommendation, method string) (string, error) {
	if method == "" && r.Hedging.GRPC != nil {
		method = placeholder
	}
	service, name, _ := strings.Cut(method, "/")
	m := methodConfig{Name: []methodName{{service, name}}, Timeout: protoDuration(s.Timeout)}
	c := serviceConfig{}
	if g := r.Hedging.GRPC; g != nil {
		m.HedgingPolicy = &hedgingPolicy{MaxAttempts: 2, HedgingDelay: protoDuration(g.delay()), NonFatalStatusCodes: []string{"UNAVAILABLE"}}
		c.RetryThrottling = &retryThrottling{MaxTokens: maxTokens, TokenRatio: g.Ratio}
	}
	c.MethodConfig = []methodConfig{m}
	text, err := json.MarshalIndent(c, "", "  ")
	return string(text) + "\n", err
}

// ServiceConfigEvidence says what the numbers of ServiceConfig do, a line each, and first what is to
// be put in if the method is empty.
func (s *Sizing) ServiceConfigEvidence(r *Recommendation, method string) []string {
	lines := []string{fmt.Sprintf("timeout %s: how long clients waited in all of the above", protoDuration(s.Timeout))}
	g := r.Hedging.GRPC
	if g == nil {
		return append(lines, "no hedgingPolicy: "+strings.Join(r.Hedging.Reasons, "; "))
	}
	if method == "" {
		lines = slices.Insert(lines, 0, placeholder+" stands for the service to hedge, or with \"method\" for one of its methods: only what may be carried out twice")
	}
	if s.Doubt != "" {
		lines = append(lines, s.Doubt)
	}
	return append(lines,
		fmt.Sprintf("maxAttempts 2, hedgingDelay %s, which is %s, behind the same limiter: %s", protoDuration(g.delay()), percentile(g.Quantile), r.ServiceConfig.evidence()),
		"without hedging: "+r.Unhedged.evidence(),
		fmt.Sprintf("maxTokens %d, tokenRatio %v: once more than %.0f %% of the attempts fail, no hedge is sent; extra calls are bounded by the delay", maxTokens, g.Ratio, 100*g.Ratio/(1+g.Ratio)),
	)
}

// protoDuration is a duration as it is written in JSON for protobuf.
func protoDuration(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
}
