package history

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
)

// Read calls each with the selected entries, oldest first, until each returns an error. Invalid
// lines are skipped. Read does not wait for writers, and may miss entries that are written
// meanwhile.
func (r *Record) Read(ctx context.Context, f Filter, each func(Entry) error) error {
	if f.Newest > 0 {
		return r.newest(ctx, f, each)
	}
	all, err := r.segments.list()
	if err != nil {
		return err
	}
	for _, s := range all {
		if err := r.segments.read(ctx, s, f, each); err != nil {
			return err
		}
	}
	return nil
}

// newest reads only the last selected entries.
func (r *Record) newest(ctx context.Context, f Filter, each func(Entry) error) error {
	most := f.Newest
	f.Newest = 0
	var last []Entry
	err := r.Read(ctx, f, func(e Entry) error {
		last = append(last[max(0, len(last)+1-most):], e)
		return nil
	})
	if err != nil {
		return err
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
