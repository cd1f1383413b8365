package reconciler

import (
	"runtime"
	"runtime/debug"
	"time"
)

const (
	// longLoad is the duration of a load that leaves much more garbage than the turns after it.
	longLoad = 500 * time.Millisecond
	// trimDelay is the time for the turns that follow a load.
	trimDelay = 5 * time.Second
)

// A memoryTrimmer returns memory to the operating system after a long load. Otherwise the heap
// stays about as large as at the peak of the load until something else happens.
type memoryTrimmer struct{ timer *time.Timer }

func newMemoryTrimmer(giveBack func()) *memoryTrimmer {
	c := &memoryTrimmer{time.AfterFunc(trimDelay, giveBack)}
	c.timer.Stop()
	return c
}

// after records how long a load took. It may be called concurrently.
func (c *memoryTrimmer) after(took time.Duration) {
	if took > longLoad {
		c.timer.Reset(trimDelay)
	}
}

func (c *memoryTrimmer) stop() { c.timer.Stop() }

// freeMemory returns unused memory to the operating system. A sync.Pool gives up its
// buffers only at the second collection in a row.
func freeMemory() {
	runtime.GC()
	debug.FreeOSMemory()
}
