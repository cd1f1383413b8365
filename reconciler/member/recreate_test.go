package member

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/desired"
	"github.com/gitfleet/gitfleet/reconciler/member/inventory"
	"github.com/gitfleet/gitfleet/reconciler/member/progress"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/apiserver"
)

// immutableConfigMaps refuse to change the ConfigMap one, and can simulate other problems with it.
type immutableConfigMaps struct {
	*apiserver.ConfigMaps
	invalid   bool // something else about the object is invalid as well
	finalizer bool // the object is terminating for a while
	refused   int  // the status with which the new object is refused; 0 if it is not
	stays     bool // a webhook denies the deletion
	// killed is what the cluster had right after the deletion.
	killed *apiserver.ConfigMaps
}

func (f *immutableConfigMaps) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	one := path.Base(r.URL.Path) == "one"
	switch there := f.Stored["one"] != nil; {
	case r.Method == http.MethodPost && r.URL.Query().Get("dryRun") == metav1.DryRunAll:
		f.Writes = append(f.Writes, "TRY one")
		if f.refused != 0 {
			apiserver.Refuse(w, f.refused, `admission webhook "fixed.example.com" denied the request`)
			return
		}
		apiserver.Refuse(w, http.StatusConflict, "already exists")
	case one && r.Method == http.MethodDelete && f.stays:
		apiserver.Refuse(w, http.StatusForbidden, `admission webhook "stays.example.com" denied the request`)
	case one && r.Method == http.MethodPatch && there:
		causes := field.ErrorList{field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set")}
		if f.invalid {
			causes = append(causes, field.Invalid(field.NewPath("data"), "", "must be text"))
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		status := apierrors.NewInvalid(inventory.ConfigMaps.GroupVersion().WithKind("ConfigMap").GroupKind(), "one", causes).Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		json.NewEncoder(w).Encode(status) //nolint:errcheck // the test would see it
	case one && r.Method == http.MethodDelete && f.finalizer:
		f.Writes = append(f.Writes, "DELETE one")
		f.Stored["one"] = []byte(strings.Replace(string(f.Stored["one"]), `"metadata":{`, `"metadata":{"deletionTimestamp":"2030-01-01T00:00:00Z",`, 1))
		w.Header().Set("Content-Type", "application/json")
		w.Write(apiserver.WithUID("one", f.Stored["one"])) //nolint:errcheck // the test would see it
	case one && r.Method == http.MethodDelete:
		f.ConfigMaps.ServeHTTP(w, r)
		f.killed = f.Clone()
	default:
		f.ConfigMaps.ServeHTTP(w, r)
	}
}

// contestedConfigMaps refuse to apply the ConfigMap one, and let its owners be changed.
type contestedConfigMaps struct {
	*apiserver.ConfigMaps
	ownershipPatches int
}

func (c *contestedConfigMaps) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	one := path.Base(r.URL.Path) == "one"
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPost && r.URL.Query().Get("dryRun") == metav1.DryRunAll:
		w.WriteHeader(http.StatusCreated)
		io.Copy(w, r.Body) //nolint:errcheck // the test would see it
	case one && r.Method == http.MethodPatch && r.Header.Get("Content-Type") == string(types.JSONPatchType):
		var ops []struct {
			Path  string
			Value any
		}
		var object map[string]any
		if json.NewDecoder(r.Body).Decode(&ops) != nil || json.Unmarshal(c.Stored["one"], &object) != nil || ops[0].Path != "/metadata/managedFields" {
			apiserver.Refuse(w, http.StatusBadRequest, "unexpected patch")
			return
		}
		c.ownershipPatches++
		object["metadata"].(map[string]any)["managedFields"] = ops[0].Value
		c.Stored["one"], _ = json.Marshal(object)
		w.Write(c.Stored["one"]) //nolint:errcheck // the test would see it
	case one && r.Method == http.MethodPatch:
		(&immutableConfigMaps{ConfigMaps: c.ConfigMaps, invalid: true}).ServeHTTP(w, r)
	default:
		c.ConfigMaps.ServeHTTP(w, r)
	}
}

// gitfleet takes ownership of what contradicts an object before it is applied once more. If it is refused then, too, its owners get it back.
func TestClaimsOfRefusedObjectsAreGivenBack(t *testing.T) {
	const owners = `[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:key":{}}},"manager":"gitfleet","operation":"Apply"},` +
		`{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:immutable":{}},"manager":"someone","operation":"Update"}]`
	server := &contestedConfigMaps{ConfigMaps: apiserver.NewConfigMaps()}
	server.Stored["one"] = []byte(strings.TrimSuffix(strings.Replace(string(storedOne(fmt.Sprintf("%q:%q", api.PlacementAnnotation, web))), `"metadata":{`, `"metadata":{"managedFields":`+owners+`,`, 1), "}") + `,"immutable":true,"data":{"key":"old"}}`)
	s, _ := recreatingAt(t, server, "uid of one")
	m := changedOne(false)
	s.setWorks([]*work.Work{{Placement: web, Manifests: []*work.Manifest{m}}})
	s.processPrepared(t.Context(), map[api.ID]bool{m.ID: true})
	var now struct {
		Metadata struct{ ManagedFields json.RawMessage }
	}
	if err := json.Unmarshal(server.Stored["one"], &now); err != nil {
		t.Fatal(err)
	}
	if server.ownershipPatches != 2 || string(now.Metadata.ManagedFields) != owners {
		t.Errorf("%d changes of owners, and these are: %s", server.ownershipPatches, now.Metadata.ManagedFields)
	}
}

// storedOne is the ConfigMap one of the placement web with some annotations.
func storedOne(notes string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","namespace":"web","finalizers":["example.com/log"],"labels":{%q:"prod"},"annotations":{%s}}}`,
		api.ManagedByLabel, notes)
}

// changedOne is the manifest of one with other content. It may request recreation.
func changedOne(asks bool) *work.Manifest {
	m := oneManifest()
	m.Hash = "new"
	m.Object.Content.Object["data"] = map[string]any{"key": "new"}
	if asks {
		m.Object.Content.SetAnnotations(map[string]string{api.RecreateAnnotation: api.RecreateEnabled})
	}
	return m
}

// recreatingAt returns a session whose placement web has applied the ConfigMap one with a UID,
// and the history that the session records.
func recreatingAt(t *testing.T, h http.Handler, uid types.UID) (s *session, events *[]history.Entry) {
	t.Helper()
	s, events = sessionAt(t, h), &[]history.Entry{}
	s.cfg.Encoder, s.cfg.DeletionLimit, s.record.fresh, s.retry = apply.NewEncoder("prod", ""), DeletionLimit{100, 100}, map[string]bool{}, time.NewTimer(time.Hour)
	s.kinds.Add(inventory.ConfigMaps.GroupVersion().WithKind("ConfigMap"), inventory.ConfigMaps)
	s.holding(oneManifest(), web)
	it := *s.inventory(web).Items.Of(oneManifest().ID)
	it.UID = uid
	s.inventory(web).Items.Put(it)
	s.cfg.Record = func(all ...history.Entry) { *events = append(*events, all...) }
	return s, events
}

func eventsOf(entries []history.Entry) (all []history.Event) {
	for _, e := range entries {
		all = append(all, e.Event)
	}
	return all
}

// An object that requests it is recreated when an immutable field changes, but only if the
// placement owns it, nothing else is wrong with it, the new object is not denied, and not too
// much is deleted. Otherwise the history says why, once.
func TestRecreation(t *testing.T) {
	ours := fmt.Sprintf("%q:%q", api.PlacementAnnotation, web)
	recreated := []string{"TRY one", "DELETE one", "PATCH one"}
	tests := map[string]struct {
		silent  bool   // the manifest does not request it
		another bool   // the object was replaced since it was applied
		taken   bool   // the placement has not applied it before
		notes   string // annotations of the live object; ours if empty
		server  immutableConfigMaps
		limit   DeletionLimit
		allowed bool
		want    []string // expected writes of the object
		message string   // message of the object if it is not applied
	}{
		"it asks for it":              {want: recreated},
		"it does not ask":             {silent: true, message: `give it in Git the annotation gitfleet.dev/recreate: "true"`},
		"something else is invalid":   {server: immutableConfigMaps{invalid: true}, message: "; it is not deleted to be created anew, since it was not refused only because something is immutable"},
		"of another placement before": {notes: `"gitfleet.dev/placement":"crp/other"`, message: "it is not deleted to be created anew: it was not applied by this placement"},
		"it is taken over":            {taken: true, notes: `"gitfleet.dev/placement":"crp/other"`, message: "; it is not deleted to be created anew, since this placement has not applied it before; delete it yourself"},
		"taken over, and silent":      {taken: true, silent: true, notes: `"gitfleet.dev/placement":"crp/other"`, message: "field is immutable when `immutable` is set)"},
		"taken over, and invalid":     {taken: true, server: immutableConfigMaps{invalid: true}, notes: `"gitfleet.dev/placement":"crp/other"`, message: `data: Invalid value: "": must be text])`},
		"it is to be kept":            {notes: ours + `,"gitfleet.dev/prune":"disabled"`, message: "it is not deleted to be created anew: it has the annotation gitfleet.dev/prune: disabled on the cluster"},
		"too much at once":            {limit: DeletionLimit{10, 0}, message: "its recreation is blocked: deleting 1 of the 1 objects that gitfleet has on this cluster is more than 10 %"},
		"a commit allows so much":     {limit: DeletionLimit{10, 0}, allowed: true, want: recreated},
		"a copy with our marks":       {another: true, message: "it is not deleted to be created anew: it was not applied by this placement"},
		"a webhook denies it":         {server: immutableConfigMaps{refused: http.StatusForbidden}, want: recreated[:1], message: `it is not deleted to be created anew: dry run of the new object: admission webhook "fixed.example.com" denied the request`},
		"a webhook keeps it":          {server: immutableConfigMaps{stays: true}, want: recreated[:1], message: `it is not deleted to be created anew: admission webhook "stays.example.com" denied the request`},
		"it has a finalizer":          {server: immutableConfigMaps{finalizer: true}, want: recreated[:2], message: "the object is being deleted; it is created anew once it is gone (finalizers: example.com/log)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := changedOne(!test.silent)
			id, uid := m.ID, types.UID("uid of one")
			if test.another {
				uid = ""
			}
			test.server.ConfigMaps = apiserver.NewConfigMaps()
			test.server.Stored["one"] = storedOne(cmp.Or(test.notes, ours))
			s, entries := recreatingAt(t, &test.server, uid)
			if test.taken {
				it := *s.inventory(web).Items.Of(id)
				it.Hash = ""
				s.inventory(web).Items.Put(it)
			}
			s.cfg.DeletionLimit = cmp.Or(test.limit, s.cfg.DeletionLimit)
			s.setWorks([]*work.Work{{Placement: web, Manifests: []*work.Manifest{m}, AllowDelete: test.allowed}})
			s.processPrepared(t.Context(), map[api.ID]bool{id: true})

			var writes []string
			for _, done := range test.server.Writes {
				if strings.HasSuffix(done, " one") {
					writes = append(writes, done)
				}
			}
			if !slices.Equal(writes, test.want) {
				t.Errorf("writes: %q, want %q", writes, test.want)
			}
			state, _ := s.reporter.state(web, id)
			if state.Applied.OK != (test.message == "") || !strings.Contains(state.Applied.Message(), test.message) {
				t.Errorf("applied: %t %s\nwant %q", state.Applied.OK, state.Applied.Message(), test.message)
			}
			if going := strings.Contains(test.message, "is being deleted"); state.Pending != going {
				t.Errorf("pending: %t, want %t", state.Pending, going)
			}
			if blocked := s.blocker.blocked[id].why != ""; blocked != strings.Contains(test.message, "blocked") {
				t.Errorf("blocked: %t", blocked)
			}
			want, hash := []history.Event{history.Failed}, oneManifest().Hash
			if test.taken {
				hash = ""
			}
			switch len(test.want) {
			case 2:
				want, hash = []history.Event{history.Deleted}, ""
			case 3:
				want, hash = []history.Event{history.Deleted, history.Created}, m.Hash
			}
			if it := s.inventory(web).Items.Of(id); it.Hash != hash {
				t.Errorf("the inventory has the hash %q, want %q", it.Hash, hash)
			}
			reported := s.history.deletions.Take(web)
			if deleted := want[0] == history.Deleted; deleted != (len(reported) == 1) || deleted && reported[0].Objects[0] != id {
				t.Errorf("reported as deleted: %v", reported)
			}
			s.record.progress.RetryAll()
			s.processPrepared(t.Context(), map[api.ID]bool{id: true})
			if got := eventsOf(*entries); !slices.Equal(got, want) || want[0] == history.Failed && !strings.Contains((*entries)[0].Message, test.message) {
				t.Errorf("history: %+v, want %v", *entries, want)
			}
		})
	}
}

// A preview of a recreation says whether the server would refuse the new object.
func TestPreviewOfARecreation(t *testing.T) {
	for refused, want := range map[int]Effect{0: Recreates, http.StatusForbidden: Fails, http.StatusNotFound: Fails} {
		server := &immutableConfigMaps{ConfigMaps: apiserver.NewConfigMaps(), refused: refused}
		server.Stored["one"] = storedOne(fmt.Sprintf("%q:%q", api.PlacementAnnotation, web))
		s, _ := recreatingAt(t, server, "uid of one")
		m := changedOne(true)
		s.setWorks([]*work.Work{{Placement: web, Manifests: []*work.Manifest{m}}})
		live, err := s.conn.Read(t.Context(), inventory.ConfigMaps, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		p := &Preview{s}
		c, err := p.applied(t.Context(), p.task(web, m), &Change{}, live, nil)
		if err != nil || c.Effect != want || strings.Contains(c.Message, "denied the request") != (refused != 0) {
			t.Errorf("refused with %d: %+v, %v", refused, c, err)
		}
	}
}

// A preview says why an object that would be taken over is not recreated.
func TestPreviewOfATakeoverWithoutRecreation(t *testing.T) {
	server := &immutableConfigMaps{ConfigMaps: apiserver.NewConfigMaps()}
	server.Stored["one"] = storedOne(`"gitfleet.dev/placement":"crp/other"`)
	s, _ := recreatingAt(t, server, "uid of one")
	m := changedOne(true)
	s.setWorks([]*work.Work{{Placement: web, Manifests: []*work.Manifest{m}}})
	live, err := s.conn.Read(t.Context(), inventory.ConfigMaps, m.ID)
	if err != nil {
		t.Fatal(err)
	}
	p := &Preview{s}
	c, err := p.applied(t.Context(), p.task(web, m), &Change{}, live, nil)
	if err != nil || c.Effect != Fails || !c.TakesOver || !strings.Contains(c.Message, "this placement has not applied it before") {
		t.Errorf("%+v, %v", c, err)
	}
}

// If gitfleet is killed between the deletion and the creation, that the object is gone is no
// drift, also if the change in Git was reverted meanwhile.
func TestKilledDuringARecreation(t *testing.T) {
	before := &immutableConfigMaps{ConfigMaps: apiserver.NewConfigMaps()}
	before.Stored["one"] = storedOne(fmt.Sprintf("%q:%q", api.PlacementAnnotation, web))
	s, _ := recreatingAt(t, before, "uid of one")
	if err := s.store.Save(t.Context(), s.inventory(web)); err != nil {
		t.Fatal(err)
	}
	ids := map[api.ID]bool{oneManifest().ID: true}
	s.setWorks([]*work.Work{{Placement: web, Manifests: []*work.Manifest{changedOne(true)}}})
	s.processPrepared(t.Context(), ids)

	s, entries := recreatingAt(t, before.killed, "uid of one")
	s.inventories.owned.Loaded(nil)
	if err := s.inventories.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.setWorks([]*work.Work{{Placement: web, Manifests: []*work.Manifest{oneManifest()}}})
	s.processPrepared(t.Context(), ids)
	if got := eventsOf(*entries); !slices.Equal(got, []history.Event{history.Created}) || before.killed.Stored["one"] == nil {
		t.Errorf("history: %v, the cluster has %q", got, before.killed.Names())
	}
}

// An object that is not recreated since the session ends has not failed.
func TestRecreationInASessionThatEnds(t *testing.T) {
	server := &immutableConfigMaps{ConfigMaps: apiserver.NewConfigMaps()}
	server.Stored["one"] = storedOne(fmt.Sprintf("%q:%q", api.PlacementAnnotation, web))
	s, entries := recreatingAt(t, server, "uid of one")
	s.setWorks([]*work.Work{{Placement: web, Manifests: []*work.Manifest{changedOne(true)}}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := changedOne(true)
	one, _ := s.applier.task(m.ID, desired.Object{Placement: web, Manifest: m})
	s.record.progress.Fail(m.ID, progress.Failure{Recreate: true})
	if o := s.applier.deleteForRecreation(ctx, one); o.err == nil || o.deleted || len(server.Writes) > 0 {
		t.Errorf("%+v, writes: %q", o, server.Writes)
	}
	if s.applier.recreate(ctx, []apply.Task{one}, map[api.PlacementKey]bool{}); len(*entries) > 0 || s.failure(m.ID).Cond.Reason != "" {
		t.Errorf("history: %+v, failed: %+v", *entries, s.failure(m.ID))
	}
}

// If another fleet is found to hold the cluster when an object is about to be recreated, nothing
// is deleted.
func TestNoDeletionAfterARecreationFindsAnotherFleet(t *testing.T) {
	server := &immutableConfigMaps{ConfigMaps: apiserver.NewConfigMaps()}
	keeps(t, memberOf(t, another, server.ConfigMaps), held(1))
	for _, name := range []string{"one", "two"} {
		server.Stored[name] = []byte(strings.ReplaceAll(string(storedOne(fmt.Sprintf("%q:%q", api.PlacementAnnotation, web))), `"one"`, strconv.Quote(name)))
	}
	s, _ := recreatingAt(t, server, "uid of one")
	s.store.SetMembership(protocol.Membership{Fleet: here})
	two := oneManifest()
	two.ID.Name = "two"
	s.inventory(web).Items.Put(inventory.Item{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: "two", Hash: "hash", UID: "uid of two"})
	server.Writes = nil
	s.setWorks([]*work.Work{{Placement: web, Manifests: []*work.Manifest{changedOne(true)}}})
	s.processPrepared(t.Context(), map[api.ID]bool{oneManifest().ID: true, two.ID: true})
	if !s.store.ClaimedByOther() || !slices.Equal(server.Writes, []string{"TRY one", "POST configmaps"}) {
		t.Errorf("foreign: %t, writes: %q", s.store.ClaimedByOther(), server.Writes)
	}
}

// An object is not recreated if Git has not changed, or if volumes would be deleted with it.
func TestNotRecreated(t *testing.T) {
	s := sessionAt(t, apiserver.NewConfigMaps())
	for name, test := range map[string]struct {
		applied, retention string
		want               string
	}{
		"a change in Git":       {applied: "old"},
		"none":                  {applied: "new", want: "its content in Git has not changed since it was applied"},
		"being recreated":       {},
		"volumes that are kept": {applied: "old", retention: "Retain"},
		"volumes that are not":  {applied: "old", retention: "Delete", want: "its persistentVolumeClaimRetentionPolicy would delete its volumes with it"},
	} {
		m := oneManifest()
		m.Hash, m.ID.Kind = "new", "StatefulSet"
		live := m.Object.Content.DeepCopy()
		live.SetUID("u")
		live.SetLabels(map[string]string{api.ManagedByLabel: s.cfg.Fleet})
		live.SetAnnotations(map[string]string{api.PlacementAnnotation: web.String()})
		live.Object["spec"] = map[string]any{"persistentVolumeClaimRetentionPolicy": map[string]any{"whenDeleted": test.retention}}
		task := apply.Task{Object: desired.Object{Placement: web, Manifest: m}, Item: &inventory.Item{Hash: test.applied, UID: "u"}}
		if got := s.applier.notRecreated(task, live); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A comparison of an object by one placement releases no deletion of it by another.
func TestComparisonsReleaseNoBlockedDeletion(t *testing.T) {
	m, compares := oneManifest(), api.PlacementKey{Name: "compares"}
	server := apiserver.NewConfigMaps()
	server.Stored["one"] = storedOne(fmt.Sprintf("%q:%q", api.PlacementAnnotation, web))
	s, _ := recreatingAt(t, server, "uid of one")
	s.cfg.DeletionLimit = DeletionLimit{10, 0}
	s.setWorks([]*work.Work{{Placement: web}, {Placement: compares, Manifests: []*work.Manifest{m}, Strategy: api.ApplyStrategy{Type: api.ReportDiff}}})
	ids := map[api.ID]bool{m.ID: true}
	s.blocker.decide(ids, s.blocker.deletes, s.blocker.recreations())
	if s.blocker.blocked[m.ID].why == "" {
		t.Fatal("the deletion is not blocked")
	}
	s.processPrepared(t.Context(), ids)
	if s.blocker.blocked[m.ID].why == "" || slices.Contains(server.Writes, "DELETE one") {
		t.Errorf("blocked: %q, requests: %q", s.blocker.blocked[m.ID].why, server.Writes)
	}
}
