package account

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/rbac"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// A cluster stores objects by path. It writes a token into the Secret of a service account when
// that is read for the second time.
type cluster struct {
	objects  map[string]map[string]any
	requests []string
	refuse   string // method and path of a request that is refused
	reads    int
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request := r.Method + " " + r.URL.Path
	c.requests = append(c.requests, request)
	w.Header().Set("Content-Type", "application/json")
	object, found := c.objects[r.URL.Path]
	switch {
	case request == c.refuse:
		apiserver.Refuse(w, http.StatusForbidden, "not allowed")
		return
	case r.Method == http.MethodPatch:
		object = map[string]any{}
		if err := json.NewDecoder(r.Body).Decode(&object); err != nil {
			apiserver.Refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		c.objects[r.URL.Path] = object
	case !found:
		apiserver.Refuse(w, http.StatusNotFound, "not found")
		return
	case r.Method == http.MethodDelete:
		delete(c.objects, r.URL.Path)
	case strings.HasSuffix(r.URL.Path, "-token"):
		if c.reads++; c.reads > 1 {
			object["data"] = map[string]any{"token": "c2VjcmV0"}
		}
	}
	json.NewEncoder(w).Encode(object) //nolint:errcheck // the client would see it
}

func served(t *testing.T, c *cluster) *rest.Config {
	t.Helper()
	c.objects = map[string]map[string]any{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1}
}

var paris = Account{Name: "gitfleet", Member: "paris", Fleet: "shop", Roles: rbac.Roles{
	Cluster:     []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}}},
	Inventories: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"patch"}}},
}}

const (
	inNamespace   = "/api/v1/namespaces/gitfleet-system"
	authorization = "/apis/rbac.authorization.k8s.io/v1"
)

// Apply makes the account with its permissions, waits for the token, and can be repeated. Remove
// removes everything but the namespace.
func TestAccountsAreAppliedAndRemoved(t *testing.T) {
	c := &cluster{}
	cfg := served(t, c)
	for range 2 {
		if token, err := paris.Apply(t.Context(), cfg); err != nil || token != "secret" {
			t.Fatalf("token %q, %v", token, err)
		}
	}
	all := []string{
		inNamespace, inNamespace + "/secrets/gitfleet-token", inNamespace + "/serviceaccounts/gitfleet",
		authorization + "/clusterrolebindings/gitfleet", authorization + "/clusterroles/gitfleet",
		authorization + "/namespaces/gitfleet-system/rolebindings/gitfleet", authorization + "/namespaces/gitfleet-system/roles/gitfleet",
	}
	if got := slices.Sorted(maps.Keys(c.objects)); !slices.Equal(got, all) {
		t.Errorf("applied %q, want %q", got, all)
	}
	rules := func(path string) string { return fmt.Sprint(c.objects[path]["rules"]) }
	if got := rules(all[4]) + rules(all[6]); !strings.Contains(got, "deployments") || !strings.Contains(got, "configmaps") {
		t.Errorf("rules %s", got)
	}
	for _, path := range all[1:] {
		if got := fmt.Sprint(c.objects[path]["metadata"]); !strings.Contains(got, "gitfleet.dev/member:paris") || !strings.Contains(got, "gitfleet.dev/fleet:shop") {
			t.Errorf("%s: %s", path, got)
		}
	}
	for range 2 {
		if err := paris.Remove(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	if got := slices.Collect(maps.Keys(c.objects)); !slices.Equal(got, all[:1]) {
		t.Errorf("left %q", got)
	}
}

// An error says which object could not be read, applied or deleted. Remove goes on with the
// others, and deletes the ClusterRole, which says whose the account is, last.
func TestAccountErrors(t *testing.T) {
	tests := map[string]struct {
		refuse  string
		apply   string
		remove  string
		deletes int
	}{
		"the role cannot be read": {"GET " + authorization + "/clusterroles/gitfleet",
			"read clusterroles gitfleet: not allowed", "read clusterroles gitfleet: not allowed", 0},
		"the namespace cannot be applied":       {"PATCH " + inNamespace, "apply namespaces gitfleet-system: not allowed", "", 6},
		"the Secret cannot be read":             {"GET " + inNamespace + "/secrets/gitfleet-token", "wait for the token in Secret gitfleet-system/gitfleet-token: not allowed", "", 6},
		"the service account cannot be deleted": {"DELETE " + inNamespace + "/serviceaccounts/gitfleet", "", "delete serviceaccounts gitfleet: not allowed", 6},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &cluster{refuse: test.refuse}
			cfg := served(t, c)
			says := func(of string, err error, want string) {
				t.Helper()
				if err == nil && want != "" || err != nil && err.Error() != want {
					t.Errorf("%s: %v, want %s", of, err, want)
				}
			}
			_, err := paris.Apply(t.Context(), cfg)
			says("apply", err, test.apply)
			c.requests = nil
			says("remove", paris.Remove(t.Context(), cfg), test.remove)
			deletes := slices.DeleteFunc(c.requests, func(r string) bool { return !strings.HasPrefix(r, "DELETE ") })
			if len(deletes) != test.deletes || test.deletes > 0 && deletes[len(deletes)-1] != "DELETE "+authorization+"/clusterroles/gitfleet" {
				t.Errorf("deletes %q", deletes)
			}
		})
	}
}

// The manifests are in the order in which they are applied, and have no token.
func TestManifests(t *testing.T) {
	var got []string
	for _, m := range (Account{Name: "gitfleet"}).Manifests() {
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var o struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
			Subjects []rbacv1.Subject
		}
		if err := json.Unmarshal(raw, &o); err != nil {
			t.Fatal(err)
		}
		for _, s := range o.Subjects {
			if s != (rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "gitfleet", Namespace: api.Namespace}) {
				t.Errorf("%s: subject %+v", o.Kind, s)
			}
		}
		if strings.Contains(string(raw), corev1.ServiceAccountNameKey) {
			t.Errorf("%s names a token", o.Kind)
		}
		got = append(got, o.Kind+" "+o.Metadata.Namespace+"/"+o.Metadata.Name)
	}
	want := []string{
		"Namespace /gitfleet-system", "ServiceAccount gitfleet-system/gitfleet", "ClusterRole /gitfleet", "ClusterRoleBinding /gitfleet",
		"Role gitfleet-system/gitfleet", "RoleBinding gitfleet-system/gitfleet",
	}
	if !slices.Equal(got, want) {
		t.Errorf("manifests %q, want %q", got, want)
	}
}

func TestOwnedErrorSaysWhoseTheAccountIs(t *testing.T) {
	for want, err := range map[string]*OwnedError{
		"the cluster has a ClusterRole a that gitfleet did not make": {Account: "a"},
		"the account a belongs to the fleet f":                       {Account: "a", Fleet: "f"},
		"the account a belongs to the member m":                      {Account: "a", Member: "m"},
	} {
		if got := err.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
