package status

import (
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// Input is everything that a report depends on. Build does not change it.
type Input struct {
	Plan       *plan.Plan
	InForce    *hub.Snapshot // the commit in force; nil before there is one
	Ledger     *ledger.Ledger
	Source     Source
	Now        time.Time
	Conditions Conditions // the condition names to use; empty means the current ones
	// ApprovalsInGit says that stages of update runs are approved by commits only.
	ApprovalsInGit bool
}

// Conditions is a set of condition names.
type Conditions string

// The sets of condition names.
const (
	// CurrentConditions are those of current KubeFleet versions.
	CurrentConditions Conditions = "current"
	// DocumentedConditions adds those of older KubeFleet versions and the public documentation.
	DocumentedConditions Conditions = "documented"
)
