package history

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config is what a record needs to know. Dir and Log must be set.
type Config struct {
	// Dir holds the record; it is made if it is not there.
	Dir string
	// MaxSize bounds, in bytes, what the directory holds; default 64 MiB.
	MaxSize int64
	Log     *slog.Logger
	Metrics *Metrics
}

// Metrics count what a record does. They belong to no registry until the caller
// registers them.
type Metrics struct {
	// Entries counts what was written, Dropped what was not.
	Entries, Dropped prometheus.Counter
}

// NewMetrics returns metrics that count from zero.
func NewMetrics() *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "gitfleet_history_" + name, Help: help})
	}
	return &Metrics{
		Entries: counter("entries_total", "Entries written to the history."),
		Dropped: counter("dropped_total", "Entries that were not written to the history, because there were too many at once or a write failed."),
	}
}

// Collectors returns all metrics, to be registered.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.Entries, m.Dropped}
}

// What waits to be written is bounded. Entries on objects are the most by far,
// so that they may not take all the room.
const (
	mostWaiting        = 1 << 16
	mostObjectsWaiting = mostWaiting / 2
)

// pace is the shortest time between two fsyncs.
const pace = time.Second

// A Record is safe for concurrent use. Entries are written as soon as there are
// any, and synced to the disk within a second: what the process wrote survives
// its own end, a crash of the machine may cost the last second.
type Record struct {
	cfg  Config
	wake chan struct{} // capacity one

	mu      sync.Mutex
	waiting []Entry
	dropped int // since it was last told

	segments *segments // only Run writes
	trouble  string    // what was last complained of; empty if that is over
}

// Open opens the record in a directory. What a crash left half written at its
// end is cut off. A directory that cannot be used is logged, and tried again
// with every entry: what has no use for a history must not end for want of one.
func Open(cfg Config) *Record {
	if cfg.MaxSize == 0 {
		cfg.MaxSize = 64 << 20
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics()
	}
	r := &Record{cfg: cfg, wake: make(chan struct{}, 1), segments: &segments{dir: cfg.Dir, most: cfg.MaxSize}}
	r.complain(r.segments.begun())
	return r
}

// Add has entries written, in this order. It never blocks: if too many wait, new
// ones are dropped, counted, and the record says so where they are missing. An
// entry without a time gets the present one.
func (r *Record) Add(entries ...Entry) {
	if len(entries) == 0 {
		return
	}
	now := time.Now()
	r.mu.Lock()
	for _, e := range entries {
		if e.Time.IsZero() {
			e.Time = now
		}
		if len(r.waiting) >= mostWaiting || e.Kind == Object && len(r.waiting) >= mostObjectsWaiting {
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

// take returns what waits, and how many were dropped.
func (r *Record) take() ([]Entry, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting, dropped := r.waiting, r.dropped
	r.waiting, r.dropped = nil, 0
	return waiting, dropped
}

// Run writes until ctx is done; by then all that was added before is written,
// and the record closed. A disk that refuses is logged, and no error: the fleet
// goes on without a history.
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
				sync.Reset(pace)
			}
		case <-sync.C:
			if due {
				r.complain(r.segments.sync())
			}
			due = false
		}
	}
}

// write writes what waits, and reports whether anything was written.
func (r *Record) write() bool {
	entries, dropped := r.take()
	lines := encode(entries)
	if dropped > 0 {
		lines = append(lines, encode([]Entry{{
			Time: time.Now(), Kind: Gap, Event: Dropped, Message: fmt.Sprintf("%d entries are missing here", dropped),
		}})...)
	}
	if len(lines) == 0 {
		return false
	}
	n, err := r.segments.append(lines)
	if err != nil {
		r.complain(err)
	}
	kept := min(bytes.Count(lines[:n], []byte{'\n'}), len(entries))
	missing := len(entries) - kept
	r.cfg.Metrics.Entries.Add(float64(kept))
	r.cfg.Metrics.Dropped.Add(float64(missing))
	if n < len(lines) {
		r.mu.Lock()
		r.dropped += dropped + missing
		r.mu.Unlock()
	}
	return n > 0
}

// encode writes a line for each entry.
func encode(entries []Entry) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, e := range entries {
		e.Time = e.Time.UTC().Truncate(time.Millisecond)
		if err := enc.Encode(&e); err != nil {
			panic("history: " + err.Error()) // there is nothing in an entry that cannot be written
		}
	}
	return b.Bytes()
}

// complain logs trouble when it begins or is another, and when it is over: a full
// disk is not to be filled with complaints.
func (r *Record) complain(err error) {
	switch {
	case err != nil && err.Error() != r.trouble:
		r.cfg.Log.Warn("the history cannot be written as it should; everything else goes on", "err", err)
		r.trouble = err.Error()
	case err == nil && r.trouble != "":
		r.cfg.Log.Info("the history can be written again")
		r.trouble = ""
	}
}
