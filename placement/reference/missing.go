package reference

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Need is a reference of an object to one that the same content does not have.
type Need struct {
	Reference
	From *api.Object
}

// Content is what objects that are placed together refer to, and what they are.
type Content struct {
	needs []Need
	made  []api.ID
}

// A Placed is an object of a placement.
type Placed struct {
	*api.Object
	// Ignored says that what it refers to is not looked for.
	Ignored bool
}

// ContentOf looks at objects that are placed together.
func ContentOf(objects []Placed) Content {
	var c Content
	for _, o := range objects {
		c.made = append(c.made, Made(o.Content)...)
	}
	var there map[api.ID]bool // nil until it is needed: most objects refer to nothing
	known := namespacesOf(objects)
	for _, o := range objects {
		if o.Ignored {
			continue
		}
		if name := o.ID.Namespace; name != "" && !known[name] && !api.ReservedNamespace(name) {
			known[name] = true // one object of each Namespace that is missing will do
			c.needs = append(c.needs, Need{Reference{To: api.ID{Kind: namespaces.Kind, Name: name}, Field: "metadata.namespace"}, o.Object})
		}
		for _, r := range Of(o.Content) {
			if there == nil {
				there = map[api.ID]bool{}
				for _, id := range c.made {
					there[id] = true
				}
			}
			if !there[r.To] && !there[anywhere(r.To)] && !everywhere[anywhere(r.To)] {
				c.needs = append(c.needs, Need{r, o.Object})
			}
		}
	}
	return c
}

// namespacesOf returns the names of the Namespaces among some objects.
func namespacesOf(objects []Placed) map[string]bool {
	names := map[string]bool{}
	for _, o := range objects {
		if o.ID.GroupKind() == namespaces {
			names[o.ID.Name] = true
		}
	}
	return names
}

// Equal reports whether two contents need the same for the same objects, and have the same.
func (c Content) Equal(o Content) bool {
	return slices.Equal(c.made, o.made) && slices.EqualFunc(c.needs, o.needs, func(x, y Need) bool { return x.Reference == y.Reference && x.From.ID == y.From.ID })
}

// anywhere identifies an object that is in every namespace.
func anywhere(id api.ID) api.ID {
	id.Namespace = Anywhere
	return id
}

// OnClusters is the content that a placement has on some clusters.
type OnClusters struct {
	Content
	Placement api.PlacementKey
	Clusters  iter.Seq[string]
}

// A Finding is a reference to an object that some clusters lack, with the placement of the object that has it.
type Finding struct {
	Need
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

type findingKey struct {
	from, to  api.ID
	placement api.PlacementKey
}

// Missing returns what the contents of clusters refer to and other contents on the same clusters lack, by position. hub are all
// objects of the repository, whether they are placed or not.
func Missing(hub []*api.Object, all []OnClusters) []*Finding {
	needed := map[api.ID]bool{}
	for _, c := range all {
		for _, n := range c.needs {
			needed[n.To], needed[anywhere(n.To)] = true, true
		}
	}
	if len(needed) == 0 {
		return nil
	}
	origins, on := originsOf(hub, needed), clustersWith(all, needed)
	found := map[findingKey]*Finding{}
	var out []*Finding
	for _, c := range all {
		for _, n := range c.needs {
			by, inHub := origins[n.To]
			switch {
			case n.IsNamespace():
				if c.Placement.Namespace != "" { // it selects no cluster that lacks its Namespace
					continue
				}
			case !inHub && (n.To.Namespace == "" || n.IsDefinition()):
				continue // what clusters usually have by themselves is missing only if the repository has it
			}
			has, hasAnywhere := on[n.To], on[anywhere(n.To)]
			key := findingKey{n.From.ID, n.To, c.Placement}
			if n.IsNamespace() {
				key.from = api.ID{} // one warning, whichever of its objects the clusters get
			}
			for cluster := range c.Clusters {
				if has[cluster] || hasAnywhere[cluster] {
					continue
				}
				if found[key] == nil {
					found[key] = &Finding{Need: n, Placement: c.Placement, InHub: inHub, by: by}
					out = append(out, found[key])
				}
				found[key].Clusters = append(found[key].Clusters, cluster)
			}
		}
	}
	for _, f := range out {
		slices.Sort(f.Clusters)
	}
	slices.SortStableFunc(out, func(x, y *Finding) int {
		return cmp.Or(strings.Compare(x.From.Origin.Path, y.From.Origin.Path), x.From.Origin.Line-y.From.Origin.Line, x.From.ID.Compare(y.From.ID), x.To.Compare(y.To))
	})
	return out
}

// clustersWith returns the clusters that get each of some objects.
func clustersWith(all []OnClusters, needed map[api.ID]bool) map[api.ID]map[string]bool {
	on := map[api.ID]map[string]bool{}
	for _, c := range all {
		for _, id := range c.made {
			if !needed[id] {
				continue
			}
			if on[id] == nil {
				on[id] = map[string]bool{}
			}
			for cluster := range c.Clusters {
				on[id][cluster] = true
			}
		}
	}
	return on
}

// originsOf returns what the repository has some objects from: an overlay or a chart that has it for any cluster, and above all
// another object.
func originsOf(hub []*api.Object, needed map[api.ID]bool) map[api.ID]origin {
	origins := map[api.ID]origin{}
	add := func(o *api.Object, within string) {
		for _, id := range Made(o.Content) {
			if needed[id] {
				origins[id] = origin{o.ID.Name, within}
			}
		}
	}
	for _, o := range hub {
		if o.Overlay == nil {
			continue
		}
		for _, dir := range slices.Sorted(maps.Keys(o.Overlay.Builds)) {
			for _, built := range o.Overlay.Builds[dir].Objects {
				add(built, o.ID.String())
			}
		}
	}
	for _, o := range hub {
		add(o, "")
	}
	return origins
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
	if f.IsNamespace() {
		return f.namespaceFix()
	}
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

// namespaceFix says what adds a Namespace to the clusters.
func (f *Finding) namespaceFix() string {
	switch {
	case !f.InHub:
		return "the commit has no such object; add it, or write " + api.MissingReferencesAnnotation + ": " + api.MissingReferencesIgnore + " on " + f.Placement.String() + " if these clusters have it"
	case f.by.within != "":
		return f.by.within + " has it; place that on these clusters as well"
	}
	return "select it in " + f.Placement.String() + `: {group: "", version: v1, kind: Namespace, name: ` + f.To.Name + ", selectionScope: NamespaceOnly}"
}
