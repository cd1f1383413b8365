package operate

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// Only a daemon that says so does not have the commit yet; another error says nothing about the commit.
func TestOnlyAnUnknownCommitIsWaitedFor(t *testing.T) {
	for code, waits := range map[int]bool{server.StatusUnknownCommit: true, 401: false, 403: false, 500: false} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/contains" {
				http.Error(w, "no", code)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"source":{"newest":{"hash":"bbbbbbbb"}}}`)
		}))
		defer srv.Close()
		c, err := (&client.Connection{Address: srv.URL}).Client()
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := syncReports(c, "aaaaaaaa")(t.Context(), "")
		if answer, ok := errors.AsType[*client.ResponseError](err); waits != (err == nil && r.before) || !waits && (!ok || answer.Code != code) {
			t.Errorf("%d: %+v, %v", code, r, err)
		}
	}
}
