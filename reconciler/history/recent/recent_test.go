package recent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/reconciler/history"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fakeObjects are objects in memory. writes has their names, in the order of writes.
type fakeObjects struct {
	mu       sync.Mutex
	values   map[string][]byte
	versions map[string]int
	writes   []string
	err      error // of everything, if it is not nil
}

func newFakeObjects() *fakeObjects {
	return &fakeObjects{values: map[string][]byte{}, versions: map[string]int{}}
}

var secrets = schema.GroupResource{Resource: "secrets"}

func (f *fakeObjects) Get(name string) ([]byte, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil || f.values[name] == nil {
		return nil, "", cmp.Or[error](f.err, apierrors.NewNotFound(secrets, name))
	}
	return bytes.Clone(f.values[name]), strconv.Itoa(f.versions[name]), nil
}

func (f *fakeObjects) Create(name string, value []byte) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil || f.values[name] != nil {
		return "", cmp.Or[error](f.err, apierrors.NewAlreadyExists(secrets, name))
	}
	return f.put(name, value), nil
}

func (f *fakeObjects) Update(name string, value []byte, version string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil || strconv.Itoa(f.versions[name]) != version {
		return "", cmp.Or[error](f.err, apierrors.NewConflict(secrets, name, errors.New("it was changed")))
	}
	return f.put(name, value), nil
}

func (f *fakeObjects) put(name string, value []byte) string {
	f.values[name] = value
	f.versions[name]++
	f.writes = append(f.writes, name)
	return strconv.Itoa(f.versions[name])
}

func (f *fakeObjects) Delete(string) error { return errors.New("nothing is deleted") }

func (f *fakeObjects) List() ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.values)), f.err
}

func (f *fakeObjects) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeObjects) written() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.writes
	f.writes = nil
	return all
}

// A leader runs a Store as the leading replica does, until end is called.
type leader struct {
	*Store
	restored []history.Entry
	end      func()
}

func lead(t *testing.T, objects *fakeObjects) *leader {
	t.Helper()
	l := &leader{Store: Open(objects, slog.New(slog.DiscardHandler))}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := l.Run(ctx, func(all []history.Entry) { l.restored = append(l.restored, all...) }); err != nil {
			t.Error(err)
		}
	}()
	l.end = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(l.end)
	synctest.Wait()
	return l
}

func revised(n int, placement string) history.Entry {
	return history.Entry{
		Time: noon.Add(time.Duration(n) * time.Second), Kind: history.Placement, Event: history.Revised, Placement: placement,
		Revision: fmt.Sprint(n), Commit: fmt.Sprintf("c%d", n), Author: "Ada <ada@example.com>", Subject: "Say " + fmt.Sprint(n),
	}
}

func suspended(n int) history.Entry {
	return history.Entry{Time: noon.Add(time.Duration(n) * time.Second), Kind: history.Action, Event: history.Suspended, Placement: "crp/web", By: "ada"}
}

// The next leader gets what the one before has recorded, also in its last seconds, in order of time, and what is recorded then is
// added to it.
func TestTheNextLeaderHasTheEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := newFakeObjects()
		first := lead(t, objects)
		first.Add(revised(1, "crp/web"), suspended(3), history.Entry{Time: noon, Kind: history.Object, Object: "ConfigMap/web/one"})
		time.Sleep(saveInterval)
		first.Add(revised(2, "crp/web"))
		first.end()
		second := lead(t, objects)
		want := []history.Entry{revised(1, "crp/web"), revised(2, "crp/web"), suspended(3)}
		if !slices.Equal(second.restored, want) {
			t.Errorf("the second has %+v", second.restored)
		}
		second.Add(suspended(4))
		second.end()
		if third := lead(t, objects); !slices.Equal(third.restored, append(want, suspended(4))) {
			t.Errorf("the third has %+v", third.restored)
		}
	})
}

// Only objects whose entries have changed are written, once for many entries in quick succession, and none while nothing happens.
func TestOnlyWhatHasChangedIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := newFakeObjects()
		l := lead(t, objects)
		l.Add(revised(1, "crp/web"), revised(1, "crp/api"), suspended(1))
		time.Sleep(2 * saveInterval)
		if got := objects.written(); len(got) != 3 {
			t.Errorf("at first it writes %q", got)
		}
		for n := range 100 {
			l.Add(suspended(100 + n))
			time.Sleep(saveInterval / 1000)
		}
		l.Add(suspended(100)) // once more
		time.Sleep(2 * saveInterval)
		if got := objects.written(); !slices.Equal(got, []string{"history-actions"}) {
			t.Errorf("for a burst it writes %q", got)
		}
		time.Sleep(time.Hour)
		if got := objects.written(); len(got) != 0 {
			t.Errorf("while nothing happens it writes %q", got)
		}
	})
}

// While the objects cannot be reached, entries wait, and nothing is lost. A leader that was deposed does not overwrite what the
// next one has written.
func TestErrorsLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := newFakeObjects()
		objects.fail(errors.New("etcd is away"))
		old := lead(t, objects)
		old.Add(suspended(1))
		time.Sleep(time.Minute)
		objects.fail(nil)
		time.Sleep(time.Minute)
		next := lead(t, objects)
		next.Add(suspended(2))
		time.Sleep(time.Minute)
		old.Add(suspended(3))
		time.Sleep(time.Minute)
		old.end()
		next.end()
		if got := lead(t, objects).restored; !slices.Equal(got, []history.Entry{suspended(1), suspended(2), suspended(3)}) {
			t.Errorf("it has %+v", got)
		}
	})
}

// However much happens, the newest entries of each placement are kept, and no object grows beyond its limit. What cannot be
// decoded is begun anew.
func TestShardsAreBounded(t *testing.T) {
	sh := &shard{}
	for n := range 100 {
		sh.add(revised(n, "crp/web"))
		sh.add(history.Entry{Time: noon.Add(time.Duration(n) * time.Second), Kind: history.Cluster, Event: history.Available, Placement: "crp/web", Cluster: "east", Revision: fmt.Sprint(n)})
	}
	sh.add(revised(7, "crp/api"))
	of := func(kind history.Kind, placement string) (found []history.Entry) {
		for _, e := range sh.entries {
			if e.Kind == kind && e.Placement == placement {
				found = append(found, e)
			}
		}
		return found
	}
	if web := of(history.Placement, "crp/web"); len(web) != 20 || web[0] != revised(80, "crp/web") || len(of(history.Cluster, "crp/web")) != 60 || len(of(history.Placement, "crp/api")) != 1 {
		t.Errorf("%d entries, of them %d revisions that begin with %+v", len(sh.entries), len(web), web[0])
	}
	for n := range 2000 {
		noise := make([]byte, 400)
		for i := range noise {
			noise[i] = byte('a' + rand.N(26))
		}
		sh.entries = append(sh.entries, history.Entry{Time: noon.Add(time.Hour + time.Duration(n)*time.Second), Kind: history.Action, Message: string(noise)})
	}
	newest := sh.entries[len(sh.entries)-1]
	raw, err := sh.encode()
	if err != nil || len(raw) > largestShard {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	again, err := decode(raw)
	if err != nil || len(again) < 100 || again[len(again)-1] != newest {
		t.Errorf("%d are left: %v", len(again), err)
	}
	if !slices.ContainsFunc(again, func(e history.Entry) bool { return e.Placement == "crp/api" }) || !slices.Contains(again, revised(99, "crp/web")) {
		t.Error("a placement to which little happened has lost its history")
	}
	if _, err := decode([]byte("no archive")); err == nil {
		t.Error("anything is decoded")
	}
}

// A record gets only what it does not have.
func TestMissing(t *testing.T) {
	dir := t.TempDir()
	record := history.Open(history.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	own := revised(1, "crp/web")
	own.Time = own.Time.Add(123456 * time.Nanosecond).In(time.FixedZone("x", 3600))
	record.Add(own)
	cancel()
	record.Run(ctx)
	got, err := Missing(t.Context(), []history.Entry{normalized(own), suspended(2)}, record)
	if err != nil || !slices.Equal(got, []history.Entry{suspended(2)}) {
		t.Errorf("%+v, %v", got, err)
	}
}
