package reconciler

import (
	"testing"
	"testing/synctest"
	"time"
)

// Memory is given back once after the last of some long loads, and not for short
// ones: a commit of one file leaves next to nothing.
func TestMemoryIsGivenBackAfterLongLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := 0
		c := newMemoryTrimmer(func() { times++ })
		defer c.stop()
		pass := func(want int) {
			t.Helper()
			time.Sleep(trimDelay + time.Second)
			synctest.Wait()
			if times != want {
				t.Fatalf("given back %d times, not %d", times, want)
			}
		}
		pass(0)
		c.after(longLoad / 2)
		pass(0)
		c.after(2 * longLoad)
		time.Sleep(trimDelay / 2)
		c.after(2 * longLoad)
		pass(1)
	})
}
