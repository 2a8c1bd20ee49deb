package wifi

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// A plot is a drawing of points and lines over two axes, in SVG.
type plot struct {
	title, x, y            string
	fromX, toX, fromY, toY float64
	series                 []series
	marks                  []mark // moments
}

// A series is drawn as a line, or as dots.
type series struct {
	name, colour string
	line         bool
	points       [][2]float64
}

// A mark is an upright line with a name.
type mark struct {
	x      float64
	name   string
	colour string
}

const plotWidth, plotHeight, plotLeft, plotTop, plotRight, plotBottom = 760.0, 380.0, 60.0, 40.0, 20.0, 50.0

func (p *plot) atX(v float64) float64 {
	return plotLeft + (v-p.fromX)/(p.toX-p.fromX)*(plotWidth-plotLeft-plotRight)
}

func (p *plot) atY(v float64) float64 {
	v = max(p.fromY, min(p.toY, v))
	return plotHeight - plotBottom - (v-p.fromY)/(p.toY-p.fromY)*(plotHeight-plotTop-plotBottom)
}

// svg draws it.
func (p *plot) svg() string {
	var s strings.Builder
	text := func(x, y float64, anchor, colour, t string) {
		fmt.Fprintf(&s, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=%q fill=%q>%s</text>\n", x, y, anchor, colour, t)
	}
	line := func(x1, y1, x2, y2 float64, colour string) {
		fmt.Fprintf(&s, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=%q/>\n", x1, y1, x2, y2, colour)
	}
	fmt.Fprintf(&s, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %v %v\" font-family=\"sans-serif\" font-size=\"12\">\n", plotWidth, plotHeight)
	fmt.Fprintf(&s, "<rect width=\"%v\" height=\"%v\" fill=\"#fff\"/>\n", plotWidth, plotHeight)
	text(plotLeft, 16, "start", "#000", p.title)
	for _, v := range steps(p.fromX, p.toX) {
		line(p.atX(v), plotHeight-plotBottom, p.atX(v), plotTop, "#e8e8e8")
		text(p.atX(v), plotHeight-plotBottom+16, "middle", "#444", fmt.Sprintf("%g", v))
	}
	for _, v := range steps(p.fromY, p.toY) {
		line(plotLeft, p.atY(v), plotWidth-plotRight, p.atY(v), "#e8e8e8")
		text(plotLeft-6, p.atY(v)+4, "end", "#444", fmt.Sprintf("%g", v))
	}
	text((plotLeft+plotWidth)/2, plotHeight-12, "middle", "#000", p.x)
	text(plotLeft, 32, "start", "#000", p.y)
	for i, m := range p.marks {
		line(p.atX(m.x), plotHeight-plotBottom, p.atX(m.x), plotTop, m.colour)
		text(p.atX(m.x)-4, plotTop+14+float64(i)*14, "end", m.colour, m.name)
	}
	for i, one := range p.series {
		text(plotWidth-plotRight, 16+float64(i)*14, "end", one.colour, one.name)
		if one.line {
			var points []string
			for _, at := range one.points {
				points = append(points, fmt.Sprintf("%.1f,%.1f", p.atX(at[0]), p.atY(at[1])))
			}
			fmt.Fprintf(&s, "<polyline fill=\"none\" stroke=%q points=%q/>\n", one.colour, strings.Join(points, " "))
			continue
		}
		for _, at := range one.points {
			fmt.Fprintf(&s, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=%q/>\n", p.atX(at[0]), p.atY(at[1]), one.colour)
		}
	}
	s.WriteString("</svg>\n")
	return s.String()
}

// steps are round values of an axis.
func steps(from, to float64) (list []float64) {
	step := math.Pow(10, math.Floor(math.Log10(to-from)))
	for (to-from)/step < 4 {
		step /= 2
	}
	for v := math.Ceil(from/step) * step; v <= to+step/1000; v += step {
		list = append(list, math.Round(v/step)*step)
	}
	return list
}

// An axis has at least four round values, none outside.
func TestSteps(t *testing.T) {
	for _, c := range [][2]float64{{0, 1}, {-3, 14}, {-110, -40}, {0, 6.5}} {
		list := steps(c[0], c[1])
		if len(list) < 4 || len(list) > 12 || list[0] < c[0] || list[len(list)-1] > c[1]+1e-9 {
			t.Errorf("%v: %v", c, list)
		}
	}
}
