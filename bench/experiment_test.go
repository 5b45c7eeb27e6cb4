package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/hedgedlimit"
)

// The server's count is held against the permits just where no attempt is cancelled.
func TestWhatCancelsNothingIsCovered(t *testing.T) {
	for _, e := range experiments() {
		var c hedgedlimit.Config
		if err := e.configure(&recorder{})("host", &c); err != nil {
			t.Fatal(err)
		}
		cancels := c.MaxAttempts != 1 && c.Losers != hedgedlimit.Drain(drainBound)
		if e.Covered == cancels {
			t.Errorf("%s: covered %t, and losers are cancelled: %t", e.Name, e.Covered, cancels)
		}
	}
}

// BenchmarkExperiments runs each row once, short. It shows that the bench works
// rather than how fast anything is: see the command for that.
func BenchmarkExperiments(b *testing.B) {
	s := shortSettings()
	s.Cancel = cancelIgnore
	for _, v := range s.variants() {
		for _, e := range experiments() {
			b.Run(v.protocol+"/"+e.Name, func(b *testing.B) {
				for b.Loop() {
					x, err := runRow(b.Context(), e, s, v, silent(s))
					if err != nil {
						b.Fatal(err)
					}
					if x.Errors > 0 || x.Law.GrantsAbove > 0 || (x.Law.Enforced && x.Law.Excess > 0) {
						b.Errorf("%d errors, first %q; %+v", x.Errors, x.FirstError, x.Law)
					}
					b.ReportMetric(x.P50, "p50-ms")
					b.ReportMetric(x.P99, "p99-ms")
					b.ReportMetric(x.ExtraPercent, "extra-%")
					b.ReportMetric(float64(x.ServerPeak), "server-peak")
				}
				b.ReportMetric(0, "ns/op") // the duration is a setting
			})
		}
	}
}
