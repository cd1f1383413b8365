// Package picture draws Grafana dashboards as SVG, for the documentation: the panels of a
// dashboard file, with the data that a query function returns.
package picture

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Series is one time series of a response. Points are in order of time.
type Series struct {
	Labels map[string]string
	Points []Point
}

// A Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// A Query evaluates an expression of a panel over the period, or only at its end if it is
// instant.
type Query func(expr string, instant bool) ([]Series, error)

// The size of a cell of Grafana's grid, which has 24 columns, in pixels.
const (
	unitWidth  = 40
	unitHeight = 30
	header     = 44
)

type dashboard struct {
	Title  string
	Panels []panel
}

type panel struct {
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct {
		Expr, LegendFormat string
		Instant            bool
	}
	FieldConfig struct{ Defaults struct{ Unit string } }
	Options     struct{ TextMode string }
}

// Draw returns a picture of a dashboard file from one time to another.
func Draw(file []byte, from, to time.Time, query Query) (string, error) {
	var d dashboard
	if err := json.Unmarshal(file, &d); err != nil {
		return "", err
	}
	height := 0
	for _, p := range d.Panels {
		height = max(height, p.GridPos.Y+p.GridPos.H)
	}
	c := &canvas{from: from, to: to}
	c.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="Helvetica, Arial, sans-serif" font-size="11">`, 24*unitWidth, height*unitHeight+header)
	c.printf(`<rect width="100%%" height="100%%" fill="#f4f5f5"/>`)
	c.text(12, 28, 18, "#24292e", "start", d.Title)
	for _, p := range d.Panels {
		if err := c.panel(&p, query); err != nil {
			return "", fmt.Errorf("%s: %w", p.Title, err)
		}
	}
	c.printf("</svg>")
	return c.out.String(), nil
}

// A canvas collects the elements of a picture.
type canvas struct {
	out      strings.Builder
	from, to time.Time
}

func (c *canvas) printf(format string, args ...any) { fmt.Fprintf(&c.out, format+"\n", args...) }

func (c *canvas) text(x, y, size float64, color, anchor, text string) {
	c.printf(`<text x="%.1f" y="%.1f" font-size="%.0f" fill="%s" text-anchor="%s">%s</text>`, x, y, size, color, anchor, html.EscapeString(text))
}

// A line is a series with its legend.
type line struct {
	Series
	legend string
}

func (l line) last() float64 { return l.Points[len(l.Points)-1].Value }

func (c *canvas) panel(p *panel, query Query) error {
	const margin = 4
	x, y := float64(p.GridPos.X*unitWidth+margin), float64(p.GridPos.Y*unitHeight+header+margin)
	w, h := float64(p.GridPos.W*unitWidth-2*margin), float64(p.GridPos.H*unitHeight-2*margin)
	if p.Type == "row" {
		c.text(x+8, y+h-6, 13, "#24292e", "start", p.Title)
		return nil
	}
	var lines []line
	for _, t := range p.Targets {
		all, err := query(t.Expr, t.Instant)
		if err != nil {
			return err
		}
		for _, s := range all {
			if len(s.Points) > 0 {
				lines = append(lines, line{s, legend(t.LegendFormat, s.Labels)})
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.legend, b.legend) })
	c.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#ffffff" stroke="#dcdee1"/>`, x, y, w, h)
	title, size := p.Title, 12.0
	if longest := int(w / 7); len(title) > longest {
		size = 12 * float64(longest) / float64(len(title))
	}
	c.text(x+8, y+18, math.Max(size, 7), "#464c54", "start", title)
	if p.Type == "stat" {
		c.stat(p, lines, x, y+18, w, h-18)
	} else {
		c.graph(p, lines, x, y+24, w, h-24)
	}
	return nil
}

// stat draws the last value of each line.
func (c *canvas) stat(p *panel, lines []line, x, y, w, h float64) {
	for i, l := range lines {
		at, value := x+w*(float64(i)+0.5)/float64(len(lines)), format(l.last(), p.FieldConfig.Defaults.Unit)
		if p.Options.TextMode == "name" {
			value = l.legend
		} else if len(lines) > 1 {
			c.text(at, y+h-10, 11, "#73787f", "middle", l.legend)
		}
		size := math.Min(30, w/float64(len(lines))/float64(len(value))*1.5)
		c.text(at, y+h/2+10, size, "#1f60c4", "middle", value)
	}
}

// colors are the colors of lines, in order.
var colors = []string{"#1f60c4", "#e0752d", "#37872d", "#c4162a", "#8f3bb8", "#e0b400", "#0a437c", "#96d98d", "#fa6400", "#ffa6b0"}

// graph draws lines over time, and their legend.
func (c *canvas) graph(p *panel, lines []line, x, y, w, h float64) {
	legendHeight := c.legends(lines, x+44, y+h, w-52)
	left, right, top, bottom := x+52, x+w-12, y+6, y+h-legendHeight-20
	highest := 0.0
	for _, l := range lines {
		for _, pt := range l.Points {
			if !math.IsNaN(pt.Value) && !math.IsInf(pt.Value, 0) {
				highest = math.Max(highest, pt.Value)
			}
		}
	}
	step := roundStep(highest / 3)
	if p.FieldConfig.Defaults.Unit == "none" && highest >= 3 {
		step = math.Max(1, step)
	}
	top4 := step * math.Max(1, math.Ceil(highest/step))
	for v := 0.0; v <= top4+step/2; v += step {
		at := bottom - (bottom-top)*v/top4
		c.printf(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#e9edf2"/>`, left, at, right, at)
		c.text(left-6, at+4, 10, "#73787f", "end", format(v, p.FieldConfig.Defaults.Unit))
	}
	span := c.to.Sub(c.from)
	for i := range 5 {
		share := float64(i) / 4
		since := time.Duration(share * float64(span)).Round(time.Second)
		c.text(left+(right-left)*share, bottom+14, 10, "#73787f", "middle", since.String())
	}
	for i, l := range lines {
		var points strings.Builder
		draw := func() {
			if points.Len() > 0 {
				c.printf(`<polyline fill="none" stroke="%s" stroke-width="1.6" points="%s"/>`, colors[i%len(colors)], strings.TrimSpace(points.String()))
			}
			points.Reset()
		}
		for j, pt := range l.Points {
			gap := j > 0 && pt.At.Sub(l.Points[j-1].At) > span/30
			if gap || math.IsNaN(pt.Value) || math.IsInf(pt.Value, 0) {
				draw()
			}
			if math.IsNaN(pt.Value) || math.IsInf(pt.Value, 0) {
				continue
			}
			fmt.Fprintf(&points, "%.1f,%.1f ", left+(right-left)*float64(pt.At.Sub(c.from))/float64(span), bottom-(bottom-top)*pt.Value/top4)
		}
		draw()
	}
}

// legends draws the legend of a graph that ends at y, and returns its height.
func (c *canvas) legends(lines []line, x, y, w float64) (height float64) {
	const lineHeight = 15
	type entry struct{ x, y float64 }
	var entries []entry
	ex, ey := 0.0, 0.0
	for _, l := range lines {
		width := float64(len(l.legend))*6.4 + 30
		if ex > 0 && ex+width > w {
			ex, ey = 0, ey+lineHeight
		}
		entries = append(entries, entry{ex, ey})
		ex += width
	}
	height = ey + lineHeight + 4
	for i, e := range entries {
		at := y - height + e.y + 10
		c.printf(`<rect x="%.1f" y="%.1f" width="12" height="3" fill="%s"/>`, x+e.x, at-4, colors[i%len(colors)])
		c.text(x+e.x+16, at, 11, "#464c54", "start", lines[i].legend)
	}
	return height
}

// roundStep returns the smallest number at or above v that is 1, 2 or 5 times a power of ten.
func roundStep(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5, 10} {
		if f*power >= v*0.999 {
			return f * power
		}
	}
	return 10 * power
}

var label = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

// legend applies a legend format to some labels.
func legend(format string, labels map[string]string) string {
	return label.ReplaceAllStringFunc(format, func(m string) string { return labels[label.FindStringSubmatch(m)[1]] })
}

// format formats a value as Grafana does for a unit.
func format(v float64, unit string) string {
	number := func(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.3g", v), ".0") }
	switch {
	case math.IsNaN(v):
		return "no data"
	case unit == "bool_yes_no":
		return map[bool]string{true: "Yes", false: "No"}[v != 0]
	case unit == "percentunit":
		return fmt.Sprintf("%.0f%%", v*100)
	case unit == "s" && v != 0 && v < 0.001:
		return number(v*1e6) + " µs"
	case unit == "s" && v != 0 && v < 1:
		return number(v*1000) + " ms"
	case unit == "s" && v >= 120:
		return number(v/60) + " min"
	case unit == "s":
		return number(v) + " s"
	case unit == "bytes":
		return fmt.Sprintf("%.0f MiB", v/(1<<20))
	case unit == "reqps" || unit == "ops":
		return number(v) + "/s"
	case v >= 1000 && v < 1e6:
		return fmt.Sprintf("%.0f", v)
	}
	return number(v)
}
