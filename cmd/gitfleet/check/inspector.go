package check

import (
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// An inspector examines the plan of a snapshot for parts that cannot be applied or have no
// effect.
type inspector struct {
	*hub.Snapshot
	plan  *plan.Plan
	found []finding
	// declared are the positions of overrides, by the name that warnings use.
	declared map[string]api.Origin
	// lines are those of the fields of placements and overrides, by their positions.
	lines map[api.Origin]hub.Lines
	// open are the placements whose selection is not known here.
	open map[api.PlacementKey]bool
	// idle are the overrides that have no rule for any cluster of the fleet.
	idle map[api.Origin]bool
}

func (i *inspector) add(r *rule, severity problem.Severity, at api.Origin, field, message string) {
	i.found = append(i.found, finding{problem.Problem{Origin: i.lines[at].At(at, field), Field: field, Severity: severity, Message: message}, r})
}

func (i *inspector) warn(at api.Origin, field, message string) {
	i.add(dead, problem.Warning, at, field, message)
}

func (i *inspector) fail(at api.Origin, field, message string) {
	i.add(unfit, problem.Error, at, field, message)
}

// objectName returns the name of an object as commands accept it. For a name that the server
// generates, it is the prefix.
func objectName(m *work.Manifest) string {
	id := m.ID
	if id.Name == "" {
		id.Name = m.Object.Content.GetGenerateName() + "…"
	}
	return id.String()
}
