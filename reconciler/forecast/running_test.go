package forecast

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/rollout"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/plan/fleet"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
)

// Changed settings are added to the changes of their placement, also of a renamed one, sorted by
// placement.
func TestChangedSettingsOfARunningFleet(t *testing.T) {
	spec := func(name string, n int32, take api.WhenToTakeOver) *hub.Placement {
		p := &hub.Placement{Key: api.PlacementKey{Name: name}}
		p.Spec.Policy = &api.PlacementPolicy{PlacementType: api.PickN, NumberOfClusters: &n}
		if take != "" {
			p.Spec.Strategy.ApplyStrategy = &api.ApplyStrategy{WhenToTakeOver: take}
		}
		return p
	}
	web := spec("web", 2, "")
	gained := []PlacementChange{{Placement: "crp/web", Gained: []string{"c"}}}
	for name, test := range map[string]struct {
		after   *hub.Placement
		changes []PlacementChange
		renames []ledger.Rename
		want    string
	}{
		"unchanged":               {after: web},
		"equal":                   {after: spec("web", 2, "")},
		"another number":          {after: spec("web", 3, ""), want: "crp/web PickN 2>PickN 3"},
		"with gained clusters":    {after: spec("web", 3, ""), changes: gained, want: "crp/web +c PickN 2>PickN 3"},
		"a setting":               {after: spec("web", 2, api.TakeOverNever), changes: gained, want: "crp/web +c strategy.applyStrategy.whenToTakeOver"},
		"other selectors":         {after: withSelector(spec("web", 2, ""))},
		"a new placement":         {after: spec("new", 3, "")},
		"a renamed placement":     {after: spec("new", 3, ""), renames: []ledger.Rename{{From: api.PlacementKey{Name: "web"}, To: api.PlacementKey{Name: "new"}}}, want: "crp/new PickN 2>PickN 3"},
		"renamed from an unknown": {after: spec("new", 3, ""), renames: []ledger.Rename{{From: api.PlacementKey{Name: "gone"}, To: api.PlacementKey{Name: "new"}}}},
		"sorted":                  {after: spec("web", 3, ""), changes: []PlacementChange{{Placement: "crp/zoo", New: true}}, want: "crp/web PickN 2>PickN 3, crp/zoo"},
	} {
		o := &Forecast{
			Snapshot: &hub.Snapshot{Placements: []*hub.Placement{test.after}}, Renames: test.renames,
			earlier: &plan.Plan{Placements: sharedlist.Of(&plan.Placement{Key: web.Key, Spec: web})},
		}
		var got []string
		for _, c := range o.withSettings(slices.Clone(test.changes)) {
			text := c.Placement
			for _, cluster := range c.Gained {
				text += " +" + cluster
			}
			if c.PolicyFrom != "" {
				text += " " + c.PolicyFrom + ">" + c.PolicyTo
			}
			for _, s := range c.Settings {
				text += " " + s.Field
			}
			got = append(got, text)
		}
		if text := strings.Join(got, ", "); text != test.want {
			t.Errorf("%s: %s, want %s", name, text, test.want)
		}
	}
}

func withSelector(p *hub.Placement) *hub.Placement {
	p.Spec.ResourceSelectors = []api.ResourceSelectorTerm{{Kind: "Namespace"}}
	return p
}

// A rollout counts the clusters that change. First are those that change or lose the placement at
// once.
func TestRollouts(t *testing.T) {
	latest, old := placement.Revision{Commit: "v2", Hash: "2"}, placement.Revision{Commit: "v1", Hash: "1"}
	cluster := func(name string, assigned placement.Revision, change func(*plan.OnCluster)) *plan.OnCluster {
		b := placement.Binding{Cluster: name, Assigned: assigned}
		c := &plan.OnCluster{Binding: &b, Entry: &ledger.Entry{Binding: b}}
		c.SetLatest(latest)
		if change != nil {
			change(c)
		}
		return c
	}
	for name, test := range map[string]struct {
		clusters []*plan.OnCluster
		rollout  rollout.Plan
		deleted  bool
		want     string
	}{
		"up to date":        {clusters: []*plan.OnCluster{cluster("a", latest, nil)}},
		"a new revision":    {[]*plan.OnCluster{cluster("a", old, nil), cluster("b", old, nil)}, rollout.Plan{Assign: []rollout.Assignment{{Cluster: "a", Changed: true}, {Cluster: "b"}}}, false, "2 clusters, first a"},
		"a new cluster":     {[]*plan.OnCluster{cluster("a", latest, nil), cluster("b", latest, func(c *plan.OnCluster) { c.Entry = nil })}, rollout.Plan{Assign: []rollout.Assignment{{Cluster: "a"}, {Cluster: "b", Changed: true}}}, false, "1 clusters, first b"},
		"a cluster leaves":  {[]*plan.OnCluster{cluster("a", latest, func(c *plan.OnCluster) { c.Binding.Unscheduled = true })}, rollout.Plan{Remove: []string{"a"}}, false, "1 clusters, first a"},
		"none can change":   {[]*plan.OnCluster{cluster("a", old, nil)}, rollout.Plan{}, false, "1 clusters, first "},
		"deleted placement": {[]*plan.OnCluster{cluster("a", old, nil)}, rollout.Plan{Remove: []string{"a"}}, true, ""},
	} {
		p := &plan.Placement{Key: api.PlacementKey{Name: "web"}, Spec: &hub.Placement{}, Clusters: test.clusters, Rollout: test.rollout}
		if test.deleted {
			p.Spec = nil
		}
		got := ""
		for _, r := range rollouts(&plan.Plan{Placements: sharedlist.Of(p)}, facts{}) {
			got = fmt.Sprintf("%d clusters, first %s", r.Clusters, strings.Join(r.First, " "))
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// A summary says how many clusters are updated at a time; with the strategy External, that none is.
func TestRolloutSummary(t *testing.T) {
	changed := placement.Binding{Cluster: "a", Assigned: placement.Revision{Commit: "v1", Hash: "1"}}
	cluster := &plan.OnCluster{Binding: &changed, Entry: &ledger.Entry{Binding: changed}}
	cluster.SetLatest(placement.Revision{Commit: "v2", Hash: "2"})
	for name, test := range map[string]struct {
		strategy api.RolloutStrategyType
		clusters int
		want     string
	}{
		"rolling update": {api.RollingUpdate, 3, "3 clusters, at most 2 unavailable and 1 added at a time"},
		"one cluster":    {"", 1, "1 cluster, at most 2 unavailable and 1 added at a time"},
		"external":       {api.External, 3, "3 clusters wait: the strategy is External"},
		"external, one":  {api.External, 1, "1 cluster waits: the strategy is External"},
	} {
		p := &plan.Placement{Key: api.PlacementKey{Name: "web"}, Spec: &hub.Placement{Spec: api.PlacementSpec{Strategy: api.RolloutStrategy{Type: test.strategy}}},
			Clusters: slices.Repeat([]*plan.OnCluster{cluster}, test.clusters), Rollout: rollout.Plan{Budget: rollout.Budget{MaxUnavailable: 2, MaxSurge: 1}}}
		if got := rollouts(&plan.Plan{Placements: sharedlist.Of(p)}, facts{})[0].Summary(); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// The clusters of a forecast have the declared fields of the snapshot and the observed state of the
// running fleet. A property that is no longer declared is not observed instead.
func TestClustersOfARunningFleet(t *testing.T) {
	declare := func(name string, annotations map[string]string) *hub.Cluster {
		return &hub.Cluster{MemberCluster: &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations, Labels: map[string]string{"region": "eu"}}}}
	}
	property := func(name string) string { return api.PropertyAnnotationPrefix + name }
	before := declare("a", map[string]string{property("price"): "3", property("tier"): "1"})
	seen := fleet.Cluster(before, &ledger.Cluster{ClusterSeen: protocol.ClusterSeen{Properties: map[string]string{"nodes": "5"}, Namespaces: []string{"web"}}})
	seen.Ineligible, seen.Labels = "no recent heartbeat", map[string]string{"region": "us"}
	r := &Running{declared: map[string]*hub.Cluster{"a": before}, observed: map[string]placement.Cluster{"a": seen}}
	got := r.clusters(&hub.Snapshot{Clusters: []*hub.Cluster{declare("a", map[string]string{property("tier"): "2"}), declare("new", nil)}})
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"a"}) {
		t.Errorf("clusters %v", names)
	}
	a := got["a"]
	values := map[string]string{}
	for name, q := range a.Properties {
		values[name] = q.String()
	}
	if want := map[string]string{"nodes": "5", "tier": "2"}; !maps.Equal(values, want) {
		t.Errorf("properties %v, want %v", values, want)
	}
	if a.Ineligible != seen.Ineligible || !slices.Contains(a.Namespaces, "web") || a.Labels["region"] != "eu" {
		t.Errorf("cluster %+v", a)
	}
	if r.Member("a") != before || r.Member("new") != nil {
		t.Error("members are not those of the commit in force")
	}
	if !r.grows(&hub.Snapshot{Clusters: []*hub.Cluster{declare("new", nil)}}) || r.grows(&hub.Snapshot{Clusters: []*hub.Cluster{before}}) {
		t.Error("the fleet grows with a cluster that it does not have, and only with that")
	}
}

// A forecast for a running fleet begins when all of its rollouts are finished, and leaves the fleet
// as it is: it can be repeated.
func TestForecastBeginsAfterTheRollouts(t *testing.T) {
	const fleet = "clusters a b\nnamespace web\nplace web unavailable 1\nconfigmap web/one "
	in := healthy(snapshot(t, "v1", fleet+"x\n"), noon)
	plan.Resolve(in).UpdateLedger(in.Ledger)
	in.Past = map[string]*hub.Snapshot{"v1": in.InForce}
	in.InForce, in.Now = snapshot(t, "v2", fleet+"y\n"), noon.Add(time.Minute)
	p := plan.Resolve(in) // b is still at v1
	if held := p.Placements.At(0).On("b").Waits; held == "" {
		t.Fatal("no cluster waits")
	}
	running := NewRunning(in.InForce, p, in.Now)
	for name, test := range map[string]struct{ text, want string }{
		"the same":      {fleet + "y\n", ""},
		"another value": {fleet + "z\n", "ConfigMap/web/one changes on a,b"},
		"a new cluster": {strings.Replace(fleet, "a b", "a b c", 1) + "y\n", "c gets Namespace/web\nc gets ConfigMap/web/one"},
		"reverted":      {fleet + "x\n", "ConfigMap/web/one changes on a,b"},
	} {
		for i := range 2 {
			o, err := running.Forecast(snapshot(t, "v3", test.text))
			if err != nil {
				t.Fatal(err)
			}
			d, c := o.Compared(limit(9))
			if got := describeChanges(o, d, c); got != test.want {
				t.Errorf("%s, time %d: got:\n%s\nwant:\n%s", name, i, got, test.want)
			}
		}
	}
}

// One pull request makes web select the namespace shop as well. The next one replaces web by a
// placement that selects only shop. The fleet has no object of shop under web, so that is no rename,
// even if an override of web fails on a cluster or its selectors are invalid.
func TestRenamesDoNotDependOnEarlierForecasts(t *testing.T) {
	const fleet = "clusters a/region=eu b/region=us\nnamespace web\nnamespace shop\n{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: web}}\n"
	for name, test := range map[string]struct{ before, web string }{
		"known content":       {"", "place web\n"},
		"a failing override":  {"", "place web\noverride web/one to v1 on eu\n"},
		"a new failure":       {"place web\n", "place web\noverride web/one to v1 on eu\n"},
		"invalid selectors":   {"place web\n", "place web broken\nwidget web/one\n"},
		"two failing at once": {"place web\n", "place web broken\nwidget web/one\noverride web/one to v1 on eu\n"},
	} {
		t.Run(name, func(t *testing.T) {
			in := healthy(snapshot(t, "v1", fleet+cmp.Or(test.before, test.web)), noon)
			in.Past = map[string]*hub.Snapshot{"v1": in.InForce}
			plan.Resolve(in).UpdateLedger(in.Ledger)
			in.InForce = snapshot(t, "v2", fleet+test.web)
			in.Past["v2"] = in.InForce
			running := NewRunning(in.InForce, plan.Resolve(in), noon)
			for _, text := range []string{"place web of web,shop\n", "place new of shop\n"} {
				o, err := running.Forecast(snapshot(t, "v3", fleet+text))
				if err != nil {
					t.Fatal(err)
				}
				if len(o.Renames)+len(unclearGone(o.Plan)) > 0 {
					t.Errorf("%s: %v", text, o.Renames)
				}
			}
			o, err := running.Forecast(snapshot(t, "v3", fleet+"place new of web\n"))
			if err != nil {
				t.Fatal(err)
			}
			if len(o.Renames) != 1 {
				t.Errorf("a new placement that selects what web holds: %v", o.Renames)
			}
		})
	}
}

// A forecast does not depend on earlier ones of the same Running, although it reuses their results. Random
// commits change contents, selectors, policies, overrides, clusters and names.
func TestForecastsDoNotDependOnEarlierOnes(t *testing.T) {
	skipped := 0
	for seed := range uint64(60) {
		draw := rand.New(rand.NewPCG(seed, 0))
		text := func() string {
			clusters := []string{"a/region=eu b/region=eu c/region=us", "a/region=eu b/region=us c/region=us", "a/region=eu c/region=us", "a/region=eu b/region=eu c/region=us d/region=us"}
			out := "clusters " + clusters[draw.IntN(len(clusters))] + "\n"
			for _, name := range []string{"shop", "web", "docs", "mail"} {
				out += "namespace " + name + "\n"
				if draw.IntN(5) > 0 {
					out += fmt.Sprintf("configmap %s/one v%d\n", name, max(0, draw.IntN(6)-3))
				} else { // an override of its value fails
					out += fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: %s}}\n", name)
				}
				if draw.IntN(3) == 0 { // a reference to what some clusters lack
					out += fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: %s}, spec: {template: {spec: {containers: [{name: c, envFrom: [{configMapRef: {name: one}}, {secretRef: {name: db}}]}]}}}}\n", name)
				}
				if draw.IntN(3) == 0 {
					out += fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: %s}}\n", name)
				}
				if draw.IntN(6) == 0 {
					out += "override " + name + "/one " + []string{"to v9", "to v9", "gone"}[draw.IntN(3)] + " on eu\n"
				}
				if draw.IntN(8) == 0 {
					continue
				}
				place := "place " + name
				if draw.IntN(10) == 0 {
					place = "place " + name + "-2 of " + name
				} else if draw.IntN(6) == 0 {
					place += " of " + name + ",shop"
				}
				if draw.IntN(10) == 0 {
					out += "widget " + name + "/one\n" // makes selectors invalid
				}
				out += place + []string{"", "", "", "", " pick 2", " on a,c", " abandon", " near us pick 1", " broken"}[draw.IntN(9)] + "\n"
			}
			return out
		}
		// edited returns a text with one line of another one, or without one line.
		edited := func(old string) string {
			lines := strings.SplitAfter(old, "\n")
			i := draw.IntN(len(lines) - 1)
			words := strings.Fields(lines[i])
			for line := range strings.Lines(text()) {
				if other := strings.Fields(line); other[0] == words[0] && line[0] != '{' && (other[0] == "clusters" || other[1] == words[1]) {
					lines[i] = line
					return strings.Join(lines, "")
				}
			}
			if words[0] != "clusters" {
				lines[i] = ""
			}
			return strings.Join(lines, "")
		}
		loader := hub.NewLoader(hub.Options{})
		first := text()
		in := healthy(load(t, loader, "v1", first), noon)
		in.Past = map[string]*hub.Snapshot{"v1": in.InForce}
		for range 3 {
			plan.Resolve(in).UpdateLedger(in.Ledger)
		}
		if seed%2 == 1 { // no cluster has the commit in force yet
			first = edited(first)
			in.InForce = load(t, loader, "v2", first)
			in.Past["v2"] = in.InForce
		}
		p := plan.Resolve(in)
		running := NewRunning(in.InForce, p, noon)
		next := first
		for i := range 8 {
			switch draw.IntN(5) {
			case 0: // once more
			case 1:
				next = text()
			case 2:
				next = edited(next)
			default:
				next = edited(first)
			}
			s := load(t, loader, fmt.Sprint("next", i), next)
			got, same := everything(t, running, s)
			skipped += same
			if want, _ := everything(t, NewRunning(in.InForce, p, noon), s); got != want {
				t.Fatalf("seed %d, commit %d:\n%s\ngot:\n%s\nwant:\n%s", seed, i, next, got, want)
			}
		}
	}
	if skipped < 100 {
		t.Errorf("only %d placements were not compared again", skipped)
	}
}

// What was found about a placement is kept for the next forecast, unless the placement has changed.
func TestFactsAreKept(t *testing.T) {
	const fleet = "clusters a b\nnamespace web\nnamespace docs\nplace web\nplace docs\nconfigmap docs/one x\nconfigmap web/one "
	loader := hub.NewLoader(hub.Options{})
	in := healthy(load(t, loader, "v1", fleet+"x\n"), noon)
	plan.Resolve(in).UpdateLedger(in.Ledger)
	running := NewRunning(in.InForce, plan.Resolve(in), noon)
	found := func(commit, text string) map[string]*placementFacts {
		o, err := running.Forecast(load(t, loader, commit, fleet+text))
		if err != nil {
			t.Fatal(err)
		}
		running.NewProblems(o)
		out := map[string]*placementFacts{}
		for p, f := range running.facts {
			if f.contents == nil || f.faults == nil || f.rollout == nil {
				t.Errorf("of %s is known %+v", p.Key, f)
			}
			out[p.Key.Name] = f
		}
		return out
	}
	first, second := found("v2", "y\n"), found("v3", "z\n")
	if len(second) != 2 || second["docs"] != first["docs"] || second["web"] == first["web"] {
		t.Errorf("the facts are %v, then %v", first, second)
	}
}

// everything returns all results of a forecast as text, and how many placements it did not compare.
func everything(t *testing.T, r *Running, s *hub.Snapshot) (text string, same int) {
	t.Helper()
	o, err := r.Forecast(s)
	if err != nil {
		t.Fatal(err)
	}
	d, c := o.Compared(limit(2))
	c.Contents = nil // pointers; describeChanges has them
	return fmt.Sprint(describeChanges(o, d, c), "\n", o.Rollouts, o.Refusal(), r.NewProblems(o), c), len(o.unchanged)
}

// Two pull requests rename different placements to the same key. Each plan has the clusters of the
// placement that it renames.
func TestAnotherRenameToTheSamePlacement(t *testing.T) {
	const fleet = "clusters a b\nnamespace web\nnamespace docs\n"
	const web, docs, app = "place web on a\n", "place docs on b\n", "place app of web,docs pick 1\n"
	loader := hub.NewLoader(hub.Options{})
	in := healthy(load(t, loader, "v1", fleet+web+docs), noon)
	plan.Resolve(in).UpdateLedger(in.Ledger)
	p := plan.Resolve(in)
	running := NewRunning(in.InForce, p, noon)
	for hash, text := range []string{docs + app, web + app, docs + app} {
		s := load(t, loader, fmt.Sprint(hash), fleet+text)
		got, _ := everything(t, running, s)
		if want, _ := everything(t, NewRunning(in.InForce, p, noon), s); got != want {
			t.Errorf("%s\ngot:\n%s\nwant:\n%s", text, got, want)
		}
	}
}

// Claims that end with a rollout are over after it.
func TestLastingClaims(t *testing.T) {
	id := func(name string) api.ID { return api.ID{Kind: "ConfigMap", Namespace: "web", Name: name} }
	got := lasting(ledger.Deviation{Early: []api.ID{id("a")}, Yields: []ledger.Yield{{ID: id("b")}, {ID: id("c"), Passing: true}}})
	if want := (ledger.Deviation{Yields: []ledger.Yield{{ID: id("b")}}}); !got.Equal(want) {
		t.Errorf("claims %+v", got)
	}
}

// The plan of a change is a calendar: which clusters wait for which windows, and the stages of an update run.
func TestCalendar(t *testing.T) {
	const fleet = "clusters a/region=eu b\nnamespace web\nplace web unavailable 1\nwindow fridays \"0 22 * * 5\" 2h on eu\nconfigmap web/one "
	const staged = "clusters a/region=eu b/region=us c/region=us\nnamespace web\nstrategy careful canary/region=eu/after rest/region=us/wait=5m\nplace web external staged careful\nconfigmap web/one "
	for name, test := range map[string]struct{ fleet, want string }{
		"a window": {fleet, "2 clusters, at most 1 unavailable and 1 added at a time|a: new content waits: the window fridays is closed until "},
		"stages":   {staged, "3 clusters, stage by stage|stage canary: a, then an approval|stage rest: b, c, 1 at a time, then a wait of 5m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			in := healthy(snapshot(t, "v1", test.fleet+"x\n"), noon)
			plan.Resolve(in).UpdateLedger(in.Ledger)
			o, err := NewRunning(in.InForce, plan.Resolve(in), noon).Forecast(snapshot(t, "v2", test.fleet+"y\n"))
			if err != nil || len(o.Rollouts) != 1 {
				t.Fatalf("%v, %v", o.Rollouts, err)
			}
			got := strings.Join(append([]string{o.Rollouts[0].Summary()}, o.Rollouts[0].Calendar()...), "|")
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
