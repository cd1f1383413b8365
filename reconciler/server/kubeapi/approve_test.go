package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gitfleet/gitfleet/placement/api"
)

// requestOf is a request of run web-1 of the placement web.
func requestOf(name, stage string, conditions ...metav1.Condition) *api.ClusterApprovalRequest {
	out := &api.ClusterApprovalRequest{Spec: api.ApprovalRequestSpec{Run: "web-1", Stage: stage}, Status: api.ApprovalRequestStatus{Conditions: conditions}}
	out.APIVersion, out.Kind, out.Name, out.Generation = api.PlacementGroup+"/v1beta1", "ClusterApprovalRequest", name, 1
	return out
}

// The status of an approval request may be written to approve or reject it, in the ways that clients know, and nothing else.
func TestWrittenApprovals(t *testing.T) {
	run := &api.ClusterStagedUpdateRun{Spec: api.StagedUpdateRunSpec{PlacementName: "web"}}
	run.APIVersion, run.Kind, run.Name = api.PlacementGroup+"/v1beta1", "ClusterStagedUpdateRun", "web-1"
	r := reportOf(load(t, "c1", files))
	r.UpdateRuns = []*api.ClusterStagedUpdateRun{run}
	approved := metav1.Condition{Type: api.Approved, Status: metav1.ConditionTrue, ObservedGeneration: 1}
	r.ApprovalRequests = []*api.ClusterApprovalRequest{requestOf("web-1-after-canary", "canary"), requestOf("web-1-before-canary", "canary", approved), requestOf("web-1-before-prod", "prod")}
	inShop := func(meta *metav1.ObjectMeta, kind *metav1.TypeMeta, name, of string) {
		meta.Namespace, meta.Name, kind.Kind = "shop", name, of
	}
	shopRun, shopRequest := *run, *requestOf("", "canary")
	inShop(&shopRun.ObjectMeta, &shopRun.TypeMeta, "api-1", "StagedUpdateRun")
	inShop(&shopRequest.ObjectMeta, &shopRequest.TypeMeta, "api-1-after-canary", "ApprovalRequest")
	shopRun.Spec.PlacementName, shopRequest.Spec.Run = "api", "api-1"
	r.UpdateRuns, r.ApprovalRequests = append(r.UpdateRuns, &shopRun), append(r.ApprovalRequests, &shopRequest)
	s := serve(t, r)
	var got string
	s.api.approve = func(_ context.Context, d Decision) (bool, error) {
		if d.By != "" {
			t.Errorf("an anonymous user is named %s", d.By)
		}
		got = fmt.Sprintf("%s %s %s before=%t reject=%t %s %s", d.Placement, d.Run, d.Stage, d.Before, d.Reject, d.Code, d.Message)
		if d.Stage == "prod" {
			return true, errors.New("stage prod has not begun")
		}
		return false, nil
	}
	const merge, list = "application/merge-patch+json", "/apis/placement.kubernetes-fleet.io/v1/clusterapprovalrequests/"
	condition := func(status string, generation int) string {
		return fmt.Sprintf(`{"type": "Approved", "status": %q, "reason": "lgtm", "message": "looks well", "observedGeneration": %d}`, status, generation)
	}
	patch := func(status string, generation int) string {
		return `{"status": {"conditions": [` + condition(status, generation) + `]}}`
	}
	const approval = "crp/web web-1 canary before=false reject=false lgtm looks well"
	for name, test := range map[string]struct {
		method, path, media, body string
		code                      int
		want, text                string
	}{
		"a merge patch":              {"PATCH", "web-1-after-canary/status", merge, patch("True", 1), 200, approval, `"apiVersion":"placement.kubernetes-fleet.io/v1"`},
		"a JSON patch":               {"PATCH", "web-1-after-canary/status", "application/json-patch+json", `[{"op": "add", "path": "/status", "value": {"conditions": [` + condition("True", 1) + `]}}]`, 200, approval, ""},
		"the whole object":           {"PUT", "web-1-after-canary/status", "application/json", patch("True", 1), 200, approval, ""},
		"a rejection":                {"PATCH", "web-1-after-canary/status", merge, patch("False", 1), 200, "crp/web web-1 canary before=false reject=true lgtm looks well", ""},
		"once more":                  {"PATCH", "web-1-before-canary/status", merge, patch("True", 1), 200, "", ""},
		"it is taken back":           {"PATCH", "web-1-before-canary/status", merge, patch("False", 1), 409, "", "the approval request has been approved and cannot be reverted"},
		"no approval":                {"PATCH", "web-1-after-canary/status", merge, `{"status": {"conditions": []}}`, 400, "", "only an approval may be written here"},
		"of another generation":      {"PATCH", "web-1-after-canary/status", merge, patch("True", 0), 400, "", "observedGeneration of the condition Approved must be 1"},
		"it cannot proceed":          {"PATCH", "web-1-before-prod/status", merge, patch("True", 1), 409, "crp/web web-1 prod before=true reject=false lgtm looks well", "stage prod has not begun"},
		"no such request":            {"PATCH", "web-2-after-canary/status", merge, patch("True", 1), 404, "", "not found"},
		"a dry run":                  {"PATCH", "web-1-after-canary/status?dryRun=All", merge, patch("True", 1), 400, "", "an approval has no dry run"},
		"an apply":                   {"PATCH", "web-1-after-canary/status", "application/apply-patch+yaml", patch("True", 1), 415, "", "send a merge patch or a JSON patch"},
		"nonsense":                   {"PATCH", "web-1-after-canary/status", merge, "{", 400, "", ""},
		"the request itself":         {"PATCH", "web-1-after-canary", merge, `{"spec": {"targetStage": "prod"}}`, 405, "", "the hub is a Git repository"},
		"it is deleted":              {"DELETE", "web-1-after-canary", "application/json", "", 405, "", "the hub is a Git repository"},
		"the status is of no object": {"DELETE", "web-1-after-canary/status", "application/json", "", 405, "", "the hub is a Git repository"},
	} {
		t.Run(name, func(t *testing.T) {
			got = ""
			code, text := s.write(test.method, list+test.path, test.media, test.body)
			if code != test.code || got != test.want || !strings.Contains(text, test.text) {
				t.Errorf("%d %s\n%s\nwant %d %s %s", code, got, text, test.code, test.want, test.text)
			}
		})
	}
	const namespaced = "/apis/placement.kubernetes-fleet.io/v1beta1/namespaces/shop/approvalrequests/api-1-after-canary/status"
	if code, text := s.write("PATCH", namespaced, merge, patch("True", 1)); code != http.StatusOK || got != "rp/shop/api api-1 canary before=false reject=false lgtm looks well" || !strings.Contains(text, `"namespace":"shop"`) {
		t.Errorf("of a ResourcePlacement: %d %s\n%s", code, got, text)
	}
	s.api.local = func(_ *http.Request, by string) (int, string) {
		if by != "" {
			return 0, ""
		}
		return http.StatusForbidden, "not authenticated"
	}
	if code, text := s.write("PATCH", list+"web-1-after-canary/status", merge, patch("True", 1)); code != http.StatusForbidden || !strings.Contains(text, "not authenticated") {
		t.Errorf("without authentication from elsewhere: %d %s", code, text)
	}
}

// write sends a body of a media type.
func (s *served) write(method, path, media, body string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", media)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// A review says that the status of approval requests may be written, as far as the authorizer allows it.
func TestReviewsOfApprovals(t *testing.T) {
	s := serve(t, reportOf(load(t, "c1", files)))
	ask := func(resource, subresource, verb string) string {
		_, text := s.ask("POST", reviewPath, "application/json", `{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {"group": "placement.kubernetes-fleet.io", "resource": "`+resource+`", "subresource": "`+subresource+`", "verb": "`+verb+`"}}}`)
		return text
	}
	const allowed = `"allowed":true`
	for _, test := range []struct {
		resource, subresource, verb string
		want                        bool
	}{
		{"clusterapprovalrequests", "status", "patch", true},
		{"approvalrequests", "status", "update", true},
		{"approvalrequests", "", "patch", false},
		{"clusterstagedupdateruns", "status", "patch", false},
		{"clusterapprovalrequests", "status", "delete", false},
	} {
		if text := ask(test.resource, test.subresource, test.verb); strings.Contains(text, allowed) != test.want {
			t.Errorf("%+v: %s", test, text)
		}
	}
	s.api.may = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionDeny, "no", nil
	})
	if text := ask("clusterapprovalrequests", "status", "patch"); strings.Contains(text, allowed) {
		t.Errorf("the authorizer denies it: %s", text)
	}
}
