package forecast

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A Fleet is an observed fleet: the state of member clusters as it was read.
type Fleet struct {
	clusters []hub.ObservedCluster
	// at is the time of the observation: the latest time in the statuses, so that a cluster that was healthy then does
	// not count as silent.
	at time.Time
}

// NewFleet returns the fleet of some clusters. They were observed at the latest time in their statuses, or now if these
// have no time.
func NewFleet(clusters []hub.ObservedCluster, now time.Time) *Fleet {
	f := &Fleet{clusters: clusters}
	for _, c := range clusters {
		f.observe(c.Status)
	}
	if f.at.IsZero() {
		f.at = now
	}
	return f
}

// observe moves the time of the observation to the latest time in a status.
func (f *Fleet) observe(s api.MemberClusterStatus) {
	times := []metav1.Time{s.ResourceUsage.ObservationTime}
	for _, p := range s.Properties {
		times = append(times, p.ObservationTime)
	}
	conditions := slices.Clone(s.Conditions)
	for _, a := range s.AgentStatus {
		times = append(times, a.LastReceivedHeartbeat)
		conditions = append(conditions, a.Conditions...)
	}
	for _, c := range conditions {
		times = append(times, c.LastTransitionTime)
	}
	for _, t := range times {
		if t.After(f.at) {
			f.at = t.Time
		}
	}
}

// A joinedFleet has the members that a checkout declares, with their observed state.
type joinedFleet struct {
	snapshot *hub.Snapshot
	clusters map[string]placement.Cluster
	at       time.Time
	warnings problem.List
}

// join combines the members that a checkout declares with the observed ones. If the checkout declares no members, those
// of the file are used. A member that the file does not contain, or contains without a status, counts as healthy.
func (f *Fleet) join(s *hub.Snapshot) joinedFleet {
	j := joinedFleet{snapshot: s, clusters: map[string]placement.Cluster{}, at: f.at}
	if len(s.Clusters) == 0 {
		j.snapshot = f.declare(s)
	}
	declared := map[string]*hub.Cluster{}
	for _, c := range j.snapshot.Clusters {
		declared[c.Name] = c
	}
	for _, seen := range f.clusters {
		if d := declared[seen.Name]; d != nil {
			j.add(d, seen)
			j.warnSuspended(seen)
		} else {
			j.warn(seen, "metadata.name", "the checkout declares no MemberCluster "+seen.Name+", so it is no member, and left out")
		}
	}
	return j
}

func (j *joinedFleet) warn(c hub.ObservedCluster, field, message string) {
	j.warnings = append(j.warnings, problem.Problem{Origin: c.Origin, Field: field, Severity: problem.Warning, Message: message})
}

// add adds one member. Labels and taints are those of the file where it has them, and otherwise the declared ones. A
// file written by the daemon is a copy of an older declaration, so that the checkout takes precedence over it.
func (j *joinedFleet) add(declared *hub.Cluster, seen hub.ObservedCluster) {
	m := *seen.MemberCluster
	m.Labels, m.Annotations = map[string]string{}, map[string]string{}
	maps.Copy(m.Labels, declared.Labels)
	if _, copied := seen.Annotations[api.PathAnnotation]; copied {
		maps.Copy(m.Annotations, seen.Annotations)
		maps.DeleteFunc(m.Annotations, func(name, _ string) bool { return strings.HasPrefix(name, api.PropertyAnnotationPrefix) })
		m.Spec.Taints = declared.Spec.Taints
		if slices.Contains(seen.Spec.Taints, api.CordonTaint()) {
			m.Spec.Taints = append(slices.Clone(m.Spec.Taints), api.CordonTaint())
		}
		maps.Copy(m.Annotations, declared.Annotations)
	} else {
		j.warnDifferences(declared, seen)
		if len(seen.Spec.Taints) == 0 {
			m.Spec.Taints = declared.Spec.Taints
		}
		maps.Copy(m.Labels, seen.Labels)
		maps.Copy(m.Annotations, declared.Annotations)
		maps.Copy(m.Annotations, seen.Annotations)
	}
	c := observed(&m)
	if seen.Seen || seen.DeletionTimestamp != nil {
		c.Ineligible = ineligible(&m, j.at)
	}
	j.clusters[m.Name] = c
}

// warnDifferences warns of differences between the file and the checkout, since the daemon would use the checkout.
func (j *joinedFleet) warnDifferences(declared *hub.Cluster, seen hub.ObservedCluster) {
	if declared.MemberCluster == seen.MemberCluster {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(seen.Labels)) {
		if value, ok := declared.Labels[key]; !ok || value != seen.Labels[key] {
			said := "nothing of it"
			if ok {
				said = fmt.Sprintf("%q", value)
			}
			j.warn(seen, "metadata.labels["+key+"]", fmt.Sprintf("%q counts here, although %s says %s", seen.Labels[key], declared.Origin, said))
		}
	}
	if len(seen.Spec.Taints) > 0 && !slices.Equal(seen.Spec.Taints, declared.Spec.Taints) {
		j.warn(seen, "spec.taints", fmt.Sprintf("these count here, although %s says otherwise", declared.Origin))
	}
}

// warnSuspended warns that a cluster is suspended, which the plan does not take into account.
func (j *joinedFleet) warnSuspended(seen hub.ObservedCluster) {
	if why := seen.Annotations[api.SuspendedAnnotation]; why != "" {
		j.warn(seen, "metadata.annotations["+api.SuspendedAnnotation+"]", seen.Name+" is "+why+"; what is planned for it comes once that is over")
	}
}

// declare makes the clusters of the file the members of a checkout that declares none, and removes the warnings that
// names in PickFixed are not those of clusters.
func (f *Fleet) declare(s *hub.Snapshot) *hub.Snapshot {
	out := *s
	for _, c := range f.clusters {
		out.Clusters = append(out.Clusters, c.Cluster)
	}
	out.Warnings = slices.DeleteFunc(slices.Clone(s.Warnings), func(w problem.Problem) bool { return f.explains(s, w) })
	return &out
}

// explains reports whether a warning is about a cluster that the file has.
func (f *Fleet) explains(s *hub.Snapshot, w problem.Problem) bool {
	for _, p := range s.Placements {
		if p.Origin.Path != w.Path || p.Origin.Document != w.Document || p.Spec.Policy == nil {
			continue
		}
		for i, name := range p.Spec.Policy.ClusterNames {
			if w.Field == fmt.Sprintf("spec.policy.clusterNames[%d]", i) && f.has(name) {
				return true
			}
		}
	}
	return false
}

// leaving returns the clusters that are marked for deletion.
func (f *Fleet) leaving() map[string]bool {
	out := map[string]bool{}
	for _, c := range f.clusters {
		if c.DeletionTimestamp != nil {
			out[c.Name] = true
		}
	}
	return out
}

func (f *Fleet) has(name string) bool {
	return slices.ContainsFunc(f.clusters, func(c hub.ObservedCluster) bool { return c.Name == name })
}
