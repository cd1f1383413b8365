package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// namesNamespace finds the settings that name the namespace of Secrets.
var namesNamespace = regexp.MustCompile(`(?:secretNamespace: |highAvailability\.lease\.namespace=)([a-z-]+)`)

// The Role of the daemon for the Secrets of members, and that of replicas for their ledger, are in namespaces
// that have nothing else, and the settings name these. Replicas from before keep their namespace until they
// are moved.
func TestSecretsAreReadInNamespacesOfTheirOwn(t *testing.T) {
	for name, want := range map[string][]string{
		"resources: [../kubernetes]\n":        {"gitfleet-members"},
		"resources: [../replicas]\n":          {"gitfleet-lease", "gitfleet-members"},
		"resources: [../high-availability]\n": {"gitfleet", "gitfleet-members"},
	} {
		deployed, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(deployed, os.DirFS("../../deploy")); err != nil {
			t.Fatal(err)
		}
		overlay := filepath.Join(deployed, "overlay")
		if err := os.Mkdir(overlay, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), overlay)
		if err != nil {
			t.Fatal(err)
		}
		var readable, namespaces, named []string
		for _, r := range built.Resources() {
			if r.GetKind() == "Namespace" {
				namespaces = append(namespaces, r.GetName())
			}
			// The settings are in a ConfigMap, and those of replicas in the arguments of the Deployment.
			if r.GetKind() == "ConfigMap" || r.GetKind() == "Deployment" {
				for _, found := range namesNamespace.FindAllStringSubmatch(r.MustYaml(), -1) {
					named = append(named, found[1])
				}
			}
			var role rbacv1.Role
			if raw := r.MustYaml(); r.GetKind() == "Role" || r.GetKind() == "ClusterRole" {
				if err := yaml.Unmarshal([]byte(raw), &role); err != nil {
					t.Fatal(err)
				}
			}
			for _, rule := range role.Rules {
				if slices.Contains(rule.Resources, "secrets") && len(rule.ResourceNames) == 0 {
					readable = append(readable, role.Namespace)
				}
			}
		}
		if slices.Sort(readable); !slices.Equal(readable, want) {
			t.Errorf("%sthe daemon may read the Secrets of %v, want %v", name, readable, want)
		}
		if slices.Sort(named); !slices.Equal(named, want) {
			t.Errorf("%sthe settings name the namespaces %v, want %v", name, named, want)
		}
		if slices.Sort(namespaces); !slices.Equal(namespaces, slices.Compact(append([]string{"gitfleet"}, want...))) {
			t.Errorf("%screates the namespaces %v", name, namespaces)
		}
	}
}
