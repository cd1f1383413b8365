package lock

import (
	"bytes"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/test/chartserver"
	"github.com/gitfleet/gitfleet/test/gitrepo"
)

// run runs the command, and returns what it prints, with the repositories by their names.
func run(t *testing.T, names *strings.Replacer, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := New()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		out.WriteString("error: " + err.Error() + "\n")
	}
	return names.Replace(out.String())
}

// Lock writes the commit of each remote base, including the bases of remote bases. An entry stays until it is updated, and is
// removed when nothing refers to it. The repository need not load.
func TestLock(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	nested, bases, fleet := gitrepo.New(t), gitrepo.New(t), gitrepo.New(t)
	nested1 := nested.Commit("first", map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: nested}}\n"})
	bases1 := bases.Commit("first", map[string]string{"web/kustomization.yaml": "resources: ['file://" + nested.Dir + "']\n"})
	bases.Git("tag", "-a", "v1", "-m", "v1")
	fleet.Write(map[string]string{
		"hub/app/kustomization.yaml": "resources: ['file://" + bases.Dir + "//web?ref=v1']\n",
		"hub/broken.yaml":            "kind: 1\n",
	})
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("source: {allowFile: true}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hub := filepath.Join(fleet.Dir, "hub")
	bases2 := bases.Commit("second", map[string]string{"other": "x"})
	names := strings.NewReplacer(hub, "HUB", nested.Dir, "NESTED", bases.Dir, "BASES", nested1, "nested1", bases1, "bases1", bases2, "bases2")
	lock := func(want string, args ...string) {
		t.Helper()
		if got := run(t, names, append([]string{hub, "--config", config}, args...)...); got != strings.TrimPrefix(want, "\n") {
			t.Errorf("%v:\n%swant%s", args, got, want)
		}
	}
	fleet.Write(map[string]string{"hub/app/kustomization.yaml": "namePrefix: a-\n"})
	lock("nothing refers to another repository, so there is nothing to lock\n")
	fleet.Write(map[string]string{"hub/app/kustomization.yaml": "resources: ['file://" + bases.Dir + "//web?ref=v1']\n"})
	lock(`
locked  file://BASES?ref=v1 at bases1
locked  file://NESTED at nested1
wrote HUB/gitfleet.lock.yaml; commit it
`)
	bases.Git("tag", "-f", "v1", bases2)
	lock("HUB/gitfleet.lock.yaml is as it was: 2 remote bases\n")
	lock(`
updated file://BASES?ref=v1 from bases1 to bases2
wrote HUB/gitfleet.lock.yaml; commit it
`, "--update", "file://"+bases.Dir)
	if got := run(t, names, hub, "--config", config, "--update", "https://example.com"); !strings.Contains(got, "nothing is locked for it; locked are: file://") {
		t.Errorf("an unknown name: %s", got)
	}
	fleet.Write(map[string]string{"hub/app/kustomization.yaml": "resources: ['file://" + nested.Dir + "', 'file://" + nested.Dir + "?ref=none']\n"})
	lock(`
removed file://BASES?ref=v1, which nothing refers to
wrote HUB/gitfleet.lock.yaml; commit it
error: file://NESTED?ref=none: fetch file://NESTED: branch or tag none: not on the remote; a commit is named by its whole hash
`)
	if err := os.RemoveAll(os.Getenv("XDG_CACHE_HOME")); err != nil {
		t.Fatal(err)
	}
	fleet.Write(map[string]string{"hub/app/kustomization.yaml": "resources: ['file://" + nested.Dir + "']\n"})
	lock("HUB/gitfleet.lock.yaml is as it was: 1 remote base\n")
	if _, err := os.Stat(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "gitfleet", "bases", nested1)); err != nil {
		t.Errorf("what others have locked is not fetched: %v", err)
	}
}

// A chart of a registry is locked to the newest version of its range, with the digest of its archive, which is fetched with the
// credentials of the configuration. It stays until it is updated.
func TestLockCharts(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("REGISTRY_PASSWORD", "canaryPassword")
	registry, fleet := chartserver.NewRegistry(t), gitrepo.New(t)
	registry.User, registry.Password = "bot", "canaryPassword"
	push := func(version string) string {
		return registry.Push(t.Context(), "charts/web", version, chartserver.Chart("web", version))
	}
	first := push("1.0.0")
	dir := t.TempDir()
	ca, config := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "config.yaml")
	for name, text := range map[string]string{
		ca:     string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: registry.Certificate().Raw})),
		config: "hosts:\n- {host: '" + registry.Host() + "', username: bot, passwordEnv: REGISTRY_PASSWORD, caBundle: " + ca + "}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	names := strings.NewReplacer(fleet.Dir, "HUB", registry.Host(), "REGISTRY", first, "first")
	lock := func(want string, args ...string) {
		t.Helper()
		got := run(t, names, append([]string{fleet.Dir}, args...)...)
		if got != strings.TrimPrefix(want, "\n") {
			t.Errorf("%v:\n%swant%s", args, got, want)
		}
	}
	chart := func(version string) map[string]string {
		return map[string]string{"c.yaml": "{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterHelmChart, metadata: {name: c}, spec: {namespace: web, chart: {repository: 'oci://" + registry.Host() + "/charts', name: web, version: " + version + "}}}\n"}
	}
	fleet.Write(chart("^1"))
	lock(`
locked  oci://REGISTRY/charts/web:^1 at 1.0.0, first
wrote HUB/gitfleet.lock.yaml; commit it
`, "--config", config)
	names = strings.NewReplacer(fleet.Dir, "HUB", registry.Host(), "REGISTRY", first, "first", push("1.1.0"), "second")
	lock("HUB/gitfleet.lock.yaml is as it was: 1 chart\n", "--config", config)
	lock(`
updated oci://REGISTRY/charts/web:^1 from 1.0.0, first, to 1.1.0, second
wrote HUB/gitfleet.lock.yaml; commit it
`, "--config", config, "--update", "oci://"+registry.Host()+"/charts/web")
	if got := run(t, names, fleet.Dir, "--config", config, "--update", "oci://other"); !strings.Contains(got, "nothing is locked for it; locked are: oci://REGISTRY/charts/web:^1") {
		t.Error(got)
	}
	fleet.Write(map[string]string{"c.yaml": "# none\n", "app/kustomization.yaml": "helmCharts:\n- {name: web, namespace: web, version: '1', repo: 'oci://" + registry.Host() + "/charts'}\n"})
	lock(`
locked  oci://REGISTRY/charts/web:1 at 1.1.0, second
removed oci://REGISTRY/charts/web:^1, which nothing refers to
wrote HUB/gitfleet.lock.yaml; commit it
`, "--config", config)
	fleet.Write(map[string]string{"app/kustomization.yaml": "helmCharts:\n- {name: web, namespace: web, repo: 'oci://" + registry.Host() + "/charts'}\n"})
	lock(`
locked  oci://REGISTRY/charts/web:* at 1.1.0, second
removed oci://REGISTRY/charts/web:1, which nothing refers to
wrote HUB/gitfleet.lock.yaml; commit it
`, "--config", config)
	fleet.Write(map[string]string{"app/kustomization.yaml": "namePrefix: a-\n"})
	fleet.Write(chart("^2"))
	lock(`
removed oci://REGISTRY/charts/web:*, which nothing refers to
wrote HUB/gitfleet.lock.yaml; commit it
error: fetch chart oci://REGISTRY/charts/web:^2: none of the 2 versions there is in ^2
`, "--config", config)
	t.Setenv("REGISTRY_PASSWORD", "canaryWrong")
	if err := os.Remove(filepath.Join(fleet.Dir, "gitfleet.lock.yaml")); err != nil {
		t.Fatal(err)
	}
	if got := run(t, names, fleet.Dir, "--config", config); !strings.Contains(got, "401") || strings.Contains(got, "canary") || strings.Contains(got, "nothing") {
		t.Error(got)
	}
}

// The repository may be one of others: nothing outside of it is read or written through links.
func TestLockWritesNothingOutside(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	bases, outside := gitrepo.New(t), t.TempDir()
	bases.Commit("first", map[string]string{"a.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n", "kustomization.yaml": "resources: [a.yaml]\n"})
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("source: {allowFile: true}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"gitfleet.lock.yaml": filepath.Join(outside, "created"), "hub": outside} {
		fleet := gitrepo.New(t)
		fleet.Write(map[string]string{"app/kustomization.yaml": "resources: ['file://" + bases.Dir + "']\n"})
		args := []string{fleet.Dir, "--config", config}
		if err := os.Symlink(to, filepath.Join(fleet.Dir, link)); err != nil {
			t.Fatal(err)
		}
		if link == "hub" {
			args = append(args, "--path", "hub")
		}
		if said := run(t, strings.NewReplacer(), args...); !strings.Contains(said, "error: ") {
			t.Errorf("%s: %s", link, said)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside are %v, %v", entries, err)
	}
}

// What is locked is built while the registry is down: a HelmChart, and a chart and a remote base of a kustomization, as the docs say.
func TestWhatIsLockedIsBuiltWithoutTheNetwork(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	registry, bases, fleet := chartserver.NewRegistry(t), gitrepo.New(t), gitrepo.New(t)
	registry.Push(t.Context(), "charts/web", "1.2.0", chartserver.Chart("web", "1.2.0"))
	bases.Commit("first", map[string]string{"web/kustomization.yaml": "resources: [a.yaml]\n", "web/a.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: web}}\n"})
	dir := t.TempDir()
	ca, config := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "config.yaml")
	for name, text := range map[string]string{
		ca:     string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: registry.Certificate().Raw})),
		config: "source: {allowFile: true}\nhosts:\n- {host: '" + registry.Host() + "', caBundle: " + ca + "}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fleet.Write(map[string]string{
		"fleet.yaml": "{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: east}}\n---\n" +
			"{apiVersion: gitfleet.dev/v1alpha1, kind: ClusterHelmChart, metadata: {name: direct}, spec: {namespace: web, chart: {repository: 'oci://" + registry.Host() + "/charts', name: web, version: ^1}}}\n",
		"app/kustomization.yaml": "namespace: web\nresources: ['file://" + bases.Dir + "//web']\nhelmCharts:\n- {name: web, releaseName: listed, version: ^1, repo: 'oci://" + registry.Host() + "/charts', valuesInline: {greeting: hi}}\n",
	})
	if out := run(t, strings.NewReplacer(), fleet.Dir, "--config", config); strings.Contains(out, "error") {
		t.Fatal(out)
	}
	registry.Close()
	if err := os.RemoveAll(bases.Dir); err != nil {
		t.Fatal(err)
	}
	cfg, err := settings.Read(config, pflag.NewFlagSet("", pflag.ContinueOnError))
	if err != nil {
		t.Fatal(err)
	}
	r, err := open(cfg, fleet.Dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := hub.NewLoader(r.options).Load(hub.Commit{}, r.files)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range s.Objects {
		greeting, _, _ := unstructured.NestedString(o.Content.Object, "data", "greeting")
		got = append(got, strings.TrimSpace(o.ID.String()+" "+greeting))
		if o.Overlay != nil {
			for _, b := range o.Overlay.Builds {
				for _, built := range b.Objects {
					got = append(got, "  "+built.ID.String())
				}
			}
		}
	}
	if want := "ConfigMap/web/listed hi, Namespace/web, ClusterHelmChart.gitfleet.dev/direct,   ConfigMap/web/direct"; strings.Join(got, ", ") != want {
		t.Errorf("got %s\nwant %s", strings.Join(got, ", "), want)
	}
}
