package report

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgsvg" // the format "svg"

	"mihf.dev/cmd/mihsim/internal/experiment"
)

// colours that are told apart by most eyes (Okabe and Ito).
var colours = []color.Color{
	color.RGBA{0, 114, 178, 255},
	color.RGBA{213, 94, 0, 255},
	color.RGBA{0, 158, 115, 255},
	color.RGBA{204, 121, 167, 255},
	color.RGBA{230, 159, 0, 255},
	color.RGBA{86, 180, 233, 255},
}

const (
	plotWidth  = 18 * vg.Centimeter
	plotHeight = 10 * vg.Centimeter
	mostPoints = 2000 // of a line, or its file is larger than what the eye sees of it
)

// SVG draws a plot.
func SVG(w io.Writer, p experiment.Plot) error {
	c := plot.New()
	c.Title.Text, c.X.Label.Text, c.Y.Label.Text = p.Title, p.X, p.Y
	c.Legend.Top = true
	c.Add(plotter.NewGrid())
	if p.LogX {
		c.X.Scale, c.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if p.LogY {
		c.Y.Scale, c.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	draws := lines
	if len(p.Bars) > 0 {
		draws = bars
	}
	if err := draws(c, p); err != nil {
		return fmt.Errorf("plot %s: %w", p.Name, err)
	}
	to, err := c.WriterTo(plotWidth, plotHeight, "svg")
	if err != nil {
		return fmt.Errorf("plot %s: %w", p.Name, err)
	}
	if _, err := to.WriteTo(w); err != nil {
		return fmt.Errorf("plot %s: %w", p.Name, err)
	}
	return nil
}

func lines(c *plot.Plot, p experiment.Plot) error {
	for i, l := range p.Lines {
		xy := points(l.Points, p.LogX, p.LogY)
		if len(xy) == 0 {
			continue
		}
		colour := colours[i%len(colours)]
		if l.Dots {
			s, err := plotter.NewScatter(xy)
			if err != nil {
				return err
			}
			s.Color, s.Shape, s.Radius = colour, draw.CrossGlyph{}, vg.Points(3)
			c.Add(s)
			c.Legend.Add(l.Name, s)
			continue
		}
		s, err := plotter.NewLine(xy)
		if err != nil {
			return err
		}
		s.Color, s.Width = colour, vg.Points(1.2)
		if i%2 == 1 {
			s.Dashes = []vg.Length{vg.Points(5), vg.Points(2)}
		}
		c.Add(s)
		c.Legend.Add(l.Name, s)
	}
	return nil
}

// points leaves out what a logarithmic axis has no place for, and thins what is too much.
func points(all []experiment.Point, logX, logY bool) plotter.XYs {
	step := max(1, (len(all)+mostPoints-1)/mostPoints)
	var xy plotter.XYs
	for i := 0; i < len(all); i += step {
		pt := all[i]
		if math.IsNaN(pt.Y) || (logX && pt.X <= 0) || (logY && pt.Y <= 0) {
			continue
		}
		xy = append(xy, plotter.XY{X: pt.X, Y: pt.Y})
	}
	return xy
}

// bars draws a group for each name; with a logarithmic axis they begin at its lower end.
func bars(c *plot.Plot, p experiment.Plot) error {
	width := vg.Length(float64(plotWidth) * 0.7 / float64(len(p.Bars)*max(1, len(p.Lines))))
	for i, l := range p.Lines {
		values := make(plotter.Values, len(p.Bars))
		for j := range values {
			if j < len(l.Points) {
				values[j] = l.Points[j].Y
			}
			if p.LogY {
				values[j] = max(values[j], 1) // what is below doesn't show
			}
		}
		b, err := plotter.NewBarChart(values, width)
		if err != nil {
			return err
		}
		b.Color, b.LineStyle.Width = colours[i%len(colours)], 0
		b.Offset = width * vg.Length(float64(i)-float64(len(p.Lines)-1)/2)
		c.Add(logBars{b, p.LogY})
		c.Legend.Add(l.Name, b)
	}
	c.NominalX(slices.Clone(p.Bars)...)
	c.X.Min, c.X.Max = -0.6, float64(len(p.Bars))-0.4 // the outer bars whole
	if len(p.Bars) > 6 {
		c.X.Tick.Label.Rotation = math.Pi / 4
		c.X.Tick.Label.XAlign, c.X.Tick.Label.YAlign = draw.XRight, draw.YTop
	}
	if p.LogY {
		c.Y.Min = 1
		c.Y.Max *= 5 // room for the legend
	}
	return nil
}

// logBars draws bars from 1 up where the axis is logarithmic and has no 0.
type logBars struct {
	*plotter.BarChart
	log bool
}

func (b logBars) Plot(c draw.Canvas, p *plot.Plot) {
	if !b.log {
		b.BarChart.Plot(c, p)
		return
	}
	trX, trY := p.Transforms(&c)
	for i, v := range b.Values {
		x := trX(b.XMin+float64(i)) + b.Offset
		pts := []vg.Point{
			{X: x - b.Width/2, Y: trY(1)},
			{X: x - b.Width/2, Y: trY(v)},
			{X: x + b.Width/2, Y: trY(v)},
			{X: x + b.Width/2, Y: trY(1)},
		}
		c.FillPolygon(b.Color, c.ClipPolygonY(pts))
	}
}

func (b logBars) DataRange() (xmin, xmax, ymin, ymax float64) {
	xmin, xmax, ymin, ymax = b.BarChart.DataRange()
	if b.log {
		ymin = 1
	}
	return xmin, xmax, ymin, ymax
}
