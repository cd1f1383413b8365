package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// The key of every kind of record has the parts of its kind, and can be read again.
func TestKeysOfRecords(t *testing.T) {
	e := happened("east", "up", 1)
	for want, key := range map[string]string{
		"h": headKey, "f": fleetKey, "c/east": clusterKey("east"), "p//web": placementKey(web), "p/docks/quay": placementKey(quay),
		"e//web/east": entryKey(web, "east"), "e/docks/quay/east": entryKey(quay, "east"), "o//ConfigMap/web/a": declaredKey(configMap("a")),
		"s///////east": suspensionKey(Subject{Cluster: "east"}), "s/docks/quay/////": suspensionKey(Subject{Placement: quay}),
		"s///apps/Deployment/shop/web/east": suspensionKey(Subject{Object: deployment, Cluster: "east"}), "v/" + e.Key().Number(): eventKey(&e),
	} {
		if got := strings.ReplaceAll(key, "\x00", "/"); got != want {
			t.Errorf("the key is %q, want %q", got, want)
		}
		if k, err := parseKey(key); err != nil || k.String() != key {
			t.Errorf("%q is read as %+v, %v", key, k, err)
		}
	}
}

// A ledger with a record that is not known, not complete or not readable is refused as a whole,
// with the name of the record.
func TestRecordsThatAreNotKnown(t *testing.T) {
	for key, test := range map[string]struct{ value, want string }{
		"":                                      {`{}`, `read ledger record "": it has a record of an unknown kind, and was probably written by a newer gitfleet`},
		"x":                                     {`{}`, `read ledger record "x": it has a record of an unknown kind, and was probably written by a newer gitfleet`},
		"c":                                     {`{}`, `read ledger record "c": it has a record of an unknown kind, and was probably written by a newer gitfleet`},
		"h\x00east":                             {`""`, `read ledger record "h/east": it has a record of an unknown kind, and was probably written by a newer gitfleet`},
		"c\x00east\x00one":                      {`{}`, `read ledger record "c/east/one": it has a record of an unknown kind, and was probably written by a newer gitfleet`},
		"p\x00web":                              {`{}`, `read ledger record "p/web": it has a record of an unknown kind, and was probably written by a newer gitfleet`},
		entryKey(quay, "east"):                  {`{}`, `read ledger record "e/docks/quay/east": its placement is missing`},
		headKey:                                 {`{}`, `read ledger record "h": json: cannot unmarshal object`},
		fleetKey:                                {`[]`, `read ledger record "f": json: cannot unmarshal array`},
		clusterKey("east"):                      {`{`, `read ledger record "c/east": unexpected end of JSON input`},
		placementKey(web):                       {`{"Index":"x"}`, `read ledger record "p//web": json: cannot unmarshal string`},
		suspensionKey(Subject{Cluster: "east"}): {`7`, `read ledger record "s///////east": json: cannot unmarshal number`},
		declaredKey(configMap("a")):             {`7`, `read ledger record "o//ConfigMap/web/a": json: cannot unmarshal number`},
		"v\x00ab":                               {``, `read ledger record "v/ab": unexpected end of JSON input`},
	} {
		records := map[string][]byte{key: []byte(test.value), clusterKey("west"): []byte(`{}`)}
		if l, err := decode(records); l != nil || err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%q: %v, %v, want %s", key, l, err, test.want)
		}
	}
	l, err := decode(map[string][]byte{clusterKey("east"): []byte(`{"UID":"u","Invented":1}`), placementKey(web): []byte(`{}`), entryKey(web, "east"): []byte(`{"More":{}}`)})
	if err != nil || l.Cluster("east").UID != "u" || l.Placement(web).Entry("east") == nil || l.Unsaved() {
		t.Errorf("fields of a later version: %v, %v", l, err)
	}
}

// A record that cannot be encoded fails the save of every store. Nothing is written, and the
// ledger stays unsaved.
func TestRecordThatCannotBeEncoded(t *testing.T) {
	for name, create := range stores {
		t.Run(name, func(t *testing.T) {
			s, reopen := create(t)
			l, err := s.Load()
			if err != nil {
				t.Fatal(err)
			}
			l.SetInForce("c1")
			l.markUnsaved("ticket\x001")
			if err := s.Save(l); err == nil || !strings.HasSuffix(err.Error(), `encode ledger: there is no record "ticket\x001"`) || !l.Urgent() {
				t.Errorf("saved: %v, urgent %t", err, l.Urgent())
			}
			if found, err := reopen().Load(); err != nil || found.InForce() != "" {
				t.Errorf("found %v, %v", found, err)
			}
		})
	}
}

// Every archive tells the fleet that Load would return, without beginning a ledger, and its
// backup moves to every other archive.
func TestFleetAndBackupOfArchives(t *testing.T) {
	archives := map[string]func() Archive{
		"file":   func() Archive { return open(t, t.TempDir()) },
		"shared": func() Archive { return OpenShared(newFakeObjects(), "one", nil) },
	}
	unnamed := New()
	unnamed.SetInForce("c1")
	for name, test := range map[string]struct {
		l    *Ledger
		want protocol.Fleet
	}{
		"nothing was saved": {New(), protocol.Fleet{}},
		"no fleet":          {unnamed, protocol.Fleet{}},
		"no ID yet":         {ours(""), protocol.Fleet{Name: "shop", Source: ourSource}},
		"a fleet":           {ours("ours"), protocol.Fleet{Name: "shop", ID: "ours", Source: ourSource}},
	} {
		for from, create := range archives {
			s := create()
			if f, err := s.Fleet(); err != nil || f != (protocol.Fleet{}) {
				t.Errorf("%s, %s: at first %v, %v", name, from, f, err)
			}
			if _, err := s.Load(); err != nil {
				t.Fatal(err)
			}
			markAll(test.l)
			if test.want == (protocol.Fleet{}) {
				delete(test.l.dirty, fleetKey)
			}
			if name == "nothing was saved" {
				clear(test.l.dirty)
			}
			if err := s.Save(test.l); err != nil {
				t.Fatal(err)
			}
			for to, create := range archives {
				other := create()
				if err := other.Import(strings.NewReader(exported(t, s)), false); err != nil {
					t.Fatal(err)
				}
				for what, s := range map[string]Archive{"saved": s, "imported": other} {
					if f, err := s.Fleet(); err != nil || f != test.want {
						t.Errorf("%s, %s to %s, %s: %v, %v, want %v", name, from, to, what, f, err, test.want)
					}
				}
				if got, want := records(exported(t, other)), records(exported(t, s)); got != want {
					t.Errorf("%s, %s to %s: exported\n%s\nwant\n%s", name, from, to, got, want)
				}
			}
		}
	}
}

// A backup that cannot be written, or whose lines name no record, is an error with the line.
func TestLinesOfABackup(t *testing.T) {
	const head, end = `{"kind":"gitfleet.dev/state","schema":5}` + "\n", "\n" + `{"record":"end","records":1}`
	for text, want := range map[string]string{
		`{"record":"cluster","cluster":"a\u0000b","value":{}}`:          "line 2: a name has a NUL in it",
		`{"record":"declared","object":["","ConfigMap","a"],"value":1}`: `line 2: ["" "ConfigMap" "a"] is no object`,
		`{"record":"declared","value":1}`:                               "line 2: [] is no object",
		`{"record":"event","value":7}`:                                  "line 2: json: cannot unmarshal number",
		`{"record":"head"}`:                                             "line 2: it has no value, or is there twice",
		`{"record":"binding","placement":"crp/web","value":{}}`:         "its placement is missing",
		`{"record":`: "line 2: unexpected end of JSON input",
	} {
		if _, err := parseBackup(strings.NewReader(head + text + end)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if err := export(failingWriter{}, nil); err == nil {
		t.Error("exported to nowhere")
	}
	if err := export(&bytes.Buffer{}, map[string][]byte{"x": nil}); err == nil {
		t.Error("exported a record of no kind")
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

// A copy with renames shows the placements under their new keys, and the ledger itself stays as
// it is, with nothing to save. A rename of an unknown placement changes neither.
func TestRenamedIsACopyForReading(t *testing.T) {
	l := bound()
	l.Fold(failing("east", 1, 1))
	l.Suspend(Suspension{Subject: Subject{Placement: web, Cluster: "west"}, By: "alice"})
	l.Suspend(Suspension{Subject: Subject{Placement: quay, Cluster: "west"}, By: "bob"})
	l.allSaved()
	before, version, seen := dump(t, l), l.PlacementsVersion(), l.Placement(web).Entry("east").Seen
	third := api.PlacementKey{Name: "third"}
	copied := l.Renamed([]Rename{{web, quay}, {third, web}, {quay, third}})
	if got := dump(t, l); got != before || l.Unsaved() || l.PlacementsVersion() != version {
		t.Errorf("the ledger has changed:\n%s\nwant\n%s", got, before)
	}
	p := copied.Placement(third)
	if p == nil || !reflect.DeepEqual(p.Formerly, []api.PlacementKey{web, quay}) || copied.Placement(web).Into != third || copied.Placement(quay).Into != third {
		t.Fatalf("renamed to %+v", p)
	}
	if got := p.Entry("east").Seen; got != seen {
		t.Errorf("the report is %v, and was %v", got, seen)
	}
	if got := p.Bindings(); len(got) != 2 || got[0].Cluster != "east" || got[1].Cluster != "west" || got[1].Assigned != v(1) {
		t.Errorf("the bindings are %+v", got)
	}
	// The suspension that the new key has already is kept.
	if all := copied.Suspensions(); len(all) != 1 || all[0].By != "bob" || all[0].Placement != third {
		t.Errorf("the suspensions are %v", all)
	}
	left := copied.Placement(web).Entry("west")
	if want := (placement.Binding{Cluster: "west", Assigned: v(1), AssignedAt: noon, Unscheduled: true, Removing: true}); left.Binding != want || left.Seen != nil {
		t.Errorf("under the old key %+v, want %+v", left.Binding, want)
	}
}

// An entry is stored without what its key says and what is zero, with its circumstances among its other fields, and with conditions that
// changed together in one place: each of these entries is stored with the bytes it was read from. An entry without circumstances has none
// in memory.
func TestStoredEntries(t *testing.T) {
	const plain = `{"Binding":{"WasAvailable":true,"Assigned":{"Commit":"v1","Hash":"h1"},"AssignedAt":"2025-03-04T10:00:00Z","RemovedBy":"v2"},` +
		`"AppliedAt":"2025-03-04T10:00:00Z",` +
		`"Seen":{"At":"2025-03-04T10:00:00Z","Revision":{"Commit":"v1","Hash":"h1"},"Done":true,"Total":2,"Braked":[{"ID":{"Group":"","Kind":"Namespace","Namespace":"","Name":"web"},"Why":"many"}]},` +
		`"Conditions":[{"Status":"True","Time":"2025-03-04T10:00:00Z","Types":["Applied","Scheduled"]},{"Status":"False","Time":"2025-03-04T10:00:00Z","Types":["Available"]}]`
	namespace := api.ID{Kind: "Namespace", Name: "web"}
	for name, test := range map[string]struct {
		fields string
		want   Circumstances
	}{
		"none":        {"", Circumstances{}},
		"unavailable": {`,"UnavailableSince":"2025-03-04T10:00:00Z","Writing":true`, Circumstances{UnavailableSince: ten, Writing: true}},
		"disturbed":   {`,"DisturbedAt":"2025-03-04T10:00:00Z"`, Circumstances{DisturbedAt: ten}},
		"incomplete": {`,"LastComplete":{"Revision":{"Commit":"v1","Hash":"h1"},"Done":true,"Total":2}`,
			Circumstances{LastComplete: &protocol.WorkState{Revision: placement.Revision{Commit: "v1", Hash: "h1"}, Done: true, Total: 2}}},
		"deviating": {`,"Yields":[{"ID":{"Group":"","Kind":"Namespace","Namespace":"","Name":"web"},"To":{"Namespace":"docks","Name":"quay"},"Passing":true}],` +
			`"Early":[{"Group":"","Kind":"Namespace","Namespace":"","Name":"web"}]`,
			Circumstances{Deviation: Deviation{Yields: []Yield{{ID: namespace, To: quay, Passing: true}}, Early: []api.ID{namespace}}}},
	} {
		raw := plain + test.fields + "}"
		e, err := decodeEntry([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(*e.Unusual(), test.want) || (e.Circumstances == nil) != (name == "none") || e.Binding.Unusual().RemovedBy != "v2" {
			t.Errorf("%s: %+v", name, e.Unusual())
		}
		if again, err := json.Marshal(stored(e)); err != nil || string(again) != raw {
			t.Errorf("%s: %s is stored as %s: %v", name, raw, again, err)
		}
	}
}

// Transitions that were stored by type, and fields that were stored although they are zero, are read as well.
func TestStoredEntriesOfBefore(t *testing.T) {
	at := ten.Format(time.RFC3339)
	raw := `{"Binding":{"RemovedBy":"v2","Assigned":{"Commit":"v1","Hash":"h1"},"Index":3},"Seen":{"Cluster":"east","Placement":{"Name":"web"},"At":"` + at + `","Removed":false,"Wrote":true,"Inventory":7,"Total":2,` +
		`"Exceptions":null,"Drifts":[{"State":"held"}],"Lingering":[{"Kind":"Namespace","Name":"web"}]},"AvailableSince":"0001-01-01T00:00:00Z",` +
		`"Transitions":{"Applied":{"Status":"True","Time":"` + at + `"}}}`
	e, err := decodeEntry([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	in := e.Seen.Unusual()
	if e.Seen.Total != 2 || len(in.Drifts) != 1 || len(in.Lingering) != 1 || !e.AvailableSince().IsZero() || !e.SeenAt().Equal(ten) || e.inventory != 7 || e.Binding.Index != 3 || e.Binding.Unusual().RemovedBy != "v2" || !e.Transitions["Applied"].Time.Equal(ten) {
		t.Errorf("%+v, incidents %+v", e, in)
	}
}
