package forge

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"
)

// IsGeneral reports whether other requests are likely to fail with the same error.
func TestIsGeneral(t *testing.T) {
	unreachable := func(err error) error { return &url.Error{Op: "Get", URL: "https://git.example.com", Err: err} }
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"the token is wrong": {&StatusError{Status: 401}, true}, "the token may not": {&StatusError{Status: 403}, false}, "a limit": {&StatusError{Status: 403, RetryAfter: time.Minute}, true},
		"too many requests": {&StatusError{Status: 429}, true}, "it has moved": {&StatusError{Status: 301}, true}, "it is broken": {&StatusError{Status: 500}, true},
		"nothing there": {&StatusError{Status: 404}, false}, "a conflict": {fmt.Errorf("open a pull request: %w", &StatusError{Status: 409}), false},
		"no answer": {unreachable(errors.New("connection refused")), true}, "too slow": {unreachable(context.DeadlineExceeded), true},
		"too large": {unreachable(errTooLarge), false}, "something else": {errors.New("branch has commits of others"), false},
	} {
		if got := IsGeneral(test.err); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// An error says what was being done; no error stays none.
func TestWrapf(t *testing.T) {
	if err := wrapf(nil, "edit issue %d", 7); err != nil {
		t.Error(err)
	}
	down := errors.New("down")
	if err := wrapf(down, "edit issue %d", 7); !errors.Is(err, down) || err.Error() != "edit issue 7: down" {
		t.Error(err)
	}
}
