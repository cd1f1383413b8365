package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// decided makes the scheduler select the clusters of the placement.
func decided(b *builder) *builder {
	b.p.Schedule = placement.Outcome{Fulfilled: true}
	for _, c := range b.p.Clusters {
		b.p.Schedule.Decisions = append(b.p.Schedule.Decisions, placement.Decision{Cluster: c.Binding.Cluster, Selected: true, Reason: fmt.Sprintf("picked %q", c.Binding.Cluster)})
	}
	b.p.Schedule.Found, b.p.Schedule.Wanted = len(b.p.Clusters), len(b.p.Clusters)
	b.in.InForce = &hub.Snapshot{Commit: hub.Commit{Hash: "head"}}
	return b
}

// eventsAfter returns the events of the change from one state to another.
func eventsAfter(before, after *builder) []string {
	var old *placementEntry
	if before != nil {
		old = before.entry()
	}
	after.old, after.lines, after.progress, after.problems, after.transitions = old, nil, nil, nil, nil
	e := after.entry()
	return onClusters(after.events(e.status(), e.drifts))
}

// short returns the type, the reason and the message of events.
func short(events []Event) (out []string) {
	for _, e := range events {
		out = append(out, e.Type+" "+e.Reason+" "+e.Message)
	}
	return out
}

// onClusters shows events with their clusters.
func onClusters(events []Event) (out []string) {
	for i, text := range short(events) {
		if events[i].Cluster != "" {
			text = events[i].Cluster + ": " + text
		}
		out = append(out, text)
	}
	return out
}

// Progress is reported step by step, of the placement and of each cluster. Nothing is reported twice.
func TestEventsOfProgress(t *testing.T) {
	const fulfilled = "Normal SchedulingPolicyFulfilled found all cluster needed as specified by the scheduling policy, found 1 cluster(s)"
	const started = "Normal PlacementRolloutStarted Started rolling out the latest resources"
	const overridden = "Normal PlacementOverriddenSucceeded Placement has been successfully overridden"
	const synchronized = "Normal PlacementWorkSynchronized Work(s) have been created or updated successfully for the selected cluster(s)"
	const isApplied = "Normal PlacementApplied Resources have been applied to the selected cluster(s)"
	const isAvailable = "Normal PlacementAvailable Resources are available on the selected cluster(s)"
	const completed = "Normal PlacementRolloutCompleted Placement has finished the rollout process and reached the desired status"
	const picked = `east: Normal Scheduled picked "east"`
	const onEast = "east: Normal RolloutStarted Detected the new changes on the resources and started the rollout process"
	const availableOnEast = "east: Normal AllWorkAreAvailable All corresponding work objects are available"
	unreported := func() *builder { return decided(newBuilder(assigned("east", nil))) }
	applying := func() *builder { return decided(newBuilder(assigned("east", &protocol.WorkState{}))) }
	available := func() *builder { return decided(newBuilder(assigned("east", done()))) }
	incomplete := decided(newBuilder(change(assigned("east", &protocol.WorkState{}), func(c *plan.OnCluster) {
		c.Entry.Circumstances = &ledger.Circumstances{LastComplete: done()}
	})))
	compared := func() *builder { return available().strategy("", api.ReportDiff) }
	pending := func() *builder {
		b := newBuilder()
		b.p.Pending = true
		return decided(b)
	}
	updating := func(hash string, seen *protocol.WorkState) *builder {
		return decided(newBuilder(change(assigned("east", seen), func(c *plan.OnCluster) {
			c.Binding.Assigned.Hash = hash
			c.SetLatest(placement.Revision{Hash: hash})
			if c.Entry.Seen != nil {
				c.Entry.Seen.Revision.Hash = hash
			}
		})))
	}
	for name, test := range map[string]struct {
		before, after *builder
		want          []string
	}{
		"not decided yet":          {nil, pending(), nil},
		"decided after it was not": {pending(), unreported(), []string{fulfilled, started, overridden, picked, onEast}},
		"new":                      {nil, unreported(), []string{fulfilled, started, overridden, picked, onEast}},
		"the member applies it":    {unreported(), applying(), []string{synchronized}},
		"it is available":          {applying(), available(), []string{isApplied, isAvailable, completed, availableOnEast}},
		"it stays available":       {available(), available(), nil},
		"differences are reported": {unreported().strategy("", api.ReportDiff), compared(), []string{
			synchronized, "Normal PlacementDiffReported Configuration differences have been reported on the selected cluster(s)", completed,
			"east: Normal AllWorkHaveDiffReported All corresponding work objects have reported diff",
		}},
		"an update begins":             {available(), updating("h3", nil), []string{onEast}},
		"an update is available":       {updating("h3", nil), updating("h3", done()), []string{synchronized, isApplied, isAvailable, completed, availableOnEast}},
		"the same turn updates it":     {available(), updating("h3", done()), []string{onEast, availableOnEast}},
		"a cluster becomes available":  {decided(newBuilder(assigned("east", done(objectState("one", yes, notReady))))), available(), []string{isAvailable, completed, availableOnEast}},
		"its report is complete again": {incomplete, available(), nil},
		"a cluster leaves":             {available(), decided(newBuilder()), []string{"Normal Unscheduled The placement leaves the cluster"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := eventsAfter(test.before, test.after)
			if name == "a cluster leaves" {
				got = slices.DeleteFunc(got, func(e string) bool { return !strings.Contains(e, "Unscheduled") })
				test.want = []string{"east: " + test.want[0]}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// Problems are reported once, when they begin, with their cluster and object.
func TestEventsOfProblems(t *testing.T) {
	available := func(changes ...func(c *plan.OnCluster)) *builder {
		c := assigned("east", done())
		for _, by := range changes {
			by(c)
		}
		return decided(newBuilder(c))
	}
	reporting := func(seen *protocol.WorkState, changes ...func(c *plan.OnCluster)) *builder {
		c := assigned("east", seen)
		for _, by := range changes {
			by(c)
		}
		return decided(newBuilder(c))
	}
	with := func(b *builder, by func(p *plan.Placement)) *builder {
		by(b.p)
		return b
	}
	one := objectState("one", refused, protocol.Verdict{})
	awaiting := change1(objectState("one", protocol.Verdict{Reason: api.DecodingErred, Cause: "no kind"}, protocol.Verdict{}), func(o *protocol.ObjectState) { o.Pending = true })
	held := func(names ...string) *protocol.WorkState {
		seen := done()
		seen.Incidents = &protocol.Incidents{}
		for _, name := range names {
			seen.Incidents.BlockedDeletions = append(seen.Incidents.BlockedDeletions, protocol.BlockedDeletion{ID: api.ID{Kind: "Namespace", Name: name}, Why: "not empty"})
		}
		return seen
	}
	failing := func(names ...string) *protocol.WorkState {
		seen := done()
		seen.Incidents = &protocol.Incidents{}
		for _, name := range names {
			seen.Incidents.DeletionErrors = append(seen.Incidents.DeletionErrors, protocol.DeletionError{ID: api.ID{Kind: "Namespace", Name: name}, Message: "denied"})
		}
		return seen
	}
	overrideError := func(c *plan.OnCluster) { c.Err = &work.OverrideError{Object: objectOne, Err: errors.New("x")} }
	failure := func(c *plan.OnCluster) { c.Circumstances = &plan.Circumstances{Failure: "no image"} }
	twelve := make([]string, 12)
	for i := range twelve {
		twelve[i] = fmt.Sprintf("n%02d", i)
	}
	warned := func(messages ...string) func(p *plan.Placement) {
		return func(p *plan.Placement) {
			for _, m := range messages {
				p.Warnings = append(p.Warnings, problem.Problem{Severity: problem.Warning, Message: m})
			}
		}
	}
	stopped := func(by string) func(p *plan.Placement) {
		return func(p *plan.Placement) { p.Record.Stops = []placement.Stop{{Cluster: by}} }
	}
	for name, test := range map[string]struct {
		before, after *builder
		want          []string
	}{
		"an object fails": {available(), reporting(done(one)), []string{"east: Warning NotAllWorkHaveBeenApplied Work object web-work has failed to apply", "east: Warning ManifestApplyFailed ConfigMap/web/one: admission webhook denied"}},
		"it still fails":  {reporting(done(one)), reporting(done(one)), nil},
		"it fails for another reason": {reporting(done(one)), reporting(done(change1(one, func(o *protocol.ObjectState) { o.Applied.Reason = api.FailedToTakeOver }))),
			[]string{"east: Warning FailedToTakeOver ConfigMap/web/one: admission webhook denied"}},
		"it waits for its definition":     {reporting(&protocol.WorkState{}), reporting(done(awaiting)), nil},
		"an object is not available":      {available(), reporting(done(objectState("one", yes, notReady))), []string{"east: Warning NotAllWorkAreAvailable Work object web-work is not yet available"}},
		"being applied again":             {available(), reporting(&protocol.WorkState{}), nil},
		"an update fails":                 {reporting(done(objectState("one", yes, notReady))), reporting(done(objectState("one", yes, notReady)), failure), []string{"east: Warning UpdateFailed The assigned content has failed: no image"}},
		"it has failed before":            {reporting(done(objectState("one", yes, notReady)), failure), reporting(done(objectState("one", yes, notReady)), failure), nil},
		"an override fails":               {available(), available(overrideError), []string{"east: Warning OverriddenFailed Failed to apply the override rules on the resources: " + (&work.OverrideError{Object: objectOne, Err: errors.New("x")}).Error()}},
		"another fleet takes the cluster": {available(), available(func(c *plan.OnCluster) { c.Circumstances = &plan.Circumstances{Refusal: "held by b"} }), []string{"east: Warning SyncWorkFailed Failed to synchronize the work to the latest: held by b"}},
		"a deletion is held":              {available(), reporting(held("a")), []string{"east: Warning DeletionHeld Namespace/a: not empty"}},
		"another deletion is held":        {reporting(held("a")), reporting(held("a", "b")), []string{"east: Warning DeletionHeld Namespace/b: not empty"}},
		"held deletions are allowed":      {available(), reporting(held("a"), func(c *plan.OnCluster) { c.DeleteAllowed = true }), nil},
		"a deletion fails":                {available(), reporting(failing("a")), []string{"east: Warning DeletionFailed Namespace/a: denied"}},
		"a deletion still fails":          {reporting(failing("a")), reporting(failing("a")), nil},
		"a warning":                       {with(available(), warned("a")), with(available(), warned("a", "b")), []string{"Warning PlacementWarning b"}},
		"the rollout stops":               {available(), with(available(), stopped("east")), []string{"east: Warning RolloutStopped The rollout is stopped: cluster east was available before its update, which failed"}},
		"the rollout stops, and why":      {available(failure), with(available(failure), stopped("east")), []string{"east: Warning RolloutStopped The rollout is stopped: cluster east was available before its update, which failed: no image"}},
		"the rollout continues":           {with(available(), stopped("east")), available(), []string{"Normal RolloutResumed The rollout continues: it was stopped by cluster east"}},
		"selectors become invalid": {available(), with(available(), func(p *plan.Placement) { p.Selection.Invalid = "no such kind" }),
			[]string{"Warning InvalidResourceSelectors no such kind"}},
		"many at once are counted": {available(), reporting(failing(twelve...)), []string{
			"east: Warning DeletionFailed Namespace/n00: denied", "east: Warning DeletionFailed Namespace/n01: denied", "east: Warning DeletionFailed Namespace/n02: denied",
			"east: Warning DeletionFailed Namespace/n03: denied", "east: Warning DeletionFailed Namespace/n04: denied", "east: Warning DeletionFailed Namespace/n05: denied",
			"east: Warning DeletionFailed Namespace/n06: denied", "east: Warning DeletionFailed Namespace/n07: denied", "east: Warning DeletionFailed Namespace/n08: denied",
			"east: Warning DeletionFailed Namespace/n09: denied (and 2 more objects)",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := eventsAfter(test.before, test.after); !slices.Equal(got, test.want) {
				t.Errorf("events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// With ReportDiff, an object that differs is an event with the first fields.
func TestEventsOfDifferences(t *testing.T) {
	before := decided(newBuilder(assigned("east", done()))).strategy("", api.ReportDiff)
	after := decided(newBuilder(assigned("east", done(differing(objectState("one", yes, yes), false))))).strategy("", api.ReportDiff)
	if got, want := eventsAfter(before, after), []string{"east: Normal FoundDiff ConfigMap/web/one differs: /data/x"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	if got := eventsAfter(after, after); len(got) > 0 {
		t.Errorf("again: %q", got)
	}
}

// After a restart, the ledger has the conditions, and what it has is not reported again.
func TestEventsAfterARestart(t *testing.T) {
	b := decided(newBuilder(assigned("east", done())))
	b.in.Ledger.SetPlacement(b.p.Key, b.p.Record)
	b.in.Ledger.Bind(b.p.Key, *b.p.Clusters[0].Binding)
	b.record = b.in.Ledger.Placement(b.p.Key)
	b.status()
	for _, t := range b.transitions {
		b.in.Ledger.SetTransitions(t.Key, t.Cluster, t.To)
	}
	again := decided(newBuilder(assigned("east", done())))
	again.in.Ledger, again.record = b.in.Ledger, b.in.Ledger.Placement(b.p.Key)
	again.p.Warnings = problem.List{{Message: "reported before the restart"}}
	if got := eventsAfter(nil, again); len(got) > 0 {
		t.Errorf("events %q", got)
	}
}

// A deleted placement has one event for the deletion, or for the new name, and those about its
// deletions; one when it is gone, unless it was renamed.
func TestEventsOfADeletedPlacement(t *testing.T) {
	going := func(changes ...func(p *plan.Placement)) *builder {
		b := newBuilder(assigned("east", done()))
		b.p.Spec, b.p.Record.Deleted = nil, true
		for _, by := range changes {
			by(b.p)
		}
		b.in.InForce = &hub.Snapshot{Commit: hub.Commit{Hash: "head"}}
		return b
	}
	renamed := func(inThisPlan bool) *builder {
		b := going(func(p *plan.Placement) { p.Record.Into = api.PlacementKey{Name: "site"} })
		if inThisPlan {
			b.in.Plan.Renames = []ledger.Rename{{From: b.p.Key, To: api.PlacementKey{Name: "site"}}}
		}
		return b
	}
	abandon := func(p *plan.Placement) { p.Record.Abandon = true }
	unclear := func(p *plan.Placement) { p.Unclear, p.Record.Deleted = "two candidates", false }
	heldDeletion := func(p *plan.Placement) {
		p.Clusters[0].Entry.Seen.Incidents = &protocol.Incidents{BlockedDeletions: []protocol.BlockedDeletion{{ID: api.ID{Kind: "Namespace", Name: "web"}, Why: "not empty"}}}
	}
	const cleaned = "Normal PlacementCleanupFinalizerRemoved Deleted the snapshots and removed the placement cleanup finalizer"
	for name, test := range map[string]struct {
		before, after *builder
		want          []string
		gone          []string // once nothing is left
	}{
		"deleted":         {decided(newBuilder(assigned("east", done()))), going(), []string{"Normal PlacementDeleted The placement is gone from the repository; what it placed is being removed"}, []string{cleaned}},
		"abandoned":       {nil, going(abandon), []string{"Normal PlacementDeleted The placement is gone from the repository; what it placed stays where it is"}, []string{cleaned}},
		"still going":     {going(), going(), nil, []string{cleaned}},
		"a held deletion": {going(), going(heldDeletion), []string{"east: Warning DeletionHeld Namespace/web: not empty"}, []string{cleaned}},
		"renamed":         {nil, renamed(true), []string{"Normal PlacementRenamed The placement goes on as crp/site; clusters hand over to it what they hold"}, nil},
		"renamed before":  {nil, renamed(false), nil, nil},
		"perhaps renamed": {nil, going(unclear), nil, []string{cleaned}},
		"not renamed":     {going(unclear), going(), []string{"Normal PlacementDeleted The placement is gone from the repository; what it placed is being removed"}, []string{cleaned}},
	} {
		t.Run(name, func(t *testing.T) {
			var old *placementEntry
			if test.before != nil {
				old = test.before.entry()
			}
			if got := onClusters(test.after.deletedEvents(old)); !slices.Equal(got, test.want) {
				t.Errorf("events %q, want %q", got, test.want)
			}
			m := NewMemo()
			for range 2 { // the plan is made again if it could not be saved
				test.after.p.Forget = true
				m.forget(test.after.in, test.after.p)
			}
			if got := onClusters(m.newEvents); !slices.Equal(got, test.gone) {
				t.Errorf("once it is gone: %q, want %q", got, test.gone)
			}
		})
	}
}

// A placement under a new name says which it was. That its rollout is stopped was said under the old one.
func TestEventOfANewName(t *testing.T) {
	b := decided(newBuilder(assigned("east", done())))
	b.in.Plan.Renames = []ledger.Rename{{From: api.PlacementKey{Name: "old"}, To: b.p.Key}, {From: api.PlacementKey{Name: "x"}, To: api.PlacementKey{Name: "y"}}}
	got := eventsAfter(decided(newBuilder(assigned("east", done()))), b)
	want := []string{"Normal PlacementRenamed The placement was renamed from crp/old; it keeps its clusters, revisions, stop and suspensions"}
	if !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	b.p.Record.Stops = []placement.Stop{{Cluster: "east"}}
	if got := eventsAfter(decided(newBuilder(assigned("east", done()))), b); !slices.Equal(got, want) {
		t.Errorf("of one whose rollout is stopped: events %q, want %q", got, want)
	}
}

// Suspensions that have ended are not in the report.
func TestSuspensionsInForce(t *testing.T) {
	l := ledger.New()
	l.Suspend(ledger.Suspension{Subject: ledger.Subject{Placement: api.PlacementKey{Name: "web"}}, By: "jo", Reason: "a", Until: noon})
	l.Suspend(ledger.Suspension{Subject: ledger.Subject{Placement: api.PlacementKey{Name: "api"}}, By: "jo", Reason: "b", Since: noon, Until: noon.Add(1)})
	l.Suspend(ledger.Suspension{Subject: ledger.Subject{Object: objectOne, Cluster: "east"}, By: "ann"})
	in := Input{Ledger: l, Now: noon}
	want := []Suspension{
		{Subject: "crp/api", Placement: "crp/api", By: "jo", Reason: "b", Since: noon, Until: noon.Add(1)},
		{Subject: "ConfigMap/web/one on east", Object: objectOne, Cluster: "east", By: "ann"},
	}
	if got := suspensions(in); !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}
