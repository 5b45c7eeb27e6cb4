package sizing

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/grpcmw"
)

// made is a recommendation as it might have been found.
func made(change func(*Recommendation)) *Recommendation {
	e := Effects{Present: Effect{P50: 10, EqualP99: 100.5}, Heavier: Effect{P50: 11, EqualP99: 120}}
	// What the texts do is told apart from what was tried behind a fixed limit.
	pasted, policed := e, e
	pasted.Present.EqualP99, policed.Present.EqualP99 = 71, 72
	row := HedgeRow{Quantile: 0.95, DelayMS: 51.2, Ratio: 0.05, Effects: e, Gates: true, Harmless: true, GainPercent: 40}
	policy := row
	policy.GRPC, policy.Gates, policy.Quantile, policy.DelayMS, policy.Ratio = true, false, 0.99, 100, 0.1
	r := &Recommendation{
		Limit:         &Limit{Limit: 46, Found: true, Rows: []LimitRow{{Limit: 46, GoodPercent: 99.2}}},
		Waiting:       &Waiting{Wait: true, MaxWaiting: 46, MaxWaitMS: 153.5, Waited: e, Refused: e},
		Hedging:       &Hedging{Recommended: true, Chosen: &row, GRPC: &policy, None: e, Reasons: []string{}},
		AsRecommended: &pasted, ServiceConfig: &policed, Unhedged: &e,
	}
	if change != nil {
		change(r)
	}
	return r
}

// recommendations are all kinds that there are.
func recommendations() map[string]*Recommendation {
	return map[string]*Recommendation{
		"all":       made(nil),
		"refused":   made(func(r *Recommendation) { r.Waiting.Wait = false }),
		"large":     made(func(r *Recommendation) { r.Limit.Limit = 1200 }),
		"not found": made(func(r *Recommendation) { r.Limit = &Limit{Limit: 20, InFlight: 7} }),
		"fixed":     made(func(r *Recommendation) { r.Waiting.Wait, r.Hedging.Chosen.Fixed = false, true }),
		"no gates": made(func(r *Recommendation) {
			c := r.Hedging.Chosen
			c.Fixed, c.Gap, c.Gates = true, true, false
		}),
		"no gRPC":       made(func(r *Recommendation) { r.Hedging.GRPC = nil; r.Hedging.Reasons = []string{"none helps"} }),
		"no hedging":    made(func(r *Recommendation) { *r.Hedging = Hedging{Reasons: []string{"one", "another"}} }),
		"whole seconds": made(func(r *Recommendation) { r.Waiting.MaxWaitMS = 3000 }),
	}
}

func pasted(t *testing.T) *Sizing {
	return &Sizing{Input: fromTable(t, "p50=10ms p95=51.2ms p99=100ms", 40), Rate: 100, Timeout: 1500 * time.Millisecond}
}

// The Go text of every kind of recommendation is formatted, passes go vet, and makes a hedger.
func TestGoTextCompiles(t *testing.T) {
	s := pasted(t)
	dir := t.TempDir()
	for name, r := range recommendations() {
		text, err := s.Go(r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for line := range strings.Lines(text) {
			if len(line) > 140 {
				t.Errorf("%s: a long line: %s", name, line)
			}
		}
		main := text + "\nfunc main() {\n\tif _, err := newHedger(); err != nil {\n\t\tpanic(err)\n\t}\n}\n"
		file := filepath.Join(dir, strings.ReplaceAll(name, " ", "_")+".go")
		if err := os.WriteFile(file, []byte(main), 0o600); err != nil {
			t.Fatal(err)
		}
		// In this module, as files outside of it.
		for _, command := range []string{"vet", "run"} {
			if out, err := exec.CommandContext(t.Context(), "go", command, file).CombinedOutput(); err != nil {
				t.Errorf("%s: go %s: %v\n%s\n%s", name, command, err, out, text)
			}
		}
	}
}

// The numbers are those of the recommendation, with what they do beside them.
func TestGoTextHasTheNumbers(t *testing.T) {
	s := pasted(t)
	all := recommendations()
	for name, wants := range map[string][]string{
		"all": {
			"Initial: 46,", "As a fixed limit at 1.5 × the capacity 46 gets 99.2 % of the answers", "Without hedging, with the limit fixed at 46: now p50 10 ms, p99 100.5 ms", "MaxWaiting: 46,", "MaxWait:    153500 * time.Microsecond,",
			"RatioConfig{Ratio: 0.05}", "QuantileConfig{Quantile: 0.95}", "With it: now p50 10 ms, p99 71 ms", "at 1.5 × p50 11 ms",
		},
		"refused":       {"MaxWaiting is 0, so a call that does not fit is refused"},
		"large":         {"Initial: 1200,", "Max: 2400,"},
		"not found":     {"The capacity is not known: 150 calls a second hold up to 7 in flight, and it is at least 20"},
		"fixed":         {"Delay: hedgedlimit.Fixed(51200 * time.Microsecond)", "Fixed: p95 is that quantile"},
		"no gates":      {"Fixed: p95 of what was put in is quicker", "They would hold back hedges that pay here", "hedgedlimit.NoGates"},
		"no hedging":    {"No hedging: one; another.", "MaxAttempts: 1"},
		"whole seconds": {"MaxWait:    3 * time.Second,"},
	} {
		text, err := s.Go(all[name])
		if err != nil {
			t.Fatal(err)
		}
		// Comments are broken into lines.
		flat := strings.Join(strings.Fields(strings.ReplaceAll(text, "//", "")), " ")
		for _, want := range wants {
			if !strings.Contains(flat, strings.Join(strings.Fields(want), " ")) {
				t.Errorf("%s has no %q:\n%s", name, want, text)
			}
		}
	}
}

// Whoever pastes hedging is told why it is in doubt that calls may be carried out twice.
func TestDoubtIsPrinted(t *testing.T) {
	s := pasted(t)
	s.Doubt = "half of them are POSTs"
	for name, r := range recommendations() {
		text, err := s.Go(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(text, "// Only for calls that may be carried out twice: half of them are POSTs.\n"); got != (r.Hedging.Chosen != nil) {
			t.Errorf("%s: the doubt is there %t:\n%s", name, got, text)
		}
		if got := slices.Contains(s.ServiceConfigEvidence(r, ""), s.Doubt); got != (r.Hedging.GRPC != nil) {
			t.Errorf("%s: the doubt is with the service config %t", name, got)
		}
	}
}

// The service config of every kind is one to the package that obeys it.
func TestServiceConfigParses(t *testing.T) {
	s := pasted(t)
	for name, r := range recommendations() {
		for _, method := range []string{"", "shop.Stock/GetStock"} {
			text, err := s.ServiceConfig(r, method)
			if err != nil {
				t.Fatal(err)
			}
			c, err := grpcmw.ParseServiceConfig(text)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, text)
			}
			wanted := r.Hedging.GRPC != nil
			unnamed := wanted && method == ""
			m, ok := c.Method("/shop.Stock/GetStock")
			if unnamed {
				m, ok = c.Method("/" + placeholder + "/Any")
			}
			_, other := c.Method("/shop.Stock/Other")
			if !ok || other != (method == "" && !wanted) || m.Timeout != 1500*time.Millisecond {
				t.Errorf("%s, method %q: %+v", name, method, m)
			}
			if (m.Hedging != nil) != wanted || (c.Throttling() != nil) != wanted {
				t.Errorf("%s: %+v", name, m)
			}
			if wanted && (m.Hedging.MaxAttempts != 2 || m.Hedging.Delay != 100*time.Millisecond || c.Throttling().TokenRatio != 0.1) {
				t.Errorf("%s: %+v, %+v", name, m.Hedging, c.Throttling())
			}
			evidence := s.ServiceConfigEvidence(r, method)
			if want := map[bool]string{true: "hedgingDelay 0.1s, which is p99, behind the same limiter: now p50 10 ms, p99 72 ms", false: "no hedgingPolicy: "}[wanted]; !slices.ContainsFunc(evidence, func(line string) bool { return strings.Contains(line, want) }) {
				t.Errorf("%s: evidence %q", name, evidence)
			}
			if told := strings.Contains(strings.Join(evidence, "\n"), placeholder+" stands for "); told != unnamed {
				t.Errorf("%s, method %q: evidence %q", name, method, evidence)
			}
		}
	}
}
