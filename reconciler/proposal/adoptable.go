package proposal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// Adoptable returns the reason why the drift of an object cannot be adopted by editing its
// file; nil if it can.
func Adoptable(t *status.Trace) error {
	id := t.ID()
	masked := func(d api.Difference) bool {
		return strings.Contains(d.ValueInMember, diff.Mask) || strings.Contains(d.ValueInHub, diff.Mask)
	}
	switch {
	case t.Drift == nil || len(t.Drift.Paths) == 0 && !t.Drift.Deleted:
		return fmt.Errorf("%s on %s: no drift is known", id, t.Cluster)
	case slices.ContainsFunc(t.Drift.Paths, masked):
		return fmt.Errorf("%s: gitfleet does not know values of Secrets; edit %s by hand", id, t.Origin)
	}
	return nil
}
