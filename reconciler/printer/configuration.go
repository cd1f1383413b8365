package printer

import (
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/window"
)

// A Window is a RolloutWindow in a row.
type Window struct {
	Spec     *api.RolloutWindowSpec
	Compiled *window.Window
}

// Windows are the columns of RolloutWindows.
var Windows = []Column{
	Name,
	Text("Open", "Whether the window, of itself, lets new content come now.", 0, func(r Row) string {
		switch w, ok := r.Value.(Window); {
		case !ok:
			return ""
		case (window.Set{w.Compiled}).At(r.Now).Open:
			return "True"
		}
		return "False"
	}),
	Text("Until", "When that changes.", 0, func(r Row) string {
		w, ok := r.Value.(Window)
		if !ok {
			return ""
		}
		until := window.Set{w.Compiled}.At(r.Now).Until
		if until.IsZero() {
			return "<never>"
		}
		return until.Format(window.TimeForm)
	}),
	Text("Allow", "Periods in which new content may come.", 0, windowPeriods(func(s *api.RolloutWindowSpec) []api.WindowPeriod { return s.Allow })),
	Text("Exclude", "Periods in which none comes.", 0, windowPeriods(func(s *api.RolloutWindowSpec) []api.WindowPeriod { return s.Exclude })),
	age,
	Text("Overrun", "What becomes of a rollout that has begun when the window closes.", 1, func(r Row) string {
		if w, ok := r.Value.(Window); ok && w.Compiled.Finishes() {
			return string(api.OverrunFinish)
		} else if ok {
			return string(api.OverrunStop)
		}
		return ""
	}),
	source,
}

// windowPeriods lists periods of a window with their durations and time zones.
func windowPeriods(of func(*api.RolloutWindowSpec) []api.WindowPeriod) func(Row) string {
	return func(r Row) string {
		w, ok := r.Value.(Window)
		if !ok {
			return ""
		}
		var out []string
		for _, p := range of(w.Spec) {
			text := p.Schedule + " for " + p.Duration
			if p.TimeZone != "" {
				text += " " + p.TimeZone
			}
			out = append(out, text)
		}
		return strings.Join(out, ", ")
	}
}

// Gates are the columns of RolloutGates.
var Gates = []Column{
	Name,
	Text("Passes", "When the gate passes.", 0, func(r Row) string {
		if g, ok := r.Value.(*api.RolloutGate); ok {
			return g.Spec.Text()
		}
		return ""
	}),
	age,
	source,
}
