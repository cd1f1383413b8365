package reference

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Placed is an object on a cluster, and its placement.
type Placed struct {
	*api.Object
	Placement api.PlacementKey
	// Ignored says that what it refers to is not looked for.
	Ignored bool
}

// A Finding is a reference to an object that some clusters lack.
type Finding struct {
	Reference
	// From is the object that has the reference, and Placement its placement.
	From      *api.Object
	Placement api.PlacementKey
	// Clusters are those that get From and lack the other, sorted.
	Clusters []string
	// InHub says that the repository has the object, and places it elsewhere or nowhere.
	InHub bool

	// by is what makes the object.
	by origin
}

// An origin is an object of the repository that makes another one, or the object itself.
type origin struct {
	name string
	// within is the overlay or the chart that has it; empty if none has.
	within string
}

// A Search looks for missing objects, cluster by cluster. It looks at each object once.
type Search struct {
	// hub has what the repository has and makes.
	hub   map[api.ID]origin
	known map[*unstructured.Unstructured]*known
	found map[findingKey]*Finding
	order []*Finding
}

type known struct {
	references []Reference
	made       []api.ID
}

type findingKey struct {
	from, to  api.ID
	placement api.PlacementKey
}

// NewSearch returns a Search. hub are all objects of the repository, whether they are placed or not.
func NewSearch(hub []*api.Object) *Search {
	s := &Search{hub: map[api.ID]origin{}, known: map[*unstructured.Unstructured]*known{}, found: map[findingKey]*Finding{}}
	for _, o := range hub {
		s.addBuilt(o)
	}
	for _, o := range hub {
		for _, id := range Made(o.Content) {
			s.hub[id] = origin{name: o.ID.Name}
		}
	}
	return s
}

// addBuilt adds what an overlay or a chart has for any cluster.
func (s *Search) addBuilt(o *api.Object) {
	if o.Overlay == nil {
		return
	}
	for _, dir := range slices.Sorted(maps.Keys(o.Overlay.Builds)) {
		for _, built := range o.Overlay.Builds[dir].Objects {
			for _, id := range Made(built.Content) {
				s.hub[id] = origin{built.ID.Name, o.ID.String()}
			}
		}
	}
}

func (s *Search) look(o *api.Object) *known {
	k := s.known[o.Content]
	if k == nil {
		k = &known{Of(o.Content), Made(o.Content)}
		s.known[o.Content] = k
	}
	return k
}

// Cluster looks at all objects that each of some clusters gets.
func (s *Search) Cluster(names []string, objects []Placed) {
	there := map[api.ID]bool{}
	for _, o := range objects {
		for _, id := range s.look(o.Object).made {
			there[id] = true
		}
	}
	for _, o := range objects {
		if o.Ignored {
			continue
		}
		for _, r := range s.look(o.Object).references {
			anywhere := r.To
			anywhere.Namespace = Anywhere
			if there[r.To] || there[anywhere] || everywhere[anywhere] {
				continue
			}
			// What clusters usually have by themselves is missing only if the repository has it.
			by, inHub := s.hub[r.To]
			if !inHub && r.To.Namespace == "" || !inHub && r.IsDefinition() {
				continue
			}
			key := findingKey{o.ID, r.To, o.Placement}
			f := s.found[key]
			if f == nil {
				f = &Finding{Reference: r, From: o.Object, Placement: o.Placement, InHub: inHub, by: by}
				s.found[key] = f
				s.order = append(s.order, f)
			}
			f.Clusters = append(f.Clusters, names...)
		}
	}
}

// Findings returns what was found, by position.
func (s *Search) Findings() []*Finding {
	for _, f := range s.order {
		slices.Sort(f.Clusters)
	}
	slices.SortStableFunc(s.order, func(x, y *Finding) int {
		return cmp.Or(strings.Compare(x.From.Origin.Path, y.From.Origin.Path), x.From.Origin.Line-y.From.Origin.Line, x.From.ID.Compare(y.From.ID), x.To.Compare(y.To))
	})
	return s.order
}

// Name names what is missing.
func (f *Finding) Name() string {
	if f.IsDefinition() {
		return "the CustomResourceDefinition of " + f.To.Name + "." + f.To.Namespace
	}
	return f.To.String()
}

// Fix says what adds it to the clusters.
func (f *Finding) Fix() string {
	if !f.InHub {
		fix := "the commit has no such object, and nothing known makes it; add it"
		if f.Optional {
			fix += ", or write optional: true if it may be missing"
		}
		return fix
	}
	kind, name, group := f.To.Kind, f.To.Name, f.To.Group
	switch {
	case f.by.within != "":
		return f.by.within + " has it; place that on these clusters as well, or add the object"
	case f.IsDefinition():
		return "select its CustomResourceDefinition in " + f.Placement.String() + ": {group: apiextensions.k8s.io, version: v1, kind: CustomResourceDefinition, name: " + f.by.name + "}"
	case f.To.Namespace != "" && f.Placement.Namespace == "":
		group, kind, name = "", "Namespace", f.To.Namespace
	}
	if group == "" {
		group = `""`
	}
	return "select it in " + f.Placement.String() + ": {group: " + group + ", version: v1, kind: " + kind + ", name: " + name + "}"
}
