package course

import (
	"bytes"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/holdfast-go/holdfast/bench/internal/arena"
)

const (
	width, height = 26 * vg.Centimeter, 8 * vg.Centimeter
	// maxPoints is as many as the width can show.
	maxPoints = 900
)

// colors can be told apart by everybody (Okabe and Ito, 2008). The ideal is black.
var colors = []color.Color{
	color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff},
	color.RGBA{0x99, 0x99, 0x99, 0xff},
}

// curve is how a run went.
type curve struct {
	name   string
	color  int // the same for a limit in all charts
	course *arena.Course
}

// chart is one figure over time.
type chart struct {
	title, unit string
	series      func(*arena.Course) []float64
	ideal       func(s *arena.Scenario, seconds float64) float64 // nil if there is none
	log         bool
}

var charts = []chart{
	{title: "Limit", unit: "calls", series: func(c *arena.Course) []float64 { return c.Limit }, log: true},
	{title: "In flight", unit: "calls", series: func(c *arena.Course) []float64 { return c.InFlight }, log: true},
	{title: "Good calls", unit: "a second", series: func(c *arena.Course) []float64 { return c.Good }, ideal: (*arena.Scenario).Ideal},
	{title: "Median latency", unit: "ms", series: func(c *arena.Course) []float64 { return c.P50 }, log: true},
	{title: "99th percentile of the latency", unit: "ms", series: func(c *arena.Course) []float64 { return c.P99 }, log: true},
}

// svg draws the chart as an element of a page.
func (c chart) svg(s *arena.Scenario, curves []curve) (string, error) {
	p, err := c.plot(s, curves)
	if err != nil {
		return "", err
	}
	canvas := vgsvg.New(width, height)
	p.Draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", err
	}
	// What comes before is for a file of its own, and the reader need not have the font
	// that it was measured with.
	text := b.String()
	text = text[max(0, strings.Index(text, "<svg")):]
	return strings.ReplaceAll(text, "font-family:Liberation Serif", "font-family:sans-serif"), nil
}

func (c chart) plot(s *arena.Scenario, curves []curve) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = c.title
	p.X.Label.Text, p.Y.Label.Text = "seconds", c.unit
	p.X.Tick.Marker = secondTicks(s.Length())
	p.Y.Min = 0
	if c.log {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		p.Y.Min = 1
	}
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	lines := make([]*plotter.Line, len(curves))
	for i, x := range slices.Backward(curves) { // ours comes first, and lies above the others
		line, err := plotter.NewLine(c.points(x.course.Seconds, c.series(x.course)))
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = colors[x.color%len(colors)], vg.Points(1)
		p.Add(line)
		lines[i] = line
	}
	for i, x := range curves {
		p.Legend.Add(x.name, lines[i])
	}
	if c.ideal != nil {
		seconds := curves[0].course.Seconds
		ideal := make([]float64, len(seconds))
		for i := range seconds {
			ideal[i] = c.ideal(s, seconds[i])
		}
		line, err := plotter.NewLine(c.points(seconds, ideal))
		if err != nil {
			return nil, err
		}
		line.Width, line.Dashes = vg.Points(1), plotutil.Dashes(1)
		p.Add(line)
		p.Legend.Add("ideal", line)
	}
	p.X.Min, p.X.Max = 0, 1.12*s.Length().Seconds() // with room for the legend
	if p.Y.Max <= p.Y.Min {
		p.Y.Max = p.Y.Min + 1 // all of it lies on the axis
	}
	if c.log {
		p.Y.Max = math.Pow(10, math.Ceil(math.Log10(p.Y.Max))) // ends in a tick
	}
	return p, nil
}

// secondTicks marks about ten round times.
func secondTicks(length time.Duration) plot.ConstantTicks {
	step := time.Second
	for _, s := range []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, time.Minute} {
		if length > 12*step {
			step = s
		}
	}
	var ticks plot.ConstantTicks
	for t := time.Duration(0); t <= length; t += step {
		ticks = append(ticks, plot.Tick{Value: t.Seconds(), Label: strconv.Itoa(int(t.Seconds()))})
	}
	return ticks
}

// points thins a series out by the means of neighbours.
func (c chart) points(x, y []float64) plotter.XYs {
	step := (len(x) + maxPoints - 1) / maxPoints
	var points plotter.XYs
	for i := 0; i < len(x); i += step {
		end := min(i+step, len(x))
		sum := 0.0
		for _, v := range y[i:end] {
			sum += v
		}
		mean := sum / float64(end-i)
		if c.log {
			mean = max(mean, 1) // an axis of logarithms has no 0
		}
		points = append(points, plotter.XY{X: x[i], Y: mean})
	}
	return points
}
