package downstream

import (
	"math"
	"testing"
	"time"
)

func TestProfileDraw(t *testing.T) {
	p := Profile{
		Mean: 5 * time.Millisecond, Deviation: 2 * time.Millisecond,
		StragglerShare: 0.05, StragglerFactor: 10, Longest: 500 * time.Millisecond,
	}
	const n = 200_000
	var all, plain, square float64
	stragglers, plains := 0, 0
	for call := range uint64(n) {
		d := p.Draw(1, call, 1)
		if d <= 0 || d > p.Longest {
			t.Fatalf("Draw(1, %d, 1) = %v", call, d)
		}
		x := d.Seconds() * 1000
		all += x
		// The two parts hardly overlap at 19 ms.
		if d > 19*time.Millisecond {
			stragglers++
			continue
		}
		plains++
		plain += x
		square += x * x
	}
	mean := plain / float64(plains)
	for _, got := range []struct {
		what             string
		value, want, tol float64
	}{
		{"mean of all, ms", all / n, p.Expected().Seconds() * 1000, 0.15},
		{"mean without stragglers, ms", mean, 5, 0.03},
		{"deviation without stragglers, ms", math.Sqrt(square/float64(plains) - mean*mean), 2, 0.05},
		{"share of stragglers", float64(stragglers) / n, 0.05, 0.002},
	} {
		if math.Abs(got.value-got.want) > got.tol {
			t.Errorf("%s = %.4f, want %.4f ± %.4f", got.what, got.value, got.want, got.tol)
		}
	}
}

// The same numbers give the same time, and others an unrelated one: above all, a
// hedge of a straggler is a straggler as seldom as any request.
func TestProfileDrawIndependent(t *testing.T) {
	p := Profile{Mean: time.Second, StragglerShare: 0.05, StragglerFactor: 10, Longest: time.Minute}
	first, both := 0, 0
	for call := range uint64(100_000) {
		a := p.Draw(7, call, 1)
		if a != p.Draw(7, call, 1) {
			t.Fatalf("two draws for call %d differ", call)
		}
		if a > 5*time.Second {
			first++
			if p.Draw(7, call, 2) > 5*time.Second {
				both++
			}
		}
	}
	if share := float64(both) / float64(first); math.Abs(share-0.05) > 0.015 {
		t.Errorf("%.3f of the stragglers' hedges straggle, want 0.05", share)
	}
}

func TestProfileLongest(t *testing.T) {
	p := Profile{Mean: time.Hour, Longest: time.Second}
	if d := p.Draw(1, 1, 1); d != time.Second {
		t.Errorf("Draw = %v, want the bound of 1s", d)
	}
}

func TestStatusKiB(t *testing.T) {
	const status = "Name:\tbench\nVmPeak:\t  300 kB\nVmHWM:\t    1234 kB\nVmOdd:\tx kB\n"
	for _, tt := range []struct {
		name string
		want uint64
		ok   bool
	}{{"VmHWM:", 1234, true}, {"VmOdd:", 0, false}, {"VmRSS:", 0, false}} {
		if got, ok := statusKiB(status, tt.name); got != tt.want || ok != tt.ok {
			t.Errorf("statusKiB(%s) = %d, %t, want %d, %t", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}
