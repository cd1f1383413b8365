package gate

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/expression"
)

// notEvaluated are the status codes that say nothing of what was asked: the credentials are wrong, or it was asked too often.
var notEvaluated = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusTooManyRequests}

// requestHTTP asks once, and compares the answer with what is expected.
func (a *Asker) requestHTTP(ctx context.Context, g *api.HTTPGate) (good bool, text string, err error) {
	resp, err := a.get(ctx, g.URL, nil)
	if err != nil {
		return false, "", err
	}
	switch {
	case resp.status != g.Expected() && slices.Contains(notEvaluated, resp.status):
		return false, "", resp.refusal(g.URL)
	case resp.status != g.Expected():
		return false, fmt.Sprintf("%v, not %d", resp.refusal(g.URL), g.Expected()), nil
	case g.Condition == "":
		return true, fmt.Sprintf("%s answers %d", g.URL, resp.status), nil
	}
	var body any
	if err := json.Unmarshal(resp.body, &body); err != nil {
		return false, "", fmt.Errorf("%s answers %d with something that is not JSON", g.URL, resp.status)
	}
	condition, err := expression.CompileResponse(g.Condition)
	if err != nil {
		return false, "", err
	}
	holds, err := condition.Holds(map[string]any{"status": int64(resp.status), "body": body})
	switch {
	case err != nil:
		return false, "", resp.credentials.Error(fmt.Errorf("the condition cannot be evaluated for the answer of %s: %w", g.URL, err))
	case !holds:
		return false, fmt.Sprintf("the answer of %s is not: %s", g.URL, g.Condition), nil
	}
	return true, fmt.Sprintf("the answer of %s is: %s", g.URL, g.Condition), nil
}
