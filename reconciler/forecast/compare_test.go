package forecast

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// object is a ConfigMap of a placement; one whose name ends with ! is kept by it.
func object(name, of string) Object {
	kept := strings.HasSuffix(name, "!")
	return Object{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: strings.TrimSuffix(name, "!"), Placement: of, Kept: kept}
}

// on is a placement with the clusters that it selects; it does not select those that begin with !.
func on(key string, clusters ...string) Placement {
	parsed, err := api.ParsePlacement(key)
	if err != nil {
		panic(err)
	}
	p := Placement{Namespace: parsed.Namespace, Name: parsed.Name}
	for _, c := range clusters {
		p.Decisions = append(p.Decisions, Decision{Cluster: strings.TrimPrefix(c, "!"), Selected: !strings.HasPrefix(c, "!")})
	}
	return p
}

func with(p Placement, change func(*Placement)) Placement {
	change(&p)
	return p
}

// Placements differ if they or their clusters do.
func TestComparePlacements(t *testing.T) {
	for name, test := range map[string]struct {
		before, after []Placement
		want          []PlacementChange
	}{
		"the same, in another order": {[]Placement{on("crp/web", "a", "b"), on("crp/api", "a")}, []Placement{on("crp/api", "a"), on("crp/web", "b", "a", "!c")}, nil},
		"it is new":                  {nil, []Placement{on("crp/web", "a", "!b")}, []PlacementChange{{Placement: "crp/web", New: true, Gained: []string{"a"}}}},
		"it is gone":                 {[]Placement{on("crp/web", "a", "!b")}, nil, []PlacementChange{{Placement: "crp/web", Gone: true, Lost: []string{"a"}}}},
		"it moves":                   {[]Placement{on("crp/web", "a", "b")}, []Placement{on("crp/web", "c", "b", "!a")}, []PlacementChange{{Placement: "crp/web", Gained: []string{"c"}, Lost: []string{"a"}}}},
		"of equal name in a namespace": {
			[]Placement{on("crp/web", "a")}, []Placement{on("rp/shop/web", "a")},
			[]PlacementChange{{Placement: "rp/shop/web", New: true, Gained: []string{"a"}}, {Placement: "crp/web", Gone: true, Lost: []string{"a"}}},
		},
		"it is renamed": {
			[]Placement{on("crp/new", "a")}, []Placement{with(on("crp/new", "a"), func(p *Placement) { p.RenamedFrom = "crp/old" })},
			[]PlacementChange{{Placement: "crp/new", RenamedFrom: "crp/old"}},
		},
		"it may be renamed": {
			nil, []Placement{with(on("crp/new"), func(p *Placement) { p.Unclear = "why" })}, []PlacementChange{{Placement: "crp/new", New: true, Unclear: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := comparePlacements(test.before, test.after); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%+v\nwant %+v", got, test.want)
			}
		})
	}
}

// An object that a cluster no longer holds is deleted, unless another placement has it, or it was
// to stay.
func TestCompareClusters(t *testing.T) {
	cluster := func(name string, objects ...Object) Cluster { return Cluster{Name: name, Objects: objects} }
	document := func(placements []Placement, clusters ...Cluster) Document {
		return Document{Placements: placements, Clusters: clusters}
	}
	for name, test := range map[string]struct {
		before, after Document
		want          string
	}{
		"the same":                {document(nil, cluster("a", object("one", "crp/web"))), document(nil, cluster("a", object("one", "crp/web"))), ""},
		"in another order":        {document(nil, cluster("a", object("one", "crp/web"), object("two", "crp/web"))), document(nil, cluster("a", object("two", "crp/web"), object("one", "crp/web"))), ""},
		"only whether it is kept": {document(nil, cluster("a", object("one", "crp/web"))), document(nil, cluster("a", object("one!", "crp/web"))), ""},
		"more and less":           {document(nil, cluster("a", object("one", "crp/web"))), document(nil, cluster("a", object("two", "crp/web"))), "a +two -one"},
		"to another placement":    {document(nil, cluster("a", object("one", "crp/old"))), document(nil, cluster("a", object("one", "crp/new"))), "a =one crp/old>crp/new"},
		"to another that keeps":   {document(nil, cluster("a", object("one", "crp/old"))), document(nil, cluster("a", object("one!", "crp/new"))), "a =one crp/old>crp/new"},
		"kept by its placement":   {document(nil, cluster("a", object("one!", "crp/web"))), document(nil, cluster("a")), "a o one"},
		"its placement is gone, and abandons": {
			document([]Placement{with(on("crp/web", "a"), func(p *Placement) { p.Abandons = true })}, cluster("a", object("one", "crp/web"))), document(nil, cluster("a")), "a o one",
		},
		"its placement abandons, and is there": {
			document([]Placement{with(on("crp/web", "a"), func(p *Placement) { p.Abandons = true })}, cluster("a", object("one", "crp/web"))),
			document([]Placement{on("crp/web")}, cluster("a")), "a -one",
		},
		"a new cluster":             {document(nil), document(nil, cluster("a")), "a new"},
		"a cluster leaves":          {document(nil, cluster("a", object("one", "crp/web"))), document(nil), "a gone -one"},
		"of a namespaced placement": {document(nil, cluster("a", object("one", "rp/web/one"))), document(nil, cluster("a", object("one", "crp/one"))), "a =one rp/web/one>crp/one"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for _, c := range compareClusters(&test.before, test.after) {
				fmt.Fprintf(&b, "%s", c.Cluster)
				for word, is := range map[string]bool{" new": c.New, " gone": c.Gone} {
					if is {
						b.WriteString(word)
					}
				}
				for _, o := range c.Gained {
					b.WriteString(" +" + o.Name)
				}
				for _, o := range c.Lost {
					b.WriteString(" -" + o.Name)
				}
				for _, o := range c.Released {
					b.WriteString(" o " + o.Name)
				}
				for _, o := range c.Passed {
					b.WriteString(" =" + o.Name + " " + o.From + ">" + o.Placement)
				}
			}
			if b.String() != test.want {
				t.Errorf("%q, want %q", b.String(), test.want)
			}
		})
	}
	if c := compare(nil, document(nil, cluster("a"))); c.Compared || !c.None() {
		t.Errorf("without an earlier plan: %+v", c)
	}
}

// Fields of a spec that change are listed by their paths, but for the selectors and what the plan
// says of the policy.
func TestSettingChanges(t *testing.T) {
	spec := func(change func(*api.PlacementSpec)) *api.PlacementSpec {
		s := &api.PlacementSpec{Policy: &api.PlacementPolicy{PlacementType: api.PickN, NumberOfClusters: new(int32(2))}}
		if change != nil {
			change(s)
		}
		return s
	}
	for name, test := range map[string]struct {
		before, after *api.PlacementSpec
		want          []SettingChange
	}{
		"none":          {spec(nil), spec(nil), nil},
		"the selectors": {spec(nil), spec(func(s *api.PlacementSpec) { s.ResourceSelectors = []api.ResourceSelectorTerm{{Kind: "Namespace"}} }), nil},
		"the number":    {spec(nil), spec(func(s *api.PlacementSpec) { s.Policy.NumberOfClusters = new(int32(3)) }), nil},
		"a field is set": {spec(nil), spec(func(s *api.PlacementSpec) {
			s.Strategy.ApplyStrategy = &api.ApplyStrategy{WhenToTakeOver: api.TakeOverNever}
		}), []SettingChange{{"strategy.applyStrategy.whenToTakeOver", "", `"Never"`}}},
		"a field is changed and one removed": {
			spec(func(s *api.PlacementSpec) {
				s.Strategy.ApplyStrategy = &api.ApplyStrategy{WhenToTakeOver: api.TakeOverNever, WhenToApply: api.ApplyAlways}
			}),
			spec(func(s *api.PlacementSpec) {
				s.Strategy.ApplyStrategy = &api.ApplyStrategy{WhenToTakeOver: api.TakeOverAlways}
			}),
			[]SettingChange{{"strategy.applyStrategy.whenToApply", `"Always"`, ""}, {"strategy.applyStrategy.whenToTakeOver", `"Never"`, `"Always"`}},
		},
		"a list is one value": {
			spec(nil), spec(func(s *api.PlacementSpec) { s.Policy.Tolerations = []api.Toleration{{Key: "gpu"}} }), []SettingChange{{"policy.tolerations", "", `[{"key":"gpu"}]`}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := settingChanges(test.before, test.after); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%+v\nwant %+v", got, test.want)
			}
		})
	}
}

// A document that users gave is refused if it is of another version, or does not say of what it is.
func TestValidateDocument(t *testing.T) {
	for name, test := range map[string]struct {
		of   Document
		want string
	}{
		"valid":              {Document{APIVersion: Version, Placements: []Placement{on("crp/web", "a", "!b"), on("rp/shop/web", "a")}}, ""},
		"another version":    {Document{APIVersion: "gitfleet.dev/plan/v9"}, `apiVersion: "gitfleet.dev/plan/v9" is not gitfleet.dev/plan/v1`},
		"no version":         {Document{}, `apiVersion: "" is not gitfleet.dev/plan/v1`},
		"no name":            {Document{APIVersion: Version, Placements: []Placement{on("crp/web"), {}}}, "placements[1].name: missing"},
		"twice":              {Document{APIVersion: Version, Placements: []Placement{on("crp/web"), on("crp/web")}}, "placements[1].name: crp/web occurs twice"},
		"a cluster twice":    {Document{APIVersion: Version, Placements: []Placement{on("crp/web", "a", "!a")}}, "placements[0].decisions[1].cluster: a occurs twice"},
		"a cluster, unnamed": {Document{APIVersion: Version, Placements: []Placement{on("crp/web", "")}}, "placements[0].decisions[0].cluster: missing"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := test.of.Validate(); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// An earlier plan is compared under the new names of placements, without those that were only
// thought to be new, and is not changed.
func TestRenamedDocument(t *testing.T) {
	old, other := api.PlacementKey{Name: "old"}, api.PlacementKey{Namespace: "shop", Name: "new"}
	d := &Document{
		Placements: []Placement{on("crp/old", "a"), on("rp/shop/new"), on("crp/web", "a")},
		Clusters:   []Cluster{{Name: "a", Objects: []Object{object("one", "crp/old"), object("two", "crp/web")}}},
	}
	got := d.renamed([]ledger.Rename{{From: old, To: other}})
	want := &Document{
		Placements: []Placement{on("rp/shop/new", "a"), on("crp/web", "a")},
		Clusters:   []Cluster{{Name: "a", Objects: []Object{object("one", "rp/shop/new"), object("two", "crp/web")}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if d.Placements[0].Name != "old" || d.Clusters[0].Objects[0].Placement != "crp/old" {
		t.Error("the earlier plan is changed")
	}
	if d.renamed(nil) != d {
		t.Error("without renames it is another document")
	}
}

// A binding of an earlier plan has the score and the reason of the scheduler, and not one that
// holds only at a time.
func TestBindingOfAnEarlierPlan(t *testing.T) {
	const picked = `Successfully scheduled resources for placement in "a": picked by scheduling policy`
	now := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		decision Decision
		reason   string
		scored   bool
	}{
		"picked":               {Decision{Cluster: "a", Reason: picked, AffinityScore: new(int32(20)), TopologySpreadScore: new(int32(1))}, picked, true},
		"kept for another why": {Decision{Cluster: "a", Reason: "kept until the cluster answers"}, "", false},
		"half a score":         {Decision{Cluster: "a", Reason: picked, AffinityScore: new(int32(20))}, picked, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := Placement{PolicyHash: "hash", Decisions: []Decision{{Cluster: "b"}, test.decision}}
			b := p.binding(1, "c1", now)
			if b.Cluster != "a" || b.Order != 2 || b.Policy != "hash" || b.Assigned.Commit != "c1" || !b.AssignedAt.Equal(now) {
				t.Errorf("%+v", b)
			}
			if b.Reason != test.reason || (b.Score != nil) != test.scored || test.scored && (b.Score.Affinity != 20 || b.Score.Spread != 1) {
				t.Errorf("reason %q, score %+v", b.Reason, b.Score)
			}
		})
	}
}
