package course

import (
	"fmt"
	"html/template"
	"image/color"
	"strings"

	"gonum.org/v1/plot/plotutil"
)

// figures draws the charts as elements of a page, side by side where there is room.
func figures(charts []Chart) (template.HTML, error) {
	var b strings.Builder
	b.WriteString("<div class=\"charts\">\n")
	for i := range charts {
		c := &charts[i]
		svg, err := c.svg()
		if err != nil {
			return "", fmt.Errorf("%s: %w", c.Title, err)
		}
		title := template.HTMLEscapeString(c.Title)
		fmt.Fprintf(&b, "<figure><figcaption>%s</figcaption>\n%s<ul class=\"legend\">", title,
			strings.Replace(svg, "<svg", fmt.Sprintf("<svg role=\"img\" aria-label=\"%s\"", title), 1))
		for k := range c.Curves {
			b.WriteString(c.Curves[k].key())
		}
		b.WriteString("</ul></figure>\n")
	}
	b.WriteString("</div>\n")
	return template.HTML(b.String()), nil //nolint:gosec // it is made here, and what is not is escaped
}

// key is the element of a legend: a piece of the line, and its name.
func (x *Curve) key() string {
	stroke := "currentColor"
	if x.Color >= 0 {
		c := color.RGBAModel.Convert(colors[x.Color%len(colors)]).(color.RGBA)
		stroke = fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)
	}
	width := 2
	if x.Wide {
		width = 6
	}
	var dashes []string
	for _, d := range plotutil.Dashes(x.dashes()) {
		dashes = append(dashes, fmt.Sprintf("%g", d.Points()))
	}
	return fmt.Sprintf(`<li><svg viewBox="0 0 24 12" aria-hidden="true"><path d="M0 6H24" stroke="%s" stroke-width="%d" stroke-dasharray="%s"/></svg>%s</li>`,
		stroke, width, strings.Join(dashes, " "), template.HTMLEscapeString(x.Name))
}
