package membership

import (
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub"
)

// The manifest of a new member is one that the hub accepts, with its labels.
func TestManifestOfAMember(t *testing.T) {
	text, err := memberManifestOf("paris", map[string]string{"region": "eu", "stage": "true"})
	if err != nil {
		t.Fatal(err)
	}
	clusters, err := hub.ReadClusters("paris.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if c := clusters[0]; c.Name != "paris" || c.Labels["region"] != "eu" || c.Labels["stage"] != "true" {
		t.Errorf("%v of\n%s", c.Labels, text)
	}
}

func TestClusterName(t *testing.T) {
	for context, want := range map[string]string{
		"paris":      "paris",
		"kind-Paris": "kind-paris",
		"arn:aws:eks:eu-west-1:1234:cluster/prod-eu": "prod-eu",
		"gke_project_europe-west1_prod":              "gke-project-europe-west1-prod",
		"admin@oslo":                                 "admin-oslo",
		"///":                                        "",
	} {
		if got := clusterName(context); got != want {
			t.Errorf("clusterName(%q) = %q, want %q", context, got, want)
		}
	}
}
