package printer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func condition(typ string, status metav1.ConditionStatus, generation int64) metav1.Condition {
	return metav1.Condition{Type: typ, Status: status, ObservedGeneration: generation}
}

func metaOf(name string, generation int64, age time.Duration) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name, Generation: generation, Annotations: map[string]string{api.PathAnnotation: "apps/" + name + ".yaml:3"}}
	if age > 0 {
		m.CreationTimestamp = metav1.NewTime(noon.Add(-age))
	}
	return m
}

// show returns the cells of one row with the names of their columns; those that only wide tables
// have are in parentheses.
func show(columns []Column, r Row) string {
	table := Table(columns, []Row{r})
	var out []string
	for i, c := range table.ColumnDefinitions {
		text := fmt.Sprintf("%s=%v", c.Name, table.Rows[0].Cells[i])
		if c.Priority > 0 {
			text = "(" + text + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// The columns are those of KubeFleet's definitions; wide tables have more of gitfleet's own.
func TestColumns(t *testing.T) {
	crp := &api.ClusterResourcePlacement{ObjectMeta: metaOf("web", 5, 50*time.Hour)}
	crp.Spec.Policy = &api.PlacementPolicy{PlacementType: api.PickN}
	crp.Status.Conditions = []metav1.Condition{
		condition("ClusterResourcePlacementScheduled", "True", 5), condition("ClusterResourcePlacementApplied", "True", 5),
		condition("ClusterResourcePlacementWorkSynchronized", "Unknown", 4), condition("ClusterResourcePlacementAvailable", "False", 3),
	}
	applied := condition(api.Applied, "True", 5)
	failed := condition(api.Applied, "False", 5)
	failed.Message = "refused"
	crp.Status.PlacementStatuses = []api.PerClusterPlacementStatus{
		{ClusterName: "east", Conditions: []metav1.Condition{applied}}, {ClusterName: "west", Conditions: []metav1.Condition{failed}},
		{Conditions: []metav1.Condition{condition(api.Scheduled, "False", 5)}},
	}
	rp := &api.ResourcePlacement{ObjectMeta: metaOf("db", 1, time.Minute)}
	rp.Status.Conditions = []metav1.Condition{
		condition("ResourcePlacementScheduled", "False", 1), condition("ClusterResourcePlacementAvailable", "True", 1),
	}
	rp.Status.Conditions[0].Message = "cannot"
	east := &api.MemberCluster{ObjectMeta: metaOf("east", 1, 72*time.Hour)}
	east.Status = api.MemberClusterStatus{
		Conditions:    []metav1.Condition{condition(api.Joined, "True", 1)},
		Properties:    map[string]api.PropertyValue{"kubernetes-fleet.io/node-count": {Value: "3"}, "k8s.io/k8s-version": {Value: "v1.36.3"}},
		ResourceUsage: api.ResourceUsage{Available: api.ResourceList{"cpu": resource.MustParse("3500m")}, Allocatable: api.ResourceList{"memory": resource.MustParse("7Gi")}},
		AgentStatus:   []api.AgentStatus{{Type: "Another", LastReceivedHeartbeat: metav1.NewTime(noon)}, {Type: api.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(noon.Add(-4 * time.Second))}},
	}
	unhealthy := condition(api.Healthy, "False", 1)
	unhealthy.Message = "no answer"
	east.Status.AgentStatus[1].Conditions = []metav1.Condition{unhealthy}
	status := &api.ClusterResourcePlacementStatus{ObjectMeta: metaOf("web", 0, time.Hour), LastUpdatedTime: metav1.NewTime(noon.Add(-time.Minute))}
	status.SourceStatus.ObservedResourceIndex = "7"
	for name, test := range map[string]struct {
		columns []Column
		meta    *metav1.ObjectMeta
		value   any
		want    string
	}{
		"a cluster-scoped placement":                        {Placements, &crp.ObjectMeta, crp, "Name=web Gen=5 (Type=PickN) Scheduled=True Scheduled-Gen=5 (Work-Synchronized=Unknown) (Work-Synchronized-Gen=4) Available=False Available-Gen=3 Age=2d2h (Clusters=2/3) (Applied=1/2) (Message=west: refused)"},
		"a namespaced one has conditions of its own prefix": {Placements, &rp.ObjectMeta, rp, "Name=db Gen=1 (Type=) Scheduled=False Scheduled-Gen=1 (Work-Synchronized=) (Work-Synchronized-Gen=) Available= Available-Gen= Age=60s (Clusters=0) (Applied=0/0) (Message=cannot)"},
		"a member":                  {Clusters, &east.ObjectMeta, east, "Name=east Joined=True Age=3d Member-Agent-Last-Seen=4s Node-Count=3 Available-CPU=3500m Available-Memory= (Allocatable-CPU=) (Allocatable-Memory=7Gi) (Healthy=False) (Version=v1.36.3) (Message=no answer)"},
		"a member that is new":      {Clusters, &metav1.ObjectMeta{Name: "west"}, &api.MemberCluster{}, "Name=west Joined= Age=<unknown> Member-Agent-Last-Seen= Node-Count= Available-CPU= Available-Memory= (Allocatable-CPU=) (Allocatable-Memory=) (Healthy=) (Version=) (Message=)"},
		"a reported status":         {PlacementStatusObjects, &status.ObjectMeta, status, "Name=web Resource-Index=7 Last-Updated=60s Age=60m"},
		"a manifest":                {Manifests, &crp.ObjectMeta, nil, "Name=web (Source=apps/web.yaml:3) Age=2d2h"},
		"an object of another kind": {Placements, &east.ObjectMeta, east, "Name=east Gen=1 (Type=) Scheduled= Scheduled-Gen= (Work-Synchronized=) (Work-Synchronized-Gen=) Available= Available-Gen= Age=3d (Clusters=0) (Applied=0/0) (Message=)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := show(test.columns, Row{test.meta, test.value, noon, nil}); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// A table without rows is an empty list in JSON, and has its header.
func TestTableWithoutRows(t *testing.T) {
	if table := Table(Placements, nil); table.Rows == nil || len(table.ColumnDefinitions) != len(Placements) {
		t.Errorf("%+v", table)
	}
}
