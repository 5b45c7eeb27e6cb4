package soak

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A short soak has calls of every kind that it knows, and leaves nothing behind.
func TestNothingStaysBehind(t *testing.T) {
	told := 0
	r, err := Run(t.Context(), Config{Time: 4 * time.Second, Capacity: 4, Seed: 1, Every: time.Second, Progress: func(Snapshot) { told++ }})
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range r.Wrong {
		t.Error(wrong)
	}
	for k, share := range mix {
		if n := r.Kinds[kind(k).String()]; share > 0 && n == 0 {
			t.Errorf("there was no call of kind %v", kind(k))
		}
	}
	if r.Interrupted || told == 0 {
		t.Errorf("interrupted %v, told %d times", r.Interrupted, told)
	}
}

// A body that the caller keeps for ever is in the verdict: its permit, the body, and the
// transport that cannot be closed for it.
func TestAKeptBodyIsInTheVerdict(t *testing.T) {
	r, err := Run(t.Context(), Config{Time: time.Second, Capacity: 4, drain: 3 * time.Second, keep: true})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(r.Wrong, "\n")
	for _, want := range []string{"1 permits are in flight", "1 bodies of responses are open", "cannot be closed"} {
		if !strings.Contains(all, want) {
			t.Errorf("the verdict lacks %q:\n%s", want, all)
		}
	}
}

// A heap that grows is in the verdict, and one that only swings is not.
func TestAGrowingHeapIsInTheVerdict(t *testing.T) {
	const mib = 1 << 20
	for name, row := range map[string]struct {
		heap  func(n int) uint64
		wrong bool
	}{
		"grows":  {func(n int) uint64 { return uint64(10+n) * mib }, true},
		"swings": {func(n int) uint64 { return uint64(10+n%3) * mib }, false},
	} {
		r := &run{}
		for n := range 60 {
			r.heaps = append(r.heaps, row.heap(n))
		}
		r.judgeHeap()
		if got := len(r.wrong) > 0; got != row.wrong {
			t.Errorf("%s: %v", name, r.wrong)
		}
	}
}

// An interrupted soak drains too, and says so.
func TestAnInterruptedSoakIsJudged(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(300*time.Millisecond, cancel)
	defer timer.Stop()
	r, err := Run(ctx, Config{Time: time.Hour, Capacity: 4})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || len(r.Wrong) > 0 || r.Last.Calls == 0 {
		t.Errorf("%+v", r)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []Config{{Capacity: 1}, {Time: -1, Capacity: 1}, {Time: 1}, {Time: 1, Capacity: -1}} {
		if _, err := Run(t.Context(), c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
