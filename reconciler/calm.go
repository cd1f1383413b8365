package reconciler

import (
	"runtime"
	"runtime/debug"
	"time"
)

const (
	// longLoad is how long a load takes that makes much more garbage than what
	// comes after it.
	longLoad = 500 * time.Millisecond
	// calmAfter is the time that what comes of a load has to be done.
	calmAfter = 5 * time.Second
)

// A calm gives memory back to the machine when a long load is over. By itself
// the heap would stay about as large as it was at the worst moment of the load,
// for as long as nothing else happens.
type calm struct{ timer *time.Timer }

func newCalm(giveBack func()) *calm {
	c := &calm{time.AfterFunc(calmAfter, giveBack)}
	c.timer.Stop()
	return c
}

// after notes how long a load took. Any goroutine may call it.
func (c *calm) after(took time.Duration) {
	if took > longLoad {
		c.timer.Reset(calmAfter)
	}
}

func (c *calm) stop() { c.timer.Stop() }

// freeMemory returns unused memory to the operating system. A sync.Pool gives up its
// buffers only at the second collection in a row.
func freeMemory() {
	runtime.GC()
	debug.FreeOSMemory()
}
