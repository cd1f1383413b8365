package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/history"
)

// A fakeHistory has entries, and fails after a number of them if an error is set.
type fakeHistory struct {
	asked   history.Filter
	entries []history.Entry
	err     error
}

func (p *fakeHistory) Read(_ context.Context, f history.Filter, each func(history.Entry) error) error {
	p.asked = f
	for _, e := range p.entries {
		if err := each(e); err != nil {
			return err
		}
	}
	return p.err
}

// The query becomes the right filter, and the response has a line of JSON for each entry.
func TestHistory(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	p := &fakeHistory{entries: []history.Entry{
		{Time: at, Kind: history.Commit, Event: history.InForce, Commit: "c0ffee"},
		{Time: at, Kind: history.Object, Event: history.Created, Placement: "crp/web", Object: "Namespace/web"},
	}}
	s := New(nil)
	s.Mount("GET /history", HistoryHandler(p))
	w := ask(s, "/history?placement=crp/web&cluster=east&object=one&kind=object&since=2026-01-31T12:00:00Z&until=2026-02-01T00:00:00.5Z&newest=7")
	want := history.Filter{
		Kind: history.Object, Placement: "crp/web", Cluster: "east", Object: "one",
		Since: at, Until: at.Add(12*time.Hour + 500*time.Millisecond), Newest: 7,
	}
	if asked := p.asked; !reflect.DeepEqual(asked, want) {
		t.Errorf("asked for %+v", asked)
	}
	for query, want := range map[string]string{
		"object=ns/web":                     "Namespace/web",
		"object=deploy/front&namespace=web": "Deployment.apps/web/front",
		"object=Deployment.apps/web/front":  "Deployment.apps/web/front",
	} {
		ask(s, "/history?"+query)
		for _, object := range []string{"Namespace/web", "Deployment.apps/web/front", "Deployment.apps/shop/front"} {
			if got := p.asked.Means(object); got != (object == want) {
				t.Errorf("%s means %s: %t", query, object, got)
			}
		}
	}
	text := `{"time":"2026-01-31T12:00:00Z","kind":"commit","event":"inForce","commit":"c0ffee"}
{"time":"2026-01-31T12:00:00Z","kind":"object","event":"created","placement":"crp/web","object":"Namespace/web"}
`
	if w.Code != http.StatusOK || w.Body.String() != text || w.Header().Get("Content-Type") != "application/jsonl" {
		t.Errorf("%d %s:\n%s", w.Code, w.Header(), w.Body)
	}
}

// An invalid query is refused with the reason.
func TestHistoryRefusesInvalidQueries(t *testing.T) {
	s := New(nil)
	s.Mount("GET /history", HistoryHandler(&fakeHistory{}))
	for query, want := range map[string]string{
		"since=yesterday": `since: "yesterday" is not a time`,
		"until=1":         `until: "1" is not a time`,
		"newest=0":        `newest: "0" is not a positive number`,
		"newest=many":     `newest: "many" is not a positive number`,
	} {
		if w := ask(s, "/history?"+query); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}

// If reading the record fails, the client gets an error and not a shorter response.
func TestFailedHistoryIsNotAShorterResponse(t *testing.T) {
	p := &fakeHistory{err: errors.New("disk on fire")}
	s := New(nil)
	s.Mount("GET /history", HistoryHandler(p))
	if w := ask(s, "/history"); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "disk on fire") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	p.entries = slices.Repeat([]history.Entry{{Kind: history.Commit}}, 10_000) // more than is buffered
	srv := httptest.NewServer(s.Handler())
	defer srv.Close()
	if resp, err := http.Get(srv.URL + "/history"); err == nil {
		defer resp.Body.Close()
		if n, err := io.Copy(io.Discard, resp.Body); err == nil {
			t.Errorf("answered %s, %d bytes", resp.Status, n)
		}
	}
}
