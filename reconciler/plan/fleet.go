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

// A fleet is the list of clusters in the form that the scheduler uses. It is updated
// incrementally, since one probe changes one cluster, and usually nothing that a placement
// depends on.
type fleet struct {
	list    []placement.Cluster // by name, as declared
	sources []clusterSource
	index   map[string]int
	// version counts the changes that affect every placement. propertiesVersion counts changes
	// of properties, which affect only placements whose policies use them.
	version, propertiesVersion uint64
	// changed are the clusters whose health, error, foreign owner or drift rule changed in this
	// call.
	changed []string
}

// A clusterSource has the inputs from which a cluster of the fleet was computed, to detect
// changes.
type clusterSource struct {
	declared    *hub.Cluster
	seenVersion uint64 // version of the observation
	stale       bool
	healthy     bool
	err         string
	refusal     string
}

// update updates the fleet, and returns when it could change without new input.
func (f *fleet) update(in Input) time.Time {
	before, list := f.index, f.list
	if !slices.EqualFunc(in.Head.Clusters, f.sources, func(c *hub.Cluster, s clusterSource) bool { return c.Name == s.declared.Name }) {
		f.version++
		list = nil
		f.index = make(map[string]int, len(in.Head.Clusters))
		for i, c := range in.Head.Clusters {
			f.index[c.Name] = i
		}
	}
	sources, next := f.sources, list // shared with earlier plans until a cluster changes
	if list == nil {
		sources, next = make([]clusterSource, len(in.Head.Clusters)), make([]placement.Cluster, len(in.Head.Clusters))
	}
	f.changed = f.changed[:0]
	var wake time.Time
	changed := list == nil
	for i, c := range in.Head.Clusters {
		seen := in.Ledger.Cluster(c.Name)
		was, known := f.previous(before, c.Name)
		sources[i] = sourceOf(c, seen, in.Now)
		sources[i].refusal = in.Ledger.Refusal(c.Name)
		if !known || was.healthy != sources[i].healthy || was.err != sources[i].err || was.refusal != sources[i].refusal || driftRule(was.declared) != driftRule(c) {
			f.changed = append(f.changed, c.Name)
		}
		objection, at := ineligibleReason(seen, in.Now)
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
		shape, values := diffClusters(&list[i], &now)
		if (shape || values) && !changed {
			next, changed = slices.Clone(list), true
		}
		if shape || values {
			next[i] = now
		}
		if shape {
			f.version++
		}
		if values {
			f.propertiesVersion++
		}
	}
	f.sources, f.list = sources, next
	return wake
}

func (f *fleet) previous(before map[string]int, name string) (clusterSource, bool) {
	i, ok := before[name]
	if !ok || i >= len(f.sources) {
		return clusterSource{}, false
	}
	return f.sources[i], true
}

func sourceOf(c *hub.Cluster, seen *ledger.Cluster, now time.Time) clusterSource {
	s := clusterSource{declared: c}
	if seen != nil {
		s.seenVersion, s.stale, s.healthy, s.err = seen.Version(), Stale(seen, now), seen.Healthy, seen.Error
	}
	return s
}

func clusterOf(in Input, c *hub.Cluster, seen *ledger.Cluster, objection string) placement.Cluster {
	if known, ok := in.Observed[c.Name]; ok {
		return known
	}
	out := Cluster(c, withoutStale(seen, in.Now))
	out.Ineligible = objection
	return out
}

// diffClusters compares two states of a cluster. shape reports changes of anything but
// properties, and values changes of properties.
func diffClusters(a, b *placement.Cluster) (shape, values bool) {
	shape = a.Ineligible != b.Ineligible || !maps.Equal(a.Labels, b.Labels) || !slices.Equal(a.Taints, b.Taints) ||
		(a.Namespaces == nil) != (b.Namespaces == nil) || !maps.Equal(a.Namespaces, b.Namespaces)
	values = !maps.EqualFunc(a.Properties, b.Properties, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 }) ||
		!maps.Equal(a.Malformed, b.Malformed)
	return shape, values
}

// cluster returns a cluster of the fleet; declared is false if it is not a member.
func (f *fleet) cluster(name string) (c placement.Cluster, declared bool) {
	i, declared := f.index[name]
	if !declared {
		return placement.Cluster{}, false
	}
	return f.list[i], true
}

// driftRule returns the api.DriftAnnotation of a member cluster; empty if it has none.
func driftRule(c *hub.Cluster) string { return c.Annotations[api.DriftAnnotation] }

// driftRule returns the api.DriftAnnotation of a cluster; empty if it has none or is no member.
func (f *fleet) driftRule(cluster string) string {
	i, declared := f.index[cluster]
	if !declared {
		return ""
	}
	return driftRule(f.sources[i].declared)
}

// earliest returns the earlier of two times; the zero time means none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// leftClusters lists the clusters in the ledger that are no longer declared.
func (f *fleet) leftClusters(l *ledger.Ledger) []string {
	var left []string
	for name := range l.ClusterNames() {
		if _, declared := f.index[name]; !declared {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return left
}

// looksAtProperties reports whether a policy uses cluster properties.
func looksAtProperties(p *api.PlacementPolicy) bool {
	if p == nil || p.Affinity == nil || p.Affinity.ClusterAffinity == nil {
		return false
	}
	looks := func(t api.ClusterSelectorTerm) bool { return t.PropertySelector != nil || t.PropertySorter != nil }
	a := p.Affinity.ClusterAffinity
	return a.Required != nil && slices.ContainsFunc(a.Required.ClusterSelectorTerms, looks) ||
		slices.ContainsFunc(a.Preferred, func(p api.PreferredClusterSelector) bool { return looks(p.Preference) })
}
