package forecast

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
)

// describedAs returns the description of a commit after an earlier one.
func describedAs(t *testing.T, before, after string) Document {
	t.Helper()
	first, err := Of(Input{Snapshot: snapshot(t, "v1", before), Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	earlier := first.Describe()
	o, err := Of(Input{Snapshot: snapshot(t, "v2", after), Before: &earlier, Earlier: first.Plan, Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	return o.Describe()
}

// The decisions on a placement that was not scheduled say why its clusters stay as they are.
func TestDecisionsWithoutScheduling(t *testing.T) {
	const objects = "clusters a b\nnamespace web\nnamespace other\nwidget other/one\n"
	for name, test := range map[string]struct {
		after     string
		placement string
		want      string
	}{
		"scheduled": {"place web on a", "crp/web",
			`a selected: Successfully scheduled resources for placement in "a": picked by scheduling policy`},
		"invalid selectors": {"place web on a broken", "crp/web",
			"a selected: Cluster \"a\" keeps what it has: nothing is selected or unscheduled while the selectors are invalid\n" +
				"b: Cluster \"b\" is not selected: nothing is selected or unscheduled while the selectors are invalid"},
		"an uncertain rename": {"place one of web\nplace two of web", "crp/web",
			"a selected: Cluster \"a\" keeps what it has: nothing is selected or unscheduled while it is unclear which placement was renamed\n" +
				"b: Cluster \"b\" is not selected: nothing is selected or unscheduled while it is unclear which placement was renamed"},
		"a candidate of an uncertain rename": {"place one of web\nplace two of web", "crp/one",
			"a: Cluster \"a\" is not selected: nothing is selected or unscheduled while it is unclear which placement was renamed\n" +
				"b: Cluster \"b\" is not selected: nothing is selected or unscheduled while it is unclear which placement was renamed"},
	} {
		t.Run(name, func(t *testing.T) {
			d := describedAs(t, objects+"place web on a\n", objects+test.after+"\n")
			i := slices.IndexFunc(d.Placements, func(p Placement) bool { return p.Key() == test.placement })
			var got []string
			for _, dec := range d.Placements[i].Decisions {
				if dec.Selected {
					dec.Cluster += " selected"
				}
				got = append(got, dec.Cluster+": "+dec.Reason)
			}
			if text := strings.Join(got, "\n"); !strings.HasPrefix(text, test.want) {
				t.Errorf("got:\n%s\nwant:\n%s", text, test.want)
			}
		})
	}
}

// Every object of a cluster belongs to one placement in the description: the one that owns it. A
// placement without content for a cluster, or that is gone and keeps its objects, has its earlier
// ones.
func TestDescribedObjects(t *testing.T) {
	const objects = "clusters a\nnamespace web\nconfigmap web/one x\nnamespace shop\nnamespace other\nwidget other/one\n"
	for name, test := range map[string]struct{ before, after, want string }{
		"one placement":       {"place web\n", "place web\n", "crp/web: web web/one"},
		"two placements":      {"place web\nplace shop\n", "place web\nplace shop\n", "crp/shop: shop, crp/web: web web/one"},
		"shared objects":      {"place web\n", "place web\nplace also of web,shop\n", "crp/also: shop, crp/web: web web/one"},
		"invalid selectors":   {"place web\n", "place web broken\n", "crp/web: web web/one"},
		"new and invalid":     {"place web\n", "place web\nplace more of shop broken\n", "crp/web: web web/one"},
		"an uncertain rename": {"place web\n", "place one of web\nplace two of web\n", "crp/web: web web/one"},
		"objects of a placement that is gone and keeps them": {"place web\nplace zoo of web,shop\n", "place one of web\nplace two of web\nplace zoo of web,shop\n", "crp/web: web web/one, crp/zoo: shop"},
		"a deleted placement":                                {"place web\nplace shop\n", "place shop\n", "crp/shop: shop"},
	} {
		t.Run(name, func(t *testing.T) {
			d := describedAs(t, objects+test.before, objects+test.after)
			of := map[string][]string{}
			var keys []string
			for _, o := range d.Clusters[0].Objects {
				if of[o.Placement] == nil {
					keys = append(keys, o.Placement)
				}
				of[o.Placement] = append(of[o.Placement], strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"))
			}
			slices.Sort(keys)
			var got []string
			for _, key := range keys {
				got = append(got, key+": "+strings.Join(of[key], " "))
			}
			if text := strings.Join(got, ", "); text != test.want {
				t.Errorf("got %s, want %s", text, test.want)
			}
		})
	}
}

// A placement that is gone and may have been renamed keeps its earlier description, without
// conditions and problems.
func TestDescriptionOfAnUncertainRename(t *testing.T) {
	const objects = "clusters a\nnamespace web\n"
	d := describedAs(t, objects+"place web abandon\n", objects+"place one of web\nplace two of web\n")
	i := slices.IndexFunc(d.Placements, func(p Placement) bool { return p.Key() == "crp/web" })
	p := d.Placements[i]
	if !strings.HasPrefix(p.Unclear, "crp/web is gone from Git") || p.PolicyHash == "" || !p.Abandons || len(p.SelectedResources) != 1 || len(p.Conditions)+len(p.Problems) > 0 {
		t.Errorf("%+v", p)
	}
	// A later commit that makes it certain is compared with that.
	o, err := Of(Input{Snapshot: snapshot(t, "v3", objects+"place two of web\n"), Before: &d, Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	_, c := o.Compared(limit(9))
	if len(o.Renames) != 1 || len(c.Clusters) > 0 {
		t.Errorf("renames %v, changes %+v", o.Renames, c)
	}
}

// The faults of a placement are its invalid selectors, the clusters without content, each message
// once, and the objects that no cluster can apply.
func TestFaults(t *testing.T) {
	origin := api.Origin{Path: "placement-web.yaml", Line: 1}
	spec := &hub.Placement{Origin: origin, Lines: hub.Lines{"spec.resourceSelectors[0]": 7}}
	failing := &hub.Override{ResourceOverride: &api.ResourceOverride{}, Origin: api.Origin{Path: "override.yaml", Line: 2}, Lines: hub.Lines{"spec.policy.overrideRules[1].jsonPatchOverrides": 14}}
	failing.Namespace, failing.Name = "web", "image"
	snapshot := &hub.Snapshot{Overrides: []*hub.Override{failing}}
	override := &work.OverrideError{Override: api.NamespacedName{Namespace: "web", Name: "image"}, Rule: 1, Object: api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}, Err: errors.New("no such path")}
	cluster := func(name string, err error, refused ...work.Refused) *plan.OnCluster {
		return &plan.OnCluster{Binding: &placement.Binding{Cluster: name}, Err: err, Content: &work.Rendered{Refused: refused}}
	}
	refused := work.Refused{Manifest: content("x").Manifests[0], Cause: "generateName is not supported"}
	for name, test := range map[string]struct {
		p    plan.Placement
		want []string
	}{
		"none":              {plan.Placement{Spec: spec, Clusters: []*plan.OnCluster{cluster("a", nil)}}, nil},
		"invalid selectors": {plan.Placement{Spec: spec, Selection: placement.Selection{Invalid: "no such kind", InvalidField: "spec.resourceSelectors[0]"}}, []string{"placement-web.yaml:7: spec.resourceSelectors[0]: no such kind"}},
		"one message on several clusters": {
			plan.Placement{Spec: spec, Clusters: []*plan.OnCluster{cluster("a", errors.New("bad patch")), cluster("b", errors.New("other")), cluster("c", errors.New("bad patch"))}},
			[]string{"placement-web.yaml:1: bad patch (on a, c)", "placement-web.yaml:1: other (on b)"},
		},
		"an override that fails": {
			plan.Placement{Spec: spec, Clusters: []*plan.OnCluster{cluster("a", override), cluster("b", override)}},
			[]string{`override.yaml:14: spec.policy.overrideRules[1].jsonPatchOverrides: ResourceOverrideSnapshot "image" failed to apply on ConfigMap "one" in namespace "web": no such path (on a, b)`},
		},
		"an object that no cluster can apply": {
			plan.Placement{Spec: spec, Clusters: []*plan.OnCluster{cluster("a", nil, refused), cluster("b", nil, refused)}}, []string{"ConfigMap/web/0: Failed to apply the manifest (error: generateName is not supported)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range Faults(snapshot, &test.p) {
				if p.Severity != problem.Error {
					t.Errorf("%v has the severity %s", p, p.Severity)
				}
				got = append(got, strings.TrimPrefix(p.Error(), ": "))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Of many names the first five are listed, and the others counted.
func TestFewOf(t *testing.T) {
	names := strings.Fields("a b c d e f g")
	for n, want := range map[int]string{0: "", 1: "a", 5: "a, b, c, d, e", 6: "a, b, c, d, e and 1 more", 7: "a, b, c, d, e and 2 more"} {
		if got := FewOf(names[:n]); got != want {
			t.Errorf("of %d: %q, want %q", n, got, want)
		}
	}
}

// The summary of a placement that is new or gone says what happens to its objects. A renamed one
// has none.
func TestPlacementSummary(t *testing.T) {
	for want, c := range map[string]PlacementChange{
		"": {RenamedFrom: "crp/old", New: true},
		"is new, and may be a renamed placement: nothing of it is placed": {New: true, Unclear: true},
		"is gone, and may have been renamed: it keeps what it holds":      {Unclear: true},
		"is gone": {Gone: true},
		"is new":  {New: true},
	} {
		if got := c.Summary(); got != want {
			t.Errorf("%+v %q, want %q", c, got, want)
		}
	}
	if got := (&PlacementChange{Gained: []string{"a"}}).Summary(); got != "" {
		t.Errorf("a placement that stays %q", got)
	}
	for want, r := range map[string]diff.Recreation{"": diff.NotRecreated, ", may be recreated": diff.MayBeRecreated, ", recreated": diff.Recreated} {
		if got := (ContentChange{Recreation: r}).Note(); got != want {
			t.Errorf("the note is %q, want %q", got, want)
		}
	}
}

// The works of a cluster are those after all rollouts, without placements that leave it or have no
// content for it. A cluster of another fleet has none.
func TestWorksAfterTheRollouts(t *testing.T) {
	on := func(name string, change func(*plan.Placement, *plan.OnCluster)) *plan.Placement {
		c := &plan.OnCluster{Binding: &placement.Binding{Cluster: "a"}, Content: content("x")}
		c.SetLatest(placement.Revision{Commit: "v2", Hash: "2"})
		p := &plan.Placement{Key: api.PlacementKey{Name: name}, Spec: &hub.Placement{}, Clusters: []*plan.OnCluster{c}}
		if change != nil {
			change(p, c)
		}
		return p
	}
	foreign := func(_ *plan.Placement, c *plan.OnCluster) {
		c.Circumstances = &plan.Circumstances{Refusal: "another fleet holds it"}
	}
	o := &Forecast{Plan: &plan.Plan{Placements: sharedlist.Of(
		on("api", nil),
		on("deleted", func(p *plan.Placement, _ *plan.OnCluster) { p.Spec = nil }),
		on("failed", func(_ *plan.Placement, c *plan.OnCluster) { c.Err = errors.New("bad patch") }),
		on("leaving", func(_ *plan.Placement, c *plan.OnCluster) { c.Binding.Unscheduled = true }),
		on("removed", func(_ *plan.Placement, c *plan.OnCluster) { c.Binding.Removing = true }),
		on("web", nil),
	)}}
	var names []string
	for _, w := range o.Works("a") {
		names = append(names, w.Placement.Name)
		if len(w.Manifests) != 1 || w.Revision.Commit != "v2" {
			t.Errorf("%s has the work %+v", w.Placement, w)
		}
	}
	if !slices.Equal(names, []string{"api", "web"}) {
		t.Errorf("works of %v", names)
	}
	if w := o.Works("b"); w != nil {
		t.Errorf("a cluster without placements has %v", w)
	}
	placements := o.Plan.Placements.Edit(o.Plan.Placements.Len())
	placements.Set(5, on("web", foreign))
	o.Plan.Placements = placements.List()
	if w := o.Works("a"); w != nil {
		t.Errorf("a cluster of another fleet has %v", w)
	}
}

// Objects are compared on the clusters that the placement had before and after, with content that
// could be rendered.
func TestContentChangesAreOnTheSameClusters(t *testing.T) {
	for name, test := range map[string]struct {
		change func(old, now *plan.Placement)
		want   string
	}{
		"a changed object":    {func(_, now *plan.Placement) { now.Clusters[0].Content = content("x", "z") }, "1 on member-0000"},
		"two changed objects": {func(_, now *plan.Placement) { now.Clusters[1].Content = content("z", "z") }, "0 on member-0001, 1 on member-0001"},
		"other values on each": {func(_, now *plan.Placement) {
			now.Clusters[0].Content, now.Clusters[1].Content = content("x", "z"), content("x", "q")
		}, "1 on member-0000, 1 on member-0001"},
		"a new object":     {func(_, now *plan.Placement) { now.Clusters[0].Content = content("x", "y", "z") }, ""},
		"a deleted object": {func(_, now *plan.Placement) { now.Clusters[0].Content = content("x") }, ""},
		"a new cluster": {func(old, _ *plan.Placement) {
			old.Clusters = old.Clusters[:1]
			old.Clusters[0].Content = content("x", "z")
		}, "1 on member-0000"},
		"a cluster that is left": {func(old, now *plan.Placement) {
			old.Clusters[1].Content, now.Clusters = content("x", "z"), now.Clusters[:1]
		}, ""},
		"content with an error": {func(_, now *plan.Placement) {
			now.Clusters[0].Content, now.Clusters[0].Err = content("x", "z"), errors.New("bad patch")
		}, ""},
		"nothing": {func(_, _ *plan.Placement) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			old, now := placed(2, func(int) *work.Rendered { return content("x", "y") }), placed(2, func(int) *work.Rendered { return content("x", "y") })
			test.change(old, now)
			var got []string
			for _, c := range contentChanges(old, now) {
				got = append(got, c.After.ID.Name+" on "+strings.Join(c.Clusters, "+"))
			}
			if text := strings.Join(got, ", "); text != test.want {
				t.Errorf("got %s, want %s", text, test.want)
			}
		})
	}
}

// Lists in the JSON of a plan are never null, also for a commit that does not load. The position of
// a problem begins its line.
func TestDocumentJSON(t *testing.T) {
	first, err := Of(Input{Snapshot: snapshot(t, "v1", "clusters a\nnamespace web\nplace web\n"), Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]Document{
		"a plan":        first.Describe(),
		"does not load": NotLoaded(problem.List{{Origin: api.Origin{Path: "web.yaml", Line: 3}, Field: "spec", Severity: problem.Error, Message: "missing"}}),
		"empty":         NotLoaded(nil),
	} {
		data, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"placements", "clusters", "problems", "objects", "decisions", "conditions", "selectedResources"} {
			if strings.Contains(string(data), `"`+field+`":null`) {
				t.Errorf("%s: %s is null in %s", name, field, data)
			}
		}
		for _, field := range []string{"deletions", "recreations"} {
			if strings.Contains(string(data), `"`+field+`"`) {
				t.Errorf("%s: %s without an earlier plan: %s", name, field, data)
			}
		}
		for _, p := range d.Problems {
			if p.Error() != "web.yaml:3: spec: missing" {
				t.Errorf("%s: %s", name, p.Error())
			}
		}
	}
}

// A plan with an internal error is an error with the placement.
func TestInternalErrors(t *testing.T) {
	fine, failed := &plan.Placement{Key: api.PlacementKey{Name: "api"}}, &plan.Placement{Key: api.PlacementKey{Name: "web"}, InternalError: "internal error: index out of range"}
	p := &plan.Plan{Placements: sharedlist.Of(fine, failed)}
	if err := internal(p); err == nil || err.Error() != "crp/web: internal error: index out of range" {
		t.Errorf("error: %v", err)
	}
	if err := internal(&plan.Plan{Placements: sharedlist.Of(fine)}); err != nil {
		t.Errorf("error: %v", err)
	}
}

// A commit that leaves no placement or no cluster is refused, unless there was none before.
func TestRefusal(t *testing.T) {
	full := &Document{Placements: []Placement{on("crp/web", "a")}, Clusters: []Cluster{{Name: "a"}}}
	for name, test := range map[string]struct {
		before       *Document
		commit, text string
		want         string
	}{
		"no earlier plan": {nil, "v2", "namespace web\n", ""},
		"all is left":     {full, "v2", "clusters a\nnamespace web\nplace web\n", ""},
		"no cluster":      {full, "v2", "namespace web\nplace web\n", "the commit has no MemberCluster left"},
		"no placement":    {full, "v2", "clusters a\nnamespace web\n", "the commit has no placement left"},
		"allowed":         {full, "v2 Gitfleet-Allow-Delete: *", "namespace web\n", ""},
		"none before":     {&Document{}, "v2", "namespace web\n", ""},
	} {
		o := &Forecast{Snapshot: snapshot(t, test.commit, test.text), before: test.before}
		if got := o.Refusal(); (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// The work whose blocks decide about a lost object is the planned one, that of the earlier key for a
// renamed placement, and otherwise a removal.
func TestWorkThatLosesObjects(t *testing.T) {
	web, shop := api.PlacementKey{Name: "web"}, api.PlacementKey{Name: "shop"}
	planned := &work.Work{Placement: web, Cause: work.Cause{Why: "planned"}}
	selected := &plan.OnCluster{Binding: &placement.Binding{Cluster: "a"}}
	left := &plan.OnCluster{Binding: &placement.Binding{Cluster: "a", Unscheduled: true}}
	of := func(c *plan.OnCluster) *plan.Placement {
		return &plan.Placement{Key: web, Spec: &hub.Placement{}, Clusters: []*plan.OnCluster{c}}
	}
	for name, test := range map[string]struct {
		message string
		plan    plan.Plan
		renames []ledger.Rename
		name    string
		want    string
	}{
		"planned":            {"", plan.Plan{Placements: sharedlist.Of(of(selected)), Works: map[string][]*work.Work{"a": {planned}}}, nil, "crp/web", "planned"},
		"renamed":            {"", plan.Plan{Works: map[string][]*work.Work{"a": {planned}}}, []ledger.Rename{{From: web, To: shop}}, "crp/shop", "planned"},
		"leaves its cluster": {"", plan.Plan{Placements: sharedlist.Of(of(left)), Works: map[string][]*work.Work{"a": {planned}}}, nil, "crp/web", "removed, blocked: the placement has no cluster left"},
		"leaves it, allowed": {"Gitfleet-Allow-Delete: web", plan.Plan{Placements: sharedlist.Of(of(left))}, nil, "crp/web", "removed, allowed"},
		"no work yet":        {"", plan.Plan{Placements: sharedlist.Of(of(selected))}, nil, "crp/web", "removed"},
		"deleted":            {"", plan.Plan{}, nil, "crp/web", "removed"},
		"deleted, allowed":   {"Gitfleet-Allow-Delete: web", plan.Plan{}, nil, "crp/web", "removed, allowed"},
		"not a placement":    {"Gitfleet-Allow-Delete: *", plan.Plan{}, nil, "somebody", "removed"},
	} {
		o := &Forecast{Snapshot: &hub.Snapshot{Commit: hub.Commit{Message: "a change\n\n" + test.message}}, Plan: &test.plan, Renames: test.renames}
		w := o.losing(test.name, "a")
		got := w.Cause.Why
		if w.Remove {
			got = "removed"
		}
		for _, h := range w.DeletionBlocks {
			got += ", blocked: " + h.Why
		}
		if w.AllowDelete {
			got += ", allowed"
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// Without observed clusters, a ResourcePlacement gets only the clusters on which the plan creates
// its namespace, and all of them if it is created nowhere.
func TestAssumedNamespaces(t *testing.T) {
	const rp = `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourcePlacement, metadata: {name: settings, namespace: web}, spec: {resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: one}], policy: {placementType: PickAll}}}` + "\n"
	for name, test := range map[string]struct {
		text         string
		anyNamespace bool
		want         string
	}{
		"the namespace is on one cluster":  {"clusters a b\nnamespace web\nconfigmap web/one\nplace web on a\n" + rp, false, "a"},
		"the namespace is on all clusters": {"clusters a b\nnamespace web\nconfigmap web/one\nplace web\n" + rp, false, "a b"},
		"the namespace is on no cluster":   {"clusters a b\nnamespace web\nnamespace shop\nconfigmap web/one\nplace shop\n" + rp, false, "a b"},
		"any namespace":                    {"clusters a b\nnamespace web\nconfigmap web/one\nplace web on a\n" + rp, true, "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := Of(Input{Snapshot: snapshot(t, "v1", test.text), AnyNamespace: test.anyNamespace, Now: noon})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range o.Describe().Placements {
				if p.Key() == "rp/web/settings" {
					if got := strings.Join(p.Selected(), " "); got != test.want {
						t.Errorf("selected %s, want %s", got, test.want)
					}
					if len(p.Conditions) != 1 || !p.Conditions[0].LastTransitionTime.IsZero() {
						t.Errorf("conditions %+v", p.Conditions)
					}
				}
			}
		})
	}
}

// The plan names the windows of each placement with the clusters that they are for, whatever the time is.
func TestWindowsOfAPlan(t *testing.T) {
	s := snapshot(t, "v1", "clusters a/region=eu b c/region=eu\nnamespace web\nplace web\nwindow fridays \"0 22 * * 5\" 2h on eu\n")
	o, err := Of(Input{Snapshot: s, Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"window fridays: a, c may get new content from 0 22 * * 5 (UTC) for 2h"}
	if got := o.Describe().Placements[0].Calendar; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
