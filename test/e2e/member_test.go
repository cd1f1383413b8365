package e2e

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/test/fleet"
	"github.com/gitfleet/gitfleet/test/githttp"
)

// tokenFleet runs a cluster that writes the tokens of service accounts into their Secrets.
func tokenFleet(t *testing.T) *fleet.Fleet {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane; run without -short")
	}
	f, err := fleet.Start(t.Context(), fleet.Options{Clusters: 1, Controllers: "serviceaccount-token-controller", Audit: true, Output: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// refusals returns the requests of the daemon that member-1 answered with 403 Forbidden.
func refusals(t *testing.T, f *fleet.Fleet) []string {
	t.Helper()
	events, err := f.Audit("member-1", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range events {
		if e.UserAgent == "gitfleet" && e.Response.Code == http.StatusForbidden {
			out = append(out, e.String())
		}
	}
	return out
}

// A member joins with the permissions that its content needs and no others. Another kind needs
// another permission, which status names and joining again grants; the member leaves when
// nothing is held there any more.
func TestAMemberJoinsAndLeaves(t *testing.T) {
	t.Parallel()
	f := tokenFleet(t)
	d := newDaemonOn(t, f)
	ctx, client, dir := context.Background(), d.clients["member-1"], t.TempDir()
	d.args[slices.Index(d.args, "--kubeconfig-dir")+1] = dir
	d.repo.Replace(t, "main", map[string]string{
		"apps/one.yaml": yamlNamespace(d.name) + "---\n" + yamlConfigMap(d.name, "one", "a") + "---\n" + yamlDeployment(d.name, "web", 1),
		"apps/roles.yaml": `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: ` + d.name + `}
rules: [{apiGroups: [batch], resources: [jobs], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewers, namespace: ` + d.name + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: viewers}]
`,
		"web.yaml": yamlPlacement("web", d.name, ""),
	})
	checkout, admin := d.checkout(), []string{"--context", "member-1", "--kubeconfig", f.Kubeconfig()}
	said := ""
	join := func() string {
		t.Helper()
		out, code := d.cli(append([]string{"member", "join", "paris", "--path", checkout, "--write", "--kubeconfig-dir", dir, "--label", "region=eu"}, admin...)...)
		if code != 0 {
			t.Fatalf("join: exit code %d\n%s", code, out)
		}
		said = out
		text, err := os.ReadFile(filepath.Join(dir, "paris.kubeconfig"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	kubeconfig := join()
	if info, err := os.Stat(filepath.Join(dir, "paris.kubeconfig")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read the kubeconfig: %v %v", info.Mode(), err)
	}
	manifest, err := os.ReadFile(filepath.Join(checkout, "clusters", "paris.yaml"))
	if err != nil || !strings.Contains(string(manifest), "region: eu") {
		t.Fatalf("%v\n%s", err, manifest)
	}
	commit := d.repo.Commit(t, "main", map[string]string{"clusters/paris.yaml": string(manifest)})
	d.start()
	d.applied(commit)
	if refused := refusals(t, f); len(refused) > 0 {
		t.Errorf("the daemon lacked permissions: %q", refused)
	}
	doctor := append([]string{"doctor"}, d.args[1:]...)
	out, code := d.cli(doctor...)
	for _, want := range []string{"ok    config: valid", "a running daemon uses it", "ok    repository: commit " + commit[:8], "ok    member paris: reachable, Kubernetes v1."} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("doctor: exit code %d, %q is missing in\n%s", code, want, out)
		}
	}

	commit = d.repo.Commit(t, "main", map[string]string{
		"apps/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: " + d.name + "}\nspec: {ports: [{port: 80}]}\n",
	})
	d.eventually("naming the missing permission", func() bool {
		out, _ := d.cli("status")
		return strings.Contains(strings.Join(strings.Fields(out), " "), "create, delete, patch services in namespace "+d.name)
	})
	const lacking = "fail  member paris: permissions are missing: get, list, watch services; create, delete, patch services in namespace "
	if out, code := d.cli(doctor...); code != 1 || !strings.Contains(out, lacking+d.name) {
		t.Errorf("doctor of a member that lacks permissions: exit code %d\n%s", code, out)
	}
	if _, err := githttp.Git(checkout, "checkout", "--quiet", "--", "."); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(checkout, "clusters")); err != nil {
		t.Fatal(err)
	}
	if _, err := githttp.Git(checkout, "pull", "--quiet"); err != nil {
		t.Fatal(err)
	}
	if again := join(); again != kubeconfig {
		t.Error("joining again changed the kubeconfig")
	}
	for _, want := range []string{"declared in clusters/paris.yaml", "--label changes nothing", "a member of the fleet " + d.name + "; if yours is another, join with --fleet-name"} {
		if !strings.Contains(said, want) {
			t.Errorf("joining again does not say %q:\n%s", want, said)
		}
	}
	d.applied(commit)

	leave := append([]string{"member", "leave", "paris", "--kubeconfig-dir", dir}, admin...)
	if out, code := d.cli(leave...); code != 2 || !strings.Contains(out, "crp/web of fleet "+d.name+": ") {
		t.Errorf("leaving a fleet that holds objects: exit code %d\n%s", code, out)
	}
	if _, code := d.cli("member", "leave", "oslo", "--force", admin[0], admin[1], admin[2], admin[3]); code != 2 {
		t.Errorf("another member removed the account: exit code %d", code)
	}
	d.repo.Change(t, "main", githttp.Change{Message: "Remove paris\n\nGitfleet-Allow-Delete: *", Remove: []string{"clusters/paris.yaml"}})
	d.eventually("left", func() bool { _, code := d.cli(leave...); return code == 0 })
	for what, get := range map[string]func() error{
		"service account": func() error {
			_, err := client.CoreV1().ServiceAccounts(api.Namespace).Get(ctx, "gitfleet", metav1.GetOptions{})
			return err
		},
		"token": func() error {
			_, err := client.CoreV1().Secrets(api.Namespace).Get(ctx, "gitfleet-token", metav1.GetOptions{})
			return err
		},
		"cluster role": func() error {
			_, err := client.RbacV1().ClusterRoles().Get(ctx, "gitfleet", metav1.GetOptions{})
			return err
		},
		"role binding": func() error {
			_, err := client.RbacV1().RoleBindings(api.Namespace).Get(ctx, "gitfleet", metav1.GetOptions{})
			return err
		},
	} {
		if get() == nil {
			t.Errorf("the %s is still there", what)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "paris.kubeconfig")); err == nil {
		t.Error("the kubeconfig is still there")
	}
	if d.configMap("member-1", "one") == nil {
		t.Error("the workloads are gone")
	}
}
