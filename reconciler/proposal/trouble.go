package proposal

import (
	"errors"
	"time"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// The bounds of the time between two tries after an error.
const firstRetry, lastRetry = 10 * time.Second, 10 * time.Minute

// A trouble is something that does not work and is tried again, later each time. The zero
// value is none.
type trouble struct {
	problem  string
	since    time.Time
	retry    time.Time
	failures int
}

// failed notes an error, and reports whether it is another one than before.
func (t *trouble) failed(err error, now time.Time) (news bool) {
	if t.problem == "" {
		t.since = now
	}
	news = t.problem != err.Error()
	t.problem = err.Error()
	t.retry = now.Add(max(retryAfter(err), min(lastRetry, firstRetry<<min(t.failures, 10))))
	t.failures++
	return news
}

// says is what is said of it where something waits for it; empty if there is none.
func (t *trouble) says() string {
	if t.problem == "" {
		return ""
	}
	return "since " + t.since.UTC().Format(time.RFC3339) + ": " + t.problem
}

// retryAfter is how long a server asks to be left alone.
func retryAfter(err error) time.Duration {
	if answer, ok := errors.AsType[*forge.StatusError](err); ok {
		return answer.RetryAfter
	}
	if answer, ok := errors.AsType[*gitsource.RemoteError](err); ok {
		return answer.RetryAfter
	}
	return 0
}

// isGeneral reports whether an error is likely to be met by every request, of the forge or
// of the Git server. Others are about one pull request or one branch.
func isGeneral(err error) bool {
	_, remote := errors.AsType[*gitsource.RemoteError](err)
	return remote || forge.IsGeneral(err)
}
