package reconciler

import (
	"testing"
	"testing/synctest"
	"time"
)

// Memory is returned once after the last of several long loads, and not after short ones: a
// commit of one file leaves hardly any garbage.
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
