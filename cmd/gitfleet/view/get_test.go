package view

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/status/conditions"
	"github.com/gitfleet/gitfleet/test/reports"
)

// sampleClient is a client of a daemon with the sample report.
func sampleClient(t *testing.T) *client.Client {
	t.Helper()
	daemon := server.New(nil)
	daemon.Publish(reports.Sample())
	srv := httptest.NewServer(daemon.Handler())
	t.Cleanup(srv.Close)
	c, err := (&client.Connection{Address: srv.URL}).Client()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A kind may be written as for kubectl: in the plural, in capitals, with its group.
func TestFindView(t *testing.T) {
	for name, want := range map[string]string{
		"crp": "crp", "ClusterResourcePlacements": "crp", "clusterresourceplacement.placement.kubernetes-fleet.io": "crp", "rp": "rp", "mc": "mc", "clusters": "mc",
		"memberclusters.cluster.kubernetes-fleet.io": "mc", "all": "all", "placements": "placements",
		"memberclusters.placement.kubernetes-fleet.io": "", "crp.cluster.kubernetes-fleet.io": "", "pods": "", "": "",
	} {
		v, ok := findView(name)
		got := ""
		if ok {
			got = v.names[0]
		}
		if got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

// What get lists is one object, or all of the kinds that were named.
func TestGetResolvesItsArguments(t *testing.T) {
	c := sampleClient(t)
	for name, test := range map[string]struct {
		args       string
		namespace  string
		everywhere bool
		want       string // the object; empty for all
		err        string
	}{
		"all of a kind":            {"crp", "", false, "", ""},
		"one placement":            {"crp web", "", false, "crp/web", ""},
		"with a slash":             {"crp/web", "", false, "crp/web", ""},
		"one of a namespace":       {"rp db", "team", false, "rp/team/db", ""},
		"one of any namespace":     {"rp db", "", false, "rp/team/db", ""},
		"of both kinds":            {"placements web", "", false, "crp/web", ""},
		"a member":                 {"mc east", "", false, "cluster/east", ""},
		"a name alone":             {"east", "", false, "cluster/east", ""},
		"a placement's name alone": {"web", "", false, "crp/web", ""},
		"an unknown name":          {"wset", "", false, "", "there is no kind, placement or cluster wset; did you mean"},
		"a misspelt kind":          {"clusterresourceplacment", "", false, "", "there is no kind, placement or cluster clusterresourceplacment; did you mean clusterresourceplacement?"},
		"a misspelt short kind":    {"crpp web", "", false, "", "there is no kind, placement or cluster crpp/web; did you mean crp/web?"},
		"one of a misspelt kind":   {"approvlrequests go", "", false, "", "there is no kind, placement or cluster approvlrequests/go; did you mean approvalrequests/go?"},
		"no kind at all":           {"foo", "", false, "", "there is no kind, placement or cluster foo; there are all, areq, "},
		"two namespaces":           {"rp", "team", true, "", "--all-namespaces and --namespace exclude each other"},
	} {
		t.Run(name, func(t *testing.T) {
			g := getCommand{namespace: test.namespace, everywhere: test.everywhere}
			err := g.resolve(t.Context(), c, strings.Fields(test.args))
			switch {
			case test.err == "" && (err != nil || g.of.String() != test.want):
				t.Errorf("%s, %v; want %s", g.of, err, test.want)
			case test.err != "" && (err == nil || !strings.HasPrefix(err.Error(), test.err)):
				t.Errorf("%v, want %s", err, test.err)
			}
		})
	}
}

// Labels and a namespace select objects. Objects without a namespace are not in any.
func TestGetSelectsObjects(t *testing.T) {
	r := reports.Sample()
	r.Clusters[0].Labels = map[string]string{"region": "eu"}
	for name, test := range map[string]struct {
		view, selector, namespace, want string
	}{
		"all":                  {"all", "", "", "idle web db east west"},
		"one kind":             {"crp", "", "", "idle web"},
		"of a namespace":       {"all", "", "team", "db"},
		"of another namespace": {"rp", "", "shop", ""},
		"with a label":         {"all", "region=eu", "", r.Clusters[0].Name},
		"without a label":      {"crp", "region!=eu", "", "idle web"},
	} {
		t.Run(name, func(t *testing.T) {
			v, _ := findView(test.view)
			selector, err := labels.Parse(test.selector)
			if err != nil {
				t.Fatal(err)
			}
			g := &getCommand{view: v, labels: selector, namespace: test.namespace}
			listed := g.only(r)
			var got []string
			for _, p := range listed.Placements {
				got = append(got, p.Name)
			}
			for _, p := range listed.ResourcePlacements {
				got = append(got, p.Name)
			}
			for _, c := range listed.Clusters {
				got = append(got, c.Name)
			}
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("%q, want %q", text, test.want)
			}
		})
	}
}

// One object that was named is a document of its own; everything else is a list, also of one.
func TestGetDocuments(t *testing.T) {
	one := &status.Report{Clusters: []*api.MemberCluster{{TypeMeta: metav1.TypeMeta{Kind: "MemberCluster"}, ObjectMeta: metav1.ObjectMeta{Name: "east"}}}}
	for name, test := range map[string]struct {
		of   client.Subject
		r    *status.Report
		kind string
	}{
		"the one":      {client.Subject{Cluster: "east"}, one, "MemberCluster"},
		"a list":       {client.Subject{}, one, "List"},
		"an empty one": {client.Subject{Cluster: "east"}, &status.Report{}, "List"},
	} {
		raw, err := json.Marshal((&getCommand{of: test.of}).document(test.r))
		if err != nil {
			t.Fatal(err)
		}
		var doc struct{ Kind string }
		if err := json.Unmarshal(raw, &doc); err != nil || doc.Kind != test.kind || strings.Contains(string(raw), `"items":null`) {
			t.Errorf("%s: %s", name, raw)
		}
	}
}

// Below the tables stands what needs attention: a refused commit, deletions, suspensions, and a
// repository that cannot be read.
func TestGetPrintsWhatNeedsAttention(t *testing.T) {
	onEast := func(c status.ClusterDetail) status.Report {
		c.Cluster = "east"
		return status.Report{Details: []*status.Detail{{Placement: "crp/web", Clusters: []status.ClusterDetail{c}}}}
	}
	for name, test := range map[string]struct {
		r    status.Report
		want string
	}{
		"nothing":           {status.Report{}, ""},
		"a refused commit":  {status.Report{Source: status.Source{Newest: hub.Commit{Hash: reports.SecondCommit}, InForce: hub.Commit{Hash: reports.FirstCommit}, LoadError: "no such path"}}, "commit b2b2b2b2 is refused; a1a1a1a1 stays in force: no such path"},
		"no commit":         {status.Report{Source: status.Source{Newest: hub.Commit{Hash: reports.SecondCommit}, LoadError: "no such path"}}, "commit b2b2b2b2 is refused; no commit is in force yet: no such path"},
		"held deletions":    {onEast(status.ClusterDetail{BlockedDeletions: []string{"ConfigMap/web/a: too much"}}), "crp/web on east: 1 deletion is blocked: ConfigMap/web/a: too much; " + conditions.DeletionAdvice("crp/web")},
		"refused deletions": {onEast(status.ClusterDetail{DeletionErrors: []string{"a: denied", "b: denied"}}), "crp/web: 2 objects on east cannot be deleted (retried): a: denied b: denied"},
		"suspended":         {status.Report{Suspensions: []status.Suspension{{Subject: "crp/web", By: "alice", Reason: "INC-1", Until: reports.Noon}}}, "crp/web is suspended by alice until 2026-03-01T12:00:00Z: INC-1"},
		"no repository":     {status.Report{Source: status.Source{Git: status.Git{URL: "https://git.example.com/fleet", Failures: 2, LastSuccess: reports.Noon.Add(-time.Hour), Error: "no such host"}}}, "https://git.example.com/fleet cannot be read (2 failed attempts since 2026-03-01T11:00:00Z): no such host"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			printSource(&b, &test.r)
			if got := strings.Join(strings.Fields(b.String()), " "); got != test.want {
				t.Errorf("%q\nwant %q", got, test.want)
			}
		})
	}
}
