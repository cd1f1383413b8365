package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// The response is yes, no, or the reason why it is not known.
func TestContains(t *testing.T) {
	s := New(nil)
	s.MountContains(func(_ context.Context, head, commit string) (bool, error) {
		if head == "lost" {
			return false, fmt.Errorf("commit lost: %w", ErrUnknownCommit)
		}
		if head == "broken" {
			return false, errors.New("the disk is broken")
		}
		return strings.HasPrefix(head, commit), nil
	})
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"/contains?head=abcdef0123&commit=abcdef0": {http.StatusOK, `{"contains":true}`},
		"/contains?head=abcdef0123&commit=bcdef01": {http.StatusOK, `{"contains":false}`},
		"/contains?head=lost&commit=abcdef0":       {StatusUnknownCommit, "commit lost: the commit is not in the clone of the daemon"},
		"/contains?head=broken&commit=abcdef0":     {http.StatusInternalServerError, "the disk is broken"},
		"/contains?head=abc&commit=abcdef":         {http.StatusBadRequest, "commit: 7 digits are needed at least"},
		"/contains?commit=ab":                      {http.StatusBadRequest, "head: missing"},
		"/contains?head=abc":                       {http.StatusBadRequest, "commit: missing"},
	} {
		w := ask(s, path)
		if w.Code != want.code || strings.TrimSpace(w.Body.String()) != want.text {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
