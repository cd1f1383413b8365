// Package recent keeps the newest entries of the history where every replica can read them, beside the shared ledger.
//
// The leader writes them, and the next leader adds those that its own record does not have. They are a part of the history
// only: its newest revisions with their clusters, commits, and what users asked for. Nothing is decided by them.
package recent

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
)

// shardCount is the number of objects with entries about placements. What happens to one placement changes one of them.
const shardCount = 16

// saveInterval is the minimum time between two writes of a shard: a rollout has many entries in quick succession.
const saveInterval = 5 * time.Second

// maxWaiting limits the entries that were not taken into a shard yet. Of more, the oldest are dropped.
const maxWaiting = 10_000

// A Store has the entries in objects of its own. It is safe for concurrent use.
type Store struct {
	objects ledger.Objects
	log     *slog.Logger
	wake    chan struct{} // capacity one

	mu      sync.Mutex
	waiting []history.Entry

	// shards, by name, belong to Run.
	shards map[string]*shard
}

// Open returns the store on the objects of a shared ledger. It sends no request.
func Open(objects ledger.Objects, log *slog.Logger) *Store {
	return &Store{objects: objects, log: log, wake: make(chan struct{}, 1)}
}

// Add queues entries, which must have a time. It never blocks. Entries of no lasting interest, such as those about objects, are
// left out.
func (s *Store) Add(entries ...history.Entry) {
	s.mu.Lock()
	before := len(s.waiting)
	for _, e := range entries {
		if rooms[e.Kind] > 0 {
			s.waiting = append(s.waiting, normalized(e))
		}
	}
	added := len(s.waiting) > before
	s.waiting = s.waiting[max(0, len(s.waiting)-maxWaiting):]
	s.mu.Unlock()
	if added {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// Run reads the entries of earlier leaders, calls restored once with all of them, by time, and saves those that are added, until
// ctx is done. It is called on the leader only. If entries cannot be read or written, that is logged and tried again.
func (s *Store) Run(ctx context.Context, restored func([]history.Entry)) error {
	s.shards = nil
	var failing string
	fail := func(err error) {
		switch {
		case err != nil && err.Error() != failing:
			s.log.Warn("the history that replicas share cannot be read or written; trying again", "err", err)
			failing = err.Error()
		case err == nil && failing != "":
			s.log.Info("the history that replicas share can be written again")
			failing = ""
		}
	}
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			if s.shards != nil {
				_ = s.save() // which fails if another replica leads already
			}
			return nil
		case <-pause.C:
		}
		if s.shards == nil {
			err := s.load()
			if fail(err); err != nil {
				pause.Reset(saveInterval)
				continue
			}
			restored(s.entries())
		}
		err := s.save()
		if fail(err); err == nil {
			select {
			case <-ctx.Done():
			case <-s.wake:
			}
		}
		pause.Reset(saveInterval)
	}
}

// load reads all shards.
func (s *Store) load() error {
	names, err := s.objects.List()
	if err != nil {
		return fmt.Errorf("list it: %w", err)
	}
	shards := map[string]*shard{}
	for _, name := range names {
		if !isShard(name) {
			continue
		}
		if shards[name], err = s.read(name); err != nil {
			return err
		}
	}
	s.shards = shards
	return nil
}

// read reads a shard. One that does not exist, or that cannot be decoded, is empty.
func (s *Store) read(name string) (*shard, error) {
	raw, version, err := s.objects.Get(name)
	if apierrors.IsNotFound(err) {
		return &shard{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	entries, err := decode(raw)
	if err != nil {
		s.log.Warn("a part of the history that replicas share cannot be read, and is begun anew", "name", name, "err", err)
	}
	return &shard{entries: entries, version: version}, nil
}

// entries returns the entries of all shards, by time.
func (s *Store) entries() []history.Entry {
	var all []history.Entry
	for _, sh := range s.shards {
		all = append(all, sh.entries...)
	}
	slices.SortStableFunc(all, func(a, b history.Entry) int { return a.Time.Compare(b.Time) })
	return all
}

// save takes the waiting entries into their shards, and writes the shards that have changed.
func (s *Store) save() error {
	s.mu.Lock()
	waiting := s.waiting
	s.waiting = nil
	s.mu.Unlock()
	for _, e := range waiting {
		name := shardOf(e)
		if s.shards[name] == nil {
			s.shards[name] = &shard{}
		}
		s.shards[name].add(e)
	}
	var failed []error
	for _, name := range slices.Sorted(maps.Keys(s.shards)) {
		sh := s.shards[name]
		if !sh.changed {
			continue
		}
		if err := s.write(name, sh); err != nil {
			failed = append(failed, err)
			if !isConflict(err) {
				break // the others would most likely fail, too, each after its own time limit
			}
		}
	}
	return errors.Join(failed...)
}

// isConflict reports whether a write was refused because another replica has written the shard.
func isConflict(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// write writes a shard. If another replica has written it meanwhile, the shard gets what that one has added, and is written with
// the next save.
func (s *Store) write(name string, sh *shard) error {
	raw, err := sh.encode()
	if err != nil {
		return err
	}
	version := ""
	if sh.version == "" {
		version, err = s.objects.Create(name, raw)
	} else {
		version, err = s.objects.Update(name, raw, sh.version)
	}
	if err == nil {
		sh.version, sh.changed = version, false
		return nil
	}
	err = fmt.Errorf("write %s: %w", name, err)
	if !isConflict(err) {
		return err
	}
	now, failed := s.read(name)
	if failed != nil {
		return errors.Join(err, failed)
	}
	for _, e := range sh.entries {
		now.add(e)
	}
	now.changed = true
	s.shards[name] = now
	return err
}

// Missing returns the entries that a record does not have.
func Missing(ctx context.Context, entries []history.Entry, record *history.Record) ([]history.Entry, error) {
	missing := map[history.Entry]bool{}
	for _, e := range entries {
		missing[e] = true
	}
	err := record.Read(ctx, history.Filter{}, func(e history.Entry) error {
		delete(missing, normalized(e))
		return nil
	})
	return slices.DeleteFunc(slices.Clone(entries), func(e history.Entry) bool { return !missing[e] }), err
}

// shardOf returns the name of the shard of an entry.
func shardOf(e history.Entry) string {
	if e.Kind != history.Placement && e.Kind != history.Cluster {
		return prefix + "actions"
	}
	h := fnv.New32a()
	h.Write([]byte(e.Placement))
	return fmt.Sprintf("%s%d", prefix, h.Sum32()%shardCount)
}
