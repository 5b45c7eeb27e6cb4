package proptest_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/proptest"
)

func TestLimiterDoHoldsItsPermits(t *testing.T) {
	proptest.TestPermitLifetime(t, func(l *limiter.Limiter) (proptest.Runner, error) { return l.Do, nil })
}

func TestHedgerHoldsItsPermits(t *testing.T) {
	for name, losers := range map[string]hedgedlimit.LoserPolicy{
		"cancel": hedgedlimit.Cancel(),
		"drain":  hedgedlimit.Drain(50_000_000),
	} {
		t.Run(name, func(t *testing.T) {
			proptest.TestPermitLifetime(t, func(l *limiter.Limiter) (proptest.Runner, error) {
				h, err := hedgedlimit.New(hedgedlimit.Config{
					Gates: hedgedlimit.NoGates, Limiter: l, MaxAttempts: 3, Budget: hedgedlimit.Unlimited, Losers: losers,
					Delay: hedgedlimit.Fixed(20_000_000), OnPanic: func(any, []byte) {},
				})
				if err != nil {
					return nil, err
				}
				return func(ctx context.Context, work func(context.Context) error) error {
					_, err := hedgedlimit.Do(ctx, h, func(ctx context.Context, _ hedgedlimit.Attempt) (struct{}, error) {
						return struct{}{}, work(ctx)
					})
					return err
				}, nil
			})
		})
	}
}

// The suite must find wrong middleware, each by its own fault.
func TestWrongMiddlewareIsFound(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "test", "-count=1", "./testdata/wrong",
		"-rapid.nofailfile", "-rapid.seed=1").CombinedOutput()
	if err == nil {
		t.Fatalf("the wrong middleware passes:\n%s", out)
	}
	for name, fault := range map[string]string{
		"TestReleaseOnCancel":     "given back early",
		"TestReleaseByTheCaller":  "given back early",
		"TestLeakOnPanic":         "permits were lost",
		"TestNeverRuns":           "work was never run",
		"TestLeavesAGoroutine":    "outlives the work",
		"TestTwoRunsOnePermit":    "given back early",
		"TestRunsWithoutAPermit":  "or never taken",
		"TestAlgorithmOutOfRange": "not between",
	} {
		_, after, failed := strings.Cut(string(out), "--- FAIL: "+name+" ")
		if !failed || !strings.Contains(after, fault) {
			t.Errorf("%s was not found by %q", name, fault)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}
