package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A runningRecord is a record whose Run is running.
type runningRecord struct {
	*Record
	dir string
	log bytes.Buffer
	end func()
}

// open opens a record in a directory, which may have an earlier one.
func open(t *testing.T, dir string, most int64) *runningRecord {
	t.Helper()
	d := &runningRecord{dir: dir}
	r := Open(Config{Dir: dir, MaxSize: most, Log: slog.New(slog.NewTextHandler(&d.log, nil))})
	d.Record = r
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.Run(ctx); err != nil {
			t.Errorf("ended with %v", err)
		}
	}()
	d.end = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(d.end)
	return d
}

// entriesOf returns the entries of a record.
func entriesOf(t *testing.T, r *Record, f Filter) []Entry {
	t.Helper()
	var all []Entry
	if err := r.Read(t.Context(), f, func(e Entry) error { all = append(all, e); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func subjects(entries []Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Subject)
	}
	return strings.Join(all, " ")
}

// numbered returns entries about the commits with these numbers.
func numbered(from, to int) []Entry {
	var all []Entry
	for i := from; i < to; i++ {
		all = append(all, Entry{Time: noon.Add(time.Duration(i) * time.Second), Kind: Commit, Event: InForce, Subject: fmt.Sprint(i)})
	}
	return all
}

// After a restart, all earlier entries are there in their order, and new entries follow them.
func TestRecordSurvivesARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "history")
	whole := Entry{
		Time: noon, Kind: Object, Event: Repaired, Commit: "c0ffee", Author: "Ada <ada@example.com>", Subject: "0",
		Placement: "crp/web", Revision: "3", Cluster: "east", Object: "ConfigMap/web/one", By: "kubectl-edit", Message: "a\nb \"c\" <d>",
	}
	first := open(t, dir, 1<<20)
	first.Add(whole)
	first.Add(numbered(1, 4)...)
	first.end()
	second := open(t, dir, 1<<20)
	second.Add(numbered(4, 6)...)
	second.end()
	got := entriesOf(t, second.Record, Filter{})
	if subjects(got) != "0 1 2 3 4 5" || got[0] != whole {
		t.Errorf("got %+v", got)
	}
}

// A line that is incomplete after a crash is removed, and the next entry begins on a new line.
// A line that cannot be decoded is skipped.
func TestIncompleteLinesAreRemoved(t *testing.T) {
	for name, torn := range map[string]string{
		"nothing":      "",
		"half a line":  `{"time":"2026-03-01T12:00:00Z","kind":"com`,
		"a whole one":  "{}\n" + `{"ti`,
		"no JSON":      "@@@@\n",
		"only a break": "\n",
		"a large half": strings.Repeat("x", 200<<10),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			before := open(t, dir, 8<<20)
			before.Add(numbered(0, 3)...)
			before.end()
			f, err := os.OpenFile(filepath.Join(dir, "00000001.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			f.WriteString(torn)
			f.Close()
			after := open(t, dir, 8<<20)
			after.Add(numbered(3, 5)...)
			after.end()
			if got := strings.Fields(subjects(entriesOf(t, after.Record, Filter{}))); !slices.Equal(got, []string{"0", "1", "2", "3", "4"}) {
				t.Errorf("got %s", got)
			}
		})
	}
}

// However many entries are added, the directory stays within its limit, and the remaining
// entries are the newest ones without a gap. Other files in it are not touched.
func TestRecordIsBounded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		os.WriteFile(filepath.Join(dir, "readme.txt"), nil, 0o600)
		most := int64(rapid.IntRange(2_000, 6_000).Draw(rt, "most"))
		n := 0
		for range rapid.IntRange(1, 3).Draw(rt, "processes") {
			s := &segments{dir: dir, maxSize: most}
			for range rapid.IntRange(0, 15).Draw(rt, "batches") {
				more := rapid.IntRange(1, 10).Draw(rt, "entries")
				var lines bytes.Buffer
				encode(&lines, numbered(n, n+more))
				if _, err := s.append(lines.Bytes()); err != nil {
					rt.Fatal(err)
				}
				n += more
				if size := sizeOf(rt, dir); size > most {
					rt.Fatalf("%d bytes, more than %d", size, most)
				}
			}
			s.close()
		}
		s := &segments{dir: dir, maxSize: most}
		if err := s.open(); err != nil {
			rt.Fatal(err)
		}
		defer s.close()
		got := entriesOf(t, &Record{segments: s}, Filter{})
		for i, e := range got {
			if want := fmt.Sprint(n - len(got) + i); e.Subject != want {
				rt.Fatalf("entry %d of %d is %s, want %s", i, len(got), e.Subject, want)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "readme.txt")); err != nil || n > 0 && len(got) < min(n, int(most)/300) {
			rt.Fatalf("%d of %d are left (%v)", len(got), n, err)
		}
	})
}

func sizeOf(t *rapid.T, dir string) (sum int64) {
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
	}
	return sum
}

// Add never blocks. Entries that do not fit into the queue are dropped, those about objects
// first, and counted. The record says where entries are missing.
func TestFullQueueDropsEntries(t *testing.T) {
	r := Open(Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	for range maxObjectsWaiting + 5 {
		r.Add(Entry{Time: noon, Kind: Object})
	}
	r.Add(numbered(0, maxObjectsWaiting+2)...)
	if n := counted(t, r.cfg.Metrics.Dropped); n != 7 {
		t.Errorf("%v were dropped, want 7", n)
	}
	r.write()
	got := entriesOf(t, r, Filter{})
	last := got[len(got)-1]
	if len(got) != maxWaiting+1 || last.Kind != Gap || last.Event != Dropped || !strings.HasPrefix(last.Message, "7 ") {
		t.Errorf("%d entries, the last %+v", len(got), last)
	}
	r.Add(Entry{Time: noon, Kind: Object})
	r.write()
	if got := entriesOf(t, r, Filter{Kind: Gap}); len(got) != 1 {
		t.Errorf("%d gaps", len(got))
	}
}

// An error of the disk costs entries and nothing else. Once it is over, the record says how
// many are missing.
func TestWriteErrorsDropEntries(t *testing.T) {
	d := &runningRecord{}
	r := Open(Config{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&d.log, nil))})
	r.Add(numbered(0, 2)...)
	r.write()
	good := r.segments.last
	var err error
	if r.segments.last, err = os.Open(good.Name()); err != nil { // this file can only be read
		t.Fatal(err)
	}
	r.Add(numbered(2, 4)...)
	r.write()
	r.Add(numbered(4, 5)...)
	r.write()
	r.segments.last.Close()
	r.segments.last = good
	r.Add(numbered(5, 6)...)
	r.write()
	got := entriesOf(t, r, Filter{})
	if len(got) != 4 || got[2].Subject != "5" || got[3].Kind != Gap || !strings.HasPrefix(got[3].Message, "3 ") {
		t.Errorf("got %+v", got)
	}
	if n := counted(t, r.cfg.Metrics.Dropped); n != 3 || strings.Count(d.log.String(), "history cannot be written") != 1 {
		t.Errorf("%v dropped; log: %s", n, &d.log)
	}
}

// Every filter leaves out what it does not select, and the newest entries come last.
func TestFilters(t *testing.T) {
	d := open(t, t.TempDir(), 1<<20)
	d.Add(
		Entry{Time: noon, Kind: Commit, Subject: "a"},
		Entry{Time: noon.Add(1 * time.Minute), Kind: Cluster, Placement: "crp/web", Cluster: "east", Subject: "b"},
		Entry{Time: noon.Add(2 * time.Minute), Kind: Cluster, Placement: "crp/web-2", Cluster: "east", Subject: "c"},
		Entry{Time: noon.Add(3 * time.Minute), Kind: Object, Placement: "crp/web", Cluster: "west", Object: "ConfigMap/web/Front", Subject: "d"},
		Entry{Time: noon.Add(4 * time.Minute), Kind: Object, Placement: "crp/we<b", Cluster: "west", Object: "Secret/web/back", Subject: "e"},
	)
	d.end()
	for name, test := range map[string]struct {
		f    Filter
		want string
	}{
		"all":       {Filter{}, "a b c d e"},
		"kind":      {Filter{Kind: Object}, "d e"},
		"placement": {Filter{Placement: "crp/web"}, "b d"},
		"escaped":   {Filter{Placement: "crp/we<b"}, "e"},
		"cluster":   {Filter{Cluster: "east"}, "b c"},
		"object":    {Filter{Object: "web/front"}, "d"},
		"since":     {Filter{Since: noon.Add(2 * time.Minute)}, "c d e"},
		"until":     {Filter{Until: noon.Add(2 * time.Minute)}, "a b"},
		"newest":    {Filter{Newest: 2}, "d e"},
		"plenty":    {Filter{Newest: 50}, "a b c d e"},
		"both":      {Filter{Placement: "crp/web", Newest: 1}, "d"},
		"nothing":   {Filter{Cluster: "moon"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := subjects(entriesOf(t, d.Record, test.f)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	stop := errors.New("enough")
	if err := d.Read(t.Context(), Filter{Newest: 3}, func(Entry) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("reading ended with %v", err)
	}
}

// Many goroutines may add and read concurrently. Each finds its entries complete and in order,
// also while segments are created and removed.
func TestConcurrentUse(t *testing.T) {
	d := open(t, t.TempDir(), 64<<20)
	var all sync.WaitGroup
	for who := range 4 {
		all.Go(func() {
			for i := range 500 {
				d.Add(Entry{Kind: Object, Cluster: fmt.Sprint(who), Message: fmt.Sprint(i)})
				if i%100 == 0 {
					d.Read(context.Background(), Filter{Cluster: fmt.Sprint(who)}, func(Entry) error { return nil })
				}
			}
		})
	}
	all.Wait()
	d.end()
	for who := range 4 {
		got := entriesOf(t, d.Record, Filter{Cluster: fmt.Sprint(who)})
		if len(got) != 500 {
			t.Errorf("%d entries of %d, want 500", len(got), who)
		}
		for i, e := range got {
			if e.Message != fmt.Sprint(i) || e.Time.IsZero() {
				t.Fatalf("entry %d of %d is %+v", i, who, e)
			}
		}
	}
}

// A directory that cannot be used is logged once and is not fatal. Once it can be used, the
// record begins, and says how many entries are missing.
func TestUnusableDirectory(t *testing.T) {
	d := &runningRecord{dir: filepath.Join(t.TempDir(), "history")}
	os.WriteFile(d.dir, nil, 0o600) // a file with the name of the directory
	r := Open(Config{Dir: d.dir, Log: slog.New(slog.NewTextHandler(&d.log, nil))})
	r.Add(numbered(0, 2)...)
	r.write()
	if err := r.Read(t.Context(), Filter{}, nil); err == nil || !strings.Contains(err.Error(), d.dir) {
		t.Errorf("reading returned %v", err)
	}
	os.Remove(d.dir)
	r.Add(numbered(2, 3)...)
	r.write()
	r.logFailure(r.segments.sync())
	got := entriesOf(t, r, Filter{})
	if len(got) != 2 || got[0].Subject != "2" || got[1].Kind != Gap || !strings.HasPrefix(got[1].Message, "2 ") {
		t.Errorf("got %+v", got)
	}
	if text := d.log.String(); strings.Count(text, "cannot be written") != 1 || strings.Count(text, "can be written again") != 1 {
		t.Errorf("log: %s", text)
	}
}

// If no new segment can be created, entries are written to the last one until it can.
func TestFailedRotationKeepsTheSegment(t *testing.T) {
	dir := t.TempDir()
	r := Open(Config{Dir: dir, MaxSize: 800, Log: slog.New(slog.DiscardHandler)})
	inTheWay := filepath.Join(dir, "00000002.jsonl")
	if err := os.Mkdir(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		r.Add(numbered(i, i+1)...)
		r.write()
	}
	before := subjects(entriesOf(t, r, Filter{Kind: Commit}))
	os.Remove(inTheWay)
	r.Add(numbered(4, 5)...)
	r.write()
	if got := subjects(entriesOf(t, r, Filter{Kind: Commit})); got != before+" 4" {
		t.Errorf("%q before, %q after", before, got)
	}
	if got := entriesOf(t, r, Filter{Kind: Gap}); len(got) != 1 {
		t.Errorf("gaps: %+v", got)
	}
}

// If an old segment cannot be removed, entries are still read, and none of the written ones
// count as missing.
func TestSegmentThatCannotBeRemoved(t *testing.T) {
	d, old := &runningRecord{dir: t.TempDir()}, time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	stuck := filepath.Join(d.dir, "00000001.jsonl")
	err := errors.Join(os.MkdirAll(filepath.Join(stuck, "it"), 0o700), os.Chtimes(stuck, old, old), os.WriteFile(filepath.Join(d.dir, "00000002.jsonl"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	r := Open(Config{Dir: d.dir, MaxSize: 800, Log: slog.New(slog.NewTextHandler(&d.log, nil))})
	for i := range 3 {
		r.Add(numbered(i, i+1)...)
		r.write()
		r.logFailure(r.segments.sync())
	}
	if got := entriesOf(t, r, Filter{Since: old.Add(time.Hour)}); subjects(got) != "0 1 2" {
		t.Errorf("got %+v", got)
	}
	dropped, entries := counted(t, r.cfg.Metrics.Dropped), counted(t, r.cfg.Metrics.Entries)
	if text := d.log.String(); dropped != 0 || entries != 3 || strings.Count(text, "it grows beyond its size") != 1 || strings.Count(text, "written again") != 0 {
		t.Errorf("%v dropped of %v, log: %s", dropped, entries, text)
	}
	if err := errors.Join(os.RemoveAll(stuck), r.segments.sync()); err != nil {
		t.Error(err)
	}
}

// counted returns the value of a counter.
func counted(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%v, %v", families, err)
	}
	return families[0].GetMetric()[0].GetCounter().GetValue()
}
