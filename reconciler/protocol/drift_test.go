package protocol

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A decision about a drift is about the fields and the values, whoever changed them and whenever.
func TestFingerprintOfADrift(t *testing.T) {
	change := func(path, hub, member string, more ...func(*api.Difference)) api.Difference {
		d := api.Difference{PatchDetail: api.PatchDetail{Path: path, ValueInHub: hub, ValueInMember: member}}
		for _, f := range more {
			f(&d)
		}
		return d
	}
	by := func(manager string) func(*api.Difference) {
		return func(d *api.Difference) {
			d.By = []api.Actor{{Manager: manager, Time: time.Unix(int64(len(manager)), 0)}}
		}
	}
	asJSON := func(hub, member string) func(*api.Difference) {
		return func(d *api.Difference) { d.HubJSON, d.MemberJSON = json.RawMessage(hub), json.RawMessage(member) }
	}
	first := []api.Difference{change("/data/a", "1", "2", by("kubectl")), change("/data/b", "1", "2")}
	for name, test := range map[string]struct {
		other []api.Difference
		same  bool
	}{
		"the same":                 {[]api.Difference{change("/data/a", "1", "2", by("kubectl")), change("/data/b", "1", "2")}, true},
		"by another, at a time":    {[]api.Difference{change("/data/a", "1", "2", by("controller")), change("/data/b", "1", "2", by("me"))}, true},
		"another value there":      {[]api.Difference{change("/data/a", "1", "3"), change("/data/b", "1", "2")}, false},
		"another value in Git":     {[]api.Difference{change("/data/a", "0", "2"), change("/data/b", "1", "2")}, false},
		"another field":            {[]api.Difference{change("/data/a", "1", "2"), change("/data/c", "1", "2")}, false},
		"one field less":           {[]api.Difference{change("/data/a", "1", "2")}, false},
		"a number that was a text": {[]api.Difference{change("/data/a", "1", "2", asJSON("1", "2")), change("/data/b", "1", "2")}, false},
		"none":                     {nil, false},
	} {
		if got := Fingerprint(first, "") == Fingerprint(test.other, ""); got != test.same {
			t.Errorf("%s: the same fingerprint: %t", name, got)
		}
	}
}
