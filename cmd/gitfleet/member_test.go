package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/placement/api"
)

const memberCheckout = `apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: paris, labels: {tier: edge}}
spec: {identity: {kind: User, name: gitfleet}}
---
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: oslo}
spec: {identity: {kind: User, name: gitfleet}}
---
apiVersion: v1
kind: Namespace
metadata: {name: web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/web:1"}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: db}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "registry.example/db:1"}]}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: web}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: web}]
  policy:
    placementType: PickAll
    affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: {matchLabels: {tier: edge}}}]}}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: db}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: db}]
  policy: {placementType: PickN, numberOfClusters: 1}
---
apiVersion: v1
kind: Namespace
metadata: {name: train}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: train}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: train, image: "registry.example/train:1"}]}}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: train}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: train}]
  policy:
    placementType: PickAll
    affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{propertySelector: {matchExpressions: [{name: kubernetes-fleet.io/node-count, operator: Ge, values: ["3"]}]}}]}}}
`

// clusterRole returns the ClusterRole among some documents.
func clusterRole(t *testing.T, text string) rbacv1.ClusterRole {
	t.Helper()
	for _, document := range strings.Split(text, "---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "ClusterRole" {
			return role
		}
	}
	t.Fatalf("no ClusterRole in:\n%s", text)
	return rbacv1.ClusterRole{}
}

// The printed permissions are those for the kinds that placements put on the member, and that
// placements may put there later: PickN placements, and those that select by properties which
// only the member knows.
func TestMemberRBAC(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "fleet.yaml"), []byte(memberCheckout), 0o600); err != nil {
		t.Fatal(err)
	}
	writes := func(role rbacv1.ClusterRole, resource string) bool {
		return slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
			return (slices.Contains(r.Resources, resource) || slices.Contains(r.Resources, "*")) && (slices.Contains(r.Verbs, "patch") || slices.Contains(r.Verbs, "*"))
		})
	}
	for line, want := range map[string]map[string]bool{
		"member rbac DIR --cluster paris":     {"deployments": true, "statefulsets": true, "jobs": true, "secrets": false},
		"member rbac DIR --cluster oslo":      {"deployments": false, "statefulsets": true, "jobs": true, "secrets": false},
		"member rbac DIR":                     {"deployments": true, "statefulsets": true, "jobs": true, "secrets": false},
		"member rbac --cluster-admin":         {"deployments": true, "secrets": true},
		"member rbac DIR --delete-namespaces": {"deployments": true, "secrets": false},
	} {
		code, out, errOut := command(strings.Fields(strings.ReplaceAll(line, "DIR", dir))...)
		if code != exit.OK {
			t.Errorf("%s: exit code %d\n%s", line, code, errOut)
			continue
		}
		role := clusterRole(t, out)
		for resource, want := range want {
			if got := writes(role, resource); got != want {
				t.Errorf("%s: may write %s: %t, want %t\n%s", line, resource, got, want, out)
			}
		}
	}
}

// Jobs that gates run for a placement are permitted where it may be, and nowhere else.
func TestMemberRBACOfGates(t *testing.T) {
	dir := t.TempDir()
	const gate = `---
apiVersion: gitfleet.dev/v1alpha1
kind: RolloutGate
metadata: {name: smoke}
spec: {job: {namespace: checks, template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: smoke, image: registry.example/smoke}]}}}}}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateStrategy
metadata: {name: careful}
spec: {stages: [{name: all, labelSelector: {}, afterStageTasks: [{type: Gate, gateName: smoke}]}]}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: web, annotations: {gitfleet.dev/staged-update-strategy: careful}}
spec:
  strategy: {type: External}
`
	web, rest, _ := strings.Cut(memberCheckout, `---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: web}
spec:
`)
	rest, _, _ = strings.Cut(rest, "---\napiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacement\nmetadata: {name: train}\n") // which places a Job
	if err := os.WriteFile(filepath.Join(dir, "fleet.yaml"), []byte(web+gate+rest), 0o600); err != nil {
		t.Fatal(err)
	}
	for cluster, want := range map[string]bool{"paris": true, "oslo": false} {
		code, out, errOut := command("member", "rbac", dir, "--cluster", cluster)
		if got := strings.Contains(out, "- jobs\n"); code != exit.OK || got != want {
			t.Errorf("%s: exit code %d, may write Jobs: %v, want %v\n%s%s", cluster, code, got, want, out, errOut)
		}
	}
}

// The permissions can be printed as JSON, and the account of a fleet has the fleet's name.
func TestMemberRBACOfAFleet(t *testing.T) {
	code, out, errOut := command("member", "rbac", "--cluster-admin", "--fleet-name", "shop", "-o", "json")
	var list struct {
		Kind  string
		Items []metav1.PartialObjectMetadata
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != exit.OK || list.Kind != "List" {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errOut)
	}
	kinds := map[string]string{}
	for _, o := range list.Items {
		kinds[o.Kind] = o.Name
	}
	want := map[string]string{
		"Namespace": api.Namespace, "ServiceAccount": "gitfleet-shop", "ClusterRole": "gitfleet-shop", "ClusterRoleBinding": "gitfleet-shop",
		"Role": "gitfleet-shop", "RoleBinding": "gitfleet-shop",
	}
	if !maps.Equal(kinds, want) {
		t.Errorf("got %v, want %v", kinds, want)
	}
}

// Missing arguments of member commands are reported before any request is sent.
func TestMemberCommandsNeedToKnow(t *testing.T) {
	for line, want := range map[string]string{
		"member join paris":                                                    `required flag(s) "context" not set`,
		"member join paris --context c":                                        "--path CHECKOUT for those that its content needs, or --cluster-admin",
		"member join paris --context c --cluster-admin":                        "either --kubeconfig-dir DIR or --secret-namespace NAMESPACE",
		"member join paris --context c --cluster-admin --write":                "either --kubeconfig-dir DIR or --secret-namespace NAMESPACE",
		"member join p --context c --cluster-admin --kubeconfig-dir d --write": "--write needs --path",
		"member rbac": "name a checkout, or set --cluster-admin",
		"member rbac --cluster-admin --fleet-name My_Fleet":                  `"gitfleet-My_Fleet" cannot be the name of a service account; choose one with --account`,
		"member leave paris --context none --kubeconfig /does/not/exist":     "the kubeconfig has no context \"none\"; it has none",
		"member join Paris_1 --context c --cluster-admin --kubeconfig-dir d": "\"Paris_1\"",
	} {
		code, out, errOut := command(strings.Fields(line)...)
		if code != exit.Failed || out != "" || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit code %d, %s%s\nwant %s", line, code, out, errOut, want)
		}
	}
}
