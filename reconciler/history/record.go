package history

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config configures a record. Dir and Log must be set.
type Config struct {
	// Dir is the directory of the record; it is created if necessary.
	Dir string
	// MaxSize limits the size of the directory in bytes; the default is 64 MiB.
	MaxSize int64
	Log     *slog.Logger
	Metrics *Metrics
}

// Metrics count the entries of a record. The caller registers them.
type Metrics struct {
	// Entries counts written entries, and Dropped those that were dropped.
	Entries, Dropped prometheus.Counter
}

// NewMetrics returns new metrics, not registered.
func NewMetrics() *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "gitfleet_history_" + name, Help: help})
	}
	return &Metrics{
		Entries: counter("entries_total", "Entries written to the history."),
		Dropped: counter("dropped_total", "Entries that were not written to the history, because there were too many at once or a write failed."),
	}
}

// Collectors returns all metrics, for registration.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.Entries, m.Dropped}
}

// The limits of the queue. Most entries are about objects, and must not displace the others.
const (
	maxWaiting        = 1 << 16
	maxObjectsWaiting = maxWaiting / 2
)

// syncInterval is the minimum time between two fsyncs.
const syncInterval = time.Second

// A Record is safe for concurrent use. Entries are written at once and synced within a second:
// they survive the end of the process, but the last second may be lost if the machine crashes.
type Record struct {
	cfg  Config
	wake chan struct{} // capacity one

	mu      sync.Mutex
	waiting []Entry
	dropped int // number of dropped entries since the last entry about that

	segments    *segments    // only Run writes to it
	spare       []Entry      // memory for the next queue
	lines       bytes.Buffer // memory for what is written
	lastFailure string       // the failure that was logged last; empty if it is over
}

// Open opens the record in a directory. An incomplete line at its end, left by a crash, is cut
// off. If the directory cannot be used, that is logged and tried again with every entry, and
// the process continues without a history.
func Open(cfg Config) *Record {
	if cfg.MaxSize == 0 {
		cfg.MaxSize = 64 << 20
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics()
	}
	r := &Record{cfg: cfg, wake: make(chan struct{}, 1), segments: &segments{dir: cfg.Dir, maxSize: cfg.MaxSize}}
	r.logFailure(r.segments.openFirst())
	return r
}

// Add queues entries in this order. It never blocks: if the queue is full, entries are dropped
// and counted, and an entry about that takes their place in the record. An entry without a time
// gets the current one.
func (r *Record) Add(entries ...Entry) {
	if len(entries) == 0 {
		return
	}
	now := time.Now()
	r.mu.Lock()
	r.waiting = slices.Grow(r.waiting, len(entries))
	for _, e := range entries {
		if e.Time.IsZero() {
			e.Time = now
		}
		if len(r.waiting) >= maxWaiting || e.Kind == Object && len(r.waiting) >= maxObjectsWaiting {
			r.dropped++
			r.cfg.Metrics.Dropped.Inc()
			continue
		}
		r.waiting = append(r.waiting, e)
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// writeBatch is how many entries are encoded and written at once.
const writeBatch = 1 << 8

// restoreBatch is how many entries Restore queues at once.
const restoreBatch = 1 << 12

// Restore adds entries of any number without displacing others: it waits, while Run writes, until the queue has room for them. It
// returns an error if ctx is done before all are queued.
func (r *Record) Restore(ctx context.Context, entries []Entry) error {
	for batch := range slices.Chunk(entries, restoreBatch) {
		for !r.hasRoom(restoreBatch) {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * time.Millisecond):
			}
		}
		r.Add(batch...)
	}
	return nil
}

// hasRoom reports whether the queue takes n more entries of any kind.
func (r *Record) hasRoom(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)+n <= maxObjectsWaiting
}

// Run writes until ctx is done. When it returns, all entries added before are written and the
// record is closed. A write error is logged, not returned.
func (r *Record) Run(ctx context.Context) error {
	defer r.segments.close()
	sync := time.NewTimer(0)
	defer sync.Stop()
	due := false
	for {
		select {
		case <-ctx.Done():
			r.write()
			return nil
		case <-r.wake:
			if r.write() && !due {
				due = true
				sync.Reset(syncInterval)
			}
		case <-sync.C:
			if due {
				r.logFailure(r.segments.sync())
			}
			due = false
		}
	}
}

// write writes the queued entries, and reports whether there were any.
func (r *Record) write() bool {
	r.mu.Lock()
	entries, dropped := r.waiting, r.dropped
	r.waiting, r.dropped = r.spare, 0
	r.mu.Unlock()
	kept := 0
	for batch := range slices.Chunk(entries, writeBatch) {
		kept += r.append(batch)
	}
	missing := len(entries) - kept
	r.cfg.Metrics.Entries.Add(float64(kept))
	r.cfg.Metrics.Dropped.Add(float64(missing))
	written := kept > 0
	if dropped > 0 && r.append([]Entry{{Time: time.Now(), Kind: Gap, Event: Dropped, Message: fmt.Sprintf("%d entries are missing here", dropped)}}) > 0 {
		written, dropped = true, 0
	}
	if missing += dropped; missing > 0 {
		r.mu.Lock()
		r.dropped += missing
		r.mu.Unlock()
	}
	if r.spare = nil; cap(entries) <= 4*writeBatch {
		clear(entries)
		r.spare = entries[:0]
	}
	return written
}

// append appends entries to the segments, and returns how many are written.
func (r *Record) append(entries []Entry) (written int) {
	r.lines.Reset()
	encode(&r.lines, entries)
	n, err := r.segments.append(r.lines.Bytes())
	if err != nil {
		r.logFailure(err)
	}
	return bytes.Count(r.lines.Bytes()[:n], []byte{'\n'})
}

// encode writes a line for each entry.
func encode(to *bytes.Buffer, entries []Entry) {
	enc, e := json.NewEncoder(to), Entry{} // e escapes, so that there is one for all
	for _, e = range entries {
		e.Time = e.Time.UTC().Truncate(time.Millisecond)
		if err := enc.Encode(&e); err != nil {
			panic("history: " + err.Error()) // encoding an entry cannot fail
		}
	}
}

// logFailure logs a failure only when it begins, changes or ends, since log lines must not fill
// up a disk that is full.
func (r *Record) logFailure(err error) {
	switch {
	case err != nil && err.Error() != r.lastFailure:
		r.cfg.Log.Warn("history cannot be written; continuing without it", "err", err)
		r.lastFailure = err.Error()
	case err == nil && r.lastFailure != "":
		r.cfg.Log.Info("the history can be written again")
		r.lastFailure = ""
	}
}
