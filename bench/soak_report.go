package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/soak"
)

// soakReport is everything that soak has found, and what its -json writes. Fields may be
// added to it and to what it holds; those that are there keep their meaning.
type soakReport struct {
	runInfo
	Settings soakSettings `json:"settings"`
	// Result is null if the soak could not begin. Its Wrong is the verdict.
	Result *soak.Result `json:"result"`
}

func newSoakReport(s soakSettings, now time.Time) *soakReport {
	return &soakReport{runInfo: newRunInfo(now), Settings: s}
}

// print prints the verdict. What is wrong comes last, since it is what is to be read.
func (r *soakReport) print(w io.Writer) error {
	s, x := r.Settings, r.Result
	elapsed := x.Last.Elapsed.Round(time.Second)
	var b strings.Builder
	fmt.Fprintf(&b, "soak of %v, seed %d, two servers of capacity %d\n", elapsed, s.Seed, s.Capacity)
	fmt.Fprintln(&b, soakLine(x.Last))
	for _, k := range slices.Sorted(maps.Keys(x.Kinds)) {
		fmt.Fprintf(&b, "  %-22s %d\n", k, x.Kinds[k])
	}
	fmt.Fprintf(&b, "heap after a collection: %.1f MiB in the first third, %.1f MiB in the last\n", mebibytes(x.FirstHeap), mebibytes(x.LastHeap))
	if x.Interrupted {
		fmt.Fprintf(&b, "INTERRUPTED after %v of %v\n", elapsed, s.Time)
	}
	for _, wrong := range x.Wrong {
		fmt.Fprintln(&b, "WRONG:", wrong)
	}
	if len(x.Wrong) == 0 {
		fmt.Fprintln(&b, "nothing has stayed behind: no permit, no goroutine, no open body, no memory")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func soakLine(s soak.Snapshot) string {
	return fmt.Sprintf("%d calls: %d answered, %d with 5xx, %d refused, %d errors, %d panics, %d hedged; %d bodies lost and found; in flight %d, goroutines %d, heap %.1f MiB",
		s.Calls, s.Answered, s.Failed, s.Refused, s.Broken, s.Panicked, s.Hedged, s.LostBodies, s.InFlight, s.Goroutines, mebibytes(s.Heap))
}

func mebibytes(n uint64) float64 { return float64(n) / (1 << 20) }
