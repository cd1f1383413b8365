package simulation

import (
	"slices"
	"testing"
)

// Shrink removes steps from a life that are not needed to break the same law: large parts first,
// then single steps.
func (l Life) Shrink(t *testing.T, law string) Life {
	still := func(steps []Step) bool {
		fewer := l
		fewer.Steps = steps
		out := fewer.Lead(t, NewLoaders(), false)
		return out.Broken != nil && out.Broken.Law == law
	}
	for size := (len(l.Steps) + 1) / 2; size > 0; size /= 2 {
		for at := 0; at < len(l.Steps); {
			end := min(len(l.Steps), at+size)
			if fewer := slices.Concat(l.Steps[:at], l.Steps[end:]); still(fewer) {
				l.Steps = fewer
			} else {
				at = end
			}
		}
	}
	return l
}
