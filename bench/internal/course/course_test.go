package course

import (
	"bytes"
	"encoding/xml"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot"
)

// Everything is in the files: nothing is loaded from elsewhere.
func TestWrite(t *testing.T) {
	seconds := []float64{0, 1, 2}
	charts := []Chart{{Title: "Good calls", Unit: "a second", Length: 2 * time.Second, Curves: []Curve{
		{Name: "aimd", X: seconds, Y: []float64{3, 2, 1}}, {Name: "ideal", Color: -1, X: seconds, Y: []float64{3, 3, 3}},
	}}}
	pages := []Page{{File: "S1", Title: "S1 overload", Charts: charts}, {File: "S2", Title: "S2 <drop>", Lines: []string{"c 5"}, Note: "A note.", Charts: charts}}
	dir := filepath.Join(t.TempDir(), "new", "report")
	if err := Prepare(dir); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, "All of it", []string{"machine: <one>"}, pages); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"index.html": {"All of it", "machine: &lt;one&gt;", `href="S1.html"`, `href="S2.html"`},
		"S2.html":    {"S2 &lt;drop&gt;", "Good calls", "ideal", "aimd", "c 5", "A note.", "currentColor"},
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
		if strings.Contains(string(data), "src=") || strings.Contains(string(data), "NaN") || strings.Contains(string(data), "#000000") {
			t.Errorf("%s loads something, draws what is no number, or in a color that is not seen by night", name)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 3 {
		t.Errorf("%d files, %v", len(files), err)
	}
}

// A chart is well-formed even where a curve lies on the axis.
func TestChartOfNothing(t *testing.T) {
	for _, y := range [][]float64{{0, 0}, {0, 1}} {
		for _, log := range []bool{false, true} {
			c := Chart{Title: "Nothing", Log: log, Length: 2 * time.Second, Curves: []Curve{{Name: "none", X: []float64{1, 2}, Y: y}}}
			svg, err := c.svg()
			if err != nil {
				t.Fatal(err)
			}
			d := xml.NewDecoder(strings.NewReader(svg))
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if !strings.HasPrefix(svg, "<svg") {
				t.Errorf("it begins with %.20q", svg)
			}
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
	p := (&Chart{}).points(x, x)
	if len(p) > maxPoints || p[0].Y != 5 {
		t.Errorf("%d points, the first at %v", len(p), p[0])
	}
}

// All charts are in one picture, also where there are more curves than colors.
func TestDraw(t *testing.T) {
	var curves []Curve
	for i := range 2*len(colors) + 1 {
		curves = append(curves, Curve{Name: "curve", Color: i, X: []float64{0, 1}, Y: []float64{1, float64(i)}})
	}
	charts := []Chart{{Title: "First", Length: time.Hour, Curves: curves}, {Title: "Second", Length: time.Hour, Log: true, Curves: curves[:1]}}
	heights := map[string][2]int{}
	for _, name := range []string{"a.png", "B.SVG"} {
		format, err := Format(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range charts {
			var b bytes.Buffer
			if err := Draw(&b, format, charts[:i+1]); err != nil {
				t.Fatal(err)
			}
			h := heights[format]
			if format == "svg" {
				h[i] = strings.Count(b.String(), ">First<") + strings.Count(b.String(), ">Second<")
			} else if c, err := png.DecodeConfig(&b); err != nil {
				t.Error(err)
			} else {
				h[i] = c.Height
			}
			heights[format] = h
		}
	}
	if h := heights["svg"]; h != [2]int{1, 2} {
		t.Errorf("%v titles in the svg", h)
	}
	if h := heights["png"]; h[0] == 0 || h[1] < 2*h[0]-1 || h[1] > 2*h[0]+1 {
		t.Errorf("heights %v of one chart and two", h)
	}
	for _, name := range []string{"", "png", "a.pdf"} {
		if _, err := Format(name); err == nil {
			t.Errorf("there is a format for %q", name)
		}
	}
}

// A wide curve is seen behind another, in the chart and in the legend.
func TestWideCurve(t *testing.T) {
	curves := []Curve{{Name: "upon", Color: 0, X: []float64{0, 1}, Y: []float64{1, 2}}, {Name: "behind", Color: 1, X: []float64{0, 1}, Y: []float64{1, 2}}}
	draw := func() (svg, legend string) {
		c := Chart{Title: "Both", Length: time.Second, Curves: curves}
		svg, err := c.svg()
		if err != nil {
			t.Fatal(err)
		}
		return svg, curves[1].key()
	}
	thin, thinKey := draw()
	curves[1].Wide = true
	wide, wideKey := draw()
	if strings.Contains(thin, "stroke-width:3") || strings.Count(wide, "stroke-width:3") != 1 {
		t.Errorf("a line three wide is not there once\n%s", wide)
	}
	if !strings.Contains(thinKey, `stroke-width="2"`) || !strings.Contains(wideKey, `stroke-width="6"`) {
		t.Errorf("keys %s and %s", thinKey, wideKey)
	}
}

// An axis has a few round numbers, whatever its length, and one of logarithms ends in one.
func TestTicks(t *testing.T) {
	labels := func(ticks plot.ConstantTicks) string {
		var words []string
		for _, x := range ticks {
			words = append(words, x.Label)
		}
		return strings.Join(words, " ")
	}
	for _, tt := range []struct {
		name, got, want string
	}{
		{"one", labels(linearTicks(1)), "0 0.2 0.4 0.6 0.8 1"},
		{"sixteen", labels(linearTicks(16)), "0 5 10 15"},
		{"fifty-three", labels(linearTicks(53)), "0 10 20 30 40 50"},
		{"many", labels(linearTicks(99_000)), "0 20000 40000 60000 80000"},
		{"a tail", labels(tailTicks(10_000)), "0 50 90 99 99.9 99.99"},
		{"a short tail", labels(tailTicks(9)), "0 50"},
		{"logarithms", labels(logTicks(101)), "1 2 5 10 20 50 100 200"},
		{"logarithms to a tick", labels(logTicks(2)), "1 2"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, tt.got, tt.want)
		}
	}
}
