package kubeapi

import (
	"maps"
	"slices"
	"testing"

	"github.com/gitfleet/gitfleet/reconciler/server/store"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// An event may be kept longer than its list, and must not keep the list in memory.
func TestEventsDoNotKeepTheirListInMemory(t *testing.T) {
	list := []status.Event{{Kind: "MemberCluster", Name: "east"}, {Kind: "MemberCluster", Name: "west"}}
	core, other := eventSources(eventObjects(list, nil))
	for _, source := range slices.Concat(core, other) {
		if e := source.(eventObject).Event; e == &list[0] || e == &list[1] {
			t.Errorf("the event about %s is a part of the list", e.Name)
		}
	}
}

// An event that is published again is the same object, wherever it is in the list; one that has changed in anything is another one.
func TestEventsStayTheSameObjects(t *testing.T) {
	first := status.Event{Kind: "MemberCluster", Name: "east", Count: 1}
	second, third := first, first
	second.Name, third.Name = "west", "north"
	before := eventObjects([]status.Event{first, second, third}, nil)
	second.Count++
	after := eventObjects([]status.Event{first, third, second}, before)
	if len(after) != 3 || after[0] != before[0] || after[1] != before[2] || after[2].Event == before[1].Event || after[2].name != before[1].name {
		t.Errorf("%+v after %+v", after, before)
	}
}

// Events can be selected by all selectable fields of their kind, and by no others.
func TestEventsAreSelectedByTheFieldsOfTheirKind(t *testing.T) {
	list := []status.Event{{Kind: "MemberCluster", Name: "east", APIVersion: "v", UID: "u", Type: "Normal", Reason: "Joined"}}
	core, other := eventSources(eventObjects(list, nil))
	kinds := []*kind{coreEvents, otherEvents}
	for i, test := range []struct {
		of          store.Source
		about, from string
	}{{core[0], "involvedObject", "source"}, {other[0], "regarding", "reportingController"}} {
		fields := test.of.Object().Selectable()
		want := map[string]string{
			test.about + ".kind": "MemberCluster", test.about + ".name": "east", test.about + ".namespace": "", test.about + ".apiVersion": "v",
			test.about + ".uid": "u", test.about + ".resourceVersion": "", test.about + ".fieldPath": "",
			"type": "Normal", "reason": "Joined", test.from: component, "reportingComponent": component,
		}
		if !slices.Equal(kinds[i].fields, slices.Sorted(maps.Keys(want))) {
			t.Errorf("can be selected by %v", kinds[i].fields)
		}
		for field, value := range want {
			if !fields.Has(field) || fields.Get(field) != value {
				t.Errorf("%s is %q, want %q", field, fields.Get(field), value)
			}
		}
		if fields.Has("spec.x") || fields.Get("spec.x") != "" {
			t.Error("has a field that there is not")
		}
	}
}
