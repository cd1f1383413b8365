// Package deploy compares the manifests of deploy/ that have to agree.
package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The roles of users are the same in the manifests for the aggregated API, in those for a
// management cluster, and in the Helm chart.
func TestRolesOfUsersAreTheSameEverywhere(t *testing.T) {
	const reference = "kubernetes/access.yaml"
	for file, roles := range map[string][]string{
		"aggregated-api.yaml":                 {"-reader"},
		"helm/gitfleet/templates/access.yaml": {"-reader", "-operator"},
	} {
		for _, role := range roles {
			if got, want := rulesOf(t, file, role), rulesOf(t, reference, role); got != want {
				t.Errorf("the rules of the ClusterRole %s in deploy/%s are\n%s\nand in deploy/%s\n%s", role, file, got, reference, want)
			}
		}
	}
}

// rulesOf returns the rules of the ClusterRole whose name has a suffix.
func rulesOf(t *testing.T, file, suffix string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy", file))
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		head, rules, found := strings.Cut(document, "rules:\n")
		if !strings.Contains(head, "\nkind: ClusterRole\n") || !strings.Contains(head, suffix+"\n") {
			continue
		}
		rules, _, _ = strings.Cut(rules, "{{- end }}")
		if rules = strings.TrimSpace(rules); !found || rules == "" {
			t.Errorf("the ClusterRole %s in deploy/%s has no rules", suffix, file)
		}
		return rules
	}
	t.Fatalf("deploy/%s has no ClusterRole %s", file, suffix)
	return ""
}
