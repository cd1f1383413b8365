package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/githttp"
)

// hubFiles returns a hub in which each of two placements has its own files, and both use one
// more.
func hubFiles(version string) map[string]string {
	place := func(name string) string {
		return "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: " + name + "}, spec: {resourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: " + name + "}]}}\n"
	}
	namespace := func(name string) string { return "{apiVersion: v1, kind: Namespace, metadata: {name: " + name + "}}\n" }
	config := func(namespace, name string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: " + namespace + "}, data: {version: \"" + version + "\"}}\n"
	}
	return map[string]string{
		"hub/web/place.yaml":            place("web"),
		"hub/web/namespace.yaml":        namespace("web"),
		"hub/web/config.yaml":           config("web", "one"),
		"hub/shop/place.yaml":           place("shop"),
		"hub/shop/namespace.yaml":       namespace("shop"),
		"hub/shop/config.yaml":          config("shop", "one"),
		"hub/override.yaml":             "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceOverride, metadata: {name: tune, namespace: web}, spec: {placement: {name: web}, resourceSelectors: [{group: \"\", version: v1, kind: ConfigMap, name: one}], policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, jsonPatchOverrides: [{op: add, path: /data/tuned, value: \"" + version + "\"}]}]}}}\n",
		"hub/kustom/kustomization.yaml": "resources: [base.yaml]\n",
		"hub/kustom/base.yaml":          config("web", "built"),
		"README":                        version,
	}
}

// A rollbackScene is a repository, a clone of it, and a daemon that has reported the last
// proven commit.
type rollbackScene struct {
	t       *testing.T
	git     *githttp.Server
	repo    githttp.Scratch
	clone   string
	address string
	server  *server.Server
}

func newRollbackScene(t *testing.T) *rollbackScene {
	s := &rollbackScene{t: t, git: githttp.Serve(t, githttp.Config{Token: "writer"}), clone: t.TempDir(), server: server.New(nil)}
	s.repo = s.git.Repo(t, "fleet.git")
	web := httptest.NewServer(s.server.Handler())
	t.Cleanup(web.Close)
	s.address = web.URL
	t.Setenv("HOME", t.TempDir()) // without the user's Git configuration
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	return s
}

// at publishes a report with these commits, and fetches everything into the clone.
func (s *rollbackScene) at(head, proven string) {
	s.t.Helper()
	s.server.Publish(&status.Report{
		Source:  status.Source{Git: status.Git{Ref: "branch main", Head: head}, InForce: hub.Commit{Hash: head}},
		Details: []*status.Detail{{Placement: "crp/web", Proven: proven}, {Placement: "crp/shop"}},
	})
	args := []string{"clone", "-q", strings.Replace(s.git.URL("fleet.git"), "http://", "http://git:writer@", 1), "."}
	if _, err := os.Stat(filepath.Join(s.clone, ".git")); err == nil {
		args = []string{"fetch", "-q"}
	}
	s.clonedGit(args...)
}

func (s *rollbackScene) clonedGit(args ...string) string {
	s.t.Helper()
	out, err := githttp.Git(s.clone, args...)
	if err != nil {
		s.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(out)
}

func (s *rollbackScene) run(args ...string) (code exit.Code, out, errOut string) {
	var o, e bytes.Buffer
	args = append([]string{"rollback"}, append(args, "--path", filepath.Join(s.clone, "hub"), "--server", s.address)...)
	code = run(args, &o, &e)
	return code, o.String(), e.String()
}

// refused runs rollback, which must fail with a message that contains these texts.
func (s *rollbackScene) refused(args []string, says ...string) {
	s.t.Helper()
	code, out, errOut := s.run(args...)
	want := exit.Failed
	if strings.HasPrefix(says[0], "there is no placement") {
		want = exit.Attention
	}
	if code != want || out != "" {
		s.t.Errorf("%v: exit code %d, output %q", args, code, out)
	}
	for _, text := range says {
		if !strings.Contains(errOut, text) {
			s.t.Errorf("%v: %q does not say %q", args, errOut, text)
		}
	}
}

// A rollback restores the files of the placement and no others: neither files of other
// placements nor files that no placement uses.
func TestRollbackTakesBackOnePlacement(t *testing.T) {
	s := newRollbackScene(t)
	good := s.repo.Commit(t, "main", hubFiles("1"))
	files := hubFiles("2")
	files["hub/web/more.yaml"] = "{apiVersion: v1, kind: ConfigMap, metadata: {name: more, namespace: web}}\n"
	bad := s.repo.Commit(t, "main", files)
	s.at(bad, good)

	s.refused([]string{"crp/web"}, "the author is not known", "--author")
	code, out, errOut := s.run("crp/web", "--author", "Ada Lovelace <ada@example.com>")
	branch := "gitfleet/rollback-crp-web-" + output.ShortHash(good)
	if code != 0 || errOut != "" {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
	want := "branch " + branch + ": commit " + output.ShortHash(s.clonedGit("rev-parse", branch)) + " reverts crp/web to " + output.ShortHash(good) + " (a change)\n" +
		"  hub/kustom/base.yaml\n  hub/override.yaml\n  hub/web/config.yaml\n  hub/web/more.yaml\n" +
		"push it with \"git push origin " + branch + "\", then open a pull request from " + branch + " into main\n"
	if strings.ReplaceAll(out, s.subject(good), "a change") != want {
		t.Errorf("it says\n%s\nwant\n%s", out, want)
	}
	if got := s.clonedGit("diff", "--name-status", bad, branch); got != "M\thub/kustom/base.yaml\nM\thub/override.yaml\nM\thub/web/config.yaml\nD\thub/web/more.yaml" {
		t.Errorf("the branch changes\n%s", got)
	}
	if got := s.clonedGit("diff", "--name-only", good, branch); got != "README\nhub/shop/config.yaml" {
		t.Errorf("between the good commit and the branch there is\n%s", got)
	}
	if got := s.clonedGit("log", "-1", "--format=%an <%ae>%n%s", branch); got != "Ada Lovelace <ada@example.com>\nRoll crp/web back to "+output.ShortHash(good) {
		t.Errorf("the commit is of %s", got)
	}
	if s.clonedGit("rev-parse", "main") != bad || s.clonedGit("status", "--porcelain") != "" || s.repo.Head(t, "main") != bad {
		t.Error("more than a branch was made")
	}
	s.refused([]string{"crp/web", "--author", "Ada <a@b>"}, "exists already")
}

func (s *rollbackScene) subject(commit string) string {
	return s.clonedGit("log", "-1", "--format=%s", commit)
}

// With write credentials only the branch is pushed. Without them the error says what is
// missing.
func TestRollbackPushesItsBranchOnly(t *testing.T) {
	s := newRollbackScene(t)
	good, bad := s.repo.Commit(t, "main", hubFiles("1")), s.repo.Commit(t, "main", hubFiles("2"))
	s.at(bad, good)
	config := func(token string) string {
		dir := t.TempDir()
		write := func(name, text string) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
		return write("gitfleet.yaml", "source: {url: \""+s.git.URL("fleet.git")+"\", branch: main, allowHTTP: true, tokenFile: "+write("token", token)+"}\n")
	}
	ada := []string{"crp/web", "--author", "Ada <ada@example.com>", "--push"}
	s.refused(ada, "--push needs --config")
	s.refused(append(ada, "--config", config("reader"), "--branch", "mine"), "must be allowed to write", "git push origin mine")
	s.refused(append(ada, "--config", config("writer"), "--branch", "main"), "is the branch that the daemon follows")
	code, out, errOut := s.run(append(ada, "--config", config("writer"), "--branch", "back")...)
	if code != 0 || !strings.Contains(out, "pushed; open a pull request from back into main") {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}
	if got := s.repo.Head(t, "back"); got != s.clonedGit("rev-parse", "back") || s.repo.Head(t, "main") != bad {
		t.Errorf("on the server back is at %s, and main at %s", got, s.repo.Head(t, "main"))
	}
}

// A rollback that is impossible, or would affect other placements, is refused with the reason.
func TestRollbackRefusesWhatItCannotDo(t *testing.T) {
	s := newRollbackScene(t)
	good := s.repo.Commit(t, "main", hubFiles("1"))
	files := hubFiles("1")
	files["README"] = "2"
	same := s.repo.Commit(t, "main", files)
	s.at(same, good)
	s.clonedGit("config", "user.name", "Ada")
	s.clonedGit("config", "user.email", "ada@example.com")
	s.refused([]string{"crp/web"}, "there is nothing to revert", output.ShortHash(good))
	s.refused([]string{"crp/shop"}, "no content of crp/shop was ever available on every cluster", "--to")
	s.refused([]string{"crp/none"}, "there is no placement crp/none; there are crp/shop, crp/web", "--to")
	s.refused([]string{"deployment/web"}, "there is no placement deployment/web")
	s.refused([]string{"crp/web", "--to", "0123456789012345678901234567890123456789"}, "is not in this clone", "git fetch", "--path")
	s.refused([]string{"crp/web", "--author", "Ada"}, "NAME <ADDRESS>")

	both := hubFiles("2")
	both["hub/web/config.yaml"] += "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: shop}}\n---\n{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: east}, spec: {identity: {kind: User, name: fleet}}}\n"
	mixed := s.repo.Commit(t, "main", both)
	s.at(mixed, good)
	s.refused([]string{"crp/web"}, "MemberCluster east and crp/shop", "--include-shared")
	if code, out, errOut := s.run("crp/web", "--include-shared"); code != 0 || !strings.Contains(out, "hub/web/config.yaml") {
		t.Errorf("with --include-shared: exit code %d: %s%s", code, out, errOut)
	}

	broken := hubFiles("2")
	broken["hub/web/config.yaml"] = "kind: [\n"
	s.at(s.repo.Commit(t, "main", broken), good)
	s.refused([]string{"crp/web", "--branch", "x"}, "does not load", "git revert")
	if out, err := githttp.Git(s.clone, "rev-parse", "--verify", "-q", "refs/heads/x"); err == nil {
		t.Errorf("a refused rollback made a branch: %s", out)
	}
}
