package view

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A sheet is the description of one object: headings with fields.
type sheet struct {
	output.Page
	now time.Time
	b   strings.Builder
}

// labelWidth is the width of labels.
const labelWidth = 16

// field prints a field, unless it is empty.
func (s *sheet) field(label, value string) {
	if value != "" {
		fmt.Fprintf(&s.b, "%s%s\n", output.Fit(label+":", labelWidth), output.Sanitize(value))
	}
}

// list prints several values, each on a line.
func (s *sheet) list(label string, values []string) {
	for i, v := range values {
		if i > 0 {
			label = ""
		} else {
			label += ":"
		}
		fmt.Fprintf(&s.b, "%s%s\n", output.Fit(label, labelWidth), output.Sanitize(v))
	}
}

func (s *sheet) heading(text string) { fmt.Fprintf(&s.b, "%s\n", s.Paint(output.Bold, text+":")) }

func (s *sheet) line(indent int, text string) {
	fmt.Fprintf(&s.b, "%s%s\n", strings.Repeat("  ", indent), text)
}

// text prints a long text, indented.
func (s *sheet) text(indent int, text string) {
	for _, line := range output.Wrap(text, s.Width-2*indent) {
		s.line(indent, line)
	}
}

func (s *sheet) since(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return duration.HumanDuration(max(0, s.now.Sub(t)))
}

var conditionStyles = map[metav1.ConditionStatus]output.Style{metav1.ConditionTrue: output.Green, metav1.ConditionFalse: output.Red, metav1.ConditionUnknown: output.Yellow}

// conditions prints a line for each condition, with the messages of those that are not true.
func (s *sheet) conditions(indent int, all []metav1.Condition) {
	width, reasons := 0, 0
	for _, c := range all {
		width, reasons = max(width, output.Width(c.Type)), max(reasons, output.Width(c.Reason))
	}
	inOneLine := 2*indent+width+reasons+len("  Unknown    for 59s ") <= s.Width
	for _, c := range all {
		reason := ""
		if inOneLine {
			reason = output.Fit(c.Reason, reasons) + "  "
		}
		s.line(indent, fmt.Sprintf("%s  %s  %sfor %s", output.Fit(c.Type, width), s.Paint(conditionStyles[c.Status], output.Fit(string(c.Status), 7)),
			reason, s.since(c.LastTransitionTime.Time)))
		if c.Status != metav1.ConditionTrue {
			if !inOneLine {
				s.line(indent+2, c.Reason)
			}
			s.text(indent+2, c.Message)
		}
	}
}

// events prints events, with the names of their objects if named is true.
func (s *sheet) events(all []status.Event, named bool) {
	if len(all) == 0 {
		return
	}
	s.heading("Events")
	for i := range all {
		e := &all[i]
		what := fmt.Sprintf("%s ago  %s  %s", s.since(e.Last), e.Type, e.Reason)
		if e.Count > 1 {
			what += fmt.Sprintf(" (%d times in %s)", e.Count, duration.HumanDuration(e.Last.Sub(e.First)))
		}
		if named {
			what += "  " + e.About()
		} else if e.Cluster != "" {
			what += " on " + e.Cluster
		}
		s.line(1, what)
		s.text(3, e.Message)
	}
}

// of returns a function that reports whether a list has a condition.
func of(all []metav1.Condition) func(metav1.Condition) bool {
	return func(c metav1.Condition) bool {
		for _, other := range all {
			if other.Type == c.Type {
				return true
			}
		}
		return false
	}
}
