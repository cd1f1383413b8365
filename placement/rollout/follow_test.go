package rollout

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A plan that follows another one after a change of one cluster is what Next makes of all clusters. It may only wake earlier.
func TestFollowIsNext(t *testing.T) {
	followed, settled := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			w.change()
			if rapid.Bool().Draw(t, "calm first") { // few plans are settled otherwise
				w.calm()
				w.turn()
				w.calm()
			}
			w.turn()
			p, before := Next(w.in), w.in.Now
			b := w.pick()
			if b == nil {
				continue
			}
			was := *b
			w.in.Now = w.in.Now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "later")) * time.Second)
			if !p.Wake.IsZero() && !w.in.Now.Before(p.Wake) {
				w.in.Now = before
			}
			w.changeOne(rapid.SampledFrom([]string{"seen", "seen", "seen", "written", "lose", "suspend", "unschedule"}).Draw(t, "what is seen"), b)
			in, want := w.in, Next(w.in)
			in.Targets = nil
			got, own, ok := p.Follow(in, was, *b)
			if !ok {
				continue
			}
			followed++
			if got.Settled {
				settled++
			}
			for _, a := range want.Assign {
				expected := own
				if a.Cluster != b.Cluster {
					expected = p.Assign[slices.IndexFunc(p.Assign, func(a2 Assignment) bool { return a2.Cluster == a.Cluster })]
				}
				if a != expected {
					t.Fatalf("the assignment is %+v, want %+v", expected, a)
				}
			}
			if want.Wake.IsZero() && got.Wake.IsZero() || !got.Wake.IsZero() && (want.Wake.IsZero() || !got.Wake.After(want.Wake)) {
				got.Wake = want.Wake
			}
			if want.Assign = nil; !reflect.DeepEqual(got, want) {
				t.Fatalf("after %+v has become %+v the plan is\n%+v\nwant\n%+v", was, *b, got, want)
			}
		}
	})
	t.Logf("%d plans followed another one, and %d of them were settled", followed, settled)
	if followed < 100 || settled < 10 {
		t.Errorf("only %d plans followed another one, and %d of them were settled", followed, settled)
	}
}
