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
	for i := range 3 * mostEventsOfObject {
		l.SetEvents(AppendEvents(l.Events(), []Event{happened("a", fmt.Sprint(i), i)}))
		if err := s.Save(l); err != nil {
			t.Fatal(err)
		}
	}
	again, err := s.Load()
	if err != nil || len(again.Events()) != mostEventsOfObject || len(again.byKey) != mostEventsOfObject {
		t.Errorf("%d events are kept, %d are told: %v", len(again.byKey), len(again.Events()), err)
	}
	if len(s.(*memoryStore).records) != mostEventsOfObject {
		t.Errorf("%d records are stored", len(s.(*memoryStore).records))
	}
}
