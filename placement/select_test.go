package placement_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// versions are the apiVersions of the kinds in the tests; other kinds have v1.
var versions = map[string]string{
	"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "ControllerRevision": "apps/v1",
	"EndpointSlice": "discovery.k8s.io/v1", "Widget": "example.com/v1", "Lease": "coordination.k8s.io/v1",
	"ClusterRole": "rbac.authorization.k8s.io/v1", "RoleBinding": "rbac.authorization.k8s.io/v1", "CustomResourceDefinition": "apiextensions.k8s.io/v1",
	"ResourceEnvelope": "placement.kubernetes-fleet.io/v1beta1", "ClusterResourceEnvelope": "placement.kubernetes-fleet.io/v1beta1",
	"ClusterResourceOverride": "placement.kubernetes-fleet.io/v1beta1", "MemberCluster": "cluster.kubernetes-fleet.io/v1beta1",
	"Job": "batch/v1", "Ingress": "networking.k8s.io/v1", "PriorityClass": "scheduling.k8s.io/v1",
}

// scope knows the kinds in the tests.
func scope(gk api.GroupKind) (namespaced, known bool) {
	if gk.Kind == "Widget" {
		return true, true
	}
	return api.Namespaced(gk)
}

// objects parses "Kind [namespace/]name key=value…" from each line. The words owned and type=T
// make an owned object and a Secret of a type; Kind@g/v has another apiVersion.
func objects(text string) []*api.Object {
	var all []*api.Object
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		kind, version, ok := strings.Cut(words[0], "@")
		if !ok {
			if version = versions[kind]; version == "" {
				version = "v1"
			}
		}
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetAPIVersion(version)
		u.SetKind(kind)
		u.SetName(words[1])
		if namespace, name, ok := strings.Cut(words[1], "/"); ok {
			u.SetNamespace(namespace)
			u.SetName(name)
		}
		labels := map[string]string{}
		for _, word := range words[2:] {
			key, value, _ := strings.Cut(word, "=")
			switch key {
			case "owned":
				u.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Deployment", Name: value}})
			case "type":
				u.Object["type"] = value
			default:
				labels[key] = value
			}
		}
		u.SetLabels(labels)
		all = append(all, &api.Object{ID: api.IDOf(u), Content: u})
	}
	return all
}

func theHub() []*api.Object {
	return objects(`
		Namespace app team=a
		Namespace web team=a
		Namespace kube-system
		Namespace default team=b
		Deployment app/d1 tier=fe
		Deployment app/d2
		ReplicaSet app/d1-abc owned=d1
		Service app/s1
		Endpoints app/s1
		Endpoints app/manual
		EndpointSlice app/s1-x endpointslice.kubernetes.io/managed-by=c
		ConfigMap app/kube-root-ca.crt
		ConfigMap app/c1
		ServiceAccount app/default
		ServiceAccount app/sa1
		Secret app/tok type=kubernetes.io/service-account-token
		Secret app/tls type=kubernetes.io/tls
		Pod app/p
		PersistentVolumeClaim app/v1
		ResourceEnvelope app/e1
		Widget app/w1
		Lease app/l
		Event app/ev
		ConfigMap web/w tier=fe
		ClusterRole cr1 tier=fe
		ClusterRole cr2
		ClusterResourceEnvelope ce1
		CustomResourceDefinition widgets.example.com`)
}

// selectors parses "Kind [name | labels in parentheses] [scope]" from each part.
func selectors(text string) []api.ResourceSelectorTerm {
	var all []api.ResourceSelectorTerm
	for _, part := range strings.Split(text, ";") {
		words := strings.Fields(part)
		kind, version, ok := strings.Cut(words[0], "@")
		if !ok {
			if version = versions[kind]; version == "" {
				version = "v1"
			}
		}
		gv, err := schema.ParseGroupVersion(version)
		if err != nil {
			panic(err)
		}
		t := api.ResourceSelectorTerm{Group: gv.Group, Version: gv.Version, Kind: kind}
		for _, word := range words[1:] {
			switch scope := api.SelectionScope(word); scope {
			case api.NamespaceOnly, api.NamespaceWithResources, api.NamespaceWithResourceSelectors:
				t.SelectionScope = scope
			default:
				if inner, isLabels := strings.CutPrefix(word, "("); isLabels {
					t.LabelSelector = labelsOf(strings.TrimSuffix(inner, ")"))
				} else {
					t.Name = word
				}
			}
		}
		all = append(all, t)
	}
	return all
}

func ids(list []*api.Object) string {
	var names []string
	for _, o := range list {
		names = append(names, o.ID.Kind+" "+o.ID.Name)
	}
	return strings.Join(names, ", ")
}

const (
	invalid = "The resource selectors are invalid: failed to process the request due to a client error: "

	inApp = "ServiceAccount sa1, Secret tls, ConfigMap c1, PersistentVolumeClaim v1, Service s1, Deployment d1, Deployment d2, " +
		"Endpoints manual, Widget w1, ResourceEnvelope e1"
	inAppWithCRD = "ServiceAccount sa1, Secret tls, ConfigMap c1, PersistentVolumeClaim v1, CustomResourceDefinition widgets.example.com, Service s1, " +
		"Deployment d1, Deployment d2, Endpoints manual, Widget w1, ResourceEnvelope e1"
)

func TestSelect(t *testing.T) {
	rp := api.PlacementKey{Namespace: "app", Name: "rp"}
	inSystem := api.PlacementKey{Namespace: "kube-system", Name: "rp"}
	tests := map[string]struct {
		key       api.PlacementKey // zero stands for the ClusterResourcePlacement crp
		hub       []*api.Object    // nil stands for theHub
		selectors string
		want      string
		invalid   string
		warnings  []string
	}{
		"1: a namespace and what is in it": {
			selectors: "Namespace app", want: "Namespace app, " + inApp},
		"2: claims always go, a Git hub runs nothing": {
			selectors: "Namespace app NamespaceWithResources", want: "Namespace app, " + inApp},
		"3: namespaces by label": {
			selectors: "Namespace (team=a)",
			want:      strings.Replace("Namespace app, Namespace web, "+inApp, "ConfigMap c1", "ConfigMap c1, ConfigMap w", 1)},
		"4: a reserved namespace is left out": {
			selectors: "Namespace (team=b)",
			warnings:  []string{"spec.resourceSelectors[0]: namespace default is reserved and left out"}},
		"5: and the rest stands": {
			selectors: "Namespace NamespaceOnly", want: "Namespace app, Namespace web",
			warnings: []string{
				"spec.resourceSelectors[0]: namespace default is reserved and left out",
				"spec.resourceSelectors[0]: namespace kube-system is reserved and left out",
			}},
		"6: a reserved namespace by name is an error": {
			selectors: "Namespace kube-system NamespaceOnly",
			invalid: "invalid clusterRresourcePlacement crp: namespace kube-system is not allowed to propagate" +
				"; to place single objects in it, select them by name in a ResourcePlacement of namespace kube-system"},
		"also when it does not exist": {
			selectors: "ClusterRole cr1; Namespace fleet-member-1",
			invalid: "invalid clusterRresourcePlacement crp: namespace fleet-member-1 is not allowed to propagate" +
				"; to place single objects in it, select them by name in a ResourcePlacement of namespace fleet-member-1"},
		"7: the namespace alone": {
			selectors: "Namespace app NamespaceOnly; ClusterRole", want: "Namespace app, ClusterRole cr1, ClusterRole cr2"},
		"8: a choice of what is in it": {
			selectors: "Deployment (tier=fe); ClusterRole cr2; Namespace app NamespaceWithResourceSelectors",
			want:      "Namespace app, ClusterRole cr2, Deployment d1"},
		"9: a namespaced kind needs a namespace": {
			selectors: "Deployment d1",
			invalid:   "invalid placement /crp: cannot select namespace-scoped resource apps/v1, Resource=deployments in a clusterResourcePlacement"},
		"9: of the core group": {
			selectors: "Secret",
			invalid:   "invalid placement /crp: cannot select namespace-scoped resource /v1, Resource=secrets in a clusterResourcePlacement"},
		"10: reached twice, taken once": {
			selectors: "Namespace app NamespaceOnly; Namespace (team=a) NamespaceOnly", want: "Namespace app, Namespace web",
			warnings: []string{"spec.resourceSelectors[1]: Namespace/app: spec.resourceSelectors[0] selects it already, and it is taken once"}},
		"11: a name of nothing": {
			selectors: "ClusterRole missing",
			warnings:  []string{`spec.resourceSelectors[0]: there is no ClusterRole "missing" in the repository, so this selects nothing`}},
		"12: a kind that stays at home": {
			selectors: "Node", warnings: []string{"spec.resourceSelectors[0]: Node is never propagated, so this selects nothing"}},
		"13: an envelope stands for its contents": {
			selectors: "ClusterResourceEnvelope ce1", want: "ClusterResourceEnvelope ce1"},
		"14: a ResourcePlacement takes from its own namespace": {
			key: rp, selectors: "Secret", want: "Secret tls"},
		"15: what every cluster has": {
			key: rp, selectors: "ConfigMap kube-root-ca.crt",
			warnings: []string{"spec.resourceSelectors[0]: ConfigMap/app/kube-root-ca.crt is never propagated: every cluster makes its own"}},
		"16: a ResourcePlacement stays in its namespace": {
			key: rp, selectors: "ClusterRole cr1",
			invalid: "invalid placement app/rp: cannot select cluster-scoped resource rbac.authorization.k8s.io/v1, Resource=clusterroles in a resourcePlacement"},
		"16: and does not place namespaces": {
			key: rp, selectors: "Namespace app", invalid: "invalid placement app/rp: cannot select cluster-scoped resource Namespace in a resourcePlacement"},
		"17: the namespace to choose from is missing": {
			selectors: "Namespace gone NamespaceWithResourceSelectors",
			invalid:   "invalid clusterResourcePlacement crp: NamespaceWithResourceSelectors mode requires exactly one namespace, but no namespaces were selected"},
		"17: or misspelt": {
			selectors: "Namespace ap NamespaceWithResourceSelectors",
			invalid:   "invalid clusterResourcePlacement crp: NamespaceWithResourceSelectors mode requires exactly one namespace, but no namespaces were selected; did you mean app?"},
		"17: or reserved": {
			selectors: "Namespace default NamespaceWithResourceSelectors",
			invalid: "invalid clusterRresourcePlacement crp: namespace default is not allowed to propagate" +
				"; to place single objects in it, select them by name in a ResourcePlacement of namespace default"},
		"an object in a reserved namespace by name": {
			key: inSystem, hub: objects("RoleBinding kube-system/prometheus"), selectors: "RoleBinding prometheus",
			want: "RoleBinding prometheus"},
		"no object in a reserved namespace by kind or label": {
			key: inSystem, hub: objects("RoleBinding kube-system/prometheus a=b"), selectors: "RoleBinding; RoleBinding (a=b)",
			warnings: []string{
				"spec.resourceSelectors[0]: namespace kube-system is reserved, so this selects nothing: name each object to place",
				"spec.resourceSelectors[1]: namespace kube-system is reserved, so this selects nothing: name each object to place",
			}},
		"18: the definitions are cluster-scoped": {
			selectors: "CustomResourceDefinition widgets.example.com; Namespace app",
			want:      "Namespace app, " + inAppWithCRD},
		"19: the documented sample": {
			hub:       objects("Namespace test\nConfigMap test/test-1\nConfigMap test/kube-root-ca.crt\nServiceAccount test/default"),
			selectors: "Namespace test", want: "Namespace test, ConfigMap test-1"},
		"20: an envelope in a ConfigMap": {
			hub:       objects("ConfigMap app/envelope-configmap\nNamespace app"),
			selectors: "Namespace app", want: "Namespace app, ConfigMap envelope-configmap"},
		"21: the documented sample by label": {
			hub:       objects("Namespace web-1 app=web-1\nNamespace web-2 app=web-2\nService web-1/x\nService web-2/x"),
			selectors: "Namespace (app=web-2)", want: "Namespace web-2, Service x"},

		"labels of a namespace do not filter its contents": {
			hub:       objects("Namespace n team=a\nSecret n/s team=b"),
			selectors: "Namespace (team=a)", want: "Namespace n, Secret s"},
		"the rest of a namespace is not selected with NamespaceWithResourceSelectors": {
			selectors: "Namespace app NamespaceWithResourceSelectors", want: "Namespace app"},
		"nothing is valid": {
			selectors: "ClusterRole (tier=none)",
			warnings:  []string{"spec.resourceSelectors[0]: no ClusterRole in the repository has such labels, so this selects nothing"}},
		"the empty selector matches everything": {
			selectors: "ClusterRole ()", want: "ClusterRole cr1, ClusterRole cr2"},
		"another version": {
			key: rp, selectors: "Deployment@apps/v1beta1 d1",
			warnings: []string{"spec.resourceSelectors[0]: no Deployment is written in version v1beta1, so this selects nothing; the repository has v1"}},
		"a kind nobody knows": {
			selectors: "Gadget@example.com/v1 g",
			warnings:  []string{"spec.resourceSelectors[0]: no object, no CustomResourceDefinition and no built-in kind is a Gadget.example.com, so this selects nothing; did you mean Widget.example.com?"}},
		"names that are misspelt": {
			hub: objects("Namespace hello\nConfigMap hello/settings\nConfigMap other/setings"), key: api.PlacementKey{Namespace: "hello", Name: "rp"}, selectors: "ConfigMap setings",
			warnings: []string{`spec.resourceSelectors[0]: there is no ConfigMap "setings" in namespace "hello", so this selects nothing; did you mean settings?`}},
		"a Namespace that is misspelt": {
			hub: objects("Namespace hello"), selectors: "Namespace helo",
			warnings: []string{`spec.resourceSelectors[0]: there is no Namespace "helo" in the repository, so this selects nothing; did you mean hello?`}},
		"kinds that are misspelt": {
			selectors: "Namespce@v1 x; Deployment@v1 x; Deploymnt@v1 x; ClusterRol@rbac.authorization.k8s.io/v1 x",
			warnings: []string{
				"spec.resourceSelectors[0]: no object, no CustomResourceDefinition and no built-in kind is a Namespce, so this selects nothing; did you mean Namespace?",
				"spec.resourceSelectors[1]: no object, no CustomResourceDefinition and no built-in kind is a Deployment, so this selects nothing; did you mean Deployment.apps?",
				"spec.resourceSelectors[2]: no object, no CustomResourceDefinition and no built-in kind is a Deploymnt, so this selects nothing; did you mean Deployment.apps?",
				"spec.resourceSelectors[3]: no object, no CustomResourceDefinition and no built-in kind is a ClusterRol.rbac.authorization.k8s.io, so this selects nothing; did you mean ClusterRole.rbac.authorization.k8s.io?",
			}},
		"a kind known by its objects, without a namespace": {
			hub: objects("Gadget@example.com/v1 g"), selectors: "Gadget@example.com/v1", want: "Gadget g"},
		"a kind known by its objects, with a namespace": {
			hub: objects("Gadget@example.com/v1 app/g"), selectors: "Gadget@example.com/v1",
			invalid: "invalid placement /crp: cannot select namespace-scoped resource example.com/v1, Resource=gadgets in a clusterResourcePlacement"},
		"a namespace without its manifest": {
			hub: objects("Secret app/a\nSecret app/b"), selectors: "Namespace app",
			warnings: []string{`spec.resourceSelectors[0]: there is no Namespace "app" in the repository, so this selects nothing; 2 object(s) say that they are in it: add its manifest`}},
		"what tells gitfleet what to do is no content": {
			hub: objects("MemberCluster m\nClusterResourceOverride o"), selectors: "MemberCluster; ClusterResourceOverride",
			warnings: []string{
				"spec.resourceSelectors[0]: MemberCluster is never propagated, so this selects nothing",
				"spec.resourceSelectors[1]: ClusterResourceOverride is never propagated, so this selects nothing",
			}},
		"a ReplicaSet of its own": {
			key: rp, hub: objects("ReplicaSet app/mine\nReplicaSet app/theirs owned=d\nJob app/j owned=cron"),
			selectors: "ReplicaSet; Job", want: "ReplicaSet mine, Job j"},
		"gitfleet's own namespace is nobody's": {
			key: api.PlacementKey{Namespace: "gitfleet-system", Name: "x"}, selectors: "Secret",
			invalid: "invalid placement gitfleet-system/x: namespace gitfleet-system is not allowed to propagate"},
		"the rank is of the kind's name, whatever its group": {
			hub:       objects("Namespace n\nService@serving.knative.dev/v1 n/k\nService n/z\nDeployment n/d\nConfigMap n/c\nAlpha@a.io/v1 n/a\nPriorityClass p"),
			selectors: "Namespace n; PriorityClass", want: "PriorityClass p, Namespace n, ConfigMap c, Service k, Service z, Deployment d, Alpha a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.key == (api.PlacementKey{}) {
				test.key.Name = "crp"
			}
			if test.hub == nil {
				test.hub = theHub()
			}
			terms := placement.Terms{
				Key: test.key, Scope: scope,
				Spec: &api.PlacementSpec{ResourceSelectors: selectors(test.selectors)},
			}
			got := placement.Select(terms, placement.NewIndex(test.hub))
			if ids(got.Objects) != test.want {
				t.Errorf("selected\n%s\nwant\n%s", ids(got.Objects), test.want)
			}
			if want := test.invalid; want != "" && got.Invalid != invalid+want || want == "" && got.Invalid != "" {
				t.Errorf("invalid:\n%s\nwant\n%s", got.Invalid, want)
			}
			var warnings []string
			for _, w := range got.Warnings {
				warnings = append(warnings, w.String())
			}
			if !slices.Equal(warnings, test.warnings) {
				t.Errorf("warnings\n%s\nwant\n%s", strings.Join(warnings, "\n"), strings.Join(test.warnings, "\n"))
			}

			for _, w := range warnings {
				field, text, _ := strings.Cut(w, ": ")
				kept := strings.Contains(text, "never propagated") || strings.Contains(text, "is reserved")
				nothing := strings.Contains(text, "so this selects nothing") && !kept
				if unmatched := slices.ContainsFunc(got.Unmatched, func(i int) bool { return field == "spec.resourceSelectors["+strconv.Itoa(i)+"]" }); unmatched != nothing {
					t.Errorf("selectors that match nothing: %v; warned: %s", got.Unmatched, w)
				}
			}

			slices.Reverse(test.hub)
			if again := placement.Select(terms, placement.NewIndex(test.hub)); ids(again.Objects) != ids(got.Objects) {
				t.Errorf("from the reversed hub: %s", ids(again.Objects))
			}
		})
	}
}

func TestInvalidSelectorsNameTheirField(t *testing.T) {
	s := placement.Select(placement.Terms{
		Key: crp, Scope: scope,
		Spec: &api.PlacementSpec{ResourceSelectors: selectors("ClusterRole; Secret; Deployment")},
	}, placement.NewIndex(theHub()))
	if s.InvalidField != "spec.resourceSelectors[1]" || s.Objects != nil {
		t.Errorf("error in %s with %d objects, want in the second selector with none", s.InvalidField, len(s.Objects))
	}
}

// Objects that describe one cluster or configure gitfleet are selected neither with their
// namespace nor by their kind.
func TestSomeKindsAreNeverSelected(t *testing.T) {
	hub := objects(`
		Namespace app
		ConfigMap app/c
		Lease app/l
		Deployment app/d
		MemberCluster m`)
	s := placement.Select(placement.Terms{
		Key: crp, Scope: scope, Spec: &api.PlacementSpec{ResourceSelectors: selectors("Namespace; MemberCluster")},
	}, placement.NewIndex(hub))
	if got, want := ids(s.Objects), "Namespace app, ConfigMap c, Deployment d"; got != want {
		t.Errorf("selected\n%s\nwant\n%s", got, want)
	}
}
