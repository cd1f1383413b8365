package hub

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
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
	limits := Limits{}.withDefaults()
	limits.Documents = limits.Objects
	out, words := &clusterReader{}, document.Vocabulary{}
	problems := document.Read(name, data, limits.documents(), func(r *document.Report, root *yaml.Node) (more bool) {
		c := &document.Decoder{Report: r, Limits: limits.documents(), Words: words, OwnKind: document.IsOwnKind(root)}
		if value, ok := c.Decode(root); ok {
			out.read(r, value)
		}
		return true
	})
	problems = append(problems, out.repeated()...)
	if len(out.clusters) == 0 && !problems.HasErrors() {
		problems = append(problems, problem.Problem{Origin: api.Origin{Path: name}, Severity: problem.Error, Message: "has no MemberCluster"})
	}
	if problems = problems.Sort(); problems.HasErrors() {
		return nil, &LoadError{problems}
	}
	return out.clusters, nil
}

// clusterReader collects the clusters of one file.
type clusterReader struct{ clusters []ObservedCluster }

func (o *clusterReader) read(r *document.Report, value any) {
	object, ok := value.(map[string]any)
	if !ok {
		r.Errorf(r.Object, "not a MemberCluster but %s", document.Describe(value))
		return
	}
	gvk, ok := kindOf(r, object)
	if !ok {
		return
	}
	items, isList := object["items"].([]any)
	switch {
	case isList && strings.HasSuffix(gvk.Kind, "List"):
		o.readList(r, gvk, items)
	case gvk.GroupKind() != memberKind:
		r.Errorf(r.Field("kind"), "%s is no MemberCluster of %s; this file holds nothing else", gvk.Kind, api.ClusterGroup)
	default:
		o.cluster(r, gvk, object)
	}
}

var memberKind = api.GroupKind{Group: api.ClusterGroup, Kind: "MemberCluster"}

func (o *clusterReader) readList(r *document.Report, list schema.GroupVersionKind, items []any) {
	for i, value := range items {
		sub := r.Item(i)
		if object, ok := value.(map[string]any); ok && list.Kind == memberKind.Kind+"List" {
			inheritKind(object, list)
		}
		o.read(sub, value)
		r.Merge(sub)
	}
}

func (o *clusterReader) cluster(r *document.Report, gvk schema.GroupVersionKind, object map[string]any) {
	name, _, ok := identity(r, object)
	if !ok {
		return
	}
	status, seen := object["status"].(map[string]any)
	completeConditions(status)
	it := &item{id: api.ID{Group: gvk.Group, Kind: gvk.Kind, Name: name}, origin: r.Origin}
	if declare(r, it, gvk, object) {
		o.clusters = append(o.clusters, ObservedCluster{it.cluster, seen})
	}
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

// repeated reports duplicate names. It leaves the clusters sorted.
func (o *clusterReader) repeated() problem.List {
	slices.SortStableFunc(o.clusters, func(a, b ObservedCluster) int { return strings.Compare(a.Name, b.Name) })
	var problems problem.List
	for i := 1; i < len(o.clusters); i++ {
		if first, second := o.clusters[i-1], o.clusters[i]; first.Name == second.Name {
			problems = append(problems, problem.Problem{Origin: second.Origin, Field: "metadata.name", Severity: problem.Error,
				Message: "MemberCluster " + second.Name + " is at " + first.Origin.String() + " as well; remove one of them"})
		}
	}
	return problems
}
