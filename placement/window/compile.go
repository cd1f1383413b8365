package window

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Compile compiles a RolloutWindow. The window must not be used if there are faults.
func Compile(name string, spec *api.RolloutWindowSpec) (*Window, []Fault) {
	w := &Window{name: name, finishes: spec.Overrun != api.OverrunStop}
	var faults []Fault
	selector := func(path string, s *metav1.LabelSelector) labels.Selector {
		if s == nil {
			return labels.Everything()
		}
		out, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			faults = append(faults, Fault{path, -1, "", err.Error()})
		}
		return out
	}
	w.placements = selector("placementSelector", spec.PlacementSelector)
	w.cluster = selector("clusterSelector", spec.ClusterSelector)
	periods := func(path string, all []api.WindowPeriod) (out []period) {
		for i, p := range all {
			compiled, field, message := compile(p)
			if message != "" {
				faults = append(faults, Fault{path, i, field, message})
			}
			out = append(out, compiled)
		}
		return out
	}
	w.allow, w.exclude = periods("allow", spec.Allow), periods("exclude", spec.Exclude)
	if spec.MaxAge != "" {
		age, err := time.ParseDuration(spec.MaxAge)
		if err != nil || age <= 0 {
			faults = append(faults, Fault{"maxAge", -1, "", fmt.Sprintf("%q is no positive duration; write one such as 336h", spec.MaxAge)})
		}
		w.maxAge = age
	}
	switch {
	case len(faults) > 0:
	case len(w.allow)+len(w.exclude) == 0:
		faults = append(faults, Fault{"", -1, "", "has neither allow nor exclude, and so no effect; write when new content may come"})
	case (Set{w}).opens(reference).IsZero():
		faults = append(faults, Fault{"", -1, "", "never opens: no time is in allow and not in exclude; change one of them"})
	}
	return w, faults
}

const longestPeriod = 366 * 24 * time.Hour

var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// compile returns a period, or the field that is invalid, and why.
func compile(p api.WindowPeriod) (out period, field, message string) {
	const form = `write five fields, such as "0 22 * * 6" for Saturdays at 22:00`
	if strings.Contains(p.Schedule, "=") {
		return out, "schedule", "the time zone has a field of its own, timeZone; " + form
	}
	parsed, err := parser.Parse(p.Schedule)
	schedule, isSpec := parsed.(*cron.SpecSchedule)
	if err != nil || !isSpec {
		return out, "schedule", fmt.Sprintf("%q is no cron expression (%v); %s", p.Schedule, err, form)
	}
	// LoadLocation takes "Local" for the time zone of the machine, which Git does not have.
	location, err := time.LoadLocation(p.TimeZone)
	if err != nil || p.TimeZone == "Local" {
		return out, "timeZone", fmt.Sprintf("%q is no time zone; write one such as Europe/Paris, or leave it out for UTC", p.TimeZone)
	}
	schedule.Location = location
	duration, err := time.ParseDuration(p.Duration)
	switch {
	case err != nil:
		return out, "duration", fmt.Sprintf("%q is no duration; write one such as 2h or 90m", p.Duration)
	case duration < time.Minute || duration > longestPeriod:
		return out, "duration", fmt.Sprintf("%s must be at least 1m and at most %dh", p.Duration, longestPeriod/time.Hour)
	}
	if schedule.Next(reference).IsZero() {
		return out, "schedule", fmt.Sprintf("%q is a time that never comes; change the day or the month", p.Schedule)
	}
	return period{schedule, duration}, "", ""
}

// A Fault is why a field of a RolloutWindow is invalid, and what to write instead.
type Fault struct {
	// Path is the field below spec; Index is the item if it is in one of the lists, else -1, and Field
	// then the field of the item.
	Path    string
	Index   int
	Field   string
	Message string
}
