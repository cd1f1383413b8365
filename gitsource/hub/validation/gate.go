package validation

import (
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// longestSoak is the longest time that a gate may ask for.
const longestSoak = 366 * 24 * time.Hour

// CheckGate validates a RolloutGate.
func CheckGate(r *document.Report, id api.ID, spec *api.RolloutGateSpec) {
	checkName(r, id.Name, "the name field cannot have length exceeding 63")
	if spec.Soak == nil {
		r.Rulef(r.Field("spec"), "says nothing that has to pass; write soak")
		return
	}
	at := r.Field("spec", "soak", "duration")
	if d, err := time.ParseDuration(spec.Soak.Duration); err != nil || d < time.Second || d > longestSoak {
		r.Rulef(at, "%q is not a duration from 1s to 366 days; write for example 30m or 24h", spec.Soak.Duration)
	}
}
