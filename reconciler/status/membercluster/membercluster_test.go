package membercluster

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/status/event"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// east returns the declared cluster east and what is known of it.
func east(seen *ledger.Cluster) Input {
	return Input{
		Declared: &hub.Cluster{
			MemberCluster: &api.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east", Annotations: map[string]string{"note": "x"}}},
			Origin:        api.Origin{Path: "clusters.yaml", Line: 4},
		},
		Known: ledger.Declared{Created: noon.Add(-time.Hour), Generation: 2, Commit: "v1"}, Seen: seen,
	}
}

// joined returns the record of a cluster that joined an hour ago and was probed now.
func joined(changes ...func(c *ledger.Cluster)) *ledger.Cluster {
	c := &ledger.Cluster{ClusterSeen: protocol.ClusterSeen{Cluster: "east", At: noon, Healthy: true}, Since: noon.Add(-10 * time.Minute), LastSeen: noon, Observed: noon, Joined: noon.Add(-time.Hour)}
	for _, change := range changes {
		change(c)
	}
	return c
}

func down(c *ledger.Cluster)      { c.Healthy, c.Error = false, "connection refused" }
func neverSeen(c *ledger.Cluster) { c.Joined = time.Time{}; down(c) }
func denied(c *ledger.Cluster) {
	c.Forbidden, c.ForbiddenSince = []string{"create deployments.apps"}, noon.Add(-5*time.Minute)
}

func unrenewed(c *ledger.Cluster) {
	c.Unrenewed, c.UnrenewedSince = "no such file", noon.Add(-3*time.Minute)
}

const unrenewedText = "the configured credentials cannot be used, and those from before are kept: no such file"

const deniedText = "permissions are missing: create deployments.apps: grant them to the user whose credentials gitfleet uses there"

// The conditions of a MemberCluster say whether it joined, whether it is healthy, what was read
// from it, and which permissions are missing, each since when.
func TestMemberClusterConditions(t *testing.T) {
	ago := func(minutes int) string {
		return " since " + noon.Add(-time.Duration(minutes)*time.Minute).Format(time.TimeOnly)
	}
	ready := "ReadyToJoin=True MemberClusterReadyToJoin: the credentials of the cluster are known" + ago(60)
	hasJoined := "Joined=True MemberClusterJoined: the cluster has answered" + ago(60)
	kept := "CredentialsRenewed=False CredentialsUnusable: " + unrenewedText + ago(3)
	missing := "PermissionsGranted=False PermissionsMissing: " + deniedText + ago(5)
	for name, test := range map[string]struct {
		seen    *ledger.Cluster
		foreign string
		want    []string
		agent   string // the condition Healthy
	}{
		"not probed yet": {nil, "", []string{"Joined=Unknown MemberClusterJoinStateUnknown: the cluster has not answered yet" + ago(0)}, ""},
		"never answered": {joined(neverSeen), "", []string{"Joined=Unknown MemberClusterJoinStateUnknown: the cluster has not answered yet: connection refused" + ago(10)}, ""},
		"never answered without an error": {joined(neverSeen, func(c *ledger.Cluster) { c.Error = "" }), "",
			[]string{"Joined=Unknown MemberClusterJoinStateUnknown: the cluster has not answered yet" + ago(10)}, ""},
		"never usable for lack of permissions": {joined(neverSeen, denied), "", []string{"Joined=Unknown MemberClusterJoinStateUnknown: " + deniedText + ago(10), missing}, ""},
		"healthy":                              {joined(), "", []string{ready, hasJoined}, "Healthy=True InternalMemberClusterHealthy: the API server is ready" + ago(10)},
		"unhealthy":                            {joined(down), "", []string{ready, hasJoined}, "Healthy=False InternalMemberClusterUnhealthy: connection refused" + ago(10)},
		"unhealthy without an error": {joined(func(c *ledger.Cluster) { c.Healthy = false }), "", []string{ready, hasJoined},
			"Healthy=False InternalMemberClusterUnhealthy: the API server is not ready" + ago(10)},
		"healthy, and permissions are missing": {joined(denied), "", []string{ready, hasJoined, missing}, "Healthy=True InternalMemberClusterHealthy: the API server is ready" + ago(10)},
		"unusable for lack of permissions":     {joined(down, denied), "", []string{ready, hasJoined, missing}, "Healthy=False Forbidden: " + deniedText + ago(10)},
		"new credentials are unusable": {joined(unrenewed), "", []string{ready, hasJoined, kept},
			"Healthy=True InternalMemberClusterHealthy: the API server is ready" + ago(10)},
		"down with unusable new credentials": {joined(down, unrenewed), "", []string{ready, hasJoined, kept},
			"Healthy=False InternalMemberClusterUnhealthy: connection refused" + ago(10)},
		"held by another fleet": {joined(), "another fleet holds this cluster", []string{ready, "Joined=False HeldByAnotherFleet: another fleet holds this cluster" + ago(60)},
			"Healthy=True InternalMemberClusterHealthy: the API server is ready" + ago(10)},
		"with properties and namespaces": {joined(func(c *ledger.Cluster) { c.Properties, c.Namespaces = map[string]string{}, []string{} }), "", []string{
			ready, hasJoined, "ClusterPropertyCollectionSucceeded=True ClusterPropertyCollectionSucceeded: the properties of the cluster have been read" + ago(60),
			"NamespaceCollectionSucceeded=True NamespaceCollectionSucceeded: the namespaces of the cluster have been read, all of them" + ago(60),
		}, "Healthy=True InternalMemberClusterHealthy: the API server is ready" + ago(10)},
		"with some properties": {joined(func(c *ledger.Cluster) { c.Properties, c.Unread = map[string]string{}, "read nodes: forbidden" }), "", []string{
			ready, hasJoined, "ClusterPropertyCollectionSucceeded=False ClusterPropertiesIncomplete: some properties of the cluster could not be read, and scheduling takes them for unknown: read nodes: forbidden" + ago(60),
		}, "Healthy=True InternalMemberClusterHealthy: the API server is ready" + ago(10)},
		"with old properties": {joined(func(c *ledger.Cluster) { c.Properties, c.Observed = map[string]string{}, noon.Add(-20*time.Minute) }), "", []string{
			ready, hasJoined, "ClusterPropertyCollectionSucceeded=False ClusterPropertiesStale: the properties of the cluster were last read at 2026-03-01T11:40:00Z: that is too long ago, and scheduling takes them for unknown" + ago(5),
		}, "Healthy=True InternalMemberClusterHealthy: the API server is ready" + ago(10)},
	} {
		t.Run(name, func(t *testing.T) {
			in := east(test.seen)
			in.Refusal = test.foreign
			o := in.Object(noon)
			show := func(c metav1.Condition) string {
				return c.Type + "=" + string(c.Status) + " " + c.Reason + ": " + c.Message + " since " + c.LastTransitionTime.Format(time.TimeOnly)
			}
			var got []string
			for _, c := range o.Status.Conditions {
				got = append(got, show(c))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("conditions\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			if test.agent == "" {
				if o.Status.AgentStatus != nil {
					t.Errorf("a cluster that never answered has an agent: %+v", o.Status.AgentStatus)
				}
				return
			}
			agent := o.Status.AgentStatus[0]
			if agent.Type != api.MemberAgent || !agent.LastReceivedHeartbeat.Time.Equal(noon) || len(agent.Conditions) != 2 || show(agent.Conditions[0]) != test.want[1] || show(agent.Conditions[1]) != test.agent {
				t.Errorf("agent %+v\nwant %s", agent, test.agent)
			}
		})
	}
}

// The metadata of a MemberCluster says where it comes from and whether it is suspended; the
// declared object is not changed.
func TestMemberClusterMetadata(t *testing.T) {
	in := east(joined())
	in.Suspended = "suspended by jo: INC-1"
	o := in.Object(noon)
	want := map[string]string{"note": "x", api.PathAnnotation: "clusters.yaml:4", api.CommitAnnotation: "v1", api.SuspendedAnnotation: "suspended by jo: INC-1"}
	if !maps.Equal(o.Annotations, want) || o.Generation != 2 || !o.CreationTimestamp.Time.Equal(noon.Add(-time.Hour)) || o.UID != metadata.ClusterUID("east", in.Known.Created) || o.Kind != "MemberCluster" {
		t.Errorf("metadata %+v", o.ObjectMeta)
	}
	if len(in.Declared.Annotations) != 1 {
		t.Errorf("the declared object was changed: %v", in.Declared.Annotations)
	}
	in.Declared.Annotations, in.Known.Commit, in.Suspended = nil, "", ""
	if o := in.Object(noon); !maps.Equal(o.Annotations, map[string]string{api.PathAnnotation: "clusters.yaml:4"}) {
		t.Errorf("annotations %v", o.Annotations)
	}
}

// Properties about resources are quantities in ResourceUsage; the others are in Properties. A
// resource that is not a quantity, or of an unknown sort, is left out.
func TestMemberClusterProperties(t *testing.T) {
	seen := joined(func(c *ledger.Cluster) {
		c.Namespaces = []string{"a", "b"}
		c.Properties = map[string]string{
			"kubernetes-fleet.io/node-count": "3", "resources.kubernetes-fleet.io/total-cpu": "12", "resources.kubernetes-fleet.io/allocatable-memory": "7Gi",
			"resources.kubernetes-fleet.io/available-nvidia.com/gpu": "1", "resources.kubernetes-fleet.io/total-memory": "much", "resources.kubernetes-fleet.io/available-memory": "1e2147483647", "resources.kubernetes-fleet.io/used-cpu": "1",
		}
	})
	s := east(seen).Object(noon).Status
	if len(s.Properties) != 1 || s.Properties["kubernetes-fleet.io/node-count"].Value != "3" || !s.Properties["kubernetes-fleet.io/node-count"].ObservationTime.Time.Equal(noon) {
		t.Errorf("properties %+v", s.Properties)
	}
	usage := func(l api.ResourceList) string {
		var out []string
		for _, name := range slices.Sorted(maps.Keys(l)) {
			q := l[name]
			out = append(out, fmt.Sprintf("%v=%s", name, q.String()))
		}
		return strings.Join(out, " ")
	}
	u := s.ResourceUsage
	if usage(u.Capacity) != "cpu=12" || usage(u.Allocatable) != "memory=7Gi" || usage(u.Available) != "nvidia.com/gpu=1" || !u.ObservationTime.Time.Equal(noon) {
		t.Errorf("usage %+v", u)
	}
	if !maps.Equal(s.Namespaces, map[string]string{"a": "", "b": ""}) {
		t.Errorf("namespaces %v", s.Namespaces)
	}
	if s := east(joined()).Object(noon).Status; s.Namespaces != nil || s.Properties != nil {
		t.Errorf("of a cluster whose namespaces were not read: %+v", s)
	}
}

// Clusters with the same namespaces share them.
func TestEqualNamespacesAreShared(t *testing.T) {
	known := namespaces([]string{"a", "b"}, nil)
	for _, test := range []struct {
		names  []string
		shared bool
	}{{[]string{"b", "a"}, true}, {[]string{"a", "c"}, false}, {[]string{"a"}, false}, {[]string{"a", "b", "c"}, false}, {[]string{}, false}} {
		got := namespaces(test.names, []map[string]string{nil, known})
		if want := slices.Sorted(slices.Values(test.names)); !slices.Equal(slices.Sorted(maps.Keys(got)), want) || got == nil {
			t.Errorf("%v, want %v", got, want)
		}
		if shared := reflect.ValueOf(got).Pointer() == reflect.ValueOf(known).Pointer(); shared != test.shared {
			t.Errorf("%v is shared: %t", test.names, shared)
		}
	}
}

// A change of a cluster is an event. Its first state after a restart is none.
func TestMemberClusterEvents(t *testing.T) {
	const isJoined = "Normal MemberClusterJoined the cluster has answered, and belongs to the fleet"
	downWith := func(text string) func(c *ledger.Cluster) {
		return func(c *ledger.Cluster) { c.Healthy, c.Error = false, text }
	}
	restored := func(c *ledger.Cluster) { c.Restored = protocol.Restore{At: noon, Why: "it went back"} }
	type state struct {
		seen    *ledger.Cluster
		foreign string
	}
	for name, test := range map[string]struct {
		was  *state // nil for the first report
		is   state
		want []string
	}{
		"not probed yet":                           {nil, state{}, nil},
		"the first report after a restart":         {nil, state{seen: joined(down)}, nil},
		"the first report about a new cluster":     {nil, state{seen: joined(neverSeen)}, []string{"Warning MemberClusterJoinStateUnknown the cluster has not answered yet: connection refused"}},
		"it still does not answer":                 {&state{seen: joined(neverSeen)}, state{seen: joined(neverSeen)}, nil},
		"it does not answer for another reason":    {&state{seen: joined(neverSeen)}, state{seen: joined(neverSeen, downWith("no route"))}, []string{"Warning MemberClusterJoinStateUnknown the cluster has not answered yet: no route"}},
		"it joins":                                 {&state{seen: joined(neverSeen)}, state{seen: joined()}, []string{isJoined}},
		"it joins before it was probed":            {&state{}, state{seen: joined()}, []string{isJoined}},
		"it joins and is unhealthy":                {&state{seen: joined(neverSeen)}, state{seen: joined(down)}, []string{isJoined, "Warning InternalMemberClusterUnhealthy connection refused"}},
		"it joins without permissions":             {&state{seen: joined(neverSeen)}, state{seen: joined(down, denied)}, []string{isJoined, "Warning PermissionsMissing " + deniedText}},
		"it becomes unhealthy":                     {&state{seen: joined()}, state{seen: joined(down)}, []string{"Warning InternalMemberClusterUnhealthy connection refused"}},
		"it stays unhealthy":                       {&state{seen: joined(down)}, state{seen: joined(downWith("no route"))}, nil},
		"it becomes healthy":                       {&state{seen: joined(down)}, state{seen: joined()}, []string{"Normal InternalMemberClusterHealthy the API server is ready again"}},
		"it becomes unusable without permissions":  {&state{seen: joined()}, state{seen: joined(down, denied)}, []string{"Warning PermissionsMissing " + deniedText}},
		"permissions are still missing":            {&state{seen: joined(denied)}, state{seen: joined(denied)}, nil},
		"permissions are granted":                  {&state{seen: joined(denied)}, state{seen: joined()}, []string{"Normal PermissionsGranted no permission is missing any more"}},
		"permissions are unknown while it is down": {&state{seen: joined(denied)}, state{seen: joined(down)}, []string{"Warning InternalMemberClusterUnhealthy connection refused"}},
		"new credentials cannot be used":           {&state{seen: joined()}, state{seen: joined(unrenewed)}, []string{"Warning CredentialsUnusable " + unrenewedText}},
		"they still cannot":                        {&state{seen: joined(unrenewed)}, state{seen: joined(unrenewed)}, nil},
		"they are used":                            {&state{seen: joined(unrenewed)}, state{seen: joined()}, []string{"Normal CredentialsRenewed the current credentials are in use"}},
		"it was restored":                          {&state{seen: joined()}, state{seen: joined(restored)}, []string{"Warning MemberClusterRestored it went back; everything there is read again, and what differs is repaired"}},
		"its restore is known":                     {&state{seen: joined(restored)}, state{seen: joined(restored)}, nil},
		"another fleet holds it":                   {&state{seen: joined()}, state{joined(), "held by b"}, []string{"Warning HeldByAnotherFleet held by b"}},
		"another fleet still holds it":             {&state{joined(), "held by b"}, state{joined(), "held by b"}, nil},
		"a third fleet holds it":                   {&state{joined(), "held by b"}, state{joined(), "held by c"}, []string{"Warning HeldByAnotherFleet held by c"}},
		"no other fleet holds it any more":         {&state{joined(), "held by b"}, state{seen: joined()}, []string{"Normal MemberClusterJoined no other fleet or member claims the cluster any more"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := east(test.is.seen)
			in.Refusal = test.is.foreign
			var old *Input
			if test.was != nil {
				was := east(test.was.seen)
				was.Refusal = test.was.foreign
				old = &was
			}
			got := in.Events(old, noon)
			if !slices.Equal(short(got), test.want) {
				t.Errorf("events %q\nwant %q", short(got), test.want)
			}
			for _, e := range got {
				if e.About() != "cluster/east" || e.UID != string(metadata.ClusterUID("east", in.Known.Created)) || !e.First.Equal(noon) || !e.Last.Equal(noon) || e.Count != 1 {
					t.Errorf("event %+v", e)
				}
			}
		})
	}
	left := LeftEvents("east", "uid", noon)
	if want := []string{"Normal MemberClusterLeft the cluster has left the fleet; what it holds stays there"}; !slices.Equal(short(left), want) || left[0].About() != "cluster/east" || left[0].UID != "uid" {
		t.Errorf("of a cluster that left: %+v", left)
	}
}

// short returns the type, the reason and the message of events.
func short(events []event.Event) (out []string) {
	for _, e := range events {
		out = append(out, e.Type+" "+e.Reason+" "+e.Message)
	}
	return out
}
