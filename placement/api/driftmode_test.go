package api

import (
	"testing"
	"time"
)

func TestDriftRuleAt(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		values []string
		want   string
	}{
		"nothing written":         {[]string{"", ""}, "revert"},
		"the most specific wins":  {[]string{"report", "propose"}, "report"},
		"less specific":           {[]string{"", "propose"}, "propose"},
		"not ended":               {[]string{"propose until 2026-06-01T00:00:01Z", "report"}, "propose until 2026-06-01T00:00:01Z"},
		"ended":                   {[]string{"propose until 2026-06-01T00:00:00Z", "report"}, "report"},
		"all ended":               {[]string{"propose until 2026-01-01T00:00:00Z"}, "revert"},
		"invalid values are none": {[]string{"merge", "propose until tomorrow", "report"}, "report"},
	} {
		if got := DriftRuleAt(now, DriftRevert, test.values...).String(); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
