package member_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/member/apply"
)

// A field that a webhook changes at each apply is reported and not applied again and again,
// whether or not the webhook supports dry runs, and even if it never sets the same value twice.
// Once the webhook stops, the value of the manifest is applied.
func TestAlteringWebhookIsReportedAndNotContested(t *testing.T) {
	never := func() func() string {
		n := 0
		return func() string { n++; return fmt.Sprint("value ", n) }
	}
	tests := map[string]struct {
		value    func() string
		noDryRun bool
		// restart is how many times gitfleet writes after a restart to determine this.
		restart int
	}{
		"a webhook":                       {func() string { return "mutant" }, false, 0},
		"one that refuses dry runs":       {func() string { return "mutant" }, true, 1},
		"one that never sets it the same": {never(), false, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hook, _, a := newMutated(t)
				hook.value, hook.noDryRun = test.value, test.noDryRun
				maps := mapsOf(t, a.config)
				is := func(state api.DriftState, want string) {
					t.Helper()
					synctest.Wait()
					if got := value(get(t, maps)); want != "" && got != want {
						t.Errorf("it is %q, want %q", got, want)
					}
					if got := a.drift(); got.State != state {
						t.Errorf("it is remembered as %+v, want %s", got, state)
					}
				}
				a.start()
				is(api.DriftAltered, "")
				if n := hook.applies(); n != 1 {
					t.Errorf("it was applied %d times", n)
				}
				for i := range 4 {
					a.edit(fmt.Sprintf(`{"metadata":{"labels":{"theirs":"%d"}}}`, i))
					synctest.Wait()
					a.Check()
					is(api.DriftAltered, "")
				}
				if n := hook.applies(); n != 0 {
					t.Errorf("it was written %d times more, and nobody had changed it", n)
				}

				a.stop()
				a.start()
				a.Check()
				is(api.DriftAltered, "")
				if n := hook.applies(); n > test.restart {
					t.Errorf("after a restart it was written %d times, want %d", n, test.restart)
				}
				hook.mutate(nil)
				a.Check()
				is(api.DriftRepaired, "sent")
				a.stop()
			})
		})
	}
}

// If somebody applies a value under gitfleet's own field manager, ownership does not change.
// The value is still reverted at once with one write, whether it was changed within the second
// of gitfleet's own apply, later, or while gitfleet was not running.
func TestApplyUnderOurFieldManagerIsReverted(t *testing.T) {
	tests := map[string]struct {
		after time.Duration
		away  bool
	}{
		"within the second": {0, false},
		"later":             {time.Minute, false},
		"while away":        {time.Minute, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hook, direct, a := startMutated(t)
				hook.applies()
				if test.away {
					a.stop()
				}
				time.Sleep(test.after)
				a.tamper(direct)
				if test.away {
					a.start()
				}
				synctest.Wait()
				expectSent(t, direct)
				if d := a.drift(); d.State != api.DriftRepaired || d.Count != 1 || len(d.By) != 1 || d.By[0].Manager != api.FieldManager || len(d.Paths) != 1 || d.Paths[0].Path != "/data/key" {
					t.Errorf("it is remembered as %+v", d)
				}
				if n := hook.applies(); n != 1 {
					t.Errorf("it was written %d times", n)
				}
				a.stop()
			})
		})
	}
}

// A comparison of values that fails is retried, even if nothing else changes.
func TestValuesAreComparedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook, direct, a := startMutated(t)
		hook.mu.Lock()
		hook.failing = 1
		hook.mu.Unlock()
		a.tamper(direct)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		expectSent(t, direct)
		a.stop()
	})
}

// The newest values of fields that an object leaves to others are recorded each time they
// change. The drift ends once they have the values in Git.
func TestNewestIgnoredValuesAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook, _, a := newMutated(t)
		a.ignore = "/data/key"
		a.start()
		hook.applies()
		for _, want := range []string{"one", "two"} {
			a.edit(fmt.Sprintf(`{"data":{"key":%q}}`, want))
			synctest.Wait()
			if d := a.drift(); d.State != api.DriftIgnored || d.Count != 1 || len(d.Paths) != 1 || d.Paths[0].ValueInMember != want {
				t.Errorf("after %q it is remembered as %+v", want, d)
			}
		}
		a.edit(`{"data":{"key":"sent"}}`)
		synctest.Wait()
		if d := a.drift(); d.State != api.DriftEnded {
			t.Errorf("once it is as in Git it is remembered as %+v", d)
		}
		if n := hook.applies(); n > 1 { // the first write gives up the ownership of the field
			t.Errorf("it was written %d times", n)
		}
		a.stop()
	})
}

// While the drift of an object is held or reported, each further change of it is recorded within
// seconds, although a second write of the same fields under gitfleet's own field manager leaves
// the ownership of all fields as it was.
func TestFurtherChangesOfHeldObjectsAreRecorded(t *testing.T) {
	for _, mode := range []api.DriftMode{api.DriftPropose, api.DriftReport} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hook, direct, a := newMutated(t)
				a.mode = mode
				a.start()
				hook.applies()
				for _, want := range []string{"one", "two", "three"} {
					a.applyAs(direct, want)
					time.Sleep(time.Minute)
					synctest.Wait()
					if d := a.drift(); d.State != api.DriftHeld || d.Count != 1 || len(d.Paths) != 1 || d.Paths[0].ValueInMember != want {
						t.Errorf("after %q it is recorded as %+v", want, d)
					}
				}
				a.applyAs(direct, "sent")
				time.Sleep(time.Minute)
				synctest.Wait()
				if d := a.drift(); d.State != api.DriftEnded {
					t.Errorf("once it is as in Git it is recorded as %+v", d)
				}
				a.stop()
			})
		})
	}
}

// A check that is requested while the agent is still connecting compares values as well, which
// no watch event would cause.
func TestCheckWhileConnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, direct, a := startMutated(t)
		for range 10 { // the check may be received before or after the works
			a.stop()
			a.tamper(direct)
			a.checkFirst = true
			a.start()
			expectSent(t, direct)
		}
		a.stop()
	})
}

// A change of a suspended object under our own name is reported and not reverted; after resume
// it is reverted.
func TestApplyUnderOurFieldManagerWhileSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook, direct, a := startMutated(t)
		suspended := a.work()
		suspended.Suspended = "suspended by jo: INC-1"
		a.Set([]*work.Work{suspended})
		synctest.Wait()
		hook.applies()
		a.tamper(direct)
		synctest.Wait()
		a.mu.Lock()
		seen := a.seen
		a.mu.Unlock()
		if len(seen.Exceptions) != 1 || len(seen.Exceptions[0].Diffs) != 1 || seen.Exceptions[0].Diffs[0].Path != "/data/key" {
			t.Errorf("it is reported as %+v", seen.Exceptions)
		}
		if n := hook.applies(); n != 0 {
			t.Errorf("it was written %d times", n)
		}
		a.Set([]*work.Work{a.work()})
		synctest.Wait()
		if d := a.drift(); d.State != api.DriftRepaired || hook.applies() != 1 {
			t.Errorf("afterwards it is remembered as %+v", d)
		}
		a.stop()
	})
}

// A preview compares values as an agent does, and writes nothing.
func TestPreviewComparesValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook, direct, a := startMutated(t)
		a.stop()
		hook.applies()
		wanted := a.work()
		expect := func(when, want string) {
			t.Helper()
			p, _, err := member.Peek(t.Context(), member.Config{
				Name: "east", Fleet: "prod", Encoder: apply.NewEncoder("prod", "https://git.example.com/fleet"),
				Connect: func(context.Context) (*rest.Config, error) { return a.config, nil }, Log: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			changes, err := p.Changes(t.Context(), []*work.Work{wanted})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range changes {
				for _, d := range c.Diffs {
					got = append(got, fmt.Sprintf("%s %s %q→%q %v", c.Effect, d.Path, d.ValueInHub, d.ValueInMember, d.By))
				}
			}
			if text := strings.Join(got, "; "); text != want {
				t.Errorf("%s: %s\nwant: %s", when, text, want)
			}
		}
		expect("as applied", "")
		a.tamper(direct)
		expect("changed under our name", `change /data/key "sent"→"tampered" [gitfleet (Apply)]`)
		hook.mutate(func() string { return "tampered" })
		expect("changed by a webhook", `alter /data/key "sent"→"tampered" []`)
		hook.mutate(nil)
		o := wanted.Manifests[0].Object
		o.Hash = "h2"
		o.Content.Object["data"] = map[string]any{"key": "new"}
		expect("changed in Git", `change /data/key "new"→"tampered" []`)
		if n := hook.applies(); n != 0 {
			t.Errorf("it was written %d times", n)
		}
	})
}
