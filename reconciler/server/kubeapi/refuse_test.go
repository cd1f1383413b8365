package kubeapi

import (
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A refused write says what to change in the repository: the file that has the object, a new file,
// or nothing if gitfleet itself writes the object.
func TestRefusedWritesSayWhatToChange(t *testing.T) {
	r := reportOf(load(t, "c1", files), crpOf("web", 1))
	shown := &api.ClusterResourcePlacementStatus{}
	shown.Name, shown.Namespace = "web", "web"
	r.PlacementStatuses = []*api.ClusterResourcePlacementStatus{shown}
	a := serve(t, r).api
	const where = " (https://git.example.com/fleet.git, main)"
	for name, test := range map[string]struct {
		kind                        *kind
		verb, namespace, name, want string
	}{
		"of a report":                     {clusterPlacements, "delete", "", "web", `clusterresourceplacements "web" is placements/web.yaml:3 there` + where + `; change that file and commit`},
		"the namespace of a cluster kind": {clusterPlacements, "delete", "default", "web", `clusterresourceplacements "web" is placements/web.yaml:3 there` + where + `; change that file and commit`},
		"of a commit":                     {overrides, "update", "web", "login", `resourceoverrides "login" is overrides/web.yaml:1 there` + where + `; change that file and commit`},
		"in another namespace":            {overrides, "update", "default", "login", `resourceoverrides "login" is in no file there` + where + `; add one and commit`},
		"deletes what is in no file":      {clusterPlacements, "delete", "", "api", `clusterresourceplacements "api" is in no file there` + where},
		"patches what is in no file":      {clusterPlacements, "patch", "", "api", `clusterresourceplacements "api" is in no file there` + where + `; add one and commit`},
		"creates without a name":          {clusterPlacements, "create", "", "", `add a file to it` + where + ` and commit`},
		"deletes all":                     {clusterPlacements, "deletecollection", "", "", `change the files of clusterresourceplacements there` + where + ` and commit`},
		"an event":                        {coreEvents, "create", "default", "x", `gitfleet itself writes events "x"`},
		"all events":                      {otherEvents, "deletecollection", "default", "", `gitfleet itself writes events`},
		"a status in a namespace":         {placementStatuses, "update", "web", "web", `gitfleet itself writes clusterresourceplacementstatuses "web"`},
		"a status that does not exist":    {placementStatuses, "create", "web", "new", `gitfleet itself writes clusterresourceplacementstatuses "new"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := &storage{a.store, test.kind, test.kind.versions[0]}
			if got := a.hint(s, test.verb, test.namespace, test.name); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	request := &storage{a.store, clusterApprovals, clusterApprovals.versions[0]}
	for inGit, want := range map[bool]string{
		false: "add one and commit, or approve it by its status (kubectl patch --subresource=status)",
		true:  "add one and commit: the configuration asks for approvals by commits (rollout.approvals: git)",
	} {
		a.inGit = inGit
		if got, want := a.hint(request, "patch", "", "web-1-after-one"), `clusterapprovalrequests "web-1-after-one" is in no file there`+where+"; "+want; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	s := &storage{a.store, clusterPlacements, "v1beta1"}
	for git, want := range map[status.Git]string{
		{}: "add a file to it and commit",
		{URL: "https://git.example.com/fleet.git"}: "add a file to it (https://git.example.com/fleet.git, HEAD) and commit",
	} {
		a.source.Store(&status.Source{Git: git})
		if got := a.hint(s, "create", "", ""); got != want {
			t.Errorf("%+v: %s, want %s", git, got, want)
		}
	}
}

// The name of an object is read from its manifest, in JSON or YAML, up to a limit.
func TestNameInABody(t *testing.T) {
	for body, want := range map[string]string{
		`{"metadata": {"name": "web"}}`:     "web",
		"kind: X\nmetadata:\n  name: web\n": "web",
		"":                                  "",
		"{":                                 "",
		"metadata: [1]":                     "",
		"metadata: {name: web}\n#" + strings.Repeat("x", maxBody):        "web",
		"#" + strings.Repeat("x", maxBody) + "\nmetadata: {name: web}\n": "",
	} {
		if got := nameIn(strings.NewReader(body)); got != want {
			t.Errorf("%.40q: %q, want %q", body, got, want)
		}
	}
}
