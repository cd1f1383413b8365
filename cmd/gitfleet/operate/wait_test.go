package operate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/reports"
)

// A daemon that was just restarted has no commit in force yet. That does not end the wait for a
// commit that was.
func TestWaitOverARestart(t *testing.T) {
	w := &condition{commit: reports.FirstCommit, inForce: true}
	if judged, why := w.evaluateCommit(&waitReport{Report: &status.Report{}}); judged != pending {
		t.Errorf("it ends the waiting: %s", why)
	}
}

// A wait ends with the first outcome that is not pending, or when its time is over. A daemon that
// stops answering meanwhile is asked again; one that never answers, or not to the end, is an error,
// and one that refuses a request is not asked again. No value is asked for twice.
func TestWaitFor(t *testing.T) {
	gone := errors.New("no daemon answers")
	starting := &client.ResponseError{Code: http.StatusServiceUnavailable}
	busy := &client.ResponseError{Code: http.StatusTooManyRequests}
	expired := &client.ResponseError{Code: http.StatusUnauthorized}
	for name, test := range map[string]struct {
		steps    []any // outcomes and errors, one for each request
		want     outcome
		err      error
		progress string
	}{
		"met at once":             {[]any{met}, met, nil, ""},
		"met later":               {[]any{pending, pending, met}, met, nil, "at 1\nat 2\n"},
		"impossible":              {[]any{pending, impossible}, impossible, nil, "at 1\n"},
		"not in time":             {[]any{pending}, pending, nil, "at 1\n"},
		"no daemon":               {[]any{gone}, pending, gone, ""},
		"a daemon that restarted": {[]any{pending, gone, gone, met}, met, nil, "at 1\nno daemon answers\n"},
		"a daemon that ended":     {[]any{pending, gone, gone}, pending, gone, "at 1\nno daemon answers\n"},
		"late after a failure":    {[]any{pending, gone, pending}, pending, nil, "at 1\nno daemon answers\nat 3\n"},
		"a daemon that starts":    {[]any{pending, starting, met}, met, nil, "at 1\n" + starting.Error() + "\n"},
		"a daemon that is busy":   {[]any{pending, busy, met}, met, nil, "at 1\n" + busy.Error() + "\n"},
		"an expired token":        {[]any{pending, expired, met}, pending, expired, "at 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				known := "" // the number of the last value; empty after an error
				feed := func(ctx context.Context, after string) (*int, string, error) {
					if after != known {
						t.Errorf("asked after %q, want %q", after, known)
					}
					if asked == len(test.steps) {
						<-ctx.Done()
						return nil, "", ctx.Err()
					}
					asked++
					now := asked
					err, _ := test.steps[asked-1].(error)
					if known = strconv.Itoa(now); err != nil {
						known = ""
					}
					return &now, known, err
				}
				var progress strings.Builder
				v, _, err := waitFor(t.Context(), feed, time.Minute, &progress, func(now *int) (outcome, string) {
					return test.steps[*now-1].(outcome), fmt.Sprintf("at %d", *now)
				})
				if v != test.want || err != test.err || progress.String() != test.progress {
					t.Errorf("outcome %d, %v, progress %q; want %d, %v, %q", v, err, &progress, test.want, test.err, test.progress)
				}
			})
		})
	}
}
