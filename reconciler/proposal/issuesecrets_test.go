package proposal

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// An issue contains no value of a Secret.
func TestIssuesMaskSecrets(t *testing.T) {
	c := manualChange(7, "east")
	c.paths = []api.Difference{{PatchDetail: api.PatchDetail{Path: "/data/password", ValueInHub: diff.Mask, ValueInMember: diff.Mask}}}
	if body := c.body("shop", nil); strings.Count(body, diff.Mask) != 2 {
		t.Errorf("the body is\n%s", body)
	}
}

// Drift of a value that is encrypted in the repository is offered as an issue without the values, whatever kind has it.
func TestDriftOfDecryptedValuesIsOfferedAsAnIssue(t *testing.T) {
	object := func(url string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web"}, "data": map[string]any{"url": url},
		}}
	}
	wanted, live := object("https://u:canaryInGit@db"), object("https://u:canaryOnMember@db")
	api.SetSecretFields(wanted.Object, [][]string{{"data", "url"}})
	c := manualChange(7, "east")
	c.paths = nil
	for _, d := range diff.Compare(wanted, live, diff.Options{}) {
		c.paths = append(c.paths, api.Difference{PatchDetail: d})
	}
	c.reason = Adoptable(&status.Trace{Cluster: "east", Origin: "web.yaml:1", ResourceIdentifier: api.ResourceIdentifier{Kind: "ConfigMap", Name: "web"}, Drift: &status.Drift{Paths: c.paths}})
	if c.reason == nil {
		t.Fatal("the value is written into Git as it is on the cluster")
	}
	p := newProposing(10)
	p.after(t, 130*time.Second, c)
	if len(p.forge.Issues) != 1 || len(p.forge.Pulls) > 0 {
		t.Fatalf("%d issues and %d pull requests", len(p.forge.Issues), len(p.forge.Pulls))
	}
	if text := p.forge.Issues[0].Title + p.forge.Issues[0].Body; strings.Contains(text, "canary") || !strings.Contains(text, "with sops if it is encrypted") || !strings.Contains(text, diff.Mask) {
		t.Error(text)
	}
}
