package kubeapi

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/server/store"
)

// text returns a column of type string. Columns of priority 1 are only in wide tables.
func text(name, description string, priority int32, cell func(*store.Object) any) column {
	return column{metav1.TableColumnDefinition{Name: name, Type: "string", Description: description, Priority: priority}, cell}
}

var nameColumn = column{
	metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: "Name of the object."},
	func(o *store.Object) any { return o.Name },
}

// wide returns the column for wide tables only.
func (c column) wide() metav1.TableColumnDefinition {
	d := c.TableColumnDefinition
	d.Priority = 1
	return d
}

var ageColumn = text("Age", "Time since the commit was made that brought the object.", 0, func(o *store.Object) any {
	return metatable.ConvertToHumanReadableDateType(o.CreationTimestamp)
})

// sourceColumn is the position of an object in the repository.
var sourceColumn = text("Source", "File and line of the object in the repository.", 1, func(o *store.Object) any {
	return o.Annotations[api.PathAnnotation]
})

// placed has the common columns of the two kinds of placement.
type placed struct {
	spec   *api.PlacementSpec
	status *api.PlacementStatus
}

func placementOf(o *store.Object) placed {
	switch p := o.Value.(type) {
	case *api.ClusterResourcePlacement:
		return placed{&p.Spec, &p.Status}
	case *api.ResourcePlacement:
		return placed{&p.Spec, &p.Status}
	}
	return placed{&api.PlacementSpec{}, &api.PlacementStatus{}}
}

func placementColumns(prefix string) []column {
	status := func(suffix string) func(*store.Object) any {
		return func(o *store.Object) any {
			if c := meta.FindStatusCondition(placementOf(o).status.Conditions, prefix+suffix); c != nil {
				return string(c.Status)
			}
			return ""
		}
	}
	generation := func(suffix string) func(*store.Object) any {
		return func(o *store.Object) any {
			if c := meta.FindStatusCondition(placementOf(o).status.Conditions, prefix+suffix); c != nil {
				return strconv.FormatInt(c.ObservedGeneration, 10)
			}
			return ""
		}
	}
	return []column{
		text("Gen", "Changes of the spec, counted.", 0, func(o *store.Object) any { return strconv.FormatInt(o.Generation, 10) }),
		text("Type", "How clusters are picked.", 1, func(o *store.Object) any {
			if policy := placementOf(o).spec.Policy; policy != nil {
				return string(policy.PlacementType)
			}
			return ""
		}),
		text("Scheduled", "Whether the clusters asked for were found.", 0, status(api.Scheduled)),
		text("Scheduled-Gen", "Generation of the spec that this is said of.", 0, generation(api.Scheduled)),
		text("Work-Synchronized", "Whether every cluster was told the newest content.", 1, status(api.WorkSynchronized)),
		text("Work-Synchronized-Gen", "Generation of the spec that this is said of.", 1, generation(api.WorkSynchronized)),
		text("Available", "Whether all that was placed is available.", 0, status(api.Available)),
		text("Available-Gen", "Generation of the spec that this is said of.", 0, generation(api.Available)),
		ageColumn,
	}
}

func memberOf(o *store.Object) *api.MemberCluster {
	if m, ok := o.Value.(*api.MemberCluster); ok {
		return m
	}
	return &api.MemberCluster{}
}

var clusterColumns = []column{
	text("Joined", "Whether the cluster has ever answered.", 0, func(o *store.Object) any {
		if c := meta.FindStatusCondition(memberOf(o).Status.Conditions, api.Joined); c != nil {
			return string(c.Status)
		}
		return ""
	}),
	ageColumn,
	text("Member-Agent-Last-Seen", "Time since the cluster last answered.", 0, func(o *store.Object) any {
		for _, a := range memberOf(o).Status.AgentStatus {
			if a.Type == api.MemberAgent {
				return metatable.ConvertToHumanReadableDateType(a.LastReceivedHeartbeat)
			}
		}
		return ""
	}),
	text("Node-Count", "Nodes of the cluster.", 0, func(o *store.Object) any {
		return memberOf(o).Status.Properties["kubernetes-fleet.io/node-count"].Value
	}),
	text("Available-CPU", "CPU that is not requested.", 0, usage("cpu", available)),
	text("Available-Memory", "Memory that is not requested.", 0, usage("memory", available)),
	text("Allocatable-CPU", "CPU for workloads.", 1, usage("cpu", allocatable)),
	text("Allocatable-Memory", "Memory for workloads.", 1, usage("memory", allocatable)),
}

func available(u *api.ResourceUsage) api.ResourceList   { return u.Available }
func allocatable(u *api.ResourceUsage) api.ResourceList { return u.Allocatable }

func usage(name string, of func(*api.ResourceUsage) api.ResourceList) func(*store.Object) any {
	return func(o *store.Object) any {
		q, found := of(&memberOf(o).Status.ResourceUsage)[name]
		if !found {
			return ""
		}
		return quantity(q)
	}
}

func quantity(q resource.Quantity) string { return q.String() }

var mirrorColumns = []column{
	text("Resource-Index", "Index of the content that the status is of.", 0, func(o *store.Object) any {
		if m, ok := o.Value.(*api.ClusterResourcePlacementStatus); ok {
			return m.SourceStatus.ObservedResourceIndex
		}
		return ""
	}),
	text("Last-Updated", "Time since the status last changed.", 0, func(o *store.Object) any {
		if m, ok := o.Value.(*api.ClusterResourcePlacementStatus); ok {
			return metatable.ConvertToHumanReadableDateType(m.LastUpdatedTime)
		}
		return ""
	}),
	ageColumn,
}
