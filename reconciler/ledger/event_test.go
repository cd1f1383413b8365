package ledger

import (
	"fmt"
	"slices"
	"testing"
)

func happened(name, message string, minute int) Event {
	return Event{Kind: "MemberCluster", Name: name, Reason: "Seen", Message: message, First: at(minute), Last: at(minute), Count: 1}
}

// After a restart, events are in the same order. A repeated event is the same event, and only
// new ones are saved.
func TestEventsOutliveARestart(t *testing.T) {
	s, l := Memory(), New()
	tell := func(news ...Event) {
		t.Helper()
		l.SetEvents(AppendEvents(l.Events(), news))
	}
	tell(happened("a", "up", 1), happened("b", "up", 1))
	tell(happened("c", "up", 2))
	if err := s.Save(l); err != nil {
		t.Fatal(err)
	}
	l, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	tell(happened("a", "up", 3))
	if len(l.dirty) != 1 {
		t.Errorf("%d records are to be saved after one event", len(l.dirty))
	}
	if err := s.Save(l); err != nil {
		t.Fatal(err)
	}
	if l, err = s.Load(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range l.Events() {
		got = append(got, fmt.Sprintf("%s %d %s", e.Name, e.Count, e.First.Format("4")))
	}
	if want := []string{"b 1 1", "c 1 2", "a 2 1"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Events that were dropped are also deleted from the store.
func TestForgottenEventsAreNotKept(t *testing.T) {
	s, l := Memory(), New()
	for i := range 3 * maxEventsOfObject {
		l.SetEvents(AppendEvents(l.Events(), []Event{happened("a", fmt.Sprint(i), i)}))
		if err := s.Save(l); err != nil {
			t.Fatal(err)
		}
	}
	again, err := s.Load()
	if err != nil || len(again.Events()) != maxEventsOfObject || len(again.byKey) != maxEventsOfObject {
		t.Errorf("%d events are kept, %d are told: %v", len(again.byKey), len(again.Events()), err)
	}
	if len(s.(*memoryStore).records) != maxEventsOfObject {
		t.Errorf("%d records are stored", len(s.(*memoryStore).records))
	}
}

// AppendEvents counts repetitions, in the list and among the new events, and never changes the
// list. It keeps the newest events of each object, of each object on clusters, and in total.
func TestAppendEvents(t *testing.T) {
	once := func(reason string, minute int) Event { return happened(reason, "up", minute) }
	times := func(e Event, n int32, first int) Event { e.Count, e.First = n, at(first); return e }
	many := func(n int, make func(e *Event, i int)) (all []Event) {
		for i := range n {
			e := once("a", i)
			e.Message = fmt.Sprint(i)
			make(&e, i)
			all = append(all, e)
		}
		return all
	}
	same := func(*Event, int) {}
	onCluster := func(e *Event, _ int) { e.Cluster = "east" }
	apart := func(e *Event, i int) { e.Name = fmt.Sprint(i) }
	tests := map[string]struct{ list, added, want []Event }{
		"nothing":                {nil, nil, nil},
		"nothing new":            {[]Event{once("a", 1)}, nil, []Event{once("a", 1)}},
		"one more":               {[]Event{once("a", 1)}, []Event{once("b", 2)}, []Event{once("a", 1), once("b", 2)}},
		"a repetition":           {[]Event{once("a", 1), once("b", 1)}, []Event{once("a", 3)}, []Event{once("b", 1), times(once("a", 3), 2, 1)}},
		"repeated at once":       {[]Event{once("a", 1)}, []Event{once("b", 2), once("b", 2)}, []Event{once("a", 1), times(once("b", 2), 2, 2)}},
		"in both":                {[]Event{times(once("a", 1), 5, 0)}, []Event{once("a", 2), once("a", 2)}, []Event{times(once("a", 2), 7, 0)}},
		"too many of an object":  {many(maxEventsOfObject, same), []Event{once("a", 99)}, append(many(maxEventsOfObject, same)[1:], once("a", 99))},
		"enough of an object":    {many(maxEventsOfObject, same), []Event{once("b", 99)}, append(many(maxEventsOfObject, same), once("b", 99))},
		"too many on clusters":   {nil, many(maxEventsOnCluster+2, onCluster), many(maxEventsOnCluster+2, onCluster)[2:]},
		"too many of everything": {many(maxEvents, apart), []Event{once("b", 99)}, append(many(maxEvents, apart)[1:], once("b", 99))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			list := slices.Clone(test.list)
			got := AppendEvents(list, test.added)
			if !slices.Equal(got, test.want) {
				t.Errorf("%d events %+v\nwant %d %+v", len(got), got, len(test.want), test.want)
			}
			if !slices.Equal(list, test.list) || len(test.added) == 0 && !Identical(got, list) {
				t.Error("the list was changed or copied")
			}
			l := New()
			l.SetEvents(list)
			l.SetEvents(got)
			l = saveAndLoad(t, Memory(), l)
			if !slices.Equal(l.Events(), test.want) {
				t.Errorf("stored %d events, want %d", len(l.Events()), len(test.want))
			}
			if l.SetEvents(l.Events()); l.Unsaved() {
				t.Error("the same list is to be saved")
			}
		})
	}
}

// Events that differ in what identifies them are different ones, and those that differ in time,
// count or commit are repetitions.
func TestKeyOfAnEvent(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Event)
		same   bool
	}{
		"time":    {func(e *Event) { e.First, e.Last = at(5), at(6) }, true},
		"count":   {func(e *Event) { e.Count = 7 }, true},
		"commit":  {func(e *Event) { e.Commit = "c" }, true},
		"kind":    {func(e *Event) { e.Kind = "Repository" }, false},
		"space":   {func(e *Event) { e.Namespace = "docks" }, false},
		"name":    {func(e *Event) { e.Name = "b" }, false},
		"uid":     {func(e *Event) { e.UID = "u" }, false},
		"type":    {func(e *Event) { e.Type = "Warning" }, false},
		"reason":  {func(e *Event) { e.Reason = "Lost" }, false},
		"message": {func(e *Event) { e.Message = "down" }, false},
		"cluster": {func(e *Event) { e.Cluster = "east" }, false},
	} {
		e := happened("a", "up", 1)
		was := eventKey(&e)
		if test.change(&e); (eventKey(&e) == was) != test.same {
			t.Errorf("%s: the same key: %t, want %t", name, !test.same, test.same)
		}
	}
	if a, b := (EventKey{Reason: "Seen up", Message: "again"}), (EventKey{Reason: "Seen", Message: "up again"}); a.Number() == b.Number() {
		t.Error("the reason and the message are run together")
	}
	for want, e := range map[string]Event{
		"crp/web": {Kind: web.Kind(), Name: "web"}, "rp/docks/quay": {Kind: quay.Kind(), Namespace: "docks", Name: "quay"},
		"cluster/east": {Kind: "MemberCluster", Name: "east"}, "repository/hub": {Kind: "Repository", Name: "hub"},
	} {
		if got := e.About(); got != want {
			t.Errorf("about %q, want %q", got, want)
		}
	}
}
