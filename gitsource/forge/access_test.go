package forge_test

import (
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// limited are accesses that are not enough.
func limited(missingScope string, noPullRequests bool) map[string]forge.Access {
	return map[string]forge.Access{
		"access: read only":               {User: "fleet", ReadOnly: true},
		"access: scopes":                  {User: "fleet", MissingScope: missingScope},
		"access: archived without issues": {User: "fleet", Archived: true, NoIssues: true, NoPullRequests: noPullRequests},
	}
}

// limitsAccess holds a forge to what it says of a token that may not do everything.
func limitsAccess(t *testing.T, h host, want map[string]forge.Access) {
	for step, access := range want {
		h.step(step)
		if got, err := h.client.Access(t.Context()); err != nil || got != access {
			t.Errorf("%s: %+v, %v, want %+v", step, got, err, access)
		}
	}
	h.step("end")
}
