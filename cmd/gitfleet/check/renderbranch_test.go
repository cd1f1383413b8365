package check

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// A branch gets one commit for each commit that changes what clusters get, with masked Secrets, and nothing else of the repository.
// The same commits make the same branch everywhere.
func TestRenderToBranch(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	repo := gitrepo.New(t)
	cluster := func(name string) string {
		return "{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: " + name + "}}\n"
	}
	first := repo.Commit("first", map[string]string{
		"east.yaml": cluster("east"), "west.yaml": cluster("west"),
		"p.yaml":  "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: shop}, spec: {resourceSelectors: [{group: '', version: v1, kind: Namespace, name: shop}], policy: {placementType: PickAll}}}\n",
		"ns.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n",
		"s.yaml":  "{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: shop}, stringData: {password: canaryPassword}}\n",
	})
	render := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		cmd := NewRender()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(args)
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			out.WriteString("error: " + err.Error())
		}
		return out.String()
	}
	says := func(want string, args ...string) {
		t.Helper()
		if got := render(args...); !strings.Contains(got, want) {
			t.Errorf("%v: %s, want %s", args, got, want)
		}
	}
	says("push it", repo.Dir+"@HEAD", "--to-branch", "rendered")
	if got := repo.Git("ls-tree", "-r", "--name-only", "rendered"); got != ".gitfleet-rendered\neast/Namespace.shop.yaml\neast/shop/Secret.db.yaml\nwest/Namespace.shop.yaml\nwest/shop/Secret.db.yaml" {
		t.Errorf("the branch has\n%s", got)
	}
	if text := repo.Git("show", "rendered:east/shop/Secret.db.yaml"); strings.Contains(text, "canary") || !strings.Contains(text, "password") {
		t.Errorf("the Secret is %s", text)
	}
	if text := repo.Git("log", "-1", "--format=%B%an", "rendered"); !strings.HasPrefix(text, "Render "+first[:8]+": first\n\nGitfleet-Source: "+first) || !strings.HasSuffix(text, "gitfleet") {
		t.Errorf("the commit says %s", text)
	}
	says("has it already", repo.Dir+"@HEAD", "--to-branch", "rendered")
	repo.Commit("nothing for clusters", map[string]string{"README.md": "x"})
	says("has it already", repo.Dir+"@HEAD", "--to-branch", "rendered")
	repo.Git("rm", "-q", "west.yaml")
	repo.Commit("west goes", map[string]string{"ns.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {a: b}}}\n"})
	says("push it", repo.Dir+"@HEAD", "--to-branch", "rendered")
	if got := repo.Git("ls-tree", "--name-only", "rendered"); got != ".gitfleet-rendered\neast" {
		t.Errorf("the branch has\n%s", got)
	}
	if n := repo.Git("rev-list", "--count", "rendered"); n != "2" {
		t.Errorf("the branch has %s commits", n)
	}
	says("push it", repo.Dir+"@"+first, "--to-branch", "again")
	says("push it", repo.Dir+"@HEAD", "--to-branch", "again")
	if a, b := repo.Git("rev-parse", "rendered"), repo.Git("rev-parse", "again"); a != b {
		t.Errorf("the same commits make %s and %s", a, b)
	}
	if status := repo.Git("status", "--short"); status != "" {
		t.Errorf("the working tree has %s", status)
	}
	says("push it", repo.Dir+"@HEAD", "--to-branch", "plain", "--show-secrets")
	if text := repo.Git("show", "plain:east/shop/Secret.db.yaml"); !strings.Contains(text, "Y2FuYXJ5UGFzc3dvcmQ=") {
		t.Errorf("the Secret is %s", text)
	}
	says("gitfleet render has not written it", repo.Dir+"@HEAD", "--to-branch", "main")
	says("write DIRECTORY@REF", repo.Dir, "--to-branch", "rendered")
	says("exclude each other", repo.Dir+"@HEAD", "--to-branch", "rendered", "--to", t.TempDir())
	repo.Git("checkout", "-q", "rendered")
	says("is checked out here", repo.Dir+"@"+first, "--to-branch", "rendered")
}
