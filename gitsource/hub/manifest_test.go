package hub

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// parse parses one file. It returns its items as IDs and its problems.
func parse(text string) (ids, problems []string) {
	result := parseFile("a.yaml", []byte(text), Limits{}.WithDefaults(), math.MaxInt64)
	for _, it := range result.items {
		ids = append(ids, it.id.String())
	}
	for _, p := range result.Problems {
		problems = append(problems, strings.TrimPrefix(p.Marked(), "a.yaml:1: "))
	}
	return ids, problems
}

func checkLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n  %s\nwant:\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// one returns the text as the only line of a list; nil for an empty text.
func one(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// A manifest that no API server could accept is refused at its field.
func TestManifestsAreObjects(t *testing.T) {
	const ignore = "; if the file is not meant for the fleet, list it in .gitfleetignore"
	const controls = "metadata: {name: a, namespace: b, ownerReferences: [{name: c}]}}"
	for text, want := range map[string]string{
		"{apiVersion: v1, kind: Namespace, metadata: {name: a}}": "",
		"text":                                   "not a Kubernetes object but text" + ignore,
		"[{apiVersion: v1}]":                     "not a Kubernetes object but a list" + ignore,
		"{a: !Ref b, c: {'': d}}":                "not a Kubernetes object, since it has no apiVersion and no kind" + ignore,
		"{a: b}":                                 "not a Kubernetes object, since it has no apiVersion and no kind" + ignore,
		"{apiVersion: v1, metadata: {name: a}}":  "kind: missing: a Kubernetes object has apiVersion, kind and metadata.name" + ignore,
		"{kind: Namespace, metadata: {name: a}}": "apiVersion: missing: a Kubernetes object has apiVersion, kind and metadata.name" + ignore,
		"{apiVersion: '', kind: Namespace}":      "apiVersion: missing: a Kubernetes object has apiVersion, kind and metadata.name" + ignore,
		"{apiVersion: 1, kind: Namespace}":       "apiVersion: must be a string, not a number",
		"{apiVersion: a/b/c, kind: Namespace}":   `apiVersion: "a/b/c" is not a group and version; write one such as v1 or apps/v1`,
		"{apiVersion: V1, kind: Namespace}":      `apiVersion: "V1" is not a group and version; write one such as v1 or apps/v1`,
		"{apiVersion: a_b/v1, kind: A}":          `apiVersion: "a_b/v1" is not a group and version; write one such as v1 or apps/v1`,
		"{apiVersion: v1, kind: two words}":      `kind: "two words" is not a kind; write one such as ConfigMap`,
		"{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization}":         "kind: a Kustomization is read only from a file named kustomization.yaml; rename the file",
		"{apiVersion: v1, kind: Namespace}":                                          "metadata: missing; give the object a name, or, if the file is not meant for the fleet, list it in .gitfleetignore",
		"{apiVersion: kind.x-k8s.io/v1alpha4, kind: Cluster, nodes: []}":             "metadata: missing; give the object a name, or, if the file is not meant for the fleet, list it in .gitfleetignore",
		"{apiVersion: v1, kind: Namespace, metadata: []}":                            "metadata: must be a mapping, not a list",
		"{apiVersion: v1, kind: Namespace, metadata: {}}":                            "metadata.name: missing; give the object a name",
		"{apiVersion: v1, kind: Namespace, metadata: {generateName: a-}}":            "metadata.generateName: objects with only generate name are not supported; write metadata.name",
		"{apiVersion: v1, kind: Namespace, metadata: {name: 3}}":                     "metadata.name: must be a string, not a number; put it in quotes",
		"{apiVersion: v1, kind: Namespace, metadata: {name: a/b}}":                   `metadata.name: "a/b" is not a valid name: it may not contain '/'`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: "a\tb"}}`:                `metadata.name: "a\tb" is not a valid name: it contains control characters`,
		"{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: ..}}":            `metadata.namespace: ".." is not a valid name: it may not be '..'`,
		"{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: [b]}}":           "metadata.namespace: must be a string, not a list; put it in quotes",
		"{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: b}}":          "metadata.labels: must be a mapping, not text",
		"{apiVersion: v1, kind: Pod, metadata: {name: a}}":                           "metadata.namespace: missing: a Pod is namespaced; write the namespace",
		"{apiVersion: v1, kind: Namespace, metadata: {name: a, namespace: b}}":       "metadata.namespace: a Namespace is cluster-scoped; this is ignored, remove it (warning)",
		"{apiVersion: apps/v1, kind: ReplicaSet, " + controls:                        "metadata.ownerReferences: left out: this ReplicaSet was made by a controller, which makes it again on each member; remove it (warning)",
		"{apiVersion: apps/v1, kind: ControllerRevision, " + controls:                "metadata.ownerReferences: left out: this ControllerRevision was made by a controller, which makes it again on each member; remove it (warning)",
		"{apiVersion: v1, kind: Pod, " + controls:                                    "metadata.ownerReferences: left out, since only a server or gitfleet fills it in; remove it from the file (warning)",
		"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a, namespace: b}}": "",
	} {
		_, problems := parse(text)
		checkLines(t, text, problems, one(want))
	}
	_, problems := parse("{apiVersion: v1, kind: Namespace, metadata: {name: a, annotations: {b: 1, c: true}}}")
	checkLines(t, "annotations", problems, []string{
		"metadata.annotations.b: must be a string, not a number; put it in quotes", "metadata.annotations.c: must be a string, not a boolean; put it in quotes",
	})
}

// The objects of a list are read like documents, and those of a typed list may leave out their
// kind.
func TestLists(t *testing.T) {
	const a, b = "{apiVersion: v1, kind: Namespace, metadata: {name: a}}", "{metadata: {name: b}}"
	for text, test := range map[string]struct{ ids, problem string }{
		"{apiVersion: v1, kind: List, items: [" + a + "]}":                                        {"Namespace/a", ""},
		"{apiVersion: v1, kind: NamespaceList, items: [" + a + ", " + b + "]}":                    {"Namespace/a Namespace/b", ""},
		"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List, items: [" + a + "]}]}": {"Namespace/a", ""},
		"{apiVersion: v1, kind: List, items: []}":                                                 {"", ""},
		"{apiVersion: v1, kind: List, items: [" + b + "]}":                                        {"", "items[0]: not a Kubernetes object, since it has no apiVersion and no kind; if the file is not meant for the fleet, list it in .gitfleetignore"},
		"{apiVersion: v1, kind: List, items: [3, " + a + "]}":                                     {"Namespace/a", "items[0]: not a Kubernetes object but a number; if the file is not meant for the fleet, list it in .gitfleetignore"},
		"{apiVersion: example.com/v1, kind: Menu, metadata: {name: m}, items: [soup]}":            {"Menu.example.com/m", ""},
	} {
		ids, problems := parse(text)
		if got := strings.Join(ids, " "); got != test.ids {
			t.Errorf("%s: %q, want %q", text, got, test.ids)
		}
		checkLines(t, text, problems, one(test.problem))
	}
}

// Mistakes in ConfigMaps, Secrets and CustomResourceDefinitions are found before a member
// refuses them. No message has a value.
func TestContentRules(t *testing.T) {
	object := func(kind, fields string) string {
		return "{apiVersion: v1, kind: " + kind + ", metadata: {name: a, namespace: b}, " + fields + "}"
	}
	definition := func(spec string) string {
		return "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.example.com}, spec: " + spec + "}"
	}
	const missing = "missing: a CustomResourceDefinition names the group and the kind it defines"
	for text, want := range map[string][]string{
		object("ConfigMap", "data: {a: b}, binaryData: {c: aGk=}"):                                               nil,
		object("ConfigMap", "data: {a: 1}"):                                                                      {"data.a: must be a string, not a number; put it in quotes"},
		object("ConfigMap", "data: [a], binaryData: {b: []}"):                                                    {"data: must be a mapping, not a list", "binaryData.b: must be a string, not a list; put it in quotes"},
		object("Secret", "data: {a: aGk=}, stringData: {b: hunter2}"):                                            nil,
		object("Secret", "data: {a: hunter2, b: hunter}"):                                                        {"data.a: is not base64; encode it, or write the plain text under stringData", "data.b: is not base64; encode it, or write the plain text under stringData"},
		object("Secret", "stringData: {a: 1}"):                                                                   {"stringData.a: must be a string, not a number; put it in quotes"},
		definition("{group: example.com, names: {kind: Gadget, plural: gadgets}, scope: Cluster, versions: []}"): nil,
		definition("{names: {kind: Gadget, plural: gadgets}, scope: Cluster, versions: []}"):                     {"spec.group: " + missing},
		definition("{group: example.com, scope: Cluster, versions: []}"):                                         {"spec.names.kind: " + missing},
		definition("{group: example.com, names: {kind: Gadget, plural: gadgets}, scope: Everywhere}"):            {"spec.scope: must be Namespaced or Cluster"},
	} {
		_, problems := parse(text)
		checkLines(t, text, problems, want)
	}
}

// Fields that only a server or gitfleet sets are left out with one warning that names them all.
func TestStrip(t *testing.T) {
	const warning = "left out, since only a server or gitfleet fills it in"
	for fields, want := range map[string]string{
		"metadata: {name: a, uid: u, generation: 3}":                                   "metadata.generation: " + warning + ": metadata.generation, metadata.uid",
		"metadata: {name: a, creationTimestamp: null}":                                 "",
		"metadata: {name: a}, status: {}":                                              "",
		"metadata: {name: a}, status: {phase: Active}":                                 "status: " + warning,
		"metadata: {name: a, labels: {gitfleet.dev/managed-by: gitfleet}}":             "metadata.labels[gitfleet.dev/managed-by]: " + warning,
		"metadata: {name: a, annotations: {gitfleet.dev/commit: a, example.com/b: c}}": "metadata.annotations[gitfleet.dev/commit]: " + warning,
		"metadata: {name: a, deletionGracePeriodSeconds: 3, finalizers: [f]}":          "",
	} {
		if want != "" {
			want += "; remove it from the file (warning)"
		}
		_, problems := parse("{apiVersion: v1, kind: Namespace, " + fields + "}")
		checkLines(t, fields, problems, one(want))
	}
}

// A kind that gitfleet does not support is reported by what it is: written by
// controllers, of another version or group, or misspelt.
func TestUnsupportedKinds(t *testing.T) {
	for apiVersion, kinds := range map[string]map[string]string{
		"placement.kubernetes-fleet.io/v1beta1": {
			"ClusterResourcePlacementStatus": "kind: ClusterResourcePlacementStatus is written by controllers and has no effect in Git; remove it (warning)",
			"Work":                           "kind: Work is written by controllers and has no effect in Git; remove it (warning)",
			"ResourcePlacment":               "kind: unknown kind ResourcePlacment in group placement.kubernetes-fleet.io; did you mean ResourcePlacement?",
			"ClusterStagedUpdateRn":          "kind: unknown kind ClusterStagedUpdateRn in group placement.kubernetes-fleet.io; did you mean ClusterStagedUpdateRun?",
			"MemberCluster":                  "apiVersion: MemberCluster is not known in placement.kubernetes-fleet.io/v1beta1; write apiVersion: cluster.kubernetes-fleet.io/v1beta1",
		},
		"cluster.kubernetes-fleet.io/v1beta1": {
			"InternalMemberCluster": "kind: InternalMemberCluster is written by controllers and has no effect in Git; remove it (warning)",
		},
		"placement.kubernetes-fleet.io/v1": {
			"ResourceEnvelope": "apiVersion: ResourceEnvelope is not known in placement.kubernetes-fleet.io/v1; write apiVersion: placement.kubernetes-fleet.io/v1beta1",
		},
		"fleet.azure.com/v1alpha1": {
			"ClusterResourcePlacement": "apiVersion: ClusterResourcePlacement is not known in fleet.azure.com/v1alpha1; write apiVersion: placement.kubernetes-fleet.io/v1beta1",
			"Other":                    "", // a kind of others
		},
		"v1":             {"MemberCluster": "apiVersion: MemberCluster is not known in v1; write apiVersion: cluster.kubernetes-fleet.io/v1beta1"},
		"example.com/v1": {"MemberCluster": "", "Work": ""},
	} {
		for kind, want := range kinds {
			_, problems := parse(fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: a}}", apiVersion, kind))
			checkLines(t, apiVersion+" "+kind, problems, one(want))
		}
	}
}
