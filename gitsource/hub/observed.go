package hub

import (
	"math"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// An ObservedCluster is a MemberCluster with an observed status.
type ObservedCluster struct {
	*Cluster
	// Seen says that the file has a status for the cluster, possibly an empty one.
	Seen bool
}

// ReadClusters reads MemberClusters with their status, such as a dump of a fleet, from YAML or
// JSON documents or a list. They are sorted by name, and defaulted and validated like those of
// a commit, except that conditions need only a type and a status. The error is a *LoadError
// with file, line and field.
func ReadClusters(name string, data []byte) ([]ObservedCluster, error) {
	limits := limit.Limits{}.WithDefaults()
	limits.Documents = limits.Objects
	var clusters []ObservedCluster
	problems := document.Read(name, data, limits, math.MaxInt64, func(r *document.Report, value any) {
		eachObject(r, value, "not a MemberCluster but %s", func(r *document.Report, gvk runtimeschema.GroupVersionKind, object map[string]any) {
			if cluster, ok := observedCluster(r, gvk, object); ok {
				clusters = append(clusters, cluster)
			}
		})
	}).Problems
	slices.SortStableFunc(clusters, func(a, b ObservedCluster) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(clusters); i++ {
		if first, second := clusters[i-1], clusters[i]; first.Name == second.Name {
			problems = append(problems, problem.Problem{Origin: second.Origin, Field: "metadata.name", Severity: problem.Error,
				Message: "MemberCluster " + second.Name + " is at " + first.Origin.String() + " as well; remove one of them"})
		}
	}
	if len(clusters) == 0 && !problems.HasErrors() {
		problems = append(problems, problem.Problem{Origin: api.Origin{Path: name}, Severity: problem.Error, Message: "has no MemberCluster"})
	}
	if problems = problems.Sort(); problems.HasErrors() {
		return nil, &LoadError{Problems: problems}
	}
	return clusters, nil
}

func observedCluster(r *document.Report, gvk runtimeschema.GroupVersionKind, object map[string]any) (ObservedCluster, bool) {
	if gvk.Group != api.ClusterGroup || gvk.Kind != "MemberCluster" {
		r.Errorf(r.Field("kind"), "%s is no MemberCluster of %s; this file holds nothing else", gvk.Kind, api.ClusterGroup)
		return ObservedCluster{}, false
	}
	name, _, ok := identity(r, object)
	if !ok {
		return ObservedCluster{}, false
	}
	status, seen := object["status"].(map[string]any)
	completeConditions(status)
	it := &item{id: api.ID{Group: gvk.Group, Kind: gvk.Kind, Name: name}, origin: r.Origin}
	ok = decodeOwnKind(r, it, gvk, object)
	return ObservedCluster{it.cluster, seen}, ok
}

// completeConditions sets the required fields of conditions that are not used, so that users
// can write the status by hand.
func completeConditions(status map[string]any) {
	lists := []any{status["conditions"]}
	agents, _ := status["agentStatus"].([]any)
	for _, a := range agents {
		if agent, ok := a.(map[string]any); ok {
			lists = append(lists, agent["conditions"])
		}
	}
	for _, l := range lists {
		list, _ := l.([]any)
		for _, c := range list {
			condition, ok := c.(map[string]any)
			if !ok {
				continue
			}
			for key, value := range map[string]string{"reason": "", "message": "", "lastTransitionTime": "0001-01-01T00:00:00Z"} {
				if condition[key] == nil {
					condition[key] = value
				}
			}
		}
	}
}
