package forge_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// A listed forge counts the requests for its list.
type listed struct {
	forge.Client
	lists int
	fail  error
	// meanwhile is called during the request.
	meanwhile func()
}

func (l *listed) ListOpen(context.Context, string) ([]forge.PullRequest, error) {
	l.lists++
	if act := l.meanwhile; act != nil {
		l.meanwhile = nil
		act()
	}
	return []forge.PullRequest{{Thread: forge.Thread{Number: int64(l.lists)}}}, l.fail
}

func (l *listed) Close(context.Context, forge.Thread, string, string) error { return l.fail }

// Two users who list once per interval cause one request per interval, whatever the time
// between their calls.
func TestUsersShareOneList(t *testing.T) {
	for _, offset := range []time.Duration{0, time.Second, 14 * time.Second, 15 * time.Second, 29 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l := &listed{}
			s := forge.Share(l, 30*time.Second)
			for range 20 {
				for _, wait := range []time.Duration{offset, 31*time.Second - offset} {
					if _, err := s.ListOpen(t.Context(), "main"); err != nil {
						t.Error(err)
					}
					time.Sleep(wait)
				}
			}
			if l.lists > 21 {
				t.Errorf("%s apart they have the forge asked %d times in 20 intervals", offset, l.lists)
			}
		})
	}
}

// A change of a pull request causes a new list, also if it happens during a request for the
// list. An error is not cached.
func TestASharedListIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &listed{}
		s := forge.Share(l, time.Hour)
		asks := func(what, base string, want bool) {
			t.Helper()
			before := l.lists
			list, err := s.ListOpen(t.Context(), base)
			if got := l.lists > before; got != want || err == nil && list[0].Number != int64(l.lists) {
				t.Errorf("%s: asked %v, want %v: %v, %v", what, got, want, list, err)
			}
		}
		asks("the first", "main", true)
		asks("the next", "main", false)
		asks("another base", "release", true)
		if err := s.Close(t.Context(), forge.Thread{}, "", ""); err != nil {
			t.Error(err)
		}
		asks("after one was closed", "release", true)
		l.meanwhile = s.ForgetList // it does not wait for the request
		s.ForgetList()
		asks("forgotten", "release", true)
		asks("forgotten while it was asked for", "release", true)
		asks("the next", "release", false)
		s.ForgetList()
		l.fail = errors.New("down")
		asks("down", "release", true)
		asks("still down", "release", true)
	})
}
