package protocol

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
)

// An object that was refused has failed, and so has an unavailable one if the member reports a
// failure. An object that waits for something that will come has not failed.
func TestFailed(t *testing.T) {
	ok := Verdict{OK: true}
	object := func(name string, o ObjectState) ObjectState {
		o.ID = api.ID{Kind: "ConfigMap", Name: name}
		return o
	}
	slow, stuck := object("a", ObjectState{Applied: ok}), object("b", ObjectState{Applied: ok, Failure: "its image cannot be pulled"})
	refused, pending := object("c", ObjectState{}), object("d", ObjectState{Pending: true})
	tests := map[string]struct {
		all  []ObjectState
		want string
	}{
		"nothing":             {nil, ""},
		"slow":                {[]ObjectState{slow}, ""},
		"waits for its kind":  {[]ObjectState{slow, pending}, ""},
		"its pods are stuck":  {[]ObjectState{slow, stuck, pending}, "b"},
		"refused comes first": {[]ObjectState{slow, stuck, refused}, "c"},
		"only drifted":        {[]ObjectState{object("e", ObjectState{Applied: ok, Available: ok, Drift: true})}, ""},
	}
	for name, test := range tests {
		got := (&WorkSeen{WorkState: WorkState{Exceptions: test.all}}).Failed()
		if (got == nil) != (test.want == "") || got != nil && got.ID.Name != test.want {
			t.Errorf("%s: %+v, want %q", name, got, test.want)
		}
	}
}

// Suspended objects do not count for the health of a cluster.
func TestSuspendedObjectsAreNotJudged(t *testing.T) {
	w := WorkSeen{WorkState: WorkState{Done: true, Exceptions: []ObjectState{{ID: api.ID{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "one"}, Applied: Verdict{Reason: api.Suspended}}}}}
	if w.Applied() || !w.WithoutSuspended().Applied() || !w.WithoutSuspended().Available() || len(w.Exceptions) != 1 {
		t.Errorf("%+v, judged %+v", w, w.WithoutSuspended())
	}
	w.Exceptions = append(w.Exceptions, ObjectState{Applied: Verdict{Reason: api.ManifestApplyFailed}})
	if w.WithoutSuspended().Applied() {
		t.Error("the failure of another object is passed over")
	}
}

// The deletions of a report that was never folded are added to the next report. If there
// are too many, the oldest are dropped.
func TestReportsCarryDeletionsOn(t *testing.T) {
	some := func(from, n int) (out []Deletion) {
		for i := range n {
			out = append(out, Deletion{Total: from + i})
		}
		return out
	}
	tests := map[string]struct {
		earlier, later, want []Deletion
	}{
		"nothing":  {nil, nil, nil},
		"earlier":  {some(1, 2), nil, some(1, 2)},
		"both":     {some(1, 2), some(3, 1), some(1, 3)},
		"too many": {some(1, MostDeletions), some(MostDeletions+1, 2), some(3, MostDeletions)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			report := func(deletions []Deletion) WorkSeen {
				return WorkSeen{WorkState: WorkState{Incidents: Incidents{Deletions: deletions}.OrNil()}}
			}
			both := report(test.later).After(report(test.earlier))
			if got := both.Unusual().Deletions; !slices.EqualFunc(got, test.want, Deletion.equal) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

// Most works have no incidents, and none are stored of them.
func TestIncidentsAreReadAsTheyWereWritten(t *testing.T) {
	for text, want := range map[string]int{`{"Total":3}`: 0, `{"Total":3,"Incidents":{"Lingering":[{"Kind":"Namespace","Name":"web"}]}}`: 1} {
		var w WorkState
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			t.Fatal(err)
		}
		if len(w.Unusual().Lingering) != want || (w.Incidents == nil) != (want == 0) {
			t.Errorf("%s is read as %+v", text, w)
		}
		again, err := json.Marshal(w)
		if err != nil || strings.Contains(string(again), "Incidents") != (want > 0) {
			t.Errorf("%s is written as %s, %v", text, again, err)
		}
	}
	var none *WorkState
	if len(none.Unusual().Waiting) != 0 || (Incidents{}).OrNil() != nil || (Incidents{Lingering: []api.ID{{}}}).OrNil() == nil {
		t.Error("no incidents are kept")
	}
}
