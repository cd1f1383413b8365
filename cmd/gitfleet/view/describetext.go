package view

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
)

// A description describes one object: headings with fields.
type description struct {
	output.Page
	now time.Time
	b   strings.Builder
}

// labelWidth is the width of labels.
const labelWidth = 16

// field prints a field, unless it is empty.
func (s *description) field(label, value string) {
	if value != "" {
		s.b.WriteString(output.Hang(output.Fit(label+":", labelWidth), value, s.Width))
	}
}

// list prints several values, each on a line.
func (s *description) list(label string, values []string) {
	for i, v := range values {
		if i > 0 {
			label = ""
		} else {
			label += ":"
		}
		s.b.WriteString(output.Hang(output.Fit(label, labelWidth), v, s.Width))
	}
}

func (s *description) heading(text string) { fmt.Fprintf(&s.b, "%s\n", s.Paint(output.Bold, text+":")) }

func (s *description) line(indent int, text string) {
	margin := strings.Repeat("  ", indent)
	fmt.Fprintln(&s.b, s.Fold(margin+text, margin+"    "))
}

// text prints a long text, indented.
func (s *description) text(indent int, text string) {
	for _, line := range output.Wrap(text, s.Width-2*indent) {
		s.line(indent, line)
	}
}

// texts prints the texts below a heading; nothing if there are none.
func (s *description) texts(heading string, all []string) {
	for i, text := range all {
		if i == 0 {
			s.line(3, heading)
		}
		s.text(4, text)
	}
}

func (s *description) since(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return duration.HumanDuration(max(0, s.now.Sub(t)))
}

var conditionStyles = map[metav1.ConditionStatus]output.Style{metav1.ConditionTrue: output.Green, metav1.ConditionFalse: output.Red, metav1.ConditionUnknown: output.Yellow}

// conditions prints a line for each condition, with the messages of those that are not true.
func (s *description) conditions(indent int, all []metav1.Condition) {
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
