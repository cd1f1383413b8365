package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// A fleet is what scheduling knows of the clusters, kept from turn to turn: one
// probe changes one cluster, and as a rule nothing that a placement looks at.
type fleet struct {
	list    []placement.Cluster // by name, as declared
	sources []source
	at      map[string]int
	// shape counts the changes that concern every placement, values those of
	// properties, which concern the placements that look at some.
	shape, values uint64
	// flipped are the clusters that began or ceased to answer this turn, do not for
	// another reason, or began or ceased to be held by another fleet.
	flipped []string
}

// A source is what a cluster of the fleet was made of.
type source struct {
	declared *hub.Cluster
	seen     uint64 // the version of what was seen
	stale    bool
	healthy  bool
	trouble  string
	refusal  string
}

// update brings the fleet up to date, and says when it could change by itself.
func (f *fleet) update(in Input) time.Time {
	before, list := f.at, f.list
	if !slices.EqualFunc(in.Head.Clusters, f.sources, func(c *hub.Cluster, s source) bool { return c.Name == s.declared.Name }) {
		f.shape++
		list = nil
		f.at = make(map[string]int, len(in.Head.Clusters))
		for i, c := range in.Head.Clusters {
			f.at[c.Name] = i
		}
	}
	sources, next := f.sources, list // both as they are, until something is not
	if list == nil {
		sources, next = make([]source, len(in.Head.Clusters)), make([]placement.Cluster, len(in.Head.Clusters))
	}
	f.flipped = f.flipped[:0]
	var wake time.Time
	changed := list == nil
	for i, c := range in.Head.Clusters {
		seen := in.Ledger.Cluster(c.Name)
		was, known := f.was(before, c.Name)
		sources[i] = sourceOf(c, seen, in.Now)
		sources[i].refusal = in.Ledger.Refusal(c.Name)
		if !known || was.healthy != sources[i].healthy || was.trouble != sources[i].trouble || was.refusal != sources[i].refusal {
			f.flipped = append(f.flipped, c.Name)
		}
		objection, at := ineligible(seen, in.Now)
		objection = cmp.Or(in.Ledger.Refusal(c.Name), objection)
		wake = earliest(wake, at)
		if list != nil && was == sources[i] && objection == list[i].Ineligible && in.Observed == nil {
			continue
		}
		if list == nil {
			next[i] = clusterOf(in, c, seen, objection)
			continue
		}
		now := clusterOf(in, c, seen, objection)
		shape, values := differ(&list[i], &now)
		if (shape || values) && !changed {
			next, changed = slices.Clone(list), true
		}
		if shape || values {
			next[i] = now
		}
		if shape {
			f.shape++
		}
		if values {
			f.values++
		}
	}
	f.sources, f.list = sources, next
	return wake
}

func (f *fleet) was(before map[string]int, name string) (source, bool) {
	i, ok := before[name]
	if !ok || i >= len(f.sources) {
		return source{}, false
	}
	return f.sources[i], true
}

func sourceOf(c *hub.Cluster, seen *ledger.Cluster, now time.Time) source {
	s := source{declared: c}
	if seen != nil {
		s.seen, s.stale, s.healthy, s.trouble = seen.Version(), Stale(seen, now), seen.Healthy, seen.Error
	}
	return s
}

func clusterOf(in Input, c *hub.Cluster, seen *ledger.Cluster, objection string) placement.Cluster {
	if known, ok := in.Observed[c.Name]; ok {
		return known
	}
	out := Cluster(c, fresh(seen, in.Now))
	out.Ineligible = objection
	return out
}

// differ compares two states of a cluster.
func differ(a, b *placement.Cluster) (shape, values bool) {
	shape = a.Ineligible != b.Ineligible || !maps.Equal(a.Labels, b.Labels) || !slices.Equal(a.Taints, b.Taints) ||
		(a.Namespaces == nil) != (b.Namespaces == nil) || !maps.Equal(a.Namespaces, b.Namespaces)
	values = !maps.EqualFunc(a.Properties, b.Properties, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 }) ||
		!maps.Equal(a.Malformed, b.Malformed)
	return shape, values
}

// cluster returns what is known of a cluster; declared is false if it is not a
// member.
func (f *fleet) cluster(name string) (c placement.Cluster, declared bool) {
	i, declared := f.at[name]
	if !declared {
		return placement.Cluster{}, false
	}
	return f.list[i], true
}

// earliest returns the earlier of two times, of which the zero time is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// left lists the clusters that are known and declared no more.
func (f *fleet) left(l *ledger.Ledger) []string {
	var left []string
	for name := range l.ClusterNames() {
		if _, declared := f.at[name]; !declared {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return left
}

// looksAtProperties reports whether properties of clusters count for a policy.
func looksAtProperties(p *api.PlacementPolicy) bool {
	if p == nil || p.Affinity == nil || p.Affinity.ClusterAffinity == nil {
		return false
	}
	looks := func(t api.ClusterSelectorTerm) bool { return t.PropertySelector != nil || t.PropertySorter != nil }
	a := p.Affinity.ClusterAffinity
	return a.Required != nil && slices.ContainsFunc(a.Required.ClusterSelectorTerms, looks) ||
		slices.ContainsFunc(a.Preferred, func(p api.PreferredClusterSelector) bool { return looks(p.Preference) })
}
