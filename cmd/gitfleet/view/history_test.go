package view

import (
	"maps"
	"net/url"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/test/reports"
)

// A time may be an absolute time, or a duration before now, also in days.
func TestSinceWhen(t *testing.T) {
	for text, want := range map[string]time.Time{
		"30m": reports.Noon.Add(-30 * time.Minute), "24h": reports.Noon.Add(-24 * time.Hour), "7d": reports.Noon.AddDate(0, 0, -7), "2026-01-31T12:00:00+01:00": time.Date(2026, 1, 31, 11, 0, 0, 0, time.UTC),
	} {
		if got, err := parseSince(text, reports.Noon); err != nil || !got.Equal(want) {
			t.Errorf("%s is %s (%v)", text, got, err)
		}
	}
	for _, text := range []string{"-1h", "0d", "d", "soon", "7"} {
		if got, err := parseSince(text, reports.Noon); err == nil {
			t.Errorf("%s is %s", text, got)
		}
	}
}

// A query selects entries, and requests one more than are shown, to know whether there are more.
func TestHistoryQuery(t *testing.T) {
	for name, test := range map[string]struct {
		of   historyQuery
		want string
	}{
		"of a placement": {historyQuery{placement: "crp/web", newest: 50}, "newest=51&placement=crp/web"},
		"of an object":   {historyQuery{object: "configmap/one", namespace: "web", kind: "object"}, "kind=object&namespace=web&object=configmap/one"},
		"since":          {historyQuery{since: "24h", cluster: "east"}, "cluster=east&since=2026-02-28T12:00:00Z"},
		"export":         {historyQuery{export: true, newest: 50}, ""},
		"too few":        {historyQuery{newest: -1}, "! --newest -1: must not be negative"},
		"never":          {historyQuery{since: "soon"}, `! --since "soon": write 30m, 24h, 7d, or a time such as 2026-01-31T12:00:00Z`},
	} {
		t.Run(name, func(t *testing.T) {
			query, err := test.of.query(reports.Noon)
			maps.DeleteFunc(query, func(_ string, values []string) bool { return values[0] == "" })
			got, _ := url.QueryUnescape(query.Encode())
			if err != nil {
				got = "! " + err.Error()
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// An entry is a line: when, what it is about, what happened, by whom, and why.
func TestEntryText(t *testing.T) {
	for want, e := range map[string]history.Entry{
		"2026-03-01T12:00:00Z  commit     inForce a1a1a1a1 Ada Lovelace: Bring the web": {
			Kind: history.Commit, Event: history.InForce, Commit: reports.FirstCommit, Author: "Ada Lovelace <ada@example.com>", Subject: "Bring the web"},
		"2026-03-01T12:00:00Z  cluster    crp/web  east  failed revision 3 a1a1a1a1: denied": {
			Kind: history.Cluster, Event: history.Failed, Placement: "crp/web", Cluster: "east", Revision: "3", Commit: reports.FirstCommit, Message: "denied"},
		"2026-03-01T12:00:00Z  object     crp/web  east  ConfigMap/web/one  repaired by kubectl-edit": {
			Kind: history.Object, Event: history.Repaired, Placement: "crp/web", Cluster: "east", Object: "ConfigMap/web/one", By: "kubectl-edit"},
		"2026-03-01T12:00:00Z  action     suspended by a\uFFFD[2Jb": {Kind: history.Action, Event: history.Suspended, By: "a\033[2Jb"},
	} {
		e.Time = reports.Noon
		if got := entryText(e); got != want {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}

// A kind of entry that does not exist gets a suggestion before anything is requested.
func TestHistoryOfAnUnknownKind(t *testing.T) {
	q := historyQuery{kind: "placemnt"}
	if err := q.resolve(t.Context(), nil, nil); err == nil || err.Error() != "there is no kind of entry placemnt; did you mean placement?" {
		t.Error(err)
	}
	q = historyQuery{cluster: "mc/east"}
	if err := q.resolve(t.Context(), nil, nil); err != nil || q.cluster != "east" {
		t.Errorf("%s: %v", q.cluster, err)
	}
}
