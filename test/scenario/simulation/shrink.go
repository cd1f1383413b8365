package simulation

import (
	"slices"
	"testing"
)

// Shrink removes steps from a scenario that are not needed to violate the same invariant: many steps
// at once first, then single ones.
func (sc Scenario) Shrink(t *testing.T, invariant string) Scenario {
	still := func(steps []Step) bool {
		fewer := sc
		fewer.Steps = steps
		out := fewer.Run(t, NewLoaders(), false)
		return out.Violation != nil && out.Violation.Invariant == invariant
	}
	for size := (len(sc.Steps) + 1) / 2; size > 0; size /= 2 {
		for at := 0; at < len(sc.Steps); {
			end := min(len(sc.Steps), at+size)
			if fewer := slices.Concat(sc.Steps[:at], sc.Steps[end:]); still(fewer) {
				sc.Steps = fewer
			} else {
				at = end
			}
		}
	}
	return sc
}
