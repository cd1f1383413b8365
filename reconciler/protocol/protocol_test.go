package protocol

import (
	"encoding/json"
	"reflect"
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

// While reports are not complete, objects are as in the last complete one, unless they are known to be worse.
func TestCompletedReports(t *testing.T) {
	ok := Verdict{OK: true}
	object := func(name string, o ObjectState) ObjectState {
		o.ID, o.Version = api.ID{Kind: "ConfigMap", Name: name}, o.Failure
		return o
	}
	fine := object("a", ObjectState{Applied: ok, Available: ok, Drift: true})
	unlisted, slow := object("a", ObjectState{Applied: ok, Pending: true}), object("a", ObjectState{Applied: ok})
	stuck := object("a", ObjectState{Applied: ok, Failure: "its image cannot be pulled"})
	unanswered, refused := object("a", ObjectState{Pending: true}), object("a", ObjectState{})
	other := object("b", ObjectState{Applied: ok})
	held := &Incidents{BlockedDeletions: []BlockedDeletion{{Why: "too many"}}}
	heldNow := &Incidents{BlockedDeletions: []BlockedDeletion{{Why: "a Namespace"}}}
	lingering := &Incidents{Lingering: []api.ID{other.ID}}
	for name, test := range map[string]struct{ last, now, want WorkState }{
		"nothing is known":         {WorkState{Exceptions: []ObjectState{slow, other}}, WorkState{}, WorkState{Exceptions: []ObjectState{slow, other}}},
		"it is not listed yet":     {WorkState{}, WorkState{Exceptions: []ObjectState{unlisted}}, WorkState{}},
		"it is not available":      {WorkState{Exceptions: []ObjectState{other}}, WorkState{Exceptions: []ObjectState{slow}}, WorkState{Exceptions: []ObjectState{slow, other}}},
		"it had drifted":           {WorkState{Exceptions: []ObjectState{fine, other}}, WorkState{Exceptions: []ObjectState{slow}}, WorkState{Exceptions: []ObjectState{slow, other}}},
		"it has failed":            {WorkState{Exceptions: []ObjectState{slow}}, WorkState{Exceptions: []ObjectState{stuck}}, WorkState{Exceptions: []ObjectState{stuck}}},
		"it had failed":            {WorkState{Exceptions: []ObjectState{stuck}}, WorkState{Exceptions: []ObjectState{slow}}, WorkState{Exceptions: []ObjectState{stuck}}},
		"a request is unanswered":  {WorkState{}, WorkState{Exceptions: []ObjectState{unanswered}}, WorkState{}},
		"it is refused":            {WorkState{Exceptions: []ObjectState{stuck}}, WorkState{Exceptions: []ObjectState{refused}}, WorkState{Exceptions: []ObjectState{refused}}},
		"it is refused at last":    {WorkState{Exceptions: []ObjectState{unanswered}}, WorkState{Exceptions: []ObjectState{refused}}, WorkState{Exceptions: []ObjectState{refused}}},
		"it was refused":           {WorkState{Exceptions: []ObjectState{refused}}, WorkState{Exceptions: []ObjectState{slow}}, WorkState{Exceptions: []ObjectState{refused}}},
		"a deletion was blocked":   {WorkState{Incidents: held}, WorkState{Incidents: &Incidents{Drifts: make([]Drift, 1)}}, WorkState{Incidents: held}},
		"another one is blocked":   {WorkState{Incidents: held}, WorkState{Incidents: heldNow}, WorkState{Incidents: heldNow}},
		"one is still blocked":     {WorkState{Incidents: held}, WorkState{Incidents: lingering}, WorkState{Incidents: &Incidents{BlockedDeletions: held.BlockedDeletions, Lingering: lingering.Lingering}}},
		"it is deleted by now":     {WorkState{Incidents: &Incidents{BlockedDeletions: []BlockedDeletion{{ID: other.ID}}, DeletionErrors: []DeletionError{{ID: other.ID}}}}, WorkState{Incidents: lingering}, WorkState{Incidents: &Incidents{BlockedDeletions: []BlockedDeletion{}, DeletionErrors: []DeletionError{}, Lingering: lingering.Lingering}}},
		"it still lingers":         {WorkState{Incidents: lingering}, WorkState{Incidents: heldNow}, WorkState{Incidents: &Incidents{BlockedDeletions: heldNow.BlockedDeletions, Lingering: lingering.Lingering}}},
		"an object lingers by now": {WorkState{}, WorkState{Incidents: &Incidents{Lingering: make([]api.ID, 1)}}, WorkState{Incidents: &Incidents{Lingering: make([]api.ID, 1)}}},
	} {
		test.last.Done, test.want.Done = true, true
		before := slices.Clone(test.last.Exceptions)
		if got := test.now.Completed(&test.last); !reflect.DeepEqual(*got, test.want) {
			t.Errorf("%s: %+v, want %+v", name, *got, test.want)
		}
		if !reflect.DeepEqual(test.last.Exceptions, before) {
			t.Errorf("%s: the last complete report was changed to %+v", name, test.last)
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
