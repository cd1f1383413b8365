package history

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// Read calls each with the selected entries, oldest first, until each returns an error. Entries that were added after newer
// ones, such as restored ones, are sorted in by their time. Invalid lines are skipped. Read does not wait for writers, and may
// miss entries that are written meanwhile.
func (r *Record) Read(ctx context.Context, f Filter, each func(Entry) error) error {
	if f.Newest > 0 {
		return r.newest(ctx, f, each)
	}
	all, err := r.segments.list()
	if err != nil {
		return err
	}
	// The history may be larger than the memory, and nearly all of it is in order: only the rest is kept.
	var late []Entry
	inOrder := func(visit, behind func(Entry) error) error {
		var newest time.Time
		for _, s := range all {
			err := r.segments.read(ctx, s, f, func(e Entry) error {
				if e.Time.Before(newest) {
					return behind(e)
				}
				newest = e.Time
				return visit(e)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	skip := func(Entry) error { return nil }
	if err := inOrder(skip, func(e Entry) error { late = append(late, e); return nil }); err != nil {
		return err
	}
	slices.SortStableFunc(late, func(a, b Entry) int { return a.Time.Compare(b.Time) })
	flush := func(before func(Entry) bool) error {
		for len(late) > 0 && before(late[0]) {
			if err := each(late[0]); err != nil {
				return err
			}
			late = late[1:]
		}
		return nil
	}
	err = inOrder(func(e Entry) error {
		if err := flush(func(l Entry) bool { return l.Time.Before(e.Time) }); err != nil {
			return err
		}
		return each(e)
	}, skip)
	if err != nil {
		return err
	}
	return flush(func(Entry) bool { return true })
}

// newest reads only the last selected entries. Unlike Read it parses the entries once, since it keeps so few of them that those
// which were added late can be sorted in at once.
func (r *Record) newest(ctx context.Context, f Filter, each func(Entry) error) error {
	all, err := r.segments.list()
	if err != nil {
		return err
	}
	var last []Entry
	for _, s := range all {
		err := r.segments.read(ctx, s, f, func(e Entry) error {
			if len(last) == f.Newest && e.Time.Before(last[0].Time) {
				return nil
			}
			at := len(last)
			for at > 0 && e.Time.Before(last[at-1].Time) {
				at--
			}
			last = slices.Insert(last, at, e)
			last = last[max(0, len(last)-f.Newest):]
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, e := range last {
		if err := each(e); err != nil {
			return err
		}
	}
	return nil
}

// read reads one segment up to what has been written so far.
func (s *segments) read(ctx context.Context, at segment, f Filter, each func(Entry) error) error {
	file, err := os.Open(s.path(at.number))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && !f.Since.IsZero() && info.ModTime().Before(f.Since) {
		return nil
	}
	in := bufio.NewReaderSize(io.LimitReader(file, at.size), 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		var e Entry
		if json.Unmarshal(line, &e) != nil || !f.Matches(e) {
			continue
		}
		if err := each(e); err != nil {
			return err
		}
	}
}
