// Package fleet has the member clusters and the suspensions in the form that plans use, and says what has changed of them
// since the last plan.
package fleet

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// Members are the member clusters in the form that the scheduler uses. They are updated incrementally, since one probe
// changes one cluster, and usually nothing that a placement depends on.
type Members struct {
	// List has the clusters by name, as declared.
	List    []placement.Cluster
	sources []clusterSource // in the same order
	index   map[string]int
	// Version counts the changes that affect every placement. PropertiesVersion counts changes of properties, which
	// affect only placements whose policies use them, and NamespacesVersion those of namespaces, which affect only ResourcePlacements.
	Version, PropertiesVersion, NamespacesVersion uint64
	// Changed are the clusters whose condition was changed by the last update.
	Changed []string
	// Left are the clusters in the ledger that are no longer declared, sorted.
	Left []string
	read readState
}

// A readState is what the last update of Members has read.
type readState struct {
	declared []*hub.Cluster
	ledger   *ledger.Ledger
	version  uint64 // of the records of clusters
	// until is when an unchanged record could say something else; zero if that is never.
	until time.Time
}

// An Input is what the member clusters depend on.
type Input struct {
	Declared []*hub.Cluster
	Ledger   *ledger.Ledger
	// Observed overrides what the ledger knows about clusters, by name. It may be nil.
	Observed map[string]placement.Cluster
	Now      time.Time
}

// A clusterSource has the inputs from which a cluster was computed, to detect changes.
type clusterSource struct {
	declared    *hub.Cluster
	seenVersion uint64 // version of the observation
	stale       bool
	objection   string // why it gets no new placements; empty if it does
	// objectionKind is the part of the objection that clusters share; empty if it is all of it.
	objectionKind string
	condition     clusterCondition
	cordoned      bool      // it has the taint of a cluster that is drained
	wake          time.Time // when it may get an objection; zero if it does not by itself
}

// A clusterCondition is what else matters to the placements that hold a cluster.
type clusterCondition struct {
	healthy   bool
	err       string
	refusal   string // why another fleet or member holds the cluster; empty if none does
	driftRule string // the api.DriftAnnotation of the cluster
}

// Update brings the members up to date, and returns when they could change without new input.
func (m *Members) Update(in Input) time.Time {
	names, version, complete := ledger.ClustersSince(in.Ledger, m.read.version)
	m.Changed = m.Changed[:0]
	u := update{Members: m, Input: in}
	if !complete || m.read.ledger != in.Ledger || in.Observed != nil || !ledger.Identical(m.read.declared, in.Declared) || !m.read.until.IsZero() && !in.Now.Before(m.read.until) {
		m.read.until = time.Time{}
		u.all()
	} else {
		for _, name := range names {
			if i, declared := m.index[name]; declared {
				u.cluster(i)
			}
		}
	}
	m.read.declared, m.read.ledger, m.read.version = in.Declared, in.Ledger, version
	var wake time.Time
	for i := range m.sources {
		wake = api.Earliest(wake, m.sources[i].wake)
	}
	return wake
}

// An update updates some or all members.
type update struct {
	*Members
	Input
	owned bool // List is not that of earlier plans
}

// all updates all members.
func (u *update) all() {
	if !slices.EqualFunc(u.Declared, u.sources, func(c *hub.Cluster, s clusterSource) bool { return c.Name == s.declared.Name }) {
		n := len(u.Declared)
		u.List, u.sources, u.index, u.owned = make([]placement.Cluster, n), make([]clusterSource, n), make(map[string]int, n), true
		u.Version++
		for i, c := range u.Declared {
			u.index[c.Name] = i
		}
	}
	for i := range u.Declared {
		u.cluster(i)
	}
	u.Left = nil
	for name := range u.Ledger.ClusterNames() {
		if _, declared := u.index[name]; !declared {
			u.Left = append(u.Left, name)
		}
	}
	slices.Sort(u.Left)
}

// cluster updates the member at a position.
func (u *update) cluster(i int) {
	c, was := u.Declared[i], u.sources[i]
	seen := u.Ledger.Cluster(c.Name)
	source, until := sourceOf(u.Input, c, seen)
	u.sources[i], u.read.until = source, api.Earliest(u.read.until, until)
	if was.condition != source.condition {
		u.Changed = append(u.Changed, c.Name)
	}
	if was == source && u.Observed == nil {
		return
	}
	now := clusterOf(u.Input, c, seen, source)
	differs := diffClusters(&u.List[i], &now)
	if differs == (clusterDifference{}) {
		return
	}
	if !u.owned {
		u.List, u.owned = slices.Clone(u.List), true
	}
	u.List[i] = now
	if differs.other {
		u.Version++
	}
	if differs.properties {
		u.PropertiesVersion++
	}
	if differs.namespaces {
		u.NamespacesVersion++
	}
}

// sourceOf returns the source of a cluster, and until when it stays the same if its record does; zero if it always does.
func sourceOf(in Input, c *hub.Cluster, seen *ledger.Cluster) (s clusterSource, until time.Time) {
	why, kind, wake := ineligibleReason(seen, in.Now)
	refusal := in.Ledger.Refusal(c.Name)
	if refusal != "" {
		why, kind = refusal, ""
	}
	s = clusterSource{declared: c, objection: why, objectionKind: kind, wake: wake, condition: clusterCondition{refusal: refusal, driftRule: c.Annotations[api.DriftAnnotation]}}
	cordon, found := in.Ledger.Suspension(ledger.Subject{Cluster: c.Name, Effect: ledger.Cordons})
	if s.cordoned = found && !cordon.Ended(in.Now); s.cordoned {
		until = cordon.Until
	}
	if seen == nil {
		return s, until
	}
	s.seenVersion, s.stale = seen.Version(), Stale(seen, in.Now)
	s.condition.healthy, s.condition.err = seen.Healthy, seen.Error
	if !wake.IsZero() {
		until = api.Earliest(until, seen.Since.Add(UnreachableGrace))
	}
	if !s.stale {
		until = api.Earliest(until, StaleFrom(seen))
	}
	return s, until
}

func clusterOf(in Input, c *hub.Cluster, seen *ledger.Cluster, source clusterSource) placement.Cluster {
	if known, ok := in.Observed[c.Name]; ok {
		return known
	}
	out := Cluster(c, withoutStale(seen, in.Now))
	out.Ineligible, out.IneligibleKind = source.objection, source.objectionKind
	if source.cordoned {
		out.Taints = append(slices.Clone(out.Taints), api.CordonTaint())
	}
	return out
}

// A clusterDifference says whether the properties, the namespaces, or something else of a cluster has changed.
type clusterDifference struct{ properties, namespaces, other bool }

// diffClusters compares two states of a cluster.
func diffClusters(a, b *placement.Cluster) clusterDifference {
	return clusterDifference{
		properties: !maps.EqualFunc(a.Properties, b.Properties, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 }) || !maps.Equal(a.Malformed, b.Malformed),
		namespaces: (a.Namespaces == nil) != (b.Namespaces == nil) || !slices.Equal(a.Namespaces, b.Namespaces) || a.NamespacesUnknown != b.NamespacesUnknown,
		other:      a.Name != b.Name || a.Ineligible != b.Ineligible || a.IneligibleKind != b.IneligibleKind || !maps.Equal(a.Labels, b.Labels) || !slices.Equal(a.Taints, b.Taints),
	}
}

// Cluster returns a cluster; declared is false if it is not a member.
func (m *Members) Cluster(name string) (c placement.Cluster, declared bool) {
	i, declared := m.index[name]
	if !declared {
		return placement.Cluster{}, false
	}
	return m.List[i], true
}

// DriftRule returns the api.DriftAnnotation of a cluster; empty if it has none or is no member.
func (m *Members) DriftRule(cluster string) string {
	i, declared := m.index[cluster]
	if !declared {
		return ""
	}
	return m.sources[i].condition.driftRule
}

// UnreachableGrace is how long, inclusively, a cluster may be unreachable and still be eligible for new placements.
const UnreachableGrace = 5 * time.Minute

// propertyMaxAge is how long observed properties are valid.
const propertyMaxAge = 15 * time.Minute

// Stale reports whether the observed properties of a cluster are too old to be used. They then count as unknown.
func Stale(seen *ledger.Cluster, now time.Time) bool {
	return seen != nil && now.Sub(seen.Observed) > propertyMaxAge
}

// StaleFrom returns the time from which the observed properties of a cluster are stale.
func StaleFrom(seen *ledger.Cluster) time.Time { return seen.Observed.Add(propertyMaxAge) }

// withoutStale leaves out stale properties and namespaces.
func withoutStale(seen *ledger.Cluster, now time.Time) *ledger.Cluster {
	if !Stale(seen, now) {
		return seen
	}
	out := *seen
	out.Properties, out.Namespaces = nil, nil
	return &out
}

// Cluster returns a member cluster in the form that the scheduler uses, without its eligibility.
func Cluster(c *hub.Cluster, seen *ledger.Cluster) placement.Cluster {
	out := placement.Cluster{Name: c.Name, Labels: c.Labels, Taints: c.Spec.Taints, Properties: map[string]resource.Quantity{}}
	if seen != nil {
		for name, value := range seen.Properties {
			out.SetProperty(name, value)
		}
		if out.Namespaces = seen.Namespaces; !slices.IsSorted(out.Namespaces) {
			out.Namespaces = slices.Sorted(slices.Values(out.Namespaces))
		}
	}
	// Declared properties override observed ones.
	for name, value := range c.Annotations {
		if property, ok := strings.CutPrefix(name, api.PropertyAnnotationPrefix); ok {
			out.SetProperty(property, value)
		}
	}
	return out
}

// silent is the reason of a cluster that does not answer, without the time of its last answer.
const silent = "cluster is not connected to the fleet: no recent heartbeat signals"

// ineligibleReason returns why a cluster gets no new placements, the part of that which clusters share if it is not all of it, and
// the time at which that could change; empty if it does get them.
func ineligibleReason(seen *ledger.Cluster, now time.Time) (reason, kind string, changes time.Time) {
	denied := seen.Denied()
	switch {
	case denied != "" && seen.Joined.IsZero():
		return "cluster is not connected to the fleet: " + denied, "", time.Time{}
	case seen == nil || seen.Joined.IsZero():
		return "cluster is not connected to the fleet: it has not answered yet", "", time.Time{}
	case seen.Healthy:
		return "", "", time.Time{}
	}
	if limit := seen.Since.Add(UnreachableGrace); !now.After(limit) {
		return "", "", limit.Add(time.Second)
	}
	if denied != "" {
		return "cluster is not connected to the fleet: " + denied, "", time.Time{}
	}
	// The message has the time and not the age, since a changing text would change the status in every turn.
	return silent + " (last received at " + seen.LastSeen.UTC().Format(time.RFC3339) + ")", silent, time.Time{}
}
