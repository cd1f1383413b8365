package plan

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// on returns clusters of a placement; one whose name ends with "-" is no longer selected.
func on(names ...string) []*OnCluster {
	var out []*OnCluster
	for _, name := range names {
		name, leaves := strings.CutSuffix(name, "-")
		out = append(out, &OnCluster{Binding: &placement.Binding{Cluster: name, Unscheduled: leaves}})
	}
	return out
}

// The objects on a cluster that a placement leaves are not deleted if the placement has no other cluster,
// or if its policy names a cluster that does not exist.
func TestRemovalBlocks(t *testing.T) {
	fleet := &placement.Request{Clusters: []placement.Cluster{{Name: "east"}, {Name: "west"}}}
	naming := func(names ...string) *hub.Placement {
		return &hub.Placement{Spec: api.PlacementSpec{Policy: &api.PlacementPolicy{PlacementType: api.PickFixed, ClusterNames: names}}}
	}
	for name, test := range map[string]struct {
		p       Placement
		cluster string
		want    string
	}{
		"a deleted placement":         {Placement{Clusters: on("east-")}, "east", ""},
		"no other cluster":            {Placement{Spec: naming("west"), Clusters: on("east-"), Request: fleet}, "east", "the placement has no cluster left"},
		"another cluster":             {Placement{Spec: naming("west"), Clusters: on("east-", "west"), Request: fleet}, "east", ""},
		"an unknown cluster is named": {Placement{Spec: naming("west", "wset"), Clusters: on("east-", "west"), Request: fleet}, "east", `spec.policy.clusterNames names "wset", and there is no such MemberCluster`},
		"the cluster itself has left": {Placement{Spec: naming("west", "north"), Clusters: on("north-", "west"), Request: fleet}, "north", ""},
		"not scheduled":               {Placement{Spec: naming("west", "wset"), Clusters: on("east-", "west")}, "east", ""},
		"no policy":                   {Placement{Spec: &hub.Placement{}, Clusters: on("east-", "west"), Request: fleet}, "east", ""},
	} {
		t.Run(name, func(t *testing.T) {
			blocks := test.p.RemovalBlocks(test.cluster)
			if got := reasons(blocks); got != test.want {
				t.Errorf("blocked because %q, want %q", got, test.want)
			}
		})
	}
}

// Nothing is deleted on a cluster that the fleet has under two names, since a placement that leaves one of them may
// be meant to be there under the other.
func TestBlocksOnAClusterWithTwoNames(t *testing.T) {
	fleet := &placement.Request{Clusters: []placement.Cluster{{Name: "alias"}, {Name: "east"}, {Name: "west"}}}
	sameAs := func(cluster string) string { return map[string]string{"alias": "east"}[cluster] }
	const want = "alias is the same cluster as east; remove one of the two MemberClusters from the repository, or correct the kubeconfig"
	for name, test := range map[string]struct {
		p       Placement
		cluster string
		want    string
	}{
		"it has two names":            {Placement{Spec: &hub.Placement{}, Clusters: on("east-", "west"), Request: fleet}, "east", want},
		"another cluster":             {Placement{Spec: &hub.Placement{}, Clusters: on("east", "west-"), Request: fleet}, "west", ""},
		"the cluster itself has left": {Placement{Spec: &hub.Placement{}, Clusters: on("east-", "west"), Request: &placement.Request{Clusters: fleet.Clusters[:1]}}, "east", ""},
		"not scheduled":               {Placement{Spec: &hub.Placement{}, Clusters: on("east-", "west")}, "east", ""},
	} {
		if got := reasons(otherNameBlocks(&test.p, test.cluster, sameAs)); got != test.want {
			t.Errorf("%s: blocked because %q, want %q", name, got, test.want)
		}
	}
}

// Nothing is deleted on a cluster that a placement leaves for a member of which nothing is known yet.
func TestBlocksForAMemberThatHasNeverAnswered(t *testing.T) {
	fleet := &placement.Request{Clusters: []placement.Cluster{{Name: "alias"}, {Name: "east"}, {Name: "west"}}}
	for name, test := range map[string]struct {
		policy   *api.PlacementPolicy
		answered string
		want     string
	}{
		"it has not":          {&api.PlacementPolicy{ClusterNames: []string{"west", "alias"}}, "west", `spec.policy.clusterNames names "alias", which has not answered yet and may be the same cluster`},
		"it has":              {&api.PlacementPolicy{ClusterNames: []string{"west", "alias"}}, "west alias", ""},
		"it is no member":     {&api.PlacementPolicy{ClusterNames: []string{"nobody"}}, "", ""},
		"another has not":     {&api.PlacementPolicy{ClusterNames: []string{"west"}}, "west", ""},
		"no cluster is named": {nil, "", ""},
	} {
		p := Placement{Spec: &hub.Placement{Spec: api.PlacementSpec{Policy: test.policy}}, Clusters: on("east-", "west"), Request: fleet}
		answered := func(cluster string) bool { return slices.Contains(strings.Fields(test.answered), cluster) }
		if got := reasons(unidentifiedBlocks(&p, answered)); got != test.want {
			t.Errorf("%s: blocked because %q, want %q", name, got, test.want)
		}
	}
}

func reasons(blocks []work.DeletionBlock) string {
	var out []string
	for _, b := range blocks {
		out = append(out, b.Why)
	}
	return strings.Join(out, "; ")
}

// A selector that matches nothing blocks deletions of objects of its kind, one of envelopes those
// of any kind, and one of Namespaces those of everything in namespaces that are no longer selected.
func TestUnmatchedBlocks(t *testing.T) {
	m := NewMemo()
	m.setInForce(snapshot(t, "clusters east\nnamespace web\nconfigmap web/one\nplace web\n"))
	now := m.prepare(m.inForce.Snapshot, api.PlacementKey{Name: "web"})
	namespace, secret, inWeb, other := api.ID{Kind: "Namespace", Name: "shop"}, api.ID{Kind: "Secret", Namespace: "shop", Name: "key"},
		api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}, api.ID{Kind: "ConfigMap", Namespace: "shop", Name: "one"}
	for name, test := range map[string]struct {
		term    api.ResourceSelectorTerm
		blocked []api.ID
		text    string
	}{
		"a kind":                                {api.ResourceSelectorTerm{Kind: "Secret"}, []api.ID{secret}, "spec.resourceSelectors[0] (Secret)"},
		"a name":                                {api.ResourceSelectorTerm{Kind: "Secret", Name: "key"}, []api.ID{secret}, `spec.resourceSelectors[0] (Secret "key")`},
		"labels":                                {api.ResourceSelectorTerm{Kind: "Secret", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}, []api.ID{secret}, "spec.resourceSelectors[0] (Secret with a=b)"},
		"a namespace":                           {api.ResourceSelectorTerm{Kind: "Namespace", Name: "shop"}, []api.ID{namespace, secret, other}, `spec.resourceSelectors[0] (Namespace "shop")`},
		"a namespace alone":                     {api.ResourceSelectorTerm{Kind: "Namespace", Name: "shop", SelectionScope: api.NamespaceOnly}, []api.ID{namespace}, `spec.resourceSelectors[0] (Namespace "shop")`},
		"an envelope":                           {api.ResourceSelectorTerm{Group: api.PlacementGroup, Kind: "ClusterResourceEnvelope"}, []api.ID{namespace, secret, inWeb, other}, "spec.resourceSelectors[0] (ClusterResourceEnvelope)"},
		"a ConfigMap, which can be an envelope": {api.ResourceSelectorTerm{Kind: "ConfigMap"}, []api.ID{namespace, secret, inWeb, other}, "spec.resourceSelectors[0] (ConfigMap)"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Placement{Spec: &hub.Placement{Spec: api.PlacementSpec{ResourceSelectors: []api.ResourceSelectorTerm{test.term}}}}
			p.Selection.Unmatched = []int{0}
			blocks := contentBlocks(p, now)
			w := &work.Work{DeletionBlocks: blocks[:len(blocks)-len(guardedKinds)]}
			for _, id := range []api.ID{namespace, secret, inWeb, other} {
				want := ""
				for _, blocked := range test.blocked {
					if blocked == id {
						want = test.text + " matches nothing, and may have selected it before"
					}
				}
				if got := w.DeletionBlocked(id, nil); got != want {
					t.Errorf("%s is blocked because %q, want %q", id, got, want)
				}
			}
			if got, want := emptiedReason(p), "the placement selects nothing: "+test.text+" matches nothing"; got != want {
				t.Errorf("it is empty because %q, want %q", got, want)
			}
		})
	}
	if got := emptiedReason(&Placement{}); got != "nothing is left of the placement's content" {
		t.Error(got)
	}
}

// While an object cannot be decrypted, no object of its kind is deleted: it may be the same one under another name.
func TestUnreadableBlocks(t *testing.T) {
	manifest := func(kind, name string, encrypted bool) *work.Manifest {
		m := &work.Manifest{Object: &api.Object{ID: api.ID{Kind: kind, Namespace: "shop", Name: name}}}
		if encrypted {
			m.Encrypted = &api.Ciphertext{Tool: "SOPS"}
		}
		return m
	}
	w := &work.Work{DeletionBlocks: unreadableBlocks([]*work.Manifest{manifest("ConfigMap", "plain", false), manifest("Secret", "new", true), manifest("Secret", "other", true)})}
	if got, want := w.DeletionBlocked(api.ID{Kind: "Secret", Namespace: "shop", Name: "old"}, nil), "Secret/shop/new cannot be decrypted, and may be this object under another name"; got != want || len(w.DeletionBlocks) != 1 {
		t.Errorf("blocked because %q, want %q", got, want)
	}
	if got := w.DeletionBlocked(api.ID{Kind: "ConfigMap", Namespace: "shop", Name: "old"}, nil); got != "" {
		t.Errorf("a ConfigMap is blocked because %q", got)
	}
}

// Deletions that a commit allows stay allowed until the content of the placement changes.
func TestAllowedContent(t *testing.T) {
	m := NewMemo()
	m.setInForce(snapshot(t, "clusters east\nnamespace web\nplace web\n"))
	now := m.prepare(m.inForce.Snapshot, api.PlacementKey{Name: "web"})
	for name, test := range map[string]struct {
		before  string
		allowed bool
		want    string
	}{
		"not allowed":                       {"", false, ""},
		"allowed by the head":               {"", true, now.fingerprintOf()},
		"allowed before":                    {now.fingerprintOf(), false, now.fingerprintOf()},
		"allowed for other content":         {"other", false, ""},
		"allowed again for the new content": {"other", true, now.fingerprintOf()},
	} {
		pl := &placementPlanner{current: &result{resultKey: resultKey{prepared: now, deleteAllowed: test.allowed}}}
		p := &Placement{Record: ledger.Placement{AllowedContent: test.before}}
		pl.updateAllowedContent(p)
		if p.Record.AllowedContent != test.want {
			t.Errorf("%s: allowed is %q", name, p.Record.AllowedContent)
		}
		if got, want := pl.mayDelete(p, true), test.want != ""; got != want || pl.mayDelete(p, false) != test.allowed {
			t.Errorf("%s: the newest content may delete: %t, want %t", name, got, want)
		}
	}
}
