package forecast

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// object returns a ConfigMap of a placement. A name that ends with ! is that of a kept object.
func object(name, of string) Object {
	kept := strings.HasSuffix(name, "!")
	return Object{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: strings.TrimSuffix(name, "!"), Placement: of, Kept: kept}
}

// on returns a placement with decisions on clusters. Those that begin with ! are not selected.
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

// A placement has changed if it is new, gone or renamed, or if it selects other clusters.
func TestComparePlacements(t *testing.T) {
	for name, test := range map[string]struct {
		before, after []Placement
		want          []PlacementChange
	}{
		"the same, in another order": {[]Placement{on("crp/web", "a", "b"), on("crp/api", "a")}, []Placement{on("crp/api", "a"), on("crp/web", "b", "a", "!c")}, nil},
		"new":                        {nil, []Placement{on("crp/web", "a", "!b")}, []PlacementChange{{Placement: "crp/web", New: true, Gained: []string{"a"}}}},
		"gone":                       {[]Placement{on("crp/web", "a", "!b")}, nil, []PlacementChange{{Placement: "crp/web", Gone: true, Lost: []string{"a"}}}},
		"other clusters":             {[]Placement{on("crp/web", "a", "b")}, []Placement{on("crp/web", "c", "b", "!a")}, []PlacementChange{{Placement: "crp/web", Gained: []string{"c"}, Lost: []string{"a"}}}},
		"the same name in a namespace": {
			[]Placement{on("crp/web", "a")}, []Placement{on("rp/shop/web", "a")},
			[]PlacementChange{{Placement: "rp/shop/web", New: true, Gained: []string{"a"}}, {Placement: "crp/web", Gone: true, Lost: []string{"a"}}},
		},
		"renamed": {
			[]Placement{on("crp/new", "a")}, []Placement{with(on("crp/new", "a"), func(p *Placement) { p.RenamedFrom = "crp/old" })},
			[]PlacementChange{{Placement: "crp/new", RenamedFrom: "crp/old"}},
		},
		"an uncertain rename": {
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

// An object that a cluster no longer has is deleted, unless another placement has it, its annotation
// keeps it, or its deleted placement abandons its objects.
func TestCompareClusters(t *testing.T) {
	cluster := func(name string, objects ...Object) Cluster { return Cluster{Name: name, Objects: objects} }
	document := func(placements []Placement, clusters ...Cluster) Document {
		return Document{Placements: placements, Clusters: clusters}
	}
	for name, test := range map[string]struct {
		before, after Document
		want          string
	}{
		"the same":                   {document(nil, cluster("a", object("one", "crp/web"))), document(nil, cluster("a", object("one", "crp/web"))), ""},
		"in another order":           {document(nil, cluster("a", object("one", "crp/web"), object("two", "crp/web"))), document(nil, cluster("a", object("two", "crp/web"), object("one", "crp/web"))), ""},
		"only the annotation":        {document(nil, cluster("a", object("one", "crp/web"))), document(nil, cluster("a", object("one!", "crp/web"))), ""},
		"a new and a deleted object": {document(nil, cluster("a", object("one", "crp/web"))), document(nil, cluster("a", object("two", "crp/web"))), "a +two -one"},
		"to another placement":       {document(nil, cluster("a", object("one", "crp/old"))), document(nil, cluster("a", object("one", "crp/new"))), "a =one crp/old>crp/new"},
		"to another, which keeps it": {document(nil, cluster("a", object("one", "crp/old"))), document(nil, cluster("a", object("one!", "crp/new"))), "a =one crp/old>crp/new"},
		"kept by its annotation":     {document(nil, cluster("a", object("one!", "crp/web"))), document(nil, cluster("a")), "a o one"},
		"its deleted placement abandons": {
			document([]Placement{with(on("crp/web", "a"), func(p *Placement) { p.Abandons = true })}, cluster("a", object("one", "crp/web"))), document(nil, cluster("a")), "a o one",
		},
		"its placement abandons and still exists": {
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

// Changed fields of a spec are listed by their paths, except for the selectors, the placement type
// and the number of clusters.
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
		"no change":     {spec(nil), spec(nil), nil},
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

// A document is invalid if it has another version, or if a name is missing or occurs twice.
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

// An earlier plan has its renamed placements under their new keys, without the candidates of an
// uncertain rename. The document itself does not change.
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
		t.Error("the earlier plan has changed")
	}
	if d.renamed(nil) != d {
		t.Error("without renames it is another document")
	}
}

// A binding of an earlier plan has the score of the decision, if that is complete, and no reason: the scheduler gives the same one
// for the same score, and other reasons are true only at one time.
func TestBindingOfAnEarlierPlan(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		decision Decision
		scored   bool
	}{
		"picked":         {Decision{Cluster: "a", Reason: "picked", AffinityScore: new(int32(20)), TopologySpreadScore: new(int32(1))}, true},
		"another reason": {Decision{Cluster: "a", Reason: "kept until the cluster answers"}, false},
		"half a score":   {Decision{Cluster: "a", Reason: "picked", AffinityScore: new(int32(20))}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := Placement{PolicyHash: "hash", Decisions: []Decision{{Cluster: "b"}, test.decision}}
			b := p.binding(1, "c1", now)
			if b.Cluster != "a" || b.Order != 2 || b.Policy != "hash" || b.Assigned.Commit != "c1" || !b.AssignedAt.Equal(now) || b.Reason != "" {
				t.Errorf("%+v", b)
			}
			if (b.Score != nil) != test.scored || test.scored && (b.Score.Affinity != 20 || b.Score.Spread != 1) {
				t.Errorf("score %+v", b.Score)
			}
		})
	}
}

// The changes of the objects of a cluster lead from the earlier objects to the later ones. In the
// other direction, gained objects are lost and lost ones gained.
func TestChangesLeadToTheNewObjects(t *testing.T) {
	names := func(objects []Object) map[Object]bool {
		out := map[Object]bool{}
		for _, o := range objects {
			out[o.withoutKept()] = true
		}
		return out
	}
	draw := func(t *rapid.T, label string) []Object {
		var out []Object
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.ID).Draw(t, label) {
			of := rapid.SampledFrom([]string{"crp/one", "crp/two", "rp/shop/one"}).Draw(t, "placement")
			if rapid.Bool().Draw(t, "kept") {
				name += "!"
			}
			out = append(out, object(name, of))
		}
		return out
	}
	rapid.Check(t, func(t *rapid.T) {
		before, after := draw(t, "before"), draw(t, "after")
		abandoned := map[string]bool{"crp/two": rapid.Bool().Draw(t, "abandoned")}
		c := compareObjects(before, after, abandoned)
		got := names(before)
		for _, o := range slices.Concat(c.Lost, c.Released) {
			delete(got, o.withoutKept())
		}
		for _, o := range c.Passed {
			earlier := o.Object
			earlier.Placement = o.From
			delete(got, earlier.withoutKept())
			got[o.withoutKept()] = true
		}
		for _, o := range c.Gained {
			got[o.withoutKept()] = true
		}
		if want := names(after); !maps.Equal(got, want) {
			t.Fatalf("%+v lead to %v, want %v", c, got, want)
		}
		for _, o := range c.Lost {
			if o.Kept || abandoned[o.Placement] {
				t.Fatalf("%v is deleted", o)
			}
		}
		back := compareObjects(after, before, nil)
		if !maps.Equal(names(slices.Concat(back.Lost, back.Released)), names(c.Gained)) || len(back.Passed) != len(c.Passed) {
			t.Fatalf("%+v, and back %+v", c, back)
		}
	})
}
