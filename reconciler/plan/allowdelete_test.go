package plan

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A commit allows the deletions of the placements that its trailers name, and of no others.
func TestAllows(t *testing.T) {
	crp, rp := api.PlacementKey{Name: "web"}, api.PlacementKey{Namespace: "shop", Name: "web"}
	for name, test := range map[string]struct {
		message string
		crp, rp bool
	}{
		"no trailer":                {"Remove web", false, false},
		"by kind and name":          {"Remove web\n\nGitfleet-Allow-Delete: crp/web", true, false},
		"by name":                   {"Remove web\n\nGitfleet-Allow-Delete: web", true, false},
		"with the namespace":        {"Remove web\n\nGitfleet-Allow-Delete: shop/web", false, true},
		"kind, namespace and name":  {"Remove web\n\nGitfleet-Allow-Delete: rp/shop/web", false, true},
		"a list":                    {"Remove web\n\nGitfleet-Allow-Delete: api, crp/web ,rp/shop/web", true, true},
		"several trailers":          {"Remove web\n\nGitfleet-Allow-Delete: rp/shop/web\nSigned-off-by: Ada\nGitfleet-Allow-Delete: web", true, true},
		"all":                       {"Remove web\n\nGitfleet-Allow-Delete: *", true, true},
		"in any case":               {"Remove web\n\ngitfleet-allow-delete: web", true, false},
		"with Windows lines":        {"Remove web\r\n\r\nGitfleet-Allow-Delete: web\r\n", true, false},
		"with lines after it":       {"Remove web\n\nGitfleet-Allow-Delete: web\n\n\n", true, false},
		"not in the last paragraph": {"Remove web\n\nGitfleet-Allow-Delete: web\n\nAs agreed.", false, false},
		"the subject alone":         {"Gitfleet-Allow-Delete: web", true, false},
		"quoted in a sentence":      {"Remove web\n\nthe trailer Gitfleet-Allow-Delete: web is missing", false, false},
		"another placement":         {"Remove web\n\nGitfleet-Allow-Delete: webs, we", false, false},
		"without a name":            {"Remove web\n\nGitfleet-Allow-Delete:", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Allows(test.message, crp); got != test.crp {
				t.Errorf("of %s: %t", crp, got)
			}
			if got := Allows(test.message, rp); got != test.rp {
				t.Errorf("of %s: %t", rp, got)
			}
		})
	}
}

// A commit without clusters or without placements is refused, unless its trailer allows all
// deletions or the fleet has none.
func TestRemovesEverything(t *testing.T) {
	cluster, web := []*hub.Cluster{{}}, []*hub.Placement{{Key: api.PlacementKey{Name: "web"}}}
	filled := func() *ledger.Ledger {
		l := ledger.New()
		l.Fold(protocol.ClusterSeen{Cluster: "east", At: time.Unix(1, 0), Healthy: true})
		l.SetPlacement(api.PlacementKey{Name: "web"}, ledger.Placement{Generation: 1})
		return l
	}
	for name, test := range map[string]struct {
		message string
		head    hub.Snapshot
		ledger  *ledger.Ledger
		want    string // what the reason contains; empty if it is accepted
	}{
		"clusters and placements":                {"", hub.Snapshot{Clusters: cluster, Placements: web}, filled(), ""},
		"no cluster":                             {"", hub.Snapshot{Placements: web}, filled(), "no MemberCluster left"},
		"no placement":                           {"", hub.Snapshot{Clusters: cluster}, filled(), "no placement left"},
		"neither":                                {"", hub.Snapshot{}, filled(), "no MemberCluster left"},
		"all deletions are allowed":              {"Empty it\n\nGitfleet-Allow-Delete: *", hub.Snapshot{}, filled(), ""},
		"deletions of one placement are allowed": {"Empty it\n\nGitfleet-Allow-Delete: web", hub.Snapshot{Clusters: cluster}, filled(), "no placement left"},
		"the fleet was empty already":            {"", hub.Snapshot{}, ledger.New(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.head.Commit.Message = test.message
			got := RemovesEverything(&test.head, test.ledger)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
			if got != "" && !strings.HasSuffix(got, `"Gitfleet-Allow-Delete: *" to the message of a commit`) {
				t.Errorf("it does not say what to do: %s", got)
			}
		})
	}
}

// A commit that stops building what was deployed is refused, unless its trailer allows all deletions. That a base is
// unused that was never deployed is no reason, nor that the kustomization was removed.
func TestStopsBuilding(t *testing.T) {
	deployed := &hub.Snapshot{Sources: map[string][]string{"web/base/kustomization.yaml": {}, "prod/kustomization.yaml": {}}}
	for name, test := range map[string]struct {
		unused, message string
		inForce         *hub.Snapshot
		want            bool
	}{
		"a base that was deployed":     {"web/base/kustomization.yaml", "", deployed, true},
		"a base that was not deployed": {"shop/base/kustomization.yaml", "", deployed, false},
		"all deletions are allowed":    {"web/base/kustomization.yaml", "Move it\n\nGitfleet-Allow-Delete: *", deployed, false},
		"no commit is in force":        {"web/base/kustomization.yaml", "", nil, false},
	} {
		next := &hub.Snapshot{Commit: hub.Commit{Message: test.message}, Unused: []string{test.unused}}
		if got := StopsBuilding(next, test.inForce); (got != "") != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := StopsBuilding(&hub.Snapshot{}, deployed); got != "" {
		t.Errorf("everything is removed: %q", got)
	}
}

// A commit that takes what is deployed out of the hub is refused with what decides that, unless its trailer allows all
// deletions.
func TestDrops(t *testing.T) {
	inForce := &hub.Snapshot{Placements: []*hub.Placement{{Key: api.PlacementKey{Name: "web"}, Origin: api.Origin{Path: "apps/web.yaml", Line: 1}}}}
	next := &hub.Snapshot{Excluded: []hub.Exclusion{{Path: "apps", Why: "the roots in .gitfleet.yaml do not have it"}}}
	const want = "apps is no part of the hub any more, since the roots in .gitfleet.yaml do not have it, so crp/web (apps/web.yaml:1) of the commit in force would be removed; " +
		`correct that, or if it is intended, add the trailer "Gitfleet-Allow-Delete: *" to the message of a commit`
	if got := Drops(next, inForce); got != want {
		t.Errorf("got %s", got)
	}
	if got := Drops(next, nil); got != "" {
		t.Errorf("no commit is in force: %s", got)
	}
	inForce.Placements[0].Origin.Path = "fleet/web.yaml"
	inForce.Objects = []*api.Object{{ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: "a"}, Content: &unstructured.Unstructured{}, Origin: api.Origin{Path: "apps/a.yaml", Line: 1}}}
	if got := Drops(next, inForce); got != "" {
		t.Errorf("no placement selects it: %s", got)
	}
	inForce.Placements[0].Origin.Path = "apps/web.yaml"
	next.Commit.Message = "Leave it\n\nGitfleet-Allow-Delete: *"
	if got := Drops(next, inForce); got != "" {
		t.Errorf("all deletions are allowed: %s", got)
	}
}
