package decide

import (
	"errors"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/deletion"
	"github.com/gitfleet/gitfleet/reconciler/member/drift"
	"github.com/gitfleet/gitfleet/reconciler/member/hooks"
)

// What is done about an object that a placement wants, and why it is not applied.
func TestApply(t *testing.T) {
	missing := errors.New("no such kind")
	applied := Facts{Exists: true, Watched: true, Applied: true, Current: true, Drift: drift.Untouched}
	with := func(f Facts, change func(*Facts)) Facts {
		change(&f)
		return f
	}
	drifted := with(applied, func(f *Facts) { f.Drift = drift.Drifted })
	unseen := Facts{Applied: true, Current: true, Drift: drift.Drifted}
	tests := map[string]struct {
		facts Facts
		want  Step
		why   string
	}{
		"new":                               {Facts{Watched: true}, Write, ""},
		"as applied":                        {applied, Leave, ""},
		"as applied, as far as it is known": {with(applied, func(f *Facts) { f.Drift = drift.Unknown }), Leave, ""},
		"changed in Git":                    {with(applied, func(f *Facts) { f.Current = false }), Write, ""},
		"changed in Git and drifted":        {with(drifted, func(f *Facts) { f.Current, f.Held = false, true }), Write, ""},
		"adopted in Git":                    {with(drifted, func(f *Facts) { f.Current, f.MayEqual = false, true }), Accept, ""},
		"failed":                            {with(applied, func(f *Facts) { f.Failed = true }), Write, ""},
		"failed a moment ago":               {with(applied, func(f *Facts) { f.Failed, f.Waits = true, true }), Leave, ""},
		"to be read":                        {with(applied, func(f *Facts) { f.Unread = true }), Write, ""},
		"an addition is rejected":           {with(applied, func(f *Facts) { f.Rejected, f.Failed = true, true }), Clean, ""},
		"drifted":                           {drifted, Restore, ""},
		"drifted, with an addition":         {with(drifted, func(f *Facts) { f.Rejected = true }), Restore, ""},
		"drifted, and held":                 {with(drifted, func(f *Facts) { f.Held, f.Protected = true, true }), Hold, ""},
		"drifted, and protected":            {with(drifted, func(f *Facts) { f.Protected = true }), Write, ""},
		"deleted by somebody":               {with(drifted, func(f *Facts) { f.Exists = false }), Restore, ""},
		"being deleted":                     {with(drifted, func(f *Facts) { f.Deleting = true }), Explain, ""},
		"being deleted, and changed in Git": {with(drifted, func(f *Facts) { f.Deleting, f.Current = true, false }), Write, ""},
		"being deleted, and never applied":  {Facts{Exists: true, Deleting: true, Finalizers: "a, b"}, Refuse, "the object is being deleted; it is created anew once it is gone (finalizers: a, b)"},
		"no watch, as applied":              {unseen, Leave, ""},
		"no watch, failed":                  {with(unseen, func(f *Facts) { f.Failed = true }), Write, ""},
		"no watch, rejected":                {with(unseen, func(f *Facts) { f.Rejected, f.Failed = true, true }), Clean, ""},
		"has run":                           {Facts{Watched: true, HasRun: true, Applied: true, Current: true, Drift: drift.Drifted}, Finish, ""},
		"suspended":                         {with(drifted, func(f *Facts) { f.Suspended = true }), Leave, ""},
		"suspended, and changed":            {with(drifted, func(f *Facts) { f.Suspended, f.Changed = true, true }), Observe, ""},
		"only compared":                     {with(drifted, func(f *Facts) { f.OnlyCompared, f.Suspended = true, true }), Compare, ""},
		"a hook that is not due":            {Facts{Watched: true, Hook: hooks.NotDue}, Finish, ""},
		"a hook that waits":                 {Facts{Watched: true, Hook: hooks.Waits, HookFor: "Job web/init"}, Refuse, "it waits for Job web/init"},
		"an unknown kind":                   {with(applied, func(f *Facts) { f.Unknown = missing }), Refuse, "no such kind"},
		"another kind comes first":          {with(applied, func(f *Facts) { f.Awaited = missing }), Refuse, "no such kind"},
		"no namespace":                      {Facts{Watched: true, NoNamespace: "Widget"}, Refuse, "a Widget is namespaced on this cluster, and the object has no namespace; write metadata.namespace"},
		"encrypted":                         {Facts{Watched: true, Encrypted: "no key"}, Refuse, "no key"},
	}
	for name, test := range tests {
		step, why := Apply(test.facts)
		got := ""
		if why != nil {
			got = why.Error()
			if cond := why.Condition(); cond.Reason == "" || !strings.Contains(cond.Message(), got) {
				t.Errorf("%s: the condition is %+v", name, cond)
			}
		}
		if step != test.want || got != test.why {
			t.Errorf("%s: %s, %q; want %s, %q", name, step, got, test.want, test.why)
		}
	}
}

// Only what waits for something else on the cluster passes by itself.
func TestIsTransient(t *testing.T) {
	for why, want := range map[Refusal]bool{
		&HookPendingError{}: true, &BeingDeletedError{}: true, &NoNamespaceError{}: false, &EncryptedError{}: false, &UnknownKindError{errors.New("no")}: false,
	} {
		if got := IsTransient(why); got != want {
			t.Errorf("%T: %t", why, got)
		}
	}
}

// Without a namespace or a key, an object is not compared either, and its condition is that of a comparison.
func TestComparedObjectsAreRefused(t *testing.T) {
	for _, f := range []Facts{{OnlyCompared: true, NoNamespace: "Widget"}, {OnlyCompared: true, Encrypted: "no key"}} {
		if step, why := Apply(f); step != Refuse || why.Condition().Type != api.DiffReported {
			t.Errorf("%+v: %s, %v", f, step, why)
		}
	}
}

// What is done about an object that no placement wants any more, and why it is kept.
func TestDelete(t *testing.T) {
	first := deletion.Object{ID: api.ID{Kind: "ConfigMap", Namespace: "web", Name: "one"}}
	tests := map[string]struct {
		stale Stale
		want  Step
		why   string
	}{
		"gone":                        {Stale{Gone: true, Released: true}, Forget, ""},
		"released":                    {Stale{Released: true, Blocked: "no"}, Release, ""},
		"being deleted":               {Stale{Deleting: true, Blocked: "no"}, Await, ""},
		"held":                        {Stale{Blocked: "a Namespace goes", After: first}, Keep, "blocked until a commit allows it: a Namespace goes"},
		"held, and allowed":           {Stale{Blocked: "a Namespace goes", Allowed: true}, Remove, ""},
		"after another":               {Stale{After: first}, Keep, first.ID.String() + " has to be gone first"},
		"after another, and allowed":  {Stale{After: first, Allowed: true}, Keep, first.ID.String() + " has to be gone first"},
		"nobody has looked into it":   {Stale{}, Look, ""},
		"something stays in it":       {Stale{Looked: true, Remains: "Pod a", Content: "data"}, Keep, "the Namespace has what stays: Pod a"},
		"content would be lost":       {Stale{Looked: true, Content: "data"}, Keep, "blocked until a commit allows it: data"},
		"nothing is lost":             {Stale{Looked: true}, Remove, ""},
		"what is lost does not count": {Stale{Looked: true, Allowed: true, Content: "data"}, Remove, ""},
	}
	for name, test := range tests {
		step, why := Delete(test.stale)
		got := ""
		if why != nil {
			got = why.Error()
		}
		if step != test.want || got != test.why {
			t.Errorf("%s: %s, %q; want %s, %q", name, step, got, test.want, test.why)
		}
	}
}
