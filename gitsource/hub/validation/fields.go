package validation

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
)

// CheckLength reports an error unless the number n of a list's entries is between low and high.
func CheckLength(r *document.Report, p *document.FieldPath, n, low, high int) {
	switch {
	case n < low:
		r.Rulef(p, "must have at least %d entry", low)
	case n > high:
		r.Rulef(p, "must have at most %d entries, and has %d", high, n)
	}
}

func between(r *document.Report, p *document.FieldPath, value, low, high int32) {
	if value < low || value > high {
		r.Rulef(p, "must be between %d and %d, not %d", low, high, value)
	}
}

func checkLabelSelector(r *document.Report, p *document.FieldPath, s *metav1.LabelSelector, what string) {
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		r.Rulef(p, "%s: %v", what, err)
	}
}

// eachRepeated calls report with every value that an earlier one equals.
func eachRepeated[T comparable](values []T, report func(i int, value T)) {
	seen := map[T]bool{}
	for i, v := range values {
		if seen[v] {
			report(i, v)
		}
		seen[v] = true
	}
}

func notEmpty(r *document.Report, p *document.FieldPath, value string) {
	if value == "" {
		r.Rulef(p, "must not be empty")
	}
}

// rules reports the messages of a validation of package apimachinery.
func rules(r *document.Report, p *document.FieldPath, messages []string, format string, args ...any) {
	for _, msg := range messages {
		r.Rulef(p, "%s: %s", fmt.Sprintf(format, args...), msg)
	}
}
