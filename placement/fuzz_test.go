package placement_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// For every policy there is a result, scheduling again with that result gives the same one, and
// it can be explained.
func FuzzSchedule(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"placementType":"PickN","numberOfClusters":-1}`, `{"placementType":"PickFixed","clusterNames":["m1","m1","x",""]}`,
		`{"placementType":"PickN","numberOfClusters":3,"topologySpreadConstraints":[{"topologyKey":"region","maxSkew":0},{"topologyKey":"","whenUnsatisfiable":"Never"}]}`,
		`{"placementType":"PickN","numberOfClusters":2147483647,"affinity":{"clusterAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[
			{"weight":2147483647,"preference":{"propertySorter":{"name":"rating","sortOrder":"Up"}}},
			{"weight":-7,"preference":{"labelSelector":{"matchExpressions":[{"key":"env","operator":"In"}]}}}]}}}`,
		`{"affinity":{"clusterAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"clusterSelectorTerms":[
			{"propertySelector":{"matchExpressions":[{"name":"rating","operator":"Gt","values":["1e400"]},{"name":"","operator":"","values":[]}]}}]}},
			"placementAffinity":[{"name":""}]},"tolerations":[{}]}`,
	} {
		f.Add(seed)
	}
	fleet := theFleet().tainted("m2")
	f.Fuzz(func(t *testing.T, text string) {
		var p api.PlacementPolicy
		if json.Unmarshal([]byte(text), &p) != nil {
			return
		}
		r := placement.Request{Key: crp, Policy: &p, Clusters: fleet, Bindings: bound(nil, "m1 *m5 -m6 gone")}
		first := placement.Schedule(r)
		if len(placement.Explain(r)) != len(first.Decisions) {
			t.Error("not every decision is explained")
		}
		if p.PlacementType == api.PickN && p.NumberOfClusters != nil && first.Found > max(0, int(*p.NumberOfClusters)) {
			t.Errorf("%d are selected of %d", first.Found, *p.NumberOfClusters)
		}
		r.Bindings = first.Bindings
		if again := placement.Schedule(r); !reflect.DeepEqual(again, first) {
			t.Errorf("first\n%s\nagain\n%s", tell(first), tell(again))
		}
	})
}

// For all selectors, the selection is sorted and has neither duplicates nor objects that may
// not be propagated.
func FuzzSelect(f *testing.F) {
	for _, seed := range []string{
		`[{"group":"","version":"v1","kind":"Namespace"}]`,
		`[{"version":"v1","kind":"Namespace","name":"app"},{"version":"v1","kind":"Namespace","labelSelector":{"matchLabels":{"team":"a"}}}]`,
		`[{"version":"v1","kind":"Namespace","selectionScope":"NamespaceWithResourceSelectors"},{"version":"v1","kind":"Secret"}]`,
		`[{"version":"v1","kind":"Namespace","name":"app","selectionScope":"NamespaceWithResourceSelectors"},{"version":"v1","kind":"Secret"}]`,
		`[{"group":"rbac.authorization.k8s.io","version":"v1","kind":"ClusterRole","labelSelector":{"matchExpressions":[{"key":"!","operator":"Exists"}]}}]`,
		`[{"kind":""},{"group":"apps","version":"v1","kind":"Deployment","selectionScope":"Somewhere"}]`,
	} {
		f.Add(seed, "")
		f.Add(seed, "app")
	}
	x := placement.NewIndex(theHub())
	f.Fuzz(func(t *testing.T, text, namespace string) {
		var spec api.PlacementSpec
		if json.Unmarshal([]byte(text), &spec.ResourceSelectors) != nil {
			return
		}
		s := placement.Select(placement.Terms{Key: api.PlacementKey{Namespace: namespace, Name: "p"}, Spec: &spec, Scope: scope}, x)
		if s.Invalid != "" && s.Objects != nil {
			t.Errorf("invalid, and selects %s", ids(s.Objects))
		}
		seen := map[api.ID]bool{}
		for _, o := range s.Objects {
			switch {
			case seen[o.ID]:
				t.Errorf("%s is selected twice", o.ID)
			case placement.NeverPropagated(o.Content.GroupVersionKind()):
				t.Errorf("%s is selected", o.ID)
			case o.ID.Kind == "Namespace" && api.ReservedNamespace(o.ID.Name):
				t.Errorf("%s is reserved", o.ID)
			case namespace != "" && o.ID.Namespace != namespace:
				t.Errorf("%s is not of the namespace %s", o.ID, namespace)
			case strings.HasPrefix(o.ID.Name, "kube-root-ca"):
				t.Errorf("%s is every cluster's own", o.ID)
			}
			seen[o.ID] = true
		}
	})
}
