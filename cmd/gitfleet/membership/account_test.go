package membership

import (
	"errors"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/member/account"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/test/tempfile"
)

// Join is told what the account may do and where its kubeconfig goes, before it changes a cluster.
func TestJoinNeedsPermissionsAndAPlaceForTheKubeconfig(t *testing.T) {
	for name, test := range map[string]struct {
		of   joinCommand
		want string
	}{
		"of a checkout":   {joinCommand{memberAccess: memberAccess{path: "fleet"}, kubeconfigDir: "members", write: true}, ""},
		"all permissions": {joinCommand{memberAccess: memberAccess{clusterAdmin: true}, secretNamespace: "gitfleet"}, ""},
		"no permissions":  {joinCommand{kubeconfigDir: "members"}, "the permissions of the account are missing"},
		"no place":        {joinCommand{memberAccess: memberAccess{path: "fleet"}}, "set where to write the kubeconfig"},
		"two places":      {joinCommand{memberAccess: memberAccess{path: "fleet"}, kubeconfigDir: "members", secretNamespace: "gitfleet"}, "set where to write the kubeconfig"},
		"no checkout":     {joinCommand{memberAccess: memberAccess{clusterAdmin: true}, kubeconfigDir: "members", write: true}, "--write needs --path"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.of.check()
			if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// Each fleet has an account of its own on a cluster that is a member of several.
func TestNameOfTheAccount(t *testing.T) {
	for name, test := range map[string]struct{ account, fleet, want string }{
		"the default":      {"", "", account.DefaultName},
		"of a fleet":       {"", "prod", account.DefaultName + "-prod"},
		"a given one":      {"robot", "prod", "robot"},
		"an invalid fleet": {"", "Prod_1", ""},
		"an invalid one":   {"a b", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := (&memberTarget{account: test.account, fleet: test.fleet}).accountOf("paris")
			switch {
			case test.want == "" && (err == nil || !strings.Contains(err.Error(), "choose one with --account")):
				t.Errorf("%s, %v", a.Name, err)
			case test.want != "" && (err != nil || a.Name != test.want || a.Member != "paris" || a.Fleet != test.fleet):
				t.Errorf("%+v, %v; want %s", a, err, test.want)
			}
		})
	}
}

// An account of another member is not overwritten; the error says what to set.
func TestAccountOfAnotherMember(t *testing.T) {
	if err := accountError(&account.OwnedError{}); !strings.HasSuffix(err.Error(), "; name the fleet with --fleet-name, or another account with --account") {
		t.Error(err)
	}
	other := errors.New("refused")
	if err := accountError(other); err != other {
		t.Error(err)
	}
}

// A member with objects, or with an inventory that cannot be read, is not left.
func TestDescribeHoldings(t *testing.T) {
	held := []inventory.Holding{
		{Fleet: "prod", Placement: "crp/web", Objects: make([]inventory.Item, 2)}, {Fleet: "prod", Placement: "crp/done"}, {Fleet: "test", Damaged: "not JSON"},
	}
	if got, want := describeHoldings(held), "  crp/web of fleet prod: 2 objects\n  an unknown placement of fleet test: the inventory is damaged: not JSON\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := describeHoldings(held[1:2]); got != "" {
		t.Errorf("empty inventories: %q", got)
	}
}

// The Secret is found by a daemon with members.secretNamespace.
func TestKubeconfigSecret(t *testing.T) {
	s := kubeconfigSecret("paris", "gitfleet", []byte("text"))
	if s.Name != "paris-kubeconfig" || s.Namespace != "gitfleet" || s.StringData["value"] != "text" {
		t.Errorf("%+v", s)
	}
	var b strings.Builder
	if err := writeYAML(&b, s, s); err != nil || strings.Count(b.String(), "---\n") != 2 || strings.Contains(b.String(), "null") || strings.Contains(b.String(), "status") {
		t.Errorf("%v\n%s", err, &b)
	}
}

const checkout = `
{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: oslo}, spec: {identity: {kind: User, name: gitfleet}}}
---
{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: paris, labels: {tier: edge}}, spec: {identity: {kind: User, name: gitfleet}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: web}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: web}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: db}}
---
{apiVersion: v1, kind: Service, metadata: {name: db, namespace: db}, spec: {ports: [{port: 1}]}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: any}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: any, namespace: any}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: web}
spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: web}], policy: {placementType: PickFixed, clusterNames: [paris]}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: db}
spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: db}], policy: {placementType: PickFixed, clusterNames: [oslo]}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: any}
spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: any}], policy: {placementType: PickN, numberOfClusters: 1}}
`

// granted are the kinds that roles permit to apply.
func granted(rules []rbacv1.PolicyRule) string {
	kinds := map[string]bool{}
	for _, r := range rules {
		for _, resource := range r.Resources {
			kinds[resource] = kinds[resource] || slices.Contains(r.Verbs, "patch") || slices.Contains(r.Verbs, "*")
		}
	}
	var out []string
	for _, kind := range []string{"configmaps", "services", "limitranges", "*"} {
		if kinds[kind] {
			out = append(out, kind)
		}
	}
	return strings.Join(out, " ")
}

// An account may do what the content of its member needs, also that of placements which may choose
// the member later; without a member, what any member needs.
func TestRolesOfACheckout(t *testing.T) {
	file := tempfile.Write(t, "fleet.yaml", checkout)
	dir := strings.TrimSuffix(file, "/fleet.yaml")
	member, err := memberManifestOf("rome", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		of       memberAccess
		manifest string
		want     string
		declared string
		err      string
	}{
		"of a member":         {memberAccess{path: dir, cluster: "paris"}, "", "configmaps limitranges", "fleet.yaml", ""},
		"of another":          {memberAccess{path: dir, cluster: "oslo"}, "", "services limitranges", "fleet.yaml", ""},
		"of any":              {memberAccess{path: dir}, "", "configmaps services limitranges", "", ""},
		"of a new one":        {memberAccess{path: dir, cluster: "rome"}, member, "limitranges", "", ""},
		"of an unknown one":   {memberAccess{path: dir, cluster: "pari"}, "", "", "", "there is no cluster pari; did you mean paris?"},
		"all":                 {memberAccess{path: dir, cluster: "paris", clusterAdmin: true}, "", "*", "fleet.yaml", ""},
		"without a checkout":  {memberAccess{clusterAdmin: true}, "", "*", "", ""},
		"of no such checkout": {memberAccess{path: "no/such/directory"}, "", "", "", "stat no/such/directory: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := test.of.roles(t.Context(), test.manifest, nil)
			if test.err != "" || err != nil {
				if err == nil || err.Error() != test.err {
					t.Errorf("%v, want %q", err, test.err)
				}
				return
			}
			if got := granted(d.roles.Cluster); got != test.want || d.declared != test.declared {
				t.Errorf("%q, declared in %q; want %q in %q", got, d.declared, test.want, test.declared)
			}
		})
	}
}

// The labels of a member are quoted where YAML would read something else.
func TestManifestOfAMemberWithoutLabels(t *testing.T) {
	text, err := memberManifestOf("paris", nil)
	if err != nil {
		t.Fatal(err)
	}
	var plain map[string]any
	if err := yaml.Unmarshal([]byte(text), &plain); err != nil || strings.Contains(text, "labels") {
		t.Errorf("%v\n%s", err, text)
	}
	if _, err := hub.ReadClusters("paris.yaml", []byte(text)); err != nil {
		t.Error(err)
	}
}
