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
)

const (
	width, height = 26 * vg.Centimeter, 8 * vg.Centimeter
	// maxPoints is as many as the width can show.
	maxPoints = 900
)

// colors can be told apart by everybody (Okabe and Ito, 2008).
var colors = []color.Color{
	color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff},
	color.RGBA{0x99, 0x99, 0x99, 0xff},
}

// Chart is one figure over time.
type Chart struct {
	Title, Unit string
	// Log tells that the axis is one of logarithms, from 1 on.
	Log bool
	// Length is that of the axis of time.
	Length time.Duration
	// Curves are drawn so that the first lies above the others.
	Curves []Curve
}

// Curve is how one run went.
type Curve struct {
	Name string
	// Color is a number that means the same in all charts. Below 0 the curve is dashed
	// and black: what ought to be.
	Color      int
	Seconds, Y []float64
}

// svg draws the chart as an element of a page.
func (c *Chart) svg() (string, error) {
	p, err := c.plot()
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

func (c *Chart) plot() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = c.Title
	p.X.Label.Text, p.Y.Label.Text = "seconds", c.Unit
	p.X.Tick.Marker = secondTicks(c.Length)
	p.Y.Min = 0
	if c.Log {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		p.Y.Min = 1
	}
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	lines := make([]*plotter.Line, len(c.Curves))
	for i, x := range slices.Backward(c.Curves) {
		line, err := plotter.NewLine(c.points(x.Seconds, x.Y))
		if err != nil {
			return nil, err
		}
		line.Width = vg.Points(1)
		if x.Color < 0 {
			line.Dashes = plotutil.Dashes(1)
		} else {
			// Where there are more curves than colors, dashes tell them apart.
			line.Color, line.Dashes = colors[x.Color%len(colors)], plotutil.Dashes(x.Color/len(colors))
		}
		p.Add(line)
		lines[i] = line
	}
	for i, x := range c.Curves {
		p.Legend.Add(x.Name, lines[i])
	}
	p.X.Min, p.X.Max = 0, 1.12*c.Length.Seconds() // with room for the legend
	if len(c.Curves) > len(colors) {
		p.X.Max = 1.3 * c.Length.Seconds()
		p.Legend.TextStyle.Font.Size *= 0.75
	}
	if p.Y.Max <= p.Y.Min {
		p.Y.Max = p.Y.Min + 1 // all of it lies on the axis
	}
	if c.Log {
		p.Y.Max = math.Pow(10, math.Ceil(math.Log10(p.Y.Max))) // ends in a tick
	}
	return p, nil
}

// secondTicks marks about ten round times.
func secondTicks(length time.Duration) plot.ConstantTicks {
	step := time.Second
	for _, s := range []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour} {
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
func (c *Chart) points(x, y []float64) plotter.XYs {
	step := (len(x) + maxPoints - 1) / maxPoints
	var points plotter.XYs
	for i := 0; i < len(x); i += step {
		end := min(i+step, len(x))
		sum := 0.0
		for _, v := range y[i:end] {
			sum += v
		}
		mean := sum / float64(end-i)
		if c.Log {
			mean = max(mean, 1) // an axis of logarithms has no 0
		}
		points = append(points, plotter.XY{X: x[i], Y: mean})
	}
	return points
}
