package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/history"
)

// Only a server's verdict that nothing but immutable fields is wrong has an object recreated:
// after any other, the new object would be refused as well.
func TestRefusesImmutable(t *testing.T) {
	spec := field.NewPath("spec")
	invalid := func(causes ...*field.Error) error {
		return apierrors.NewInvalid(configMaps.GroupVersion().WithKind("ConfigMap").GroupKind(), "one", causes)
	}
	fixed := field.Invalid(spec.Child("template"), map[string]any{"image": "a: b"}, "field is immutable")
	tests := map[string]struct {
		err  error
		want bool
	}{
		"an immutable field":            {invalid(fixed), true},
		"in another error":              {fmt.Errorf("apply: %w", invalid(fixed)), true},
		"the selector of a Deployment":  {invalid(field.Invalid(spec.Child("selector"), nil, "field is immutable")), true},
		"an immutable ConfigMap":        {invalid(field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set")), true},
		"a StatefulSet":                 {invalid(field.Forbidden(spec, "updates to statefulset spec for fields other than 'replicas', 'template' are forbidden")), true},
		"the address of a Service":      {invalid(field.Invalid(spec.Child("clusterIPs").Index(0), []string{"10.0.0.2"}, "may not change once set")), true},
		"the role of a RoleBinding":     {invalid(field.Invalid(field.NewPath("roleRef"), "view", "cannot change roleRef")), true},
		"a rule of a custom resource":   {invalid(field.Invalid(spec.Child("size"), "large", "Value is immutable")), true},
		"another field is wrong":        {invalid(fixed, field.Invalid(spec.Child("replicas"), -1, "must be greater than or equal to 0")), false},
		"a value that mentions it":      {invalid(field.Invalid(spec.Child("name"), "immutable", "must be lower case")), false},
		"a value that quotes a verdict": {invalid(field.Invalid(spec.Child("name"), "x: field is immutable", "must be lower case")), false},
		"an invalid value":              {invalid(field.Required(spec.Child("name"), "")), false},
		"a conflict":                    {apierrors.NewConflict(configMaps.GroupResource(), "one", errors.New("the object is immutable")), false},
		"an admission webhook":          {apierrors.NewForbidden(configMaps.GroupResource(), "one", errors.New("field is immutable")), false},
		"a webhook, in a server's words": {&apierrors.StatusError{ErrStatus: metav1.Status{
			Code: 422, Reason: metav1.StatusReasonInvalid, Message: `admission webhook "fixed.example.com" denied the request: spec.size: Invalid value: field is immutable`,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: "Invalid value: \"large\": field is immutable"}}},
		}}, false},
		"no causes": {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid, Message: "field is immutable"}}, false},
		"no answer": {errSilent, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := refusesImmutable(test.err); got != test.want {
				t.Errorf("refusesImmutable(%v) = %t, want %t", test.err, got, test.want)
			}
		})
	}
}

// A fixedShelf refuses to change the ConfigMap one, and a few other things about it.
type fixedShelf struct {
	*shelf
	invalid   bool // something else about the object is invalid as well
	finalizer bool // the object is terminating for a while
}

func (f *fixedShelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	one := path.Base(r.URL.Path) == "one"
	switch there := f.maps["one"] != nil; {
	case one && r.Method == http.MethodPatch && there:
		causes := field.ErrorList{field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set")}
		if f.invalid {
			causes = append(causes, field.Invalid(field.NewPath("data"), "", "must be text"))
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		status := apierrors.NewInvalid(configMaps.GroupVersion().WithKind("ConfigMap").GroupKind(), "one", causes).Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		json.NewEncoder(w).Encode(status) //nolint:errcheck // the test would see it
	case one && r.Method == http.MethodDelete && f.finalizer:
		f.done = append(f.done, "DELETE one")
		f.maps["one"] = []byte(strings.Replace(string(f.maps["one"]), `"metadata":{`, `"metadata":{"deletionTimestamp":"2030-01-01T00:00:00Z",`, 1))
		w.Header().Set("Content-Type", "application/json")
		w.Write(stored("one", f.maps["one"])) //nolint:errcheck // the test would see it
	default:
		f.shelf.ServeHTTP(w, r)
	}
}

// An object that asks for it is deleted and created anew when an immutable field changes, and
// only if it is the placement's, nothing else is wrong with it, and not too much is deleted.
func TestRecreation(t *testing.T) {
	const stored = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","namespace":"web","finalizers":["example.com/log"],"labels":{%q:"prod"},"annotations":{%s}}}`
	ours := fmt.Sprintf("%q:%q", api.PlacementAnnotation, web)
	recreated := []string{"DELETE one", "PATCH one"}
	tests := map[string]struct {
		silent  bool   // the manifest does not ask for it
		another bool   // the object is not the one that was applied
		notes   string // annotations of the live object; ours if empty
		shelf   fixedShelf
		brake   Brake
		allowed bool
		want    []string // writes of the object
		message string   // of the object, if it is not applied
	}{
		"it asks for it":              {want: recreated},
		"it does not ask":             {silent: true, message: `give it in Git the annotation gitfleet.dev/recreate: "true"`},
		"something else is invalid":   {shelf: fixedShelf{invalid: true}, message: "must be text"},
		"of another placement before": {notes: `"gitfleet.dev/placement":"crp/other"`, message: "data: Forbidden"},
		"it is to be kept":            {notes: ours + `,"gitfleet.dev/prune":"disabled"`, message: "it is not deleted to be created anew: it has the annotation gitfleet.dev/prune: disabled on the cluster"},
		"too much at once":            {brake: Brake{10, 0}, message: "its recreation is held: deleting 1 of the 1 objects that gitfleet has on this cluster is more than 10 %"},
		"a commit allows so much":     {brake: Brake{10, 0}, allowed: true, want: recreated},
		"a copy with our marks":       {another: true, message: "it is not deleted to be created anew: it was not applied by this placement"},
		"it has a finalizer":          {shelf: fixedShelf{finalizer: true}, want: recreated[:1], message: "the object is being deleted; it is created anew once it is gone (finalizers: example.com/log)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.notes == "" {
				test.notes = ours
			}
			if test.brake == (Brake{}) {
				test.brake = Brake{100, 100}
			}
			m := oneManifest()
			id := m.ID
			m.Hash = "new"
			m.Object.Object.Object["data"] = map[string]any{"key": "new"}
			if !test.silent {
				m.Object.Object.SetAnnotations(map[string]string{api.RecreateAnnotation: api.RecreateEnabled})
			}
			test.shelf.shelf = newShelf()
			test.shelf.maps["one"] = fmt.Appendf(nil, stored, api.ManagedByLabel, test.notes)
			s := sessionAt(t, &test.shelf)
			s.cfg.Encoder, s.cfg.Brake, s.fresh, s.retry = NewEncoder("prod", ""), test.brake, map[string]bool{}, time.NewTimer(time.Hour)
			s.kinds.Add(configMaps.GroupVersion().WithKind("ConfigMap"), configMaps)
			s.holding(oneManifest(), web)
			if it := *s.inv[web].items.of(id); !test.another {
				it.UID = "uid of one"
				s.inv[web].items.put(it)
			}
			var events []history.Event
			s.cfg.Record = func(all ...history.Entry) {
				for _, e := range all {
					events = append(events, e.Event)
				}
			}
			s.want([]work.Work{{Placement: web, Manifests: []*work.Manifest{m}, AllowDelete: test.allowed}})
			s.processPrepared(t.Context(), map[api.ID]bool{id: true})

			var writes []string
			for _, done := range test.shelf.done {
				if strings.HasSuffix(done, " one") {
					writes = append(writes, done)
				}
			}
			if !slices.Equal(writes, test.want) {
				t.Errorf("writes: %q, want %q", writes, test.want)
			}
			state, _ := s.state(web, id)
			if state.Applied.OK != (test.message == "") || !strings.Contains(state.Applied.Message, test.message) {
				t.Errorf("applied: %t %s\nwant %q", state.Applied.OK, state.Applied.Message, test.message)
			}
			if held := s.braked[id].why != ""; held != strings.Contains(test.message, "held") {
				t.Errorf("held: %t", held)
			}
			deleted := slices.Contains(events, history.Deleted)
			if reported := s.deletions.take(web); deleted != (len(test.want) > 0) || deleted != (len(reported) == 1) || deleted && reported[0].Objects[0] != id {
				t.Errorf("events: %v, reported as deleted: %v", events, reported)
			}
			if len(test.want) == 2 && !slices.Equal(events, []history.Event{history.Deleted, history.Created}) {
				t.Errorf("events: %v", events)
			}
			if it := s.inv[web].items.of(id); len(test.want) == 1 && it.Hash != "" {
				t.Errorf("the inventory has the hash %q of an object that is to be created anew", it.Hash)
			}
		})
	}
}

// An object is not recreated if Git has not changed, or if volumes would be deleted with it.
func TestNotRecreated(t *testing.T) {
	s := sessionAt(t, newShelf())
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
		live := m.Object.Object.DeepCopy()
		live.SetUID("u")
		live.SetLabels(map[string]string{api.ManagedByLabel: s.cfg.Fleet})
		live.SetAnnotations(map[string]string{api.PlacementAnnotation: web.String()})
		live.Object["spec"] = map[string]any{"persistentVolumeClaimRetentionPolicy": map[string]any{"whenDeleted": test.retention}}
		task := task{wanted: wanted{web, m}, item: &item{Hash: test.applied, UID: "u"}}
		if got := s.notRecreated(task, live); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A comparison of an object by one placement releases no deletion of it by another.
func TestComparisonsReleaseNoHeldDeletion(t *testing.T) {
	const stored = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","namespace":"web","labels":{%q:"prod"},"annotations":{%q:%q}}}`
	m, compares := oneManifest(), api.PlacementKey{Name: "compares"}
	shelf := newShelf()
	shelf.maps["one"] = fmt.Appendf(nil, stored, api.ManagedByLabel, api.PlacementAnnotation, web)
	s := sessionAt(t, shelf)
	s.cfg.Encoder, s.cfg.Brake, s.fresh, s.retry = NewEncoder("prod", ""), Brake{10, 0}, map[string]bool{}, time.NewTimer(time.Hour)
	s.kinds.Add(configMaps.GroupVersion().WithKind("ConfigMap"), configMaps)
	s.holding(m, web)
	it := *s.inv[web].items.of(m.ID)
	it.UID = "uid of one"
	s.inv[web].items.put(it)
	s.want([]work.Work{{Placement: web}, {Placement: compares, Manifests: []*work.Manifest{m}, Strategy: api.ApplyStrategy{Type: api.ReportDiff}}})
	ids := map[api.ID]bool{m.ID: true}
	s.brake(ids, s.deletes)
	if s.braked[m.ID].why == "" {
		t.Fatal("the deletion is not held")
	}
	s.processPrepared(t.Context(), ids)
	if s.braked[m.ID].why == "" || slices.Contains(shelf.done, "DELETE one") {
		t.Errorf("held: %q, requests: %q", s.braked[m.ID].why, shelf.done)
	}
}
