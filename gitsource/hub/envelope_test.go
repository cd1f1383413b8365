package hub

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// Each entry of an envelope is an object that the envelope can place. The scope of a kind that
// is not built in is that of the commit's definition, if there is one.
func TestEnvelopeEntries(t *testing.T) {
	const (
		inNamespace = "ResourceEnvelope.placement.kubernetes-fleet.io/web/e"
		inCluster   = "ClusterResourceEnvelope.placement.kubernetes-fleet.io/e"
		reserved    = " cannot be placed, since namespace kube-system is reserved; to place single objects in it, select them by name in a ResourcePlacement of namespace kube-system"
	)
	entry := func(apiVersion, kind, metadata string) string {
		return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: %s}", apiVersion, kind, metadata)
	}
	for _, test := range []struct{ envelope, entry, want string }{
		{"ResourceEnvelope", entry("v1", "ConfigMap", "{name: a, namespace: web}"), ""},
		{"ResourceEnvelope", entry("v1", "ConfigMap", "{name: a}"), "a.metadata.namespace: in " + inNamespace + ": metadata.namespace of the ConfigMap is missing; write namespace: web"},
		{"ResourceEnvelope", entry("v1", "ConfigMap", "{name: a, namespace: db}"), "a.metadata.namespace: in " + inNamespace + ": a ConfigMap of namespace db cannot be wrapped in a ResourceEnvelope of namespace web"},
		{"ResourceEnvelope", entry("v1", "ConfigMap", "{name: a, namespace: kube-system}"), "a.metadata.namespace: in " + inNamespace + ": ConfigMap/kube-system/a" + reserved},
		{"ResourceEnvelope", entry("v1", "Namespace", "{name: a}"), "a.metadata.namespace: in " + inNamespace + ": a cluster scoped Namespace cannot be wrapped in a ResourceEnvelope; use a ClusterResourceEnvelope"},
		{"ResourceEnvelope", entry("example.com/v1", "Gadget", "{name: a, namespace: web}"), ""},
		{"ResourceEnvelope", entry("example.com/v1", "Gadget", "{name: a}"), "a.metadata.namespace: in " + inNamespace + ": a cluster scoped Gadget cannot be wrapped in a ResourceEnvelope; use a ClusterResourceEnvelope, or write namespace: web"},
		{"ResourceEnvelope", entry("v1", "ConfigMap", "{}"), "a: in " + inNamespace + ": metadata.name of the ConfigMap is missing"},
		{"ResourceEnvelope", entry("a/b/c", "ConfigMap", "{name: a}"), "a: in " + inNamespace + ": apiVersion is missing or malformed: each entry of an envelope is a Kubernetes object"},
		{"ResourceEnvelope", entry("v1", "two words", "{name: a}"), "a: in " + inNamespace + ": kind is missing or malformed: each entry of an envelope is a Kubernetes object"},
		{"ResourceEnvelope", "{kind: ConfigMap, metadata: {name: a}}", "a.apiVersion: missing: each entry of an envelope is a Kubernetes object"},
		{"ResourceEnvelope", "{apiVersion: v1, metadata: {name: a}}", "a.kind: missing: each entry of an envelope is a Kubernetes object"},
		{"ResourceEnvelope", "text", "a: must be a manifest, not text"},
		{"ClusterResourceEnvelope", entry("rbac.authorization.k8s.io/v1", "ClusterRole", "{name: a}"), ""},
		{"ClusterResourceEnvelope", entry("v1", "ConfigMap", "{name: a}"), "a.metadata.namespace: in " + inCluster + ": a ConfigMap is namespaced, so it cannot be wrapped in a ClusterResourceEnvelope; use a ResourceEnvelope in that namespace"},
		{"ClusterResourceEnvelope", entry("v1", "ConfigMap", "{name: a, namespace: web}"), "a.metadata.namespace: in " + inCluster + ": a namespaced ConfigMap cannot be wrapped in a ClusterResourceEnvelope; use a ResourceEnvelope in namespace web"},
		{"ClusterResourceEnvelope", entry("v1", "Namespace", "{name: kube-system}"), "a.metadata.namespace: in " + inCluster + ": Namespace/kube-system" + reserved},
		{"ClusterResourceEnvelope", entry("v1", "Namespace", "{name: gitfleet-system}"), "a.metadata.namespace: in " + inCluster + ": Namespace/gitfleet-system cannot be placed, since namespace gitfleet-system is reserved"},
	} {
		namespace := ""
		if test.envelope == "ResourceEnvelope" {
			namespace = ", namespace: web"
		}
		_, problems := parse("{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: " + test.envelope + ", metadata: {name: e" + namespace + "}, data: {a: " + test.entry + "}}")
		want := one(test.want)
		if test.want != "" {
			want[0] = "data." + test.want
		}
		checkLines(t, test.envelope+" of "+test.entry, problems, want)
	}
}

// A ResourceEnvelope in a reserved namespace may have objects of that namespace.
func TestEnvelopeInAReservedNamespace(t *testing.T) {
	_, problems := parse("{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceEnvelope, metadata: {name: e, namespace: kube-system}, " +
		"data: {a: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}}}")
	checkLines(t, "problems", problems, nil)
}

// The entries of a ConfigMap envelope are texts with any number of manifests. What is wrong with
// them refuses no commit, unless they exceed a limit.
func TestConfigMapEnvelopes(t *testing.T) {
	const in = "data[a.yaml]: in ConfigMap/web/e: "
	for text, test := range map[string]struct{ severity, want string }{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: db}":  {"", ""},
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n# nothing": {"", ""},
		"":        {"", ""},
		"a: b: c": {"failure", in + "line 1 of the entry: not valid YAML: mapping values are not allowed in this context; check the indentation here, and put text that has a colon in quotes"},
		"text":    {"failure", in + "must be a manifest, not text"},
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}":                             {"failure", in + "metadata.namespace of the ConfigMap is missing; write the namespace it goes to"},
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: gitfleet-system}": {"failure", in + "ConfigMap/gitfleet-system/a cannot be placed, since namespace gitfleet-system is reserved"},
		"a: &a [*a]": {"error", in + `line 1 of the entry: the YAML anchor "a" contains itself`},
	} {
		object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: e, namespace: web, annotations: {kubernetes-fleet.io/envelope-configmap: 'true'}}\ndata:\n  a.yaml: |\n    " +
			strings.ReplaceAll(text, "\n", "\n    ") + "\n"
		result := parseFile("a.yaml", []byte(object), Limits{}.WithDefaults(), math.MaxInt64)
		var got []string
		for _, p := range result.Problems {
			got = append(got, string(p.Severity)+" "+p.Field+": "+p.Message)
		}
		var want []string
		if test.want != "" {
			want = []string{test.severity + " " + test.want}
		}
		checkLines(t, text, got, want)
	}
}
