package apply

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// A dry run that the server refuses is replaced by a structural comparison. One that gets no
// response, or a response that may be another one later, is a failure.
func TestRefusedDryRuns(t *testing.T) {
	const denied, noDryRun = `admission webhook "policy" denied the request`, `admission webhook "old" does not support dry run`
	tests := map[string]struct {
		err error
		// refuses: the object is compared without a dry run. unsupported: the refusal says
		// nothing about the object. serverError: the server may answer otherwise later.
		refuses, unsupported, serverError bool
	}{
		"not requested":                {err: &notTriedError{"it may be stored"}, refuses: true, unsupported: true},
		"bad request":                  {err: apiserver.Refusal(http.StatusBadRequest, denied), refuses: true},
		"a webhook without dry runs":   {err: apiserver.Refusal(http.StatusBadRequest, noDryRun), refuses: true, unsupported: true},
		"forbidden":                    {err: apiserver.Refusal(http.StatusForbidden, denied), refuses: true},
		"method not allowed":           {err: apiserver.Refusal(http.StatusMethodNotAllowed, "no patch"), refuses: true, unsupported: true},
		"too large":                    {err: apiserver.Refusal(http.StatusRequestEntityTooLarge, "limit is 3145728"), refuses: true},
		"patch type not supported":     {err: apiserver.Refusal(http.StatusUnsupportedMediaType, "no apply"), refuses: true, unsupported: true},
		"invalid":                      {err: apiserver.Refusal(http.StatusUnprocessableEntity, "must be positive"), refuses: true},
		"a webhook that is down":       {err: apiserver.Refusal(http.StatusInternalServerError, `failed calling webhook "policy"`), refuses: true, serverError: true},
		"another server error":         {err: apiserver.Refusal(http.StatusInternalServerError, "etcd has no leader"), serverError: true},
		"a server that is unavailable": {err: apiserver.Refusal(http.StatusServiceUnavailable, "shutting down"), serverError: true},
		"a conflict":                   {err: apiserver.Refusal(http.StatusConflict, "the object has been modified")},
		"too many requests":            {err: apiserver.Refusal(http.StatusTooManyRequests, "slow down")},
		"unauthorized":                 {err: apiserver.Refusal(http.StatusUnauthorized, "expired")},
		"no response":                  {err: connection.Unreachable(errors.New("refused"))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := RefusesDryRun(test.err); got != test.refuses {
				t.Errorf("refuses the dry run: %t", got)
			}
			if got := KnowsNoDryRun(test.err); got != test.unsupported {
				t.Errorf("does not support dry runs: %t", got)
			}
			if got := IsServerError(test.err); got != test.serverError {
				t.Errorf("server error: %t", got)
			}
		})
	}
}

// A comparison without a dry run says why, and whether the server was asked.
func TestReasonForNoDryRun(t *testing.T) {
	tests := map[string]struct {
		err  error
		want string
	}{
		"not requested": {&notTriedError{"it may be stored"}, "compared without a dry run: it may be stored"},
		"refused":       {errors.New("denied"), "compared without a dry run, which the API server refused: denied"},
	}
	for name, test := range tests {
		if got := WithoutDryRun(test.err); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// What others changed before a write is recorded: that the object is gone, fields of the manifest
// that differ, and a lost label of the fleet.
func TestDriftBeforeAWrite(t *testing.T) {
	const label = "/metadata/labels/gitfleet.dev~1managed-by"
	tests := map[string]struct {
		label   string // the fleet in the label of the live object
		value   string
		gone    bool
		deleted bool
		paths   []string
	}{
		"deleted":             {gone: true, deleted: true},
		"as in Git":           {label: "prod", value: "git"},
		"edited":              {label: "prod", value: "edited", paths: []string{"/data/key"}},
		"without its label":   {value: "git", paths: []string{label}},
		"with another label":  {label: "test", value: "git", paths: []string{label}},
		"edited and unmarked": {value: "edited", paths: []string{"/data/key", label}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := manifestOf(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one", "namespace": "web"}})
			m.Object.Content.Object["data"] = map[string]any{"key": "git"}
			live := m.Object.Content.DeepCopy()
			live.SetGeneration(3)
			live.Object["data"] = map[string]any{"key": test.value}
			if test.label != "" {
				live.SetLabels(map[string]string{api.ManagedByLabel: test.label})
			}
			if test.gone {
				live = nil
			}
			d := (&Executor{Fleet: "prod"}).driftBefore(Task{Object: desired.Object{Placement: web, Manifest: m}, Item: &inventory.Item{}}, live, nil)
			var paths []string
			for _, p := range d.Paths {
				paths = append(paths, p.Path)
			}
			if d.Deleted != test.deleted || !slices.Equal(paths, test.paths) || !test.gone && d.Generation != 3 {
				t.Errorf("deleted %t, paths %q, generation %d", d.Deleted, paths, d.Generation)
			}
		})
	}
}
