package review

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A change in Git may be on a cluster already, because it adopts what somebody has done there: nothing is written then.
// That is known of drift that is held, and of additions that are offered.

// A heldAt identifies an object of a placement on a cluster.
type heldAt struct {
	cluster, placement string
	id                 api.ID
}

// heldDrifts returns the drifts that clusters hold.
func heldDrifts(r *status.Report) map[heldAt][]*status.Drift {
	out := map[heldAt][]*status.Drift{}
	for i := range r.Drifts {
		if d := &r.Drifts[i]; d.State.AwaitsDecision(d.Rule) {
			at := heldAt{d.Cluster, d.Placement, d.ID()}
			out[at] = append(out[at], d)
		}
	}
	return out
}

// isDeleted reports whether somebody has deleted an object already.
func (r *Result) isDeleted(d forecast.Deletion) bool {
	return slices.ContainsFunc(r.held[heldAt{d.Cluster, d.Placement, d.ID()}], func(drift *status.Drift) bool { return drift.Deleted })
}

// isChanged reports whether all changed fields of an object have the new values on a cluster already. That is not known
// of values that are masked.
func (r *Result) isChanged(c forecast.ContentChange, fields []api.PatchDetail, cluster string) bool {
	var there []api.Difference
	for _, drift := range r.held[heldAt{cluster, c.Placement.String(), c.After.ID}] {
		there = append(there, drift.Paths...)
	}
	return len(fields) > 0 && !slices.ContainsFunc(fields, func(f api.PatchDetail) bool {
		return strings.Contains(f.ValueInMember, diff.Mask) || !slices.ContainsFunc(there, func(d api.Difference) bool {
			return d.Path == f.Path && valueOf(d) == f.ValueInMember
		})
	})
}

// valueOf returns the text of a value on a member, which a drift may have shortened.
func valueOf(d api.Difference) string {
	var v any
	if d.MemberJSON == nil || json.Unmarshal(d.MemberJSON, &v) != nil {
		return d.ValueInMember
	}
	return diff.Text(v)
}
