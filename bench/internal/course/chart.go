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
	// What is a file of its own is wide, with its legend inside. In a page a chart is narrow, so
	// that it can be read on a phone, and its legend is text of the page.
	width, height         = 26 * vg.Centimeter, 8 * vg.Centimeter
	pageWidth, pageHeight = 12.5 * vg.Centimeter, 7.5 * vg.Centimeter
	// maxPoints is as many as the width can show.
	maxPoints = 900
)

// colors can be told apart by everybody (Okabe and Ito, 2008).
var colors = []color.Color{
	color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff},
	color.RGBA{0x99, 0x99, 0x99, 0xff},
}

// Chart is one figure over time, or over the percentiles.
type Chart struct {
	Title, Unit string
	// Log tells that the axis is one of logarithms, from 1 on.
	Log bool
	// Length is that of the axis of time. Without one the axis is that of the percentiles, whose
	// tail is drawn as wide as all before it: logarithms of 1/(1 − q).
	Length time.Duration
	// Curves are drawn so that the first lies above the others.
	Curves []Curve
}

// Curve is how one run went.
type Curve struct {
	Name string
	// Color is a number that means the same in all charts. Below 0 the curve is dashed
	// and black: what ought to be.
	Color int
	// Wide draws a broad line, which is seen where another that comes before it lies upon it.
	Wide bool
	// X is in seconds, or what Tail says of a percentile.
	X, Y []float64
}

// Tail returns where a share of the whole, below 1, is on the axis of the percentiles.
func Tail(q float64) float64 { return 1 / (1 - q) }

// svg draws the chart as an element of a page, in the colors of its text, without title and
// legend.
func (c *Chart) svg() (string, error) {
	p, err := c.plot(false)
	if err != nil {
		return "", err
	}
	canvas := vgsvg.New(pageWidth, pageHeight)
	p.Draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", err
	}
	// What comes before is for a file of its own, and the reader need not have the font
	// that it was measured with.
	text := b.String()
	text = text[max(0, strings.Index(text, "<svg")):]
	return strings.NewReplacer("font-family:Liberation Serif", "font-family:sans-serif", "#000000", "currentColor").Replace(text), nil
}

// plot lays out the chart. What stands alone has its title and legend within.
func (c *Chart) plot(alone bool) (*plot.Plot, error) {
	p := plot.New()
	p.Y.Label.Text = c.Unit
	if alone {
		p.Title.Text = c.Title
	} else {
		p.BackgroundColor = color.Transparent
	}
	p.Y.Min = 0
	if c.Log {
		p.Y.Scale = plot.LogScale{}
		p.Y.Min = 1
	}
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	lines := make([]*plotter.Line, len(c.Curves))
	for i, x := range slices.Backward(c.Curves) {
		line, err := plotter.NewLine(c.points(x.X, x.Y))
		if err != nil {
			return nil, err
		}
		line.Width = vg.Points(1)
		if x.Wide {
			line.Width *= 3
		}
		line.Dashes = plotutil.Dashes(x.dashes())
		if x.Color >= 0 {
			line.Color = colors[x.Color%len(colors)]
		}
		p.Add(line)
		lines[i] = line
	}
	room := 1.0 // for the legend
	if alone {
		room = 1.12
		for i, x := range c.Curves {
			p.Legend.Add(x.Name, lines[i])
		}
		if len(c.Curves) > len(colors) {
			room = 1.3
			p.Legend.TextStyle.Font.Size *= 0.75
		}
	}
	if c.Length > 0 {
		p.X.Label.Text, p.X.Tick.Marker = "seconds", secondTicks(c.Length)
		p.X.Min, p.X.Max = 0, room*c.Length.Seconds()
	} else {
		p.X.Label.Text, p.X.Scale = "percentile", plot.LogScale{}
		p.X.Tick.Marker = tailTicks(p.X.Max)
		p.X.Min, p.X.Max = 1, 1.2*max(p.X.Max, Tail(0.9)) // with room for the last label
		p.Legend.Left = true                              // the curves rise to the right
	}
	if p.Y.Max <= p.Y.Min {
		p.Y.Max = p.Y.Min + 1 // all of it lies on the axis
	}
	if c.Log {
		ticks := logTicks(p.Y.Max)
		p.Y.Tick.Marker, p.Y.Max = ticks, ticks[len(ticks)-1].Value
	} else {
		p.Y.Tick.Marker = linearTicks(p.Y.Max)
		p.Y.Max *= 1.05 // the line of the highest is seen as a whole
	}
	return p, nil
}

// dashes is a number of a pattern: where there are more curves than colors, they tell them apart.
func (x *Curve) dashes() int {
	if x.Color < 0 {
		return 1
	}
	return x.Color / len(colors)
}

// tailTicks marks the half, and the percentiles with one nine more each.
func tailTicks(end float64) plot.ConstantTicks {
	ticks := plot.ConstantTicks{{Value: 1, Label: "0"}, {Value: Tail(0.5), Label: "50"}}
	label := "90"
	for x := Tail(0.9); x <= end*1.001; x *= 10 {
		ticks = append(ticks, plot.Tick{Value: x, Label: label})
		switch label {
		case "90":
			label = "99"
		case "99":
			label = "99.9"
		default:
			label += "9"
		}
	}
	return ticks
}

// linearTicks marks a few round numbers from 0 on.
func linearTicks(top float64) plot.ConstantTicks {
	decade := math.Pow(10, math.Floor(math.Log10(top)))
	step := decade / 5
	for _, m := range []float64{5, 10, 20} {
		if top > 6*step {
			step = m * decade / 10
		}
	}
	var ticks plot.ConstantTicks
	for i := 0; float64(i)*step <= top; i++ {
		ticks = append(ticks, plot.Tick{Value: float64(i) * step, Label: strconv.FormatFloat(float64(i)*step, 'g', 6, 64)})
	}
	return ticks
}

// logTicks marks 1, 2, 5, 10 and so on, up to the first that is not below top.
func logTicks(top float64) plot.ConstantTicks {
	ticks := plot.ConstantTicks{{Value: 1, Label: "1"}}
	for decade := 1.0; ; decade *= 10 {
		for _, m := range []float64{2, 5, 10} {
			x := m * decade
			ticks = append(ticks, plot.Tick{Value: x, Label: strconv.FormatFloat(x, 'f', 0, 64)})
			if x >= top {
				return ticks
			}
		}
	}
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
