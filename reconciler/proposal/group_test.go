package proposal

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/plan/fleet"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// newGrouping returns a fleet whose drift is offered by placement. Nothing has drifted yet.
func newGrouping(t *testing.T, clusters, configMaps int) *drifting {
	t.Helper()
	d := newDrifting(t, clusters, configMaps)
	d.follower.tracker.cfg.ByPlacement = true
	for i := range clusters {
		d.drift(t, i)
	}
	return d
}

// drift sets what has drifted on a cluster: the values of the first ConfigMaps; an empty one has not.
func (d *drifting) drift(t *testing.T, cluster int, values ...string) {
	t.Helper()
	name := fmt.Sprintf("member-%03d", cluster)
	for _, w := range plan.Resolve(d.in).Works[name] {
		seen := protocol.WorkSeen{Cluster: name, Placement: w.Placement, At: now, WorkState: protocol.WorkState{Revision: w.Revision, Done: true, Total: len(w.Manifests)}}
		var in protocol.Incidents
		for i, value := range values {
			if value == "" {
				continue
			}
			id := api.ID{Kind: "ConfigMap", Namespace: "web", Name: fmt.Sprint("config-", i)}
			held := protocol.Drift{ID: id, Version: "v1", State: api.DriftHeld, Count: 1, FirstSeen: now, LastSeen: now}
			valued(value)(&held)
			in.Drifts = append(in.Drifts, held)
		}
		seen.Incidents = in.OrNil()
		d.in.Ledger.Fold(seen)
	}
	d.report = status.Build(status.Input{Plan: plan.Resolve(d.in), InForce: d.in.InForce, Ledger: d.in.Ledger, Now: now})
}

// lasts lets a while pass.
func (d *drifting) lasts(t *testing.T, while time.Duration) {
	t.Helper()
	for range while / (10 * time.Second) {
		d.step(t, 10*time.Second)
	}
}

// restarted continues as another process.
func (d *drifting) restarted(t *testing.T) {
	t.Helper()
	cfg, load, report := d.follower.tracker.cfg, d.collector.load, d.report
	d.restart(cfg.MaxOpen)
	d.follower.tracker.cfg, d.collector.load, d.report, d.lastSent = cfg, load, report, nil
}

// states counts the held changes by state.
func (d *drifting) states() string {
	n := map[State]int{}
	for _, c := range d.Held().Items {
		n[c.State]++
	}
	var out []string
	for _, s := range slices.Sorted(maps.Keys(n)) {
		out = append(out, fmt.Sprint(s, " ", n[s]))
	}
	return strings.Join(out, ", ")
}

func (d *drifting) expectStates(t *testing.T, when, want string) {
	t.Helper()
	if got := d.states(); got != want {
		t.Errorf("%s: %s, want %s", when, got, want)
	}
}

// All drift of a placement is in one pull request, whose text and branch stay true.
func TestDriftOfAPlacementIsOnePullRequest(t *testing.T) {
	d := newGrouping(t, 3, 3)
	d.drift(t, 0, "a", "b")
	d.drift(t, 1, "a")
	d.lasts(t, 3*time.Minute)
	if n := len(d.forge.Pulls); n != 1 {
		t.Fatalf("%d pull requests", n)
	}
	pr := d.forge.Pulls[0]
	expect := func(when, title string, sections ...string) {
		t.Helper()
		if pr.Title != title {
			t.Errorf("%s: the title is %q, want %q", when, pr.Title, title)
		}
		for _, s := range sections {
			if !strings.Contains(pr.Body, s) {
				t.Errorf("%s: the body lacks %q:\n%s", when, s, pr.Body)
			}
		}
		if c := d.forge.branches[pr.Branch]; strings.Count(c.Message, "\n- ") != max(1, strings.Count(pr.Body, "\n### ")) || len(c.Files) == 0 {
			t.Errorf("%s: the commit of the branch has %d files and says\n%s", when, len(c.Files), c.Message)
		}
	}
	expect("opened", "Drift: crp/web: 2 changes on 2 clusters",
		"### `ConfigMap web/config-0`: value changed on 2 of 3 clusters (`", "- plain\n+ b\n", "- **Where:** `member-000`, `member-001`; first seen",
		"**Merging** takes all of this over", "**Closing** reverts all of it", "later changes of it in the manifest do not reach them")
	if want := []string{"gitfleet/drift", "gitfleet/severity: other", "placement/web"}; !slices.Equal(pr.Labels, want) {
		t.Errorf("the labels are %q", pr.Labels)
	}
	d.expectStates(t, "opened", "open 2")
	for _, c := range d.Held().Items {
		if len(c.Together) != 1 {
			t.Errorf("%s is together with %q", c.Name, c.Together)
		}
	}

	d.drift(t, 2, "", "", "c")
	d.lasts(t, time.Minute)
	expect("another, for a minute", "Drift: crp/web: 2 changes on 2 clusters")
	d.lasts(t, 2*time.Minute)
	expect("another, for longer", "Drift: crp/web: 3 changes on 3 clusters", "### `ConfigMap web/config-2`: value changed on 1 of 3 clusters")

	d.restarted(t)
	d.lasts(t, 3*time.Minute)
	expect("after a restart", "Drift: crp/web: 3 changes on 3 clusters")

	d.drift(t, 0, "a")
	d.lasts(t, time.Minute)
	expect("one has ended", "Drift: crp/web: 2 changes on 3 clusters")
	if strings.Contains(pr.Body, "config-1") {
		t.Error("the body has what has ended")
	}
	pr.Title = "Mine"
	d.drift(t, 2)
	d.step(t, time.Minute) // lists them
	d.lasts(t, time.Minute)
	expect("edited by a person", "Mine", "`ConfigMap web/config-0` was changed on 2 of 3 clusters")
	if n := len(d.forge.Pulls); n != 1 {
		t.Errorf("%d pull requests", n)
	}

	d.drift(t, 0)
	d.drift(t, 1)
	d.lasts(t, 2*time.Minute)
	if pr.State != forge.Closed || !endedByGitfleet(pr.Body) || len(d.forge.branches) != 0 {
		t.Errorf("all have ended: the pull request is %s, and there are %d branches", pr.State, len(d.forge.branches))
	}
}

// The branch of a group gives the clusters all that they have.
func TestTheBranchOfAGroupHasAllChanges(t *testing.T) {
	d := newGrouping(t, 3, 3)
	d.drift(t, 0, "a", "b", "c")
	d.drift(t, 1, "a", "d")
	d.drift(t, 2, "e", "d")
	d.lasts(t, 3*time.Minute)
	files := maps.Clone(d.files)
	for path, text := range d.forge.branches[d.forge.Pulls[0].Branch].Files {
		files[path] = &fstest.MapFile{Data: text}
	}
	after := loaded(t, "decade", files)
	key, _ := api.ParsePlacement("crp/web")
	var overrides []*api.ResourceOverride
	for _, o := range after.Overrides {
		overrides = append(overrides, o.ResourceOverride)
	}
	renderer := work.NewRenderer(key, after.Objects, nil, overrides, nil)
	for i, want := range []string{"a b c", "a d plain", "e d plain"} {
		cluster := after.Clusters[i]
		rendered, err := renderer.For(fleet.Cluster(cluster, nil))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range rendered.Manifests {
			if data, isConfigMap := m.Object.Content.Object["data"].(map[string]any); isConfigMap {
				got = append(got, fmt.Sprint(data["value"]))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s gets %q, want %q", cluster.Name, got, want)
		}
	}
}

// Closing the pull request reverts all of its changes, also if they are made again after a restart. Others are offered in another.
func TestClosingAGroupRevertsAll(t *testing.T) {
	d := newGrouping(t, 2, 3)
	d.drift(t, 0, "a", "b")
	d.drift(t, 1, "", "c")
	d.lasts(t, 3*time.Minute)
	d.forge.End(1, forge.Closed)
	d.lasts(t, time.Minute)
	d.expectStates(t, "closed", "closed 3")
	if putBack, _, held := d.counts(); putBack != 3 || held != 0 {
		t.Errorf("%d are put back, and %d held", putBack, held)
	}
	d.drift(t, 0)
	d.drift(t, 1)
	d.lasts(t, 2*time.Minute)
	d.restarted(t)
	d.drift(t, 0, "a", "", "new")
	d.lasts(t, 3*time.Minute)
	d.expectStates(t, "one again and a new one", "closed 1, open 1")
	if n := len(d.forge.Pulls); n != 2 || d.forge.Pulls[1].Branch != d.forge.Pulls[0].Branch+"-2" || d.forge.Pulls[1].Title != "Drift: ConfigMap web/config-2: value changed on 1 of 2 clusters" {
		t.Errorf("%d pull requests, the last is %+v", n, d.forge.Pulls[n-1])
	}
	// A user wants to decide about the rejected one again.
	for _, c := range d.Held().Items {
		if c.State == Closed {
			if _, err := d.handled(t, d.openNow, c.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.lasts(t, 30*time.Second)
	d.expectStates(t, "offered again", "open 2")
	d.restarted(t)
	d.lasts(t, 3*time.Minute)
	d.expectStates(t, "offered again, after a restart", "open 2")
	if n := len(d.forge.Pulls); n != 2 {
		t.Errorf("%d pull requests", n)
	}
}

// A change that joins only when the pull request is closed is not decided.
func TestAChangeThatPeopleDidNotSeeIsNotRejected(t *testing.T) {
	d := newGrouping(t, 2, 2)
	d.drift(t, 0, "a")
	d.lasts(t, 3*time.Minute)
	d.drift(t, 1, "", "b")
	d.lasts(t, 2*time.Minute)
	body := d.forge.Pulls[0].Body
	d.lasts(t, 20*time.Second)
	d.forge.Pulls[0].Body = body // the edit came too late
	d.forge.End(1, forge.Closed)
	d.lasts(t, time.Minute)
	d.expectStates(t, "closed", "closed 1, open 1")
}

// Merging adopts all of it: what is left until the commit is in force is not offered again.
func TestMergingAGroup(t *testing.T) {
	d := newGrouping(t, 2, 2)
	d.drift(t, 0, "a", "b")
	d.lasts(t, 3*time.Minute)
	d.forge.End(1, forge.Merged)
	d.lasts(t, time.Minute)
	d.expectStates(t, "merged", "merged 2")
	d.restarted(t)
	d.lasts(t, time.Minute)
	if putBack, _, held := d.counts(); putBack != 0 || held != 2 {
		t.Errorf("%d are put back, and %d held", putBack, held)
	}
}

// Nobody decides about a group: all of it stays, and is reported. What comes later is offered in another.
func TestAGroupExpires(t *testing.T) {
	d := newGrouping(t, 2, 2)
	d.follower.tracker.cfg.ExpireAfter = time.Hour
	d.drift(t, 0, "a", "b")
	d.lasts(t, 70*time.Minute)
	d.expectStates(t, "expired", "expired 2")
	d.restarted(t)
	d.drift(t, 1, "c")
	d.lasts(t, 5*time.Minute)
	d.expectStates(t, "another", "expired 2, open 1")
}

// Commands on a pull request are about all of its changes, and those about one change make it leave.
func TestRequestsAboutAGroup(t *testing.T) {
	d := newGrouping(t, 3, 3)
	d.drift(t, 0, "a", "b", "c")
	d.lasts(t, 3*time.Minute)
	pr := d.forge.Pulls[0]
	name := ChangeOf(*pr, d.follower.tracker.cfg.Fleet)
	ask := func(do func(name string) request) string {
		t.Helper()
		d.group(t.Context())
		r := d.handle(t.Context(), do(name), d.forge.Now)
		if r.err != nil {
			t.Fatal(r.err)
		}
		return r.text
	}
	hold := func(on bool) func(string) request {
		return func(name string) request {
			return request{name: name, by: "anna", number: 1, do: func(ctx context.Context, it heldItem, by string, now time.Time) (func() string, error) {
				return d.hold(ctx, it, by, on, now)
			}}
		}
	}
	if said := ask(hold(true)); !strings.Contains(said, "3 changes of crp/web") {
		t.Errorf("hold says %q", said)
	}
	d.lasts(t, time.Minute)
	ask(hold(false))
	d.lasts(t, time.Minute)

	one := d.Held().Items[1]
	said, err := d.handled(t, d.Proposer.close, one.Name)
	if err != nil || !strings.Contains(said, "which keeps 2 other changes") {
		t.Errorf("closing one says %q, %v", said, err)
	}
	d.lasts(t, time.Minute)
	if putBack, _, held := d.counts(); putBack != 1 || held != 2 || pr.State != forge.Open || !strings.HasPrefix(pr.Title, "Drift: crp/web: 2 changes") {
		t.Errorf("after one was closed, %d are put back, %d held, and the pull request is %q", putBack, held, pr.Title)
	}
	if said := ask(func(name string) request { return request{name: name, by: "anna", number: 1, do: d.Proposer.close} }); !strings.Contains(said, "2 changes of crp/web will be put back") {
		t.Errorf("revert says %q", said)
	}
	d.lasts(t, time.Minute)
	if putBack, _, held := d.counts(); putBack != 3 || held != 0 {
		t.Errorf("after the revert, %d are put back, and %d held", putBack, held)
	}
	for _, e := range d.entries {
		if e.Placement != "crp/web" {
			t.Errorf("the history has %+v", e)
		}
	}
}

// Changes that no edits make together are offered alone.
func TestChangesThatExcludeEachOther(t *testing.T) {
	d := newGrouping(t, 2, 1)
	label := func(cluster int, value string) {
		name := fmt.Sprintf("member-%03d", cluster)
		for _, w := range plan.Resolve(d.in).Works[name] {
			held := protocol.Drift{ID: api.ID{Kind: "Namespace", Name: "web"}, Version: "v1", State: api.DriftHeld, Count: 1, FirstSeen: now, LastSeen: now}
			held.Paths = []api.Difference{{PatchDetail: api.PatchDetail{Path: "/metadata/labels/tier", ValueInMember: value}, MemberJSON: []byte(`"` + value + `"`)}}
			d.in.Ledger.Fold(protocol.WorkSeen{Cluster: name, Placement: w.Placement, At: now, WorkState: protocol.WorkState{Revision: w.Revision, Done: true, Total: len(w.Manifests), Incidents: &protocol.Incidents{Drifts: []protocol.Drift{held}}}})
		}
		d.report = status.Build(status.Input{Plan: plan.Resolve(d.in), InForce: d.in.InForce, Ledger: d.in.Ledger, Now: now})
	}
	label(0, "gold")
	label(1, "lead")
	d.lasts(t, 5*time.Minute)
	d.expectStates(t, "offered", "open 2")
	if n := len(d.forge.Pulls); n != 2 {
		t.Errorf("%d pull requests", n)
	}
}

// A burst of changes is combined over several passes, a few edits in each, and no more than a pull request may have.
func TestABurstIsCombinedInSeveralPasses(t *testing.T) {
	const changes = maxGrouped + 5
	d := newGrouping(t, 2, changes)
	var values []string
	for i := range changes {
		values = append(values, fmt.Sprint("value-", i))
	}
	d.drift(t, 0, values...)
	most := 0
	for range 200 {
		before := d.loads
		d.step(t, time.Second)
		most = max(most, d.loads-before)
	}
	if most > 3*maxEdits { // for some edits, more than one file is tried
		t.Errorf("a pass loads %d trees", most)
	}
	d.expectStates(t, "offered", fmt.Sprintf("open %d, waiting %d", maxGrouped, changes-maxGrouped))
	if n := len(d.forge.Pulls); n != 1 || len(d.forge.Pulls[0].Body) > 60_000 {
		t.Errorf("%d pull requests, with a body of %d", n, len(d.forge.Pulls[0].Body))
	}
	loads := d.loads
	d.lasts(t, 5*time.Minute)
	if d.loads != loads {
		t.Errorf("%d loads without news", d.loads-loads)
	}
}
