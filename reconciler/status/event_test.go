package status_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/scenario"
	"github.com/gitfleet/gitfleet/test/world"
)

// If nothing has changed, the list of events is the same slice as before.
func TestEventsAreTheSameSliceIfNothingHappened(t *testing.T) {
	s := settled(t, 10, 3)
	before := s.build().Events
	s.now = s.now.Add(time.Minute)
	s.resolve()
	if after := s.build().Events; len(before) == 0 || len(after) != len(before) || &after[0] != &before[0] {
		t.Errorf("%d events became %d", len(before), len(after))
	}
}

// Normal progress on many clusters is one event, not one for each cluster.
func TestProgressOnManyClustersIsOneEvent(t *testing.T) {
	s := settled(t, 100, 1)
	for _, e := range s.build().Events {
		if e.Kind == "ClusterResourcePlacement" && e.Cluster != "" {
			t.Errorf("an event about one cluster: %+v", e)
		}
	}
}

// In all cases events are few, in order and not repeated, and each has an involved object.
func TestEventsAreBoundedAndOrdered(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newScene(t)
		s.commit("v1", world.Files(t, "clusters a b c\nnamespace web\nconfigmap web/one\nplace web\nplace docs of web pick 2\n"))
		var last []status.Event
		for turn := range rapid.IntRange(1, 40).Draw(rt, "turns") {
			s.now = s.now.Add(time.Second)
			for _, name := range []string{"a", "b", "c"} {
				switch what := rapid.IntRange(0, 3).Draw(rt, fmt.Sprintf("%s at %d", name, turn)); {
				case what == 0:
					s.in.Ledger.Fold(protocol.ClusterSeen{Cluster: name, At: s.now, Error: fmt.Sprintf("down for the %d. time", turn)})
				case what == 1 || s.last == nil:
					s.in.Ledger.Fold(protocol.ClusterSeen{Cluster: name, At: s.now, Healthy: true})
				default:
					for _, w := range s.last.Works[name] {
						s.says(name, w, what-2)
					}
				}
			}
			s.resolve()
			r := s.build()
			s.remember(r)
			scenario.CheckReport(t, r.Whole())
			if len(r.Events) < len(last) {
				t.Fatalf("%d events became %d", len(last), len(r.Events))
			}
			last = r.Events
		}
	})
}

// The oldest events are dropped, for one object and in total. An event that occurs again and
// again does not displace others.
func TestOldestEventsAreDropped(t *testing.T) {
	s := newScene(t)
	s.commit("v1", world.Files(t, "clusters bad good\nnamespace web\nplace web\n"))
	s.in.Ledger.Fold(protocol.ClusterSeen{Cluster: "good", At: s.now, Healthy: true})
	for i := range 300 {
		s.now = s.now.Add(time.Second)
		s.in.Ledger.Fold(protocol.ClusterSeen{Cluster: "bad", At: s.now, Error: fmt.Sprintf("no answer from port %d", i)})
		s.resolve()
		s.remember(s.build())
	}
	bad, others := 0, 0
	for _, e := range s.build().Events {
		if e.Name == "bad" {
			bad++
		} else {
			others++
		}
	}
	if bad != 50 || others < 5 {
		t.Errorf("%d events of the one that fails, %d of all others", bad, others)
	}
}
