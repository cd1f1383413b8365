package occurrence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

var one = api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}

func broken(reason, message string) protocol.ObjectState {
	return protocol.ObjectState{ID: one, Version: "v1", Applied: protocol.Verdict{Reason: reason, Cause: message}}
}

// One observation may bring a cluster several stages further: each has the time at which it was reached, and since when it was
// awaited. A failure is about the stage that was not reached.
func TestStagesOfAnObservation(t *testing.T) {
	at := func(seconds int) time.Time { return time.Date(2026, 3, 1, 12, 0, seconds, 0, time.UTC) }
	content := placement.Revision{Commit: "c1", Hash: "h1"}
	entry := func(applied, available time.Time, exceptions ...protocol.ObjectState) *ledger.Entry {
		e := &ledger.Entry{
			Binding: placement.Binding{Cluster: "east", Assigned: content, AssignedAt: at(1)},
			Seen:    &protocol.WorkState{Revision: content, Done: true, Total: 1, Exceptions: exceptions},
		}
		e.SetTimes(ledger.Times{ledger.AppliedAt: applied, ledger.AvailableAt: available, ledger.SeenAt: at(9)})
		return e
	}
	assigned := &ledger.Entry{Binding: placement.Binding{Cluster: "east", Assigned: content, AssignedAt: at(1)}}
	unavailable := protocol.ObjectState{ID: one, Applied: protocol.Verdict{OK: true}, Failure: "it crashes"}
	for name, test := range map[string]struct {
		was, is *ledger.Entry
		want    []string
	}{
		"applied and available at once": {assigned, entry(at(3), at(5)), []string{"reached applied :01-:03", "reached available :03-:05", "applied", "available"}},
		"refused":                       {assigned, entry(time.Time{}, time.Time{}, broken("denied", "no")), []string{"failed applied :01-:09"}},
		"applied, and it crashes":       {assigned, entry(at(3), time.Time{}, unavailable), []string{"reached applied :01-:03", "applied", "failed available :03-:09"}},
		"nothing new":                   {entry(at(3), at(5)), entry(at(3), at(5)), nil},
	} {
		var got []string
		for _, o := range OfObservation(nil, api.PlacementKey{Name: "web"}, &ledger.Placement{Index: -1}, test.was, test.is, at(9)) {
			text := cmp.Or(string(o.Event), "reached")
			if o.Stage != "" {
				text += " " + o.Stage + o.Since.Format(" :05-") + o.Time.Format(":05")
			}
			got = append(got, text)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A report that is not complete, such as the first after a restart, says only what has changed for the worse: the next complete report
// is compared with the last one before it, also if the process was restarted in between.
func TestReportsThatAreNotComplete(t *testing.T) {
	key, content := api.PlacementKey{Name: "web"}, placement.Revision{Commit: "c1", Hash: "h1"}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	waiting := protocol.ObjectState{ID: one, Applied: protocol.Verdict{OK: true}, Available: protocol.Verdict{Reason: "NotYet", Cause: "0 of 1 ready"}}
	unlisted := waiting
	unlisted.Pending = true
	unanswered := broken("ApplyFailed", "timeout")
	unanswered.Pending = true
	report := func(done bool, exceptions ...protocol.ObjectState) protocol.WorkState {
		return protocol.WorkState{Revision: content, Done: done, Total: 1, Exceptions: exceptions}
	}
	for name, test := range map[string]struct {
		reports []protocol.WorkState
		want    []string
	}{
		"before the first complete one": {[]protocol.WorkState{report(false), report(true)}, []string{"applied", "available"}},
		"of available content":          {[]protocol.WorkState{report(true), report(false), report(false, unlisted), report(true)}, []string{"applied", "available"}},
		"of content that has failed": {
			[]protocol.WorkState{report(true), report(true, broken("denied", "no")), report(false), report(true, broken("denied", "no"))},
			[]string{"applied", "available", "failed ConfigMap/web/one: no"},
		},
		"and then it is not available": {
			[]protocol.WorkState{report(true), report(false), report(true, waiting), report(false), report(true)},
			[]string{"applied", "available", "unavailable ConfigMap/web/one: 0 of 1 ready", "available"},
		},
		"and show that it is not available": {
			[]protocol.WorkState{report(true), report(false, waiting), report(true)},
			[]string{"applied", "available", "unavailable ConfigMap/web/one: 0 of 1 ready", "available"},
		},
		"and then it is not applied": {
			[]protocol.WorkState{report(true), report(false), report(true, unanswered)}, []string{"applied", "available", "unavailable ConfigMap/web/one: timeout"},
		},
	} {
		l, store := ledger.New(), ledger.Memory()
		l.SetPlacement(key, ledger.Placement{Index: -1})
		l.Bind(key, placement.Binding{Cluster: "east", Assigned: content, AssignedAt: at})
		var all []Occurrence
		for i, seen := range test.reports {
			was, observed := l.Placement(key).Entry("east"), at.Add(time.Duration(i)*time.Second)
			l.Fold(protocol.WorkSeen{Cluster: "east", Placement: key, At: observed, WorkState: seen})
			all = OfObservation(all, key, l.Placement(key), was, l.Placement(key).Entry("east"), observed)
			err := store.Save(l)
			if err == nil {
				l, err = store.Load()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, e := range Entries(all) {
			got = append(got, strings.TrimSpace(string(e.Event)+" "+e.Message))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A restore of a cluster is recorded once, also if the cluster answers again with it.
func TestRestoresAreRecorded(t *testing.T) {
	noon := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	seen := func(healthy bool, restored time.Time) *ledger.Cluster {
		c := &ledger.Cluster{Joined: noon}
		if c.Healthy = healthy; !restored.IsZero() {
			c.Restored = protocol.Restore{At: restored, Why: "it went back"}
		}
		return c
	}
	for name, test := range map[string]struct {
		was, is *ledger.Cluster
		want    string
	}{
		"none":            {seen(true, time.Time{}), seen(true, time.Time{}), "[]"},
		"restored":        {seen(true, time.Time{}), seen(true, noon), "[restored]"},
		"known":           {seen(true, noon), seen(true, noon), "[]"},
		"again":           {seen(true, noon), seen(true, noon.Add(time.Hour)), "[restored]"},
		"answering again": {seen(false, time.Time{}), seen(true, noon), "[restored ready]"},
		"lost later":      {seen(true, noon), seen(false, noon), "[unreachable]"},
	} {
		t.Run(name, func(t *testing.T) {
			events := []history.Event{}
			for _, e := range OfMember("east", ledger.MemberState{Seen: test.was}, ledger.MemberState{Seen: test.is}) {
				events = append(events, e.Event)
			}
			if got := fmt.Sprint(events); got != test.want {
				t.Errorf("events %s, want %s", got, test.want)
			}
		})
	}
}

// A rollout that stops says on which clusters which updates have failed.
func TestStoppedRolloutSaysWhy(t *testing.T) {
	pl := &plan.Placement{RecordChanged: true}
	for _, stop := range [][2]string{{"east", "c1"}, {"west", "c1"}, {"north", "c2"}} {
		pl.Record.Stops = append(pl.Record.Stops, placement.Stop{Cluster: stop[0], Failed: placement.Revision{Commit: stop[1]}})
	}
	all := ofRollout(pl, nil)
	if len(all) != 1 || all[0].Cluster != "east, west, north" || all[0].Message != "the update to c1, c2 has failed" || len(Entries(all)) > 0 {
		t.Errorf("got %+v", all)
	}
}

// The history has an entry when a gate fails, and another one when it fails again after it was asked from the beginning.
func TestTheHistoryOfAGate(t *testing.T) {
	run := func(failed int64) []placement.Run {
		gate := placement.RunGate{Name: "ready", Answer: "it has failed: cluster a"}
		if failed > 0 {
			gate.Failed = time.Unix(failed, 0)
		}
		return []placement.Run{{Name: "web-1", Content: placement.Revision{Commit: "c1"}, Started: time.Unix(1, 0), Stages: []placement.RunStage{{StageConfig: api.StageConfig{Name: "canary"}, Gates: []placement.RunGate{gate}}}}}
	}
	for name, test := range map[string]struct {
		before, now int64
		entries     int
	}{"it fails": {0, 5, 1}, "it stays failed": {5, 5, 0}, "it is asked again": {5, 0, 0}, "it fails again": {5, 7, 1}} {
		pl := &plan.Placement{RecordChanged: true, Record: ledger.Placement{Runs: run(test.now)}}
		got := Entries(ofPlacement(pl, &ledger.Placement{Runs: run(test.before)}, hub.Commit{}))
		if len(got) != test.entries {
			t.Errorf("%s: %+v", name, got)
		}
		for _, e := range got {
			if e.Event != history.GateFailed || e.Commit != "c1" || e.Message != "run web-1, stage canary: the gate ready: it has failed: cluster a" {
				t.Errorf("%s: %+v", name, e)
			}
		}
	}
}

// What has happened on a cluster follows from the binding and the newest report about its revision, whatever reports were in between.
func TestChangesOnACluster(t *testing.T) {
	content := func(hash string) *placement.Binding {
		return &placement.Binding{Cluster: "east", Assigned: placement.Revision{Commit: "c" + hash, Hash: hash}}
	}
	removing := content("1")
	removing.Removing = true
	seen := func(exceptions ...protocol.ObjectState) *protocol.WorkState {
		return &protocol.WorkState{Done: true, Total: 2, Exceptions: exceptions}
	}
	crashes := protocol.ObjectState{ID: api.ID{Kind: "Deployment", Namespace: "web", Name: "a"}, Applied: protocol.Verdict{OK: true}, Failure: "it crashes"}
	refused := broken("denied", "no")
	refused.ID.Name = "z"
	waiting := crashes
	waiting.Failure = ""
	for name, test := range map[string]struct {
		was, is ClusterState
		want    string
	}{
		"not held":                    {ClusterState{}, ClusterState{}, ""},
		"new, without content":        {ClusterState{}, ClusterState{Binding: &placement.Binding{Cluster: "east"}}, ""},
		"new":                         {ClusterState{}, ClusterState{Binding: content("1")}, "assigned"},
		"reported":                    {ClusterState{Binding: content("1")}, ClusterState{content("1"), seen()}, "applied available"},
		"the same":                    {ClusterState{content("1"), seen()}, ClusterState{content("1"), seen()}, ""},
		"updated and reported":        {ClusterState{content("1"), seen()}, ClusterState{content("2"), seen()}, "assigned applied available"},
		"updated":                     {ClusterState{content("1"), seen()}, ClusterState{content("2"), nil}, "assigned"},
		"not available any more":      {ClusterState{content("1"), seen()}, ClusterState{content("1"), seen(waiting)}, "unavailable"},
		"it crashes":                  {ClusterState{content("1"), seen(waiting)}, ClusterState{content("1"), seen(crashes)}, "failed a"},
		"it still crashes":            {ClusterState{content("1"), seen(crashes)}, ClusterState{content("1"), seen(crashes)}, ""},
		"one crashes, one is refused": {ClusterState{content("1"), seen(crashes)}, ClusterState{content("1"), seen(crashes, refused)}, "failed z"},
		"removed":                     {ClusterState{content("1"), seen()}, ClusterState{removing, seen()}, "removing"},
	} {
		c := test.is.Since(test.was)
		var got []string
		for _, one := range []struct {
			text string
			is   bool
		}{{"assigned", c.Assigned}, {"removing", c.Removing}, {"applied", c.Applied}, {"available", c.Available}, {"unavailable", c.Unavailable}} {
			if one.is {
				got = append(got, one.text)
			}
		}
		if c.Failed != nil {
			got = append(got, "failed "+c.Failed.ID.Name)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// A rollout stops once, however many updates fail, and again if it stops again after a user has resumed it. Failed updates of update
// runs, and of a placement that is being removed, stop nothing.
func TestChangesOfARollout(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	stopped := func(clusters ...string) *ledger.Placement {
		p := &ledger.Placement{RolloutStarted: at}
		for _, c := range clusters {
			p.Stops = append(p.Stops, placement.Stop{Cluster: c})
		}
		return p
	}
	with := func(p *ledger.Placement, change func(*ledger.Placement)) *ledger.Placement {
		change(p)
		return p
	}
	finished := func(p *ledger.Placement) { p.RolloutFinished = at.Add(time.Minute) }
	resumed := func(p *ledger.Placement) { p.Resumed = at.Add(time.Minute) }
	external := func(p *ledger.Placement) {
		p.Spec = &api.PlacementSpec{Strategy: api.RolloutStrategy{Type: api.External}}
	}
	deleted := func(p *ledger.Placement) { p.Deleted = true }
	for name, test := range map[string]struct {
		was, is *ledger.Placement
		want    RolloutChange
	}{
		"new":                        {nil, stopped(), RolloutChange{Started: true}},
		"new and finished":           {nil, with(stopped(), finished), RolloutChange{Started: true, Finished: true}},
		"finished":                   {stopped(), with(stopped(), finished), RolloutChange{Finished: true}},
		"finished before":            {with(stopped(), finished), with(stopped(), finished), RolloutChange{}},
		"stopped":                    {stopped(), stopped("east"), RolloutChange{Stopped: true}},
		"another update fails":       {stopped("east"), stopped("ams", "east"), RolloutChange{}},
		"one cluster recovers":       {stopped("ams", "east"), stopped("east"), RolloutChange{}},
		"all recover":                {stopped("east"), stopped(), RolloutChange{Resumed: true}},
		"resumed by a user":          {stopped("east"), with(stopped(), resumed), RolloutChange{Resumed: true}},
		"resumed, and stopped again": {stopped("east"), with(stopped("west"), resumed), RolloutChange{Stopped: true}},
		"of an update run":           {with(stopped(), external), with(stopped("east"), external), RolloutChange{}},
		"the placement is removed":   {stopped("east"), with(stopped("east"), deleted), RolloutChange{}},
	} {
		if got := RolloutSince(test.was, test.is); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
