package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
)

// kubeconfigWith writes a kubeconfig with the given contexts and returns its name.
func kubeconfigWith(t *testing.T, contexts ...string) string {
	t.Helper()
	text := "apiVersion: v1\nkind: Config\ncontexts:\n"
	for _, name := range contexts {
		text += fmt.Sprintf("- {name: %q, context: {cluster: c}}\n", name)
	}
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// gitfleetSays runs a command and returns its exit code and its output.
func gitfleetSays(args ...string) (exit.Code, string) {
	var out bytes.Buffer
	code := run(args, &out, &out)
	return code, out.String()
}

func TestInitWritesARepositoryThatIsValidAndPlacesItsApp(t *testing.T) {
	t.Chdir(t.TempDir())
	config := kubeconfigWith(t, "paris", "oslo")
	code, said := gitfleetSays("init", "fleet", "--kubeconfig", config)
	if code != 0 || !strings.Contains(said, "wrote 2 clusters") {
		t.Fatalf("exit code %d:\n%s", code, said)
	}
	if code, said := gitfleetSays("validate", "--strict", "fleet"); code != 0 {
		t.Errorf("validate: exit code %d:\n%s", code, said)
	}
	code, said = gitfleetSays("plan", "fleet")
	if code != 0 || !strings.Contains(said, "crp/hello: 2 of 2 clusters") {
		t.Errorf("plan: exit code %d:\n%s", code, said)
	}
}

func TestInitOverwritesNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	config := kubeconfigWith(t, "paris")
	if err := os.MkdirAll("fleet/placements", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("fleet/placements/hello.yaml", []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, said := gitfleetSays("init", "fleet", "--kubeconfig", config)
	if code != exit.Failed || !strings.Contains(said, "fleet/placements/hello.yaml exists") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	if _, err := os.Stat("fleet/clusters"); err == nil {
		t.Error("it wrote the clusters all the same")
	}
	if text, _ := os.ReadFile("fleet/placements/hello.yaml"); string(text) != "mine" {
		t.Errorf("the file now has %q", text)
	}
}

func TestInitNamesClustersAfterContexts(t *testing.T) {
	t.Chdir(t.TempDir())
	tests := map[string]struct {
		contexts []string
		args     []string
		code     exit.Code
		says     string
	}{
		"a context that is no name": {[]string{"admin@oslo"}, nil, 0, "kubectl config rename-context admin@oslo admin-oslo"},
		"two of one name":           {[]string{"a/prod", "b/prod"}, nil, exit.Failed, `the cluster name of another context is prod as well`},
		"an unknown one":            {[]string{"paris"}, []string{"--context", "pari"}, exit.Failed, "--context pari: the kubeconfig has no such context; it has paris"},
		"none":                      {nil, nil, exit.Failed, "the kubeconfig has no context ("},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "fleet")
			code, said := gitfleetSays(append([]string{"init", dir, "--kubeconfig", kubeconfigWith(t, test.contexts...)}, test.args...)...)
			if code != test.code || !strings.Contains(said, test.says) {
				t.Errorf("exit code %d, want %d, and %q in:\n%s", code, test.code, test.says, said)
			}
		})
	}
}
