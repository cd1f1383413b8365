package gatejob

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// Who asks for a Job does not wait longer than the context allows, whether the agent takes the request or not, and the permissions for it
// are needed for a while after that.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue()
		for _, taken := range []bool{false, true} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			if taken {
				go func() { <-q.Requests }()
			}
			want := map[bool]string{false: "it is not connected, or is busy with other changes", true: "it has not answered in time"}[taken]
			if _, err := q.Run(ctx, smoke()); err == nil || err.Error() != want {
				t.Errorf("taken %v: %v, want %q", taken, err, want)
			}
			cancel()
		}
		q.Need("checks")
		time.Sleep(neededFor)
		if n := len(q.Namespaces()); n != 1 {
			t.Errorf("%d namespaces are needed, want 1", n)
		}
		time.Sleep(time.Second)
		if n := len(q.Namespaces()); n != 0 {
			t.Errorf("%d namespaces are still needed", n)
		}
	})
}

// No Job is created for somebody who does not wait any longer, whether the agent has begun with it or not.
func TestNoJobIsCreatedOnceNobodyWaits(t *testing.T) {
	for _, begun := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		s := &jobs{}
		c := conn(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done() // the request is given up with the context
			s.ServeHTTP(w, r)
		}))
		q := NewQueue()
		go q.Run(ctx, smoke()) //nolint:errcheck // its error says that it has not waited
		r := <-q.Requests
		if !begun {
			cancel()
		}
		q.Handle(t.Context(), c, r)
		if got := <-r.result; got.err == nil || s.live != nil {
			t.Errorf("begun %v: %v, created %v", begun, got.err, s.live)
		}
	}
}
