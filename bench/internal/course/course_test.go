package course

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/arena"
)

// Everything is in the files: nothing is loaded from elsewhere.
func TestWrite(t *testing.T) {
	scenarios := arena.Scenarios()[:2]
	for i := range scenarios {
		for j := range scenarios[i].Phases {
			scenarios[i].Phases[j].Length = 2 * time.Second
		}
	}
	x := arena.Tournament{Scenarios: scenarios, Makers: arena.Makers()[:2], Seeds: []uint64{1}, Parallel: 2, Course: true}
	matches, err := x.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "new", "report")
	if err := Prepare(dir); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, matches); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"index.html": {`href="S1.html"`, `href="S2.html"`},
		"S2.html":    {"capacity drop", "Good calls", "ideal", "aimd", "c 5"},
	} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(data), w) {
				t.Errorf("%s has no %s", name, w)
			}
		}
		if strings.Contains(string(data), "src=") || strings.Contains(string(data), "NaN") {
			t.Errorf("%s loads something, or draws what is no number", name)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 3 {
		t.Errorf("%d files, %v", len(files), err)
	}
}

// A chart is well-formed even where a curve lies on the axis.
func TestChartOfNothing(t *testing.T) {
	c := &arena.Course{Seconds: []float64{1, 2}, Good: []float64{0, 0}, Limit: []float64{0, 1}, InFlight: []float64{0, 0}, P50: []float64{0, 0}, P99: []float64{0, 0}}
	s := arena.Scenarios()[0]
	for _, x := range charts {
		svg, err := x.svg(&s, []curve{{name: "none", course: c}})
		if err != nil {
			t.Fatalf("%s: %v", x.title, err)
		}
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", x.title, err)
			}
		}
		if !strings.HasPrefix(svg, "<svg") {
			t.Errorf("%s begins with %.20q", x.title, svg)
		}
	}
}

func TestPrepareFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Prepare(filepath.Join(file, "dir")); err == nil {
		t.Error("a directory below a file")
	}
}

func TestPoints(t *testing.T) {
	x := make([]float64, 10*maxPoints+1)
	for i := range x {
		x[i] = float64(i)
	}
	p := chart{}.points(x, x)
	if len(p) > maxPoints || p[0].Y != 5 {
		t.Errorf("%d points, the first at %v", len(p), p[0])
	}
}
