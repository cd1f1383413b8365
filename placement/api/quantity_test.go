package api

import (
	"strings"
	"testing"
	"time"
)

// A text is refused at once that would be computed for long, and every usual quantity is parsed.
func TestParseQuantity(t *testing.T) {
	for text, valid := range map[string]bool{
		"4": true, "250m": true, "0.25": true, "16Gi": true, "1e3": true, "1E-3": true, "12E": true, "9223372036854775807": true, "1e100": true,
		"1e2147483647": false, "1e-2147483648": false, "1E10000000": false, strings.Repeat("9", 1<<20): false, "": false, "many": false,
	} {
		start := time.Now()
		if _, err := ParseQuantity(text); (err == nil) != valid {
			t.Errorf("%.20q: %v", text, err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("%.20q: parsed for %s", text, took)
		}
	}
}
