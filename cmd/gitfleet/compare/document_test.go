package compare

import (
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/golden"
)

// The output of diff. It must change only on purpose.
func TestDiffAsText(t *testing.T) {
	replicas := []api.Difference{{PatchDetail: api.PatchDetail{Path: "/spec/replicas", ValueInMember: "5", ValueInHub: "3"}, By: []api.Actor{{Manager: "kubectl-scale"}}}}
	web := diffChange{Effect: "change", Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Placement: "crp/web", Origin: "apps/web.yaml:12", Fields: replicas}
	added := diffChange{Effect: "add", Kind: "Secret", Namespace: "shop", Name: "key", Placement: "crp/web", Origin: "apps/key.yaml:1",
		Object: map[string]any{"kind": "Secret", "stringData": map[string]any{"password": "(redacted for security reasons)"}}}
	taken := diffChange{Effect: "change", Kind: "ConfigMap", Namespace: "shop", Name: "settings", Placement: "crp/web", Origin: "apps/settings.yaml:1", TakesOver: true}
	gone := diffChange{Effect: "delete", Kind: "Namespace", Name: "old", Placement: "crp/old", Message: "blocked until a commit allows it: the Namespace has content that is not gitfleet's: Pod a"}
	left := diffChange{Effect: "differ", Kind: "ConfigMap", Namespace: "shop", Name: "theirs", Placement: "crp/web", Origin: "apps/theirs.yaml:1", Message: "no ownership of the object in the member cluster; takeover is needed"}
	refused := diffChange{Effect: "fail", Kind: "Service", Namespace: "shop", Name: "web", Placement: "crp/web", Origin: "apps/svc.yaml:1", Message: "spec.clusterIP: Invalid value:\nfield is immutable"}
	recreated := diffChange{Effect: "recreate", Group: "batch", Kind: "Job", Namespace: "shop", Name: "once", Placement: "crp/web", Origin: "apps/job.yaml:1",
		Fields: []api.Difference{{PatchDetail: api.PatchDetail{Path: "/spec/template/spec/containers/0/image", ValueInMember: "app:1", ValueInHub: "app:2"}}}}
	released := diffChange{Effect: "release", Kind: "ConfigMap", Namespace: "shop", Name: "kept", Placement: "crp/old"}
	rested := diffChange{Effect: "change", Kind: "ConfigMap", Namespace: "shop", Name: "tuned", Placement: "crp/web", Origin: "apps/tuned.yaml:1", Fields: replicas}
	rested.suspend("suspended by jo: INC-1")
	altered := diffChange{Effect: "alter", Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "mesh", Placement: "crp/web", Origin: "apps/mesh.yaml:1", Message: "a webhook changes it", Fields: replicas}
	altered.suspend("suspended by jo: INC-1")
	foreign := left
	foreign.suspend("suspended by jo: INC-1")
	doc := &diffDocument{
		Notes:    []string{"whether anything is suspended is not known: no daemon answers at http://localhost:8085"},
		Problems: []string{"crp/web on north: the strategy is External: the cluster waits for an update run"},
		Clusters: []diffCluster{
			{Name: "east", Changes: []diffChange{added, web, taken, gone}},
			{Name: "north"},
			{Name: "south", Changes: []diffChange{left, refused, recreated, released, rested, foreign, altered}},
			{Name: "west", Changes: []diffChange{added, web, taken, gone}},
			{Name: "zenith", Error: "the API server did not answer in time"},
		},
	}
	golden.File(t, "testdata/text.txt", doc.text())
	if !doc.incomplete() || !doc.differs() {
		t.Errorf("troubled %t, differs %t", doc.incomplete(), doc.differs())
	}
	if same := (&diffDocument{Clusters: []diffCluster{{Name: "east", Changes: []diffChange{altered}}}}); same.differs() {
		t.Error("what a cluster alters at each apply counts as a difference")
	}
	calm := &diffDocument{Clusters: []diffCluster{{Name: "east"}, {Name: "west"}}}
	if got, want := calm.text(), "east, west: no difference\n"; got != want || calm.incomplete() || calm.differs() {
		t.Errorf("%q, want %q", got, want)
	}
}

// A suspension is found whatever its subject is: a placement, a cluster or an object, on one
// cluster or on all.
func TestWordOnWhatIsSuspended(t *testing.T) {
	settings := api.ID{Kind: "ConfigMap", Namespace: "shop", Name: "settings"}
	other := api.ID{Kind: "ConfigMap", Namespace: "shop", Name: "other"}
	tests := map[string]struct {
		s    status.Suspension
		want string // which of two objects of crp/web on two clusters are suspended
	}{
		"a placement":             {status.Suspension{Placement: "crp/web"}, "settings on east, settings on west, other on east, other on west"},
		"a placement on one":      {status.Suspension{Placement: "crp/web", Cluster: "east"}, "settings on east, other on east"},
		"another placement":       {status.Suspension{Placement: "crp/db"}, ""},
		"a cluster":               {status.Suspension{Cluster: "west"}, "settings on west, other on west"},
		"an object":               {status.Suspension{Object: settings}, "settings on east, settings on west"},
		"an object on one":        {status.Suspension{Object: settings, Cluster: "west"}, "settings on west"},
		"an object of that name":  {status.Suspension{Object: api.ID{Kind: "Secret", Namespace: "shop", Name: "settings"}}, ""},
		"an object in no cluster": {status.Suspension{Object: settings, Cluster: "north"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.s.By, test.s.Reason = "jo", "INC-1"
			told := daemonState{suspended: []status.Suspension{test.s}}
			var got []string
			for _, id := range []api.ID{settings, other} {
				for _, cluster := range []string{"east", "west"} {
					switch why := told.suspensionOf("crp/web", id, cluster); why {
					case "":
					case "suspended by jo: INC-1":
						got = append(got, id.Name+" on "+cluster)
					default:
						t.Errorf("it says %q", why)
					}
				}
			}
			if text := strings.Join(got, ", "); text != test.want {
				t.Errorf("%q, want %q", text, test.want)
			}
		})
	}
}

// Text from elsewhere cannot control the terminal.
func TestDiffIsSanitized(t *testing.T) {
	const evil = "a\033[2Jb\rc\u202ed"
	field := api.Difference{
		PatchDetail: api.PatchDetail{Path: "/data/" + evil, ValueInMember: evil + "\n" + evil, ValueInHub: evil}, By: []api.Actor{{Manager: evil}},
	}
	doc := diffDocument{Notes: []string{evil}, Problems: []string{evil}, Clusters: []diffCluster{
		{Name: "east", Error: evil}, {Name: "west", Changes: []diffChange{{Effect: "change", Message: evil, Suspended: evil, Fields: []api.Difference{field}}}},
	}}
	if got := doc.text(); strings.ContainsAny(got, "\033\r\u202e") {
		t.Errorf("%q", got)
	}
}
