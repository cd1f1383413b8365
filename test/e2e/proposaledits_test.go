package e2e

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/giteaserver"
	"github.com/gitfleet/gitfleet/test/golden"
)

// Each kind of change is edited in the file in which a person would edit it.
func TestDriftIsEditedInItsSourceFile(t *testing.T) {
	t.Parallel()
	p := newProposingWith(t, func(name string) map[string]string {
		return map[string]string{
			"overlay/kustomization.yaml": "# What is layered.\nresources: [config.yaml]\nnamespace: " + name + "\npatches:\n  - path: patch.yaml\n",
			"overlay/config.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: layered}\ndata:\n  level: info\n",
			"overlay/patch.yaml":         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: layered}\ndata:\n  level: warn # for now\n",
			"box.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: box\n  namespace: " + name + "\n  annotations: {kubernetes-fleet.io/envelope-configmap: \"true\"}\n" +
				"data:\n  wrapped.yaml: |\n    # In the box.\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: wrapped, namespace: " + name + "}\n    data:\n      value: \"1\"\n",
			"everywhere.yaml": yamlConfigMap(name, "everywhere", "1"),
			"different.yaml":  yamlConfigMap(name, "different", "1"),
			"doomed.yaml":     "# Still needed.\n" + yamlConfigMap(name, "kept", "1") + "---\n# Not for long.\n" + yamlConfigMap(name, "doomed", "1"),
		}
	}, "--set", "drift.minAge=5s")
	p.start()
	p.settled("registry.example/app:1")
	ctx := context.Background()
	set := func(member, configMap, key, value string) {
		t.Helper()
		_, err := p.clients[member].CoreV1().ConfigMaps(p.name).Patch(ctx, configMap, types.MergePatchType,
			fmt.Appendf(nil, `{"data":{%q:%q}}`, key, value), metav1.PatchOptions{FieldManager: "kubectl-edit"})
		noError(t, err)
	}
	for _, m := range p.members {
		set(m, "layered", "level", "debug")
		set(m, "wrapped", "value", "2")
		set(m, "everywhere", "value", "2")
		noError(t, p.clients[m].CoreV1().ConfigMaps(p.name).Delete(ctx, "doomed", metav1.DeleteOptions{}))
	}
	one, two := p.members[0], p.members[1]
	set(one, "different", "value", "a")
	set(two, "different", "value", "b")
	_, err := p.clients[one].AppsV1().Deployments(p.name).UpdateScale(ctx, "web", &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: p.name}, Spec: autoscalingv1.ScaleSpec{Replicas: 4},
	}, metav1.UpdateOptions{FieldManager: "kubectl"})
	noError(t, err)

	const file = "testdata/driftedits.txt"
	want, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	offered := p.edits()
	for deadline := time.Now().Add(p.timeout); (offered == "" || offered != string(want)) && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		offered = p.edits()
	}
	golden.File(t, file, offered)
	doomed := p.pulls()[slices.IndexFunc(p.pulls(), func(pr *gitea.PullRequest) bool { return strings.Contains(pr.Title, "doomed") })]
	if !strings.Contains(doomed.Body, "Gitfleet-Allow-Delete: crp/all") {
		t.Errorf("the body does not name the trailer:\n%s", doomed.Body)
	}
	p.forge.Merge("hub", doomed.Index)
	p.until("the object is out of Git", func(r *status.Report) bool {
		return len(notApplied(r)) == 0 && !slices.ContainsFunc(r.Drifts, func(d status.Drift) bool { return d.Name == "doomed" })
	})
}

var overrideHash = regexp.MustCompile(`-[0-9a-f]{8}\b`)

// edits returns the changes of all open pull requests, with names that are the same in each
// run.
func (p *proposing) edits() string {
	p.t.Helper()
	var all []string
	for _, pr := range p.pulls() {
		diff, _, err := p.forge.Client.GetPullRequestDiff(giteaserver.User, "hub", pr.Index, gitea.PullRequestDiffOptions{})
		noError(p.t, err)
		var b strings.Builder
		fmt.Fprintf(&b, "%s (%s)\n", pr.Title, pr.State)
		for line := range strings.Lines(string(diff)) {
			if strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") {
				b.WriteString(line)
			}
		}
		text := strings.ReplaceAll(b.String(), p.name, "NAMESPACE")
		all = append(all, overrideHash.ReplaceAllString(text, "-HASH"))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}
