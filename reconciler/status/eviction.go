package status

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/status/event"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

// evictionObjects returns the evictions of the commit in force, and those that users have ordered, by name. The Memo makes the
// pointer of one that has not changed the same.
func (m *Memo) evictionObjects(in Input) []*api.ClusterResourcePlacementEviction {
	all := map[string]*api.ClusterResourcePlacementEviction{}
	declared := map[string]*hub.Eviction{}
	if in.InForce != nil {
		for _, d := range in.InForce.Evictions {
			declared[d.Name] = d
			if key := (api.PlacementKey{Name: d.Spec.PlacementName}); in.Plan.Placement(key) == nil || in.Plan.Placement(key).Spec == nil {
				known := in.Ledger.Declared()[evictionID(d.Name)]
				e := placement.Eviction{Name: d.Name, Cluster: d.Spec.ClusterName, At: known.Created, Judged: known.Created}
				e.Message = "Failed to find ClusterResourcePlacement targeted by eviction"
				if in.Plan.Placement(key) != nil {
					e.Message = "Found deleting ClusterResourcePlacement targeted by eviction"
				}
				all[d.Name] = evictionObject(key, e, d, known)
			}
		}
	}
	for p := range in.Plan.Placements.Values() {
		for _, e := range p.Record.Evictions {
			d := declared[e.Name]
			if e.By == "" && d == nil {
				continue
			}
			if e.By != "" {
				d = nil
			}
			all[e.Name] = evictionObject(p.Key, e, d, in.Ledger.Declared()[evictionID(e.Name)])
		}
	}
	out := make([]*api.ClusterResourcePlacementEviction, 0, len(all))
	for _, e := range all {
		reuse(&e, m.evictions[e.Name])
		out = append(out, e)
		all[e.Name] = e
	}
	m.evictions = all
	slices.SortFunc(out, func(a, b *api.ClusterResourcePlacementEviction) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func evictionID(name string) api.ID {
	return api.ID{Group: api.PlacementGroup, Kind: "ClusterResourcePlacementEviction", Name: name}
}

// evictionObject returns an eviction as it is served; d is its manifest, nil if a user has ordered it.
func evictionObject(key api.PlacementKey, e placement.Eviction, d *hub.Eviction, known ledger.Declared) *api.ClusterResourcePlacementEviction {
	out := &api.ClusterResourcePlacementEviction{TypeMeta: metadata.Type(api.PlacementGroup, "ClusterResourcePlacementEviction")}
	if d != nil {
		out.ObjectMeta = *d.ObjectMeta.DeepCopy()
		annotate(&out.ObjectMeta, api.PathAnnotation, d.Origin.String())
		annotate(&out.ObjectMeta, api.CommitAnnotation, known.Commit)
		out.CreationTimestamp = metav1.NewTime(known.Created)
		out.Spec = d.Spec
	} else {
		annotate(&out.ObjectMeta, api.OrderedByAnnotation, e.By)
		annotate(&out.ObjectMeta, api.OrderReasonAnnotation, e.Reason)
		out.CreationTimestamp = metav1.NewTime(e.At)
		out.Spec = api.EvictionSpec{PlacementName: key.Name, ClusterName: e.Cluster}
	}
	out.Name, out.Generation, out.UID = e.Name, 1, metadata.UID(out.CreationTimestamp.Time, "ClusterResourcePlacementEviction", e.Name)
	out.Status.Conditions = evictionConditions(e)
	return out
}

func annotate(m *metav1.ObjectMeta, annotation, value string) {
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[annotation] = value
}

// evictionConditions returns KubeFleet's conditions of an eviction; none before it is judged.
func evictionConditions(e placement.Eviction) []metav1.Condition {
	of := func(typ string, is bool, reason, message string) metav1.Condition {
		status := metav1.ConditionFalse
		if is {
			status = metav1.ConditionTrue
		}
		return metav1.Condition{Type: typ, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(e.Judged.Truncate(time.Second)), ObservedGeneration: 1}
	}
	switch {
	case e.Pending():
		return nil
	case !e.Valid:
		return []metav1.Condition{of(api.EvictionValid, false, api.EvictionIsInvalid, e.Message)}
	case !e.Executed:
		return []metav1.Condition{of(api.EvictionValid, true, api.EvictionIsValid, "Eviction is valid"), of(api.EvictionExecuted, false, api.EvictionNotExecuted, e.Message)}
	}
	return []metav1.Condition{of(api.EvictionValid, true, api.EvictionIsValid, "Eviction is valid"), of(api.EvictionExecuted, true, api.EvictionWasExecuted, e.Message)}
}

// evictionEvents adds an event for each eviction that was judged since the last report.
func (h *eventBuilder) evictionEvents() {
	if h.builder.record == nil && h.old == nil {
		return
	}
	for _, e := range h.builder.p.Record.Evictions {
		if e.Pending() || h.old != nil && slices.Contains(h.old.of.Record.Evictions, e) || h.old == nil && !e.Judged.Equal(h.builder.in.Now) {
			continue
		}
		conditions := evictionConditions(e)
		last := conditions[len(conditions)-1]
		judged := event.Warning(last.Reason, "Eviction "+e.Name+": "+e.Message)
		if e.Executed {
			judged = event.Normal(last.Reason, judged.Message)
		}
		judged.Cluster = e.Cluster
		h.add(judged)
	}
}
