package compare

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/plan"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/sharedlist"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/world"
)

// snapshot loads a fleet of two members.
func snapshot(t *testing.T, text string) *hub.Snapshot {
	t.Helper()
	s, err := hub.NewLoader(hub.Options{}).Load(hub.Commit{Hash: "c1"}, world.Files(t, "clusters ams/region=eu ber/region=eu\nnamespace web\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// waitingOn is a placement that waits on a cluster.
func waitingOn(cluster, why string) *plan.OnCluster {
	return &plan.OnCluster{Binding: &placement.Binding{Cluster: cluster}, Waits: why}
}

// seen are the members of a fleet as they were read.
func seen(names ...string) (all []*inspection) {
	for _, name := range names {
		all = append(all, &inspection{name: name, seen: protocol.ClusterSeen{Cluster: name, At: time.Now(), Healthy: true, UID: "uid-" + name}})
	}
	return all
}

// The plan is that after every rollout: no cluster waits for another.
func TestFinalPlanHasNoRollouts(t *testing.T) {
	s := snapshot(t, "configmap web/one 1\nplace web of web unavailable 1\n")
	p := finalPlan(s, seen("ams", "ber"), protocol.Fleet{})
	for _, name := range []string{"ams", "ber"} {
		if len(p.Works[name]) != 1 || len(p.Works[name][0].Manifests) != 2 {
			t.Errorf("%s gets %+v", name, p.Works[name])
		}
	}
	if max := s.Placements[0].Spec.Strategy.RollingUpdate.MaxUnavailable; *max != intstr.FromInt32(1) {
		t.Errorf("it changes the snapshot: %s", max)
	}
	external := *s.Placements[0]
	external.Spec.Strategy.Type = api.External
	s.Placements = []*hub.Placement{&external}
	if out := withoutRollouts(s); *out.Placements[0].Spec.Strategy.RollingUpdate.MaxUnavailable != intstr.FromInt32(1) {
		t.Error("an update run of the user is not replaced by a rollout")
	}
}

// A member of another fleet is not compared, since nothing is written there.
func TestFinalPlanLeavesMembersOfOtherFleets(t *testing.T) {
	members := seen("ams", "ber")
	members[1].seen.Owners = []protocol.Owner{{ID: "theirs", Source: "https://git.example.com/other"}}
	finalPlan(snapshot(t, "place web of web\n"), members, protocol.Fleet{Name: "prod", ID: "ours"})
	if members[0].err != nil || members[1].err == nil {
		t.Errorf("%v, and of another fleet: %v", members[0].err, members[1].err)
	}
}

// What is compared is a placement or an object; a name that is neither gets a suggestion.
func TestFind(t *testing.T) {
	p := finalPlan(snapshot(t, "configmap web/one 1\nplace web of web\n"), seen("ams", "ber"), protocol.Fleet{})
	web, other := api.PlacementKey{Name: "web"}, api.PlacementKey{Name: "other"}
	one, two := api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}, api.ID{Kind: "ConfigMap", Namespace: "web", Name: "two"}
	for name, test := range map[string]struct {
		wanted, namespace string
		want              string // which of the objects of the placements are compared
		placed            bool
		err               string
	}{
		"everything":           {"", "", "web/one web/two other/one", true, ""},
		"a placement":          {"crp/web", "", "web/one web/two", true, ""},
		"part of a name":       {"web", "", "web/one web/two", true, ""},
		"an object":            {"configmap/one", "web", "web/one other/one", true, ""},
		"an object elsewhere":  {"configmap/three", "web", "", false, ""},
		"an unknown placement": {"crp/wbe", "", "", false, "there is no placement crp/wbe"},
		"an unknown name":      {"wset", "", "", false, "there is no placement wset"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &diffCommand{wanted: test.wanted, namespace: test.namespace}
			err := d.find(p)
			if test.err != "" || err != nil {
				if err == nil || !strings.HasPrefix(err.Error(), test.err) {
					t.Errorf("%v, want %q", err, test.err)
				}
				return
			}
			var got []string
			for _, c := range []struct {
				of api.PlacementKey
				id api.ID
			}{{web, one}, {web, two}, {other, one}} {
				if d.wants(c.of, c.id) {
					got = append(got, c.of.Name+"/"+c.id.Name)
				}
			}
			if text := strings.Join(got, " "); text != test.want || d.placed(p) != test.placed {
				t.Errorf("%q, delivered: %t; want %q, %t", text, d.placed(p), test.want, test.placed)
			}
		})
	}
}

// A placement that waits or is at fault is a problem, on the clusters and for the placement that
// are compared.
func TestProblemsOfPlacements(t *testing.T) {
	s := snapshot(t, "place web of web\n")
	p := &plan.Plan{Placements: sharedlist.Of(
		&plan.Placement{Key: api.PlacementKey{Name: "web"}, InternalError: "planning panicked"},
		&plan.Placement{Key: api.PlacementKey{Name: "old"}, Clusters: []*plan.OnCluster{waitingOn("ams", "new content waits: frozen"), waitingOn("ber", "waits for cluster ams")}},
	)}
	for name, test := range map[string]struct {
		d    diffCommand
		want []string
	}{
		"everything":  {diffCommand{}, []string{"crp/web: planning panicked", "crp/old on ams: new content waits: frozen", "crp/old on ber: waits for cluster ams"}},
		"a cluster":   {diffCommand{cluster: "ber"}, []string{"crp/web: planning panicked", "crp/old on ber: waits for cluster ams"}},
		"a placement": {diffCommand{placement: api.PlacementKey{Name: "web"}}, []string{"crp/web: planning panicked"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.d.document(s, p); !slices.Equal(got.Problems, test.want) || got.Commit != "c1" {
				t.Errorf("%q of %s, want %q", got.Problems, got.Commit, test.want)
			}
		})
	}
}

// Only a new object is shown whole, and without its secret values.
func TestChangeOf(t *testing.T) {
	m := &work.Manifest{
		Object: &api.Object{ID: api.ID{Kind: "Secret", Namespace: "web", Name: "key"}, Origin: api.Origin{Path: "key.yaml", Line: 1}, Content: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "key", "namespace": "web"}, "stringData": map[string]any{"password": "s3cret"},
		}}},
	}
	for effect, whole := range map[member.Effect]bool{member.Adds: true, member.Changes: false, member.Deletes: false} {
		c := changeOf(member.Change{Effect: effect, ID: m.ID, Manifest: m, Placement: api.PlacementKey{Name: "web"}, Message: " because \n"})
		raw, _ := json.Marshal(c.Object)
		if (c.Object != nil) != whole || c.Message != "because" || c.Placement != "crp/web" || c.Origin == "" || strings.Contains(string(raw), "s3cret") {
			t.Errorf("%s: %+v", effect, c)
		}
	}
	if c := changeOf(member.Change{Effect: member.Deletes, ID: m.ID}); c.Origin != "" || c.Name != "key" {
		t.Errorf("an object that is not in Git: %+v", c)
	}
}

// The state of the daemon is used if it answers and follows the same repository; otherwise the
// reason is noted.
func TestAskTheDaemon(t *testing.T) {
	o := overview.Overview{Source: overview.Source{URL: "https://git.example.com/fleet"}, Commit: &overview.Commit{Hash: "c1"}, Fleet: overview.Fleet{Name: "prod"}, Suspended: []status.Suspension{{Placement: "crp/web"}}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(o) }))
	defer srv.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, test := range map[string]struct {
		address, url, unknown string
	}{
		"the same repository": {srv.URL, "https://git.example.com/fleet", ""},
		"a checkout":          {srv.URL, "", ""},
		"another repository":  {srv.URL, "https://git.example.com/other", "follows https://git.example.com/fleet, not https://git.example.com/other; set --server to the address of the right one"},
		"no daemon":           {gone.URL, "", "no daemon answers at " + gone.URL},
		"no address":          {"nowhere", "", `--server "nowhere": must be http://HOST:PORT`},
	} {
		t.Run(name, func(t *testing.T) {
			d := &diffCommand{}
			d.daemon.Address = test.address
			var cfg settings.Config
			cfg.Source.URL = test.url
			got := d.ask(t.Context(), cfg)
			switch {
			case test.unknown != "" && (!strings.Contains(got.unknown, test.unknown) || strings.Contains(got.unknown, "\n") || got.suspended != nil):
				t.Errorf("%+v, want %q", got, test.unknown)
			case test.unknown == "" && (got.unknown != "" || got.inForce != "c1" || got.fleet.Name != "prod" || len(got.suspended) != 1):
				t.Errorf("%+v", got)
			}
		})
	}
}

// A member that does not answer has an error instead of changes; other members than the requested
// one are not compared.
func TestChangesOfAMemberThatDoesNotAnswer(t *testing.T) {
	away := &inspection{name: "ams", err: errors.New("connection refused")}
	for cluster, want := range map[string]string{"": "connection refused", "ams": "connection refused", "ber": ""} {
		d := &diffCommand{cluster: cluster}
		if got := d.changes(t.Context(), away, &plan.Plan{}, daemonState{}); got.Error != want || got.Changes == nil {
			t.Errorf("--cluster %q: %+v", cluster, got)
		}
	}
}
