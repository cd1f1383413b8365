package plan

import (
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
)

// The lag of a cluster counts the changes of its content that it has not applied, since the time
// of the first of them.
func TestLag(t *testing.T) {
	s := newScene(t)
	web := api.PlacementKey{Name: "web"}
	const fleet = "clusters east west\nnamespace web\nplace web unavailable 1\n"
	lag := func(cluster string) Lag {
		t.Helper()
		for p := range s.resolve().Placements.Values() {
			if p.Key == web {
				return p.Lag(p.On(cluster))
			}
		}
		t.Fatal("there is no placement web")
		return Lag{}
	}
	expect := func(when, cluster string, want Lag) {
		t.Helper()
		got := lag(cluster)
		if got.Commits != want.Commits || !got.Since.Equal(want.Since) {
			t.Errorf("%s %s is behind by %+v, want %+v", when, cluster, got, want)
		}
	}
	s.commit("v1", nil, []byte(fleet))
	s.do([]string{"seen", "east", "west"})
	first := s.in.Now
	expect("at first", "east", Lag{1, first})
	s.do([]string{"done"})
	expect("once it is applied,", "east", Lag{})

	s.in.Now = s.in.Now.Add(time.Hour)
	second := s.in.Now
	s.commit("v2", nil, []byte(fleet+"configmap web/a\n"))
	expect("after a commit", "west", Lag{1, second})
	s.in.Now = s.in.Now.Add(time.Hour)
	s.commit("other", nil, []byte(fleet+"configmap web/a\nnamespace other\n"))
	expect("after an unrelated commit", "west", Lag{1, second})
	s.commit("v3", nil, []byte(fleet+"configmap web/b\n"))
	expect("after a second commit", "west", Lag{2, second})

	s.do([]string{"restart"})
	s.do([]string{"load", "v1"})
	s.do([]string{"load", "v2"})
	expect("after a restart", "west", Lag{2, second})
	for range 3 {
		s.resolve()
		s.do([]string{"done"})
		s.do([]string{"wait", "1m"}) // an object that cannot be tracked counts as available after that time
	}
	expect("in the end", "east", Lag{})
	expect("in the end", "west", Lag{})

	s.in.Now = s.in.Now.Add(time.Hour)
	s.do([]string{"freeze"})
	frozen := s.in.Now
	s.commit("v3 frozen", nil, []byte(fleet+"configmap web/c\n"))
	expect("while it is frozen,", "west", Lag{1, frozen})
	s.in.Now = s.in.Now.Add(100 * time.Hour)
	s.do([]string{"unfreeze"})
	free := s.in.Now
	expect("after a long freeze,", "west", Lag{1, free})
	expect("still", "west", Lag{1, free})
	s.in.Now = s.in.Now.Add(time.Hour)
	s.commit("reverted", nil, []byte(fleet+"configmap web/b\n"))
	expect("after a revert,", "west", Lag{})
	for range 2 {
		s.resolve()
		s.do([]string{"done"})
		s.do([]string{"wait", "1m"})
	}
	s.in.Now = s.in.Now.Add(100 * time.Hour)
	again := s.in.Now
	s.commit("v3 again", nil, []byte(fleet+"configmap web/c\n"))
	expect("when other content comes long after a revert,", "west", Lag{1, again})
	s.commit("reverted again", nil, []byte(fleet+"configmap web/b\n"))
	for range 3 {
		s.resolve()
		s.do([]string{"done"})
		s.do([]string{"wait", "1m"})
	}

	s.in.Now = s.in.Now.Add(time.Hour)
	s.commit("v4", nil, []byte("clusters east north west\nnamespace web\nplace web unavailable 1\nconfigmap web/b\n"))
	s.do([]string{"seen", "north"})
	expect("a new cluster", "north", Lag{1, s.in.Now})
}

// The wait for a window does not count as lag, and that is planned again when the window opens and closes, also if the content waits for
// an update run or for another stage as well.
func TestLagCountsWhileAWindowIsOpen(t *testing.T) {
	const fleet = "clusters a/env=canary b/env=prod\nnamespace web\nstrategy careful canary/env=canary/after prod/env=prod\n" + `window fridays "5 12 * * 5" 10m Stop` + "\n"
	for name, run := range map[string]string{"without a run": "", "of another stage": "run web-1 of web by careful\n"} {
		s := newScene(t)
		s.commit("v1", nil, []byte(fleet+"configmap web/one old\nplace web\n"))
		s.do([]string{"seen", "a", "b"})
		s.in.Now = noon.Add(6 * time.Minute) // the window is open
		for range 3 {
			s.resolve()
			s.do([]string{"done"})
			s.do([]string{"wait", "1m"})
		}
		s.in.Now = noon.Add(20 * time.Minute)
		s.commit("v2", nil, []byte(fleet+"configmap web/one new\nplace web external\n"+run))
		opens, closes := noon.Add(7*24*time.Hour+5*time.Minute), noon.Add(7*24*time.Hour+15*time.Minute)
		for _, step := range []struct {
			at, wake time.Time
			held     bool
		}{{s.in.Now, opens, true}, {opens, closes, false}, {closes, opens.Add(7 * 24 * time.Hour), true}} {
			s.in.Now = step.at
			pl := s.resolve().Placements.At(0)
			if wake, b := pl.Rollout.Wake, pl.On("b").Binding; wake.IsZero() || wake.After(step.wake) || b.Deferred != step.held {
				t.Errorf("%s, at %s: planned again at %s, want %s at the latest; the wait does not count: %t, want %t", name, step.at, wake, step.wake, b.Deferred, step.held)
			}
		}
	}
}
