package reconciler

import (
	"runtime"
	"runtime/debug"
	"time"
)

const (
	// longLoad is the duration from which a load leaves much more garbage than the turns after
	// it.
	longLoad = 500 * time.Millisecond
	// trimDelay leaves time for the turns that follow a load.
	trimDelay = 5 * time.Second
)

// A memoryTrimmer returns memory to the operating system after the last of several long loads.
// Otherwise the heap keeps nearly the size of the peak.
type memoryTrimmer struct{ timer *time.Timer }

func newMemoryTrimmer(free func()) *memoryTrimmer {
	t := &memoryTrimmer{time.AfterFunc(trimDelay, free)}
	t.timer.Stop()
	return t
}

// after records how long a load took. It may be called concurrently.
func (t *memoryTrimmer) after(took time.Duration) {
	if took > longLoad {
		t.timer.Reset(trimDelay)
	}
}

// freeMemory returns unused memory to the operating system. A sync.Pool releases its buffers
// only at the second garbage collection in a row.
func freeMemory() {
	runtime.GC()
	debug.FreeOSMemory()
}
