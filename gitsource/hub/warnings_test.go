package hub

import (
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
)

// Warnings refuse nothing and hide no error, however many there are.
func TestManyWarnings(t *testing.T) {
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME, namespace: web}\nspec:\n  containers:\n  - name: web\n    env:\n" +
		strings.Repeat("    - {name: A, value: 1}\n", 150)
	files := map[string]string{"pod.yaml": strings.ReplaceAll(pod, "NAME", "web")}
	s, err := load(Commit{}, newMemoryTree(files), Options{})
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	if len(s.Warnings) != document.MaxProblems+1 || !strings.Contains(s.Warnings.Err().Error(), "more warnings in this document") {
		t.Errorf("%d warnings, want %d and word that there are more", len(s.Warnings), document.MaxProblems)
	}
	item := "- " + strings.ReplaceAll(strings.TrimSpace(pod), "\n", "\n  ") + "\n"
	files["list.yaml"] = "apiVersion: v1\nkind: List\nitems:\n" + strings.ReplaceAll(item, "NAME", "a") + strings.ReplaceAll(item, "NAME", "b") +
		"- {apiVersion: v1, kind: Pod, metadata: {name: nowhere}}\n"
	if _, err := load(Commit{}, newMemoryTree(files), Options{}); err == nil || !strings.Contains(err.Error(), "items[2].metadata.namespace") {
		t.Errorf("the error behind the warnings is not reported: %v", err)
	}
}

// Warnings about a Secret never contain its values, wherever the Secret comes from.
func TestWarningsHaveNoSecrets(t *testing.T) {
	secret := `apiVersion: v1
kind: Secret
metadata: {name: db, namespace: web, lables: {canary: canary}, finalizers: canary, annotation: canary}
stringdata: {password: canary}
password: canary
"canary: one": canary
canary two: {canary: canary}
immutable: canary
type: {canary: canary}
`
	item := "- " + strings.ReplaceAll(strings.TrimSpace(secret), "\n", "\n  ") + "\n"
	wrapped := "    " + strings.ReplaceAll(strings.TrimSpace(secret), "\n", "\n    ") + "\n"
	for name, files := range map[string]map[string]string{
		"document":   {"secret.yaml": secret},
		"list":       {"list.yaml": "apiVersion: v1\nkind: List\nitems:\n" + item},
		"typed list": {"list.yaml": "apiVersion: v1\nkind: SecretList\nitems:\n" + item},
		"envelope": {"envelope.yaml": "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourceEnvelope\n" +
			"metadata: {name: wrapped, namespace: web}\ndata:\n  secret.yaml:\n" + wrapped},
		"kustomization": {"kustomization.yaml": "resources: [secret.yaml]", "secret.yaml": secret},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := load(Commit{}, newMemoryTree(files), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Warnings) != 8 { // all keys that are not words share one warning
				t.Errorf("%d warnings, want 8", len(s.Warnings))
			}
			for _, w := range s.Warnings {
				if strings.Contains(w.Error(), "canary") || strings.Contains(w.Field, "canary") {
					t.Errorf("contains a value: %v", w)
				}
			}
		})
	}
}
