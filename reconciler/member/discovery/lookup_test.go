package discovery

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A user who requests a check does not have to wait for the next lookup.
func TestRetryLookups(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	for name, test := range map[string]struct {
		groups map[string]bool
		due    bool
	}{
		"all groups": {nil, true}, "its group": {map[string]bool{"example.com": true}, true}, "another group": {map[string]bool{"example.org": true}, false},
	} {
		k := &Kinds{lookups: map[schema.GroupVersionKind]lookup{gvk: {failures: 9, next: time.Now().Add(time.Hour)}}}
		if k.RetryLookups(test.groups); k.NextLookup(gvk).IsZero() != test.due {
			t.Errorf("%s: due is %v, want %v", name, !test.due, test.due)
		}
	}
}
