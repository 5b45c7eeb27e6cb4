package course

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Format returns the format that Draw knows for the name of a file, and an error that tells
// which there are.
func Format(name string) (string, error) {
	switch e := strings.ToLower(filepath.Ext(name)); e {
	case ".png", ".svg":
		return e[1:], nil
	}
	return "", fmt.Errorf("%q ends in neither .png nor .svg", name)
}

// Draw writes the charts as one picture, one below the other.
func Draw(w io.Writer, format string, charts []Chart) error {
	h := vg.Length(len(charts)) * height
	var canvas interface {
		vg.CanvasSizer
		io.WriterTo
	}
	if format == "svg" {
		canvas = vgsvg.New(width, h)
	} else {
		canvas = vgimg.PngCanvas{Canvas: vgimg.New(width, h)}
	}
	tiles := draw.Tiles{Rows: len(charts), Cols: 1}
	for i := range charts {
		p, err := charts[i].plot(true)
		if err != nil {
			return err
		}
		p.Draw(tiles.At(draw.New(canvas), 0, i))
	}
	_, err := canvas.WriteTo(w)
	return err
}
