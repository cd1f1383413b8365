package daemon

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
)

// The operator role permits all requests to the daemon. The reader role permits requests that
// neither change anything nor return a copy of the daemon's state or memory.
func TestRolesPermitWhatTheDaemonAnswers(t *testing.T) {
	roles := clusterRoles(t, "kubernetes/access.yaml")
	permits := func(role, pattern string) bool {
		method, path, _ := strings.Cut(pattern, " ")
		return slices.ContainsFunc(roles[role].Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Verbs, strings.ToLower(method)) && slices.ContainsFunc(r.NonResourceURLs, func(allowed string) bool {
				prefix, isPrefix := strings.CutSuffix(allowed, "*")
				return path == allowed || isPrefix && strings.HasPrefix(path, prefix)
			})
		})
	}
	asked := 0
	for _, pattern := range answering(t, settings.Default()).Patterns() {
		_, path, hasMethod := strings.Cut(pattern, " ")
		if !hasMethod || path == "/healthz" || path == "/readyz" {
			continue // the Kubernetes API, which has its own rules, and unprotected paths
		}
		asked++
		reads := !strings.HasPrefix(pattern, "POST ") && path != "/state" && !strings.HasPrefix(path, "/debug/")
		if got := permits("gitfleet-reader", pattern); got != reads {
			t.Errorf("a reader may ask %s: %t", pattern, got)
		}
		if !permits("gitfleet-operator", pattern) {
			t.Errorf("an operator may not ask %s", pattern)
		}
	}
	if asked < 10 {
		t.Errorf("only %d paths are answered", asked)
	}
	if there := clusterRoles(t, "aggregated-api.yaml")["gitfleet-reader"]; !reflect.DeepEqual(there, roles["gitfleet-reader"]) {
		t.Errorf("aggregated-api.yaml has another gitfleet-reader: %v", there.Rules)
	}
}

// clusterRoles returns the ClusterRoles of a file, by name.
func clusterRoles(t *testing.T, name string) map[string]rbacv1.ClusterRole {
	t.Helper()
	roles := map[string]rbacv1.ClusterRole{}
	text, err := os.ReadFile(filepath.Join("../../../deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "ClusterRole" {
			roles[role.Name] = role
		}
	}
	return roles
}
