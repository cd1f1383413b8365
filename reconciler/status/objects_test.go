package status

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// differing returns an object with a difference, which is drift if it was owned.
func differing(o protocol.ObjectState, drift bool) protocol.ObjectState {
	o.Diffs = []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/x", ValueInMember: "2", ValueInHub: "1"}}}
	o.Drift, o.FirstSeen, o.LastSeen, o.Generation = drift, noon.Add(-time.Hour), noon, 5
	return o
}

// Objects of a cluster are listed as failed, drifted or differing, as the member reports them and
// as the strategy compares them.
func TestObjectsOfACluster(t *testing.T) {
	silent := protocol.Verdict{Reason: api.ManifestApplyFailed}
	compare := func(b *builder) { b.strategy("", api.ReportDiff) }
	for name, test := range map[string]struct {
		cluster *plan.OnCluster
		change  func(b *builder)
		want    []string
	}{
		"all is well":              {assigned("east", done()), nil, nil},
		"applied and available":    {assigned("east", done(objectState("one", yes, yes))), nil, nil},
		"not applied":              {assigned("east", done(objectState("one", refused, protocol.Verdict{}))), nil, []string{"failed one Applied False ManifestApplyFailed: admission webhook denied"}},
		"without a message":        {assigned("east", done(objectState("one", silent, protocol.Verdict{}))), nil, []string{"failed one Applied False ManifestApplyFailed: The manifest is not applied, and the member did not say why"}},
		"not available":            {assigned("east", done(objectState("one", yes, notReady))), nil, []string{"failed one Available False ManifestNotAvailableYet: 1 of 2 replicas"}},
		"without a reason to wait": {assigned("east", done(objectState("one", yes, protocol.Verdict{}))), nil, []string{"failed one Available False : The manifest is not available, and the member did not say why"}},
		"drifted":                  {assigned("east", done(differing(objectState("one", yes, yes), true))), nil, []string{"drifted one /data/x"}},
		"drifted and unavailable":  {assigned("east", done(differing(objectState("one", yes, notReady), true))), nil, []string{"failed one Available False ManifestNotAvailableYet: 1 of 2 replicas", "drifted one /data/x"}},
		"not taken over":           {assigned("east", done(differing(objectState("one", refused, protocol.Verdict{}), false))), nil, []string{"failed one Applied False ManifestApplyFailed: admission webhook denied", "differs one /data/x at 5"}},
		"compared":                 {assigned("east", done(differing(objectState("one", yes, notReady), true))), compare, []string{"differs one /data/x at 5"}},
		"compared and absent":      {assigned("east", done(change1(differing(objectState("one", yes, yes), false), func(o *protocol.ObjectState) { o.Generation = 0 }))), compare, []string{"differs one /data/x"}},
		"compared in part":         {assigned("east", done(differing(objectState("one", yes, yes), false), objectState("two", refused, protocol.Verdict{}))), compare, nil},
		"sorted by name":           {assigned("east", done(objectState("b", yes, notReady), objectState("a", yes, notReady))), nil, []string{"failed a Available False ManifestNotAvailableYet: 1 of 2 replicas", "failed b Available False ManifestNotAvailableYet: 1 of 2 replicas"}},
		"not sent": {change(assigned("east", done()), func(c *plan.OnCluster) {
			c.Content.Refused = []work.Refused{{Manifest: configMap("one"), Reason: api.Duplicated, Cause: "it is there twice"}}
		}), nil, []string{"failed one Applied False Duplicated: Failed to apply the manifest (error: it is there twice)"}},
		"nothing is reported":  {assigned("east", nil), nil, nil},
		"the pass is not over": {assigned("east", &protocol.WorkState{Exceptions: []protocol.ObjectState{objectState("one", refused, protocol.Verdict{})}}), nil, nil},
		"nothing is assigned":  {change(assigned("east", done(objectState("one", refused, protocol.Verdict{}))), func(c *plan.OnCluster) { c.Binding.Assigned = placement.Revision{} }), nil, nil},
		"of old content":       {change(assigned("east", done(objectState("one", refused, protocol.Verdict{}))), func(c *plan.OnCluster) { c.SetLatest(placement.Revision{Hash: "h3"}) }), nil, nil},
		"of old content, external": {change(assigned("east", done(objectState("one", refused, protocol.Verdict{}))), func(c *plan.OnCluster) { c.SetLatest(placement.Revision{Hash: "h3"}) }),
			func(b *builder) { b.strategy(api.External, "") }, []string{"failed one Applied False ManifestApplyFailed: admission webhook denied"}},
		"the content is invalid": {change(assigned("east", done(objectState("one", refused, protocol.Verdict{}))), func(c *plan.OnCluster) { c.Err = errors.New("x") }), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(test.cluster)
			if test.change != nil {
				test.change(b)
			}
			var s api.PerClusterPlacementStatus
			b.onCluster(test.cluster).AddObjects(&s)
			var got []string
			for _, f := range s.FailedPlacements {
				got = append(got, "failed "+f.Name+" "+f.Condition.Type+" "+textOf(&f.Condition))
			}
			for _, d := range s.DriftedPlacements {
				got = append(got, "drifted "+d.Name+" "+d.ObservedDrifts[0].Path)
				if d.TargetClusterObservedGeneration != 5 || !d.FirstDriftedObservedTime.Time.Equal(noon.Add(-time.Hour)) || !d.ObservationTime.Time.Equal(noon) {
					t.Errorf("drifted %+v", d)
				}
			}
			for _, d := range s.DiffedPlacements {
				text := "differs " + d.Name + " " + d.ObservedDiffs[0].Path
				if d.TargetClusterObservedGeneration != nil {
					text += fmt.Sprintf(" at %d", *d.TargetClusterObservedGeneration)
				}
				got = append(got, text)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("objects %q\nwant %q", got, test.want)
			}
		})
	}
}

func change1(o protocol.ObjectState, by func(o *protocol.ObjectState)) protocol.ObjectState {
	by(&o)
	return o
}

// An object that another placement owns names the owner, its file, and whether it will be given up.
func TestYieldedObjectsNameTheOwner(t *testing.T) {
	const prefix = "Failed to apply the manifest (error: failed to take over a pre-existing object: the object is already owned by another Fleet AppliedWork object: the placement "
	to := api.PlacementKey{Name: "api"}
	for want, y := range map[string]plan.Yielded{
		"crp/api selects it as well and has it on this cluster)":                   {To: to},
		"crp/api (api.yaml:3) selects it as well and has it on this cluster)":      {To: to, Origin: api.Origin{Path: "api.yaml", Line: 3}},
		"crp/api (api.yaml:3) has it on this cluster until its rollout gets here)": {To: to, Origin: api.Origin{Path: "api.yaml", Line: 3}, Passing: true},
	} {
		y.Manifest = configMap("one")
		c := change(assigned("east", done()), func(c *plan.OnCluster) { c.Circumstances = &plan.Circumstances{Yielded: []plan.Yielded{y}} })
		var s api.PerClusterPlacementStatus
		newBuilder(c).onCluster(c).AddObjects(&s)
		if len(s.FailedPlacements) != 1 || s.FailedPlacements[0].Name != "one" || textOf(&s.FailedPlacements[0].Condition) != "False FailedToTakeOver: "+prefix+want ||
			!s.FailedPlacements[0].Condition.LastTransitionTime.Time.Equal(c.Binding.AssignedAt) {
			t.Errorf("%+v\nwant %s", s.FailedPlacements, want)
		}
	}
}

// The details of a placement on a cluster: how far it is behind, and what fails, is held, deleted or
// cannot be deleted.
func TestClusterDetails(t *testing.T) {
	id := func(name string) api.ID { return api.ID{Kind: "ConfigMap", Namespace: "web", Name: name} }
	blocked := func(seen *protocol.WorkState) *protocol.WorkState {
		seen.Incidents = &protocol.Incidents{BlockedDeletions: []protocol.BlockedDeletion{{ID: id("old"), Why: "too many"}}}
		return seen
	}
	bound := noon.Add(-time.Minute)
	for name, test := range map[string]struct {
		cluster *plan.OnCluster
		change  func(p *plan.Placement)
		want    ClusterDetail
		updated int
	}{
		"available":          {change(assigned("east", done()), applied), nil, ClusterDetail{Commit: "v2", Applied: true, Available: true, Objects: 3}, 1},
		"being applied":      {assigned("east", &protocol.WorkState{Total: 3}), nil, ClusterDetail{Commit: "v2", Objects: 3, Behind: 1}, 0},
		"becoming available": {change(assigned("east", done(objectState("one", yes, notReady))), applied), nil, ClusterDetail{Commit: "v2", Applied: true, Objects: 3, Cause: "ConfigMap/web/one: 1 of 2 replicas", Progressing: true}, 1},
		"failed": {change(change(assigned("east", done(objectState("one", refused, protocol.Verdict{}), change1(objectState("two", yes, notReady), func(o *protocol.ObjectState) { o.Failure = "no image" }))), applied), func(c *plan.OnCluster) { c.Circumstances = &plan.Circumstances{Failure: "ConfigMap/web/one: denied"} }), nil,
			ClusterDetail{Commit: "v2", Objects: 3, FailedObjects: 2, Cause: "ConfigMap/web/one: admission webhook denied", Failure: "ConfigMap/web/one: denied"}, 1},
		"nothing is reported":   {assigned("east", nil), nil, ClusterDetail{Commit: "v2", Behind: 1}, 0},
		"held by another fleet": {change(change(assigned("east", done()), applied), func(c *plan.OnCluster) { c.Circumstances = &plan.Circumstances{Refusal: "held by b"} }), nil, ClusterDetail{Commit: "v2", Objects: 3}, 1},
		"waiting with old content": {change(assigned("east", nil), func(c *plan.OnCluster) {
			c.Binding.Assigned, c.Binding.Index, c.Binding.BoundAt, c.Waits = oldContent, 1, bound, "maxUnavailable 1 reached"
		}), nil, ClusterDetail{Commit: "v1", Behind: 2, BehindSince: bound, Waits: "maxUnavailable 1 reached"}, 0},
		"suspended":                  {change(change(assigned("east", done()), applied), func(c *plan.OnCluster) { c.Circumstances = &plan.Circumstances{Suspended: "suspended by jo"} }), nil, ClusterDetail{Commit: "v2", Applied: true, Available: true, Objects: 3, Suspended: "suspended by jo"}, 1},
		"being removed":              {change(assigned("east", done()), func(c *plan.OnCluster) { c.Binding.Removing = true }), nil, ClusterDetail{Commit: "v2", Applied: true, Available: true, Objects: 3, Removing: true}, 0},
		"unscheduled":                {change(assigned("east", done()), func(c *plan.OnCluster) { c.Binding.Unscheduled = true }), nil, ClusterDetail{Commit: "v2", Applied: true, Available: true, Objects: 3}, 0},
		"deletions are held":         {change(assigned("east", blocked(done())), applied), nil, ClusterDetail{Commit: "v2", Applied: true, Available: true, Objects: 3, BlockedDeletions: []string{"ConfigMap/web/old: too many"}}, 1},
		"held deletions are allowed": {change(change(assigned("east", blocked(done())), applied), func(c *plan.OnCluster) { c.DeleteAllowed = true }), nil, ClusterDetail{Commit: "v2", Applied: true, Available: true, Objects: 3, Deleting: 1}, 1},
		"deletions fail and linger": {change(assigned("east", &protocol.WorkState{Done: true, Total: 3, Incidents: &protocol.Incidents{DeletionErrors: []protocol.DeletionError{{ID: id("a"), Message: "denied"}}, Lingering: []api.ID{id("b"), id("c"), id("d")},
			Finalizing: []protocol.Finalizing{{ID: id("b"), Finalizers: "example.com/x"}}, Collecting: []api.ID{id("c")}}}), applied), nil, ClusterDetail{
			Commit: "v2", Applied: true, Available: true, Objects: 3, DeletionErrors: []string{"ConfigMap/web/a: denied"},
			Lingering: []string{"ConfigMap/web/b (finalizers: example.com/x)", "ConfigMap/web/c (until the garbage collector has deleted what was made of it)", "ConfigMap/web/d"},
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(test.cluster)
			b.p.Record.RolloutStarted = noon
			if test.change != nil {
				test.change(b.p)
			}
			d := b.detail()
			test.want.Cluster = "east"
			if got := b.clusterDetail(b.p.Clusters[0]); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
			if d.Rollout.Updated != test.updated {
				t.Errorf("%d clusters are updated, want %d", d.Rollout.Updated, test.updated)
			}
		})
	}
}

func applied(c *plan.OnCluster) {
	c.Entry.SetTimes(ledger.Times{ledger.AppliedAt: noon, ledger.SeenAt: c.Entry.SeenAt()})
}

// The rollout of a placement has the numbers of its budget; clusters that it skips do not count as
// unavailable.
func TestRolloutDetails(t *testing.T) {
	budget := func(target, notCounted, ready int) rollout.Budget {
		return rollout.Budget{Target: target, NotCounted: notCounted, Ready: ready, MaxUnavailable: 2}
	}
	for name, test := range map[string]struct {
		change func(p *plan.Placement)
		want   *Rollout
	}{
		"none has started": {func(*plan.Placement) {}, nil},
		"in progress":      {func(p *plan.Placement) { p.Record.RolloutStarted, p.Rollout.Budget = noon, budget(5, 0, 2) }, &Rollout{Started: noon, Target: 5, Unavailable: 3, MaxUnavailable: 2}},
		"skipped clusters": {func(p *plan.Placement) { p.Record.RolloutStarted, p.Rollout.Budget = noon, budget(5, 1, 2) }, &Rollout{Started: noon, Target: 5, Unavailable: 2, MaxUnavailable: 2}},
		"more are ready":   {func(p *plan.Placement) { p.Record.RolloutStarted, p.Rollout.Budget = noon, budget(2, 0, 3) }, &Rollout{Started: noon, Target: 2, MaxUnavailable: 2}},
		"finished": {func(p *plan.Placement) {
			p.Record.RolloutStarted, p.Record.RolloutFinished, p.Rollout.Budget = noon, noon, budget(1, 0, 1)
		}, &Rollout{Started: noon, Finished: noon, Target: 1, MaxUnavailable: 2}},
		"of a deleted placement": {func(p *plan.Placement) { p.Record.RolloutStarted, p.Spec = noon, nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder()
			test.change(b.p)
			if got := b.detail().Rollout; !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

// A drift in the report has the record of the member. Objects that are not owned and differ are
// foreign, with the actors of all their fields, the newest first.
func TestDrifts(t *testing.T) {
	actor := func(name string, minutes int) api.Actor {
		return api.Actor{Manager: name, Operation: "Update", Time: noon.Add(time.Duration(minutes) * time.Minute)}
	}
	foreignObject := differing(objectState("one", refused, protocol.Verdict{}), false)
	foreignObject.Diffs[0].By = []api.Actor{actor("a", 1), actor("b", 2)}
	foreignObject.Diffs = append(foreignObject.Diffs, api.Difference{By: []api.Actor{actor("a", 1), actor("c", 3)}})
	seen := done(foreignObject, differing(objectState("two", yes, yes), true))
	seen.Incidents = &protocol.Incidents{Drifts: []protocol.Drift{
		{ID: api.ID{Kind: "Secret", Namespace: "web", Name: "z"}, Version: "v1", State: api.DriftRepaired, Count: 4, FirstSeen: noon, LastSeen: noon.Add(time.Hour), Since: noon.Add(time.Minute)},
		{ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: "two"}, Version: "v1", State: api.DriftHeld, Rule: "propose", Message: "waits", Count: 1, FirstSeen: noon, LastSeen: noon, Generation: 3, Deleted: true, Digest: "d", By: []api.Actor{actor("a", 1)}},
	}}
	outdated := change(assigned("west", seen), func(c *plan.OnCluster) { c.Binding.Assigned = oldContent })
	p := newBuilder(assigned("east", seen), assigned("north", nil), outdated).p
	got := drifts(p, p.Clusters...)
	var names []string
	for _, d := range got {
		names = append(names, d.Cluster+" "+d.Name+" "+string(d.State))
	}
	if want := []string{"east one foreign", "east two held", "east z repaired", "west two held", "west z repaired"}; !slices.Equal(names, want) {
		t.Fatalf("drifts %q\nwant %q", names, want)
	}
	if d := got[0]; d.Message != refused.Message() || d.Count != 0 || d.Generation != 5 || len(d.Paths) != 2 || !d.Since.Equal(noon.Add(-time.Hour)) ||
		!slices.Equal(d.By, []api.Actor{actor("c", 3), actor("b", 2), actor("a", 1)}) {
		t.Errorf("foreign: %+v", d)
	}
	if d := got[1]; d.Placement != "crp/web" || d.Rule != "propose" || d.Message != "waits" || d.Count != 1 || !d.Since.Equal(noon) || d.Generation != 3 || !d.Deleted || d.Digest != "d" || len(d.By) != 1 {
		t.Errorf("held: %+v", d)
	}
	if d := got[2]; !d.Since.Equal(noon.Add(time.Minute)) || !d.LastSeen.Equal(noon.Add(time.Hour)) {
		t.Errorf("repaired: %+v", d)
	}
}

// Each state of a drift has its event: again if the object drifted again or the state changed.
func TestDriftEvents(t *testing.T) {
	drift := func(state api.DriftState, count int, changes ...func(d *Drift)) *Drift {
		d := &Drift{ResourceIdentifier: api.ResourceIdentifier{Kind: "ConfigMap", Namespace: "web", Name: "one"}, State: state, Count: count}
		for _, path := range []string{"/a", "/b", "/c", "/d"} {
			d.Paths = append(d.Paths, api.Difference{PatchDetail: api.PatchDetail{Path: path}})
		}
		for _, change := range changes {
			change(d)
		}
		return d
	}
	by := func(d *Drift) { d.By = []api.Actor{{Manager: "kubectl", Operation: "Update"}} }
	deleted := func(d *Drift) { d.Deleted = true }
	message := func(d *Drift) { d.Message = "waits for a minute" }
	const changed = "ConfigMap/web/one was changed by somebody: /a, /b, /c and 1 more"
	for name, test := range map[string]struct {
		is, was *Drift
		want    string
	}{
		"standing":               {drift(api.DriftStanding, 1), nil, "Warning DriftFound " + changed + "; it is left as it is"},
		"by a known actor":       {drift(api.DriftStanding, 1, by), nil, "Warning DriftFound ConfigMap/web/one was changed by kubectl (Update): /a, /b, /c and 1 more; it is left as it is"},
		"added":                  {drift(api.DriftAdded, 1, by), nil, "Warning DriftFound ConfigMap/web/one: kubectl (Update) has added /a, /b, /c and 1 more, which Git does not have; it is left as it is"},
		"held":                   {drift(api.DriftHeld, 1), nil, "Warning DriftFound " + changed + "; it is left as it is"},
		"deleted":                {drift(api.DriftRepaired, 1, deleted), nil, "Warning DriftPutBack ConfigMap/web/one was deleted; it was put back"},
		"repaired":               {drift(api.DriftRepaired, 1), nil, "Warning DriftPutBack " + changed + "; it was put back"},
		"repaired again":         {drift(api.DriftRepaired, 2), drift(api.DriftRepaired, 1), "Warning DriftPutBack " + changed + "; it was put back"},
		"not again":              {drift(api.DriftRepaired, 2), drift(api.DriftRepaired, 2), ""},
		"another state":          {drift(api.DriftContested, 2), drift(api.DriftRepaired, 2), "Warning DriftContested " + changed + "; another writer keeps reverting it"},
		"contested, and why":     {drift(api.DriftContested, 2, message), nil, "Warning DriftContested " + changed + "; waits for a minute"},
		"altered":                {drift(api.DriftAltered, 0, message), nil, "Warning ValuesAltered ConfigMap/web/one is not stored as it is applied: /a, /b, /c and 1 more; waits for a minute"},
		"ended":                  {drift(api.DriftEnded, 1), drift(api.DriftStanding, 1), "Normal DriftGone ConfigMap/web/one no longer differs from Git"},
		"ended before a restart": {drift(api.DriftEnded, 1), nil, ""},
		"ignored":                {drift(api.DriftIgnored, 1), nil, ""},
		"foreign":                {drift(api.DriftForeign, 0), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, news := driftEvent(test.is, test.was)
			got := ""
			if news {
				got = short([]Event{e})[0]
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
