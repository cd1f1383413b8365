package output

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Count returns a count with its noun, which is in the plural unless n is 1.
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// ShortHash returns the beginning of a commit hash.
func ShortHash(hash string) string { return hash[:min(len(hash), 8)] }

// Since returns the time between at and now in its largest units; a dash if at is zero.
func Since(now, at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(at))
}
