package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// segmentCount is the number of segments of a record of full size.
const segmentCount = 8

// segments are the files of a record, NUMBER.jsonl. Only the last one is written. The first one
// is removed when the total size is too large.
type segments struct {
	dir     string
	maxSize int64 // limit of the total size in bytes

	mu     sync.Mutex // guards the fields below
	sizes  []segment  // the oldest first
	last   *os.File   // nil while the directory cannot be used
	closed error      // why it cannot be used
}

type segment struct {
	number int
	size   int64
}

func (s *segments) path(number int) string {
	return filepath.Join(s.dir, fmt.Sprintf("%08d.jsonl", number))
}

// open opens the existing segments, and starts a new one. The caller holds the lock.
func (s *segments) open() error {
	if s.last != nil {
		return nil
	}
	s.sizes = nil
	if s.closed = s.find(); s.closed == nil && len(s.sizes) == 0 {
		s.closed = s.create()
	} else if s.closed == nil {
		s.closed = s.openLast()
	}
	return s.closed
}

// openFirst opens the segments for the first time, and removes the oldest beyond the limit.
func (s *segments) openFirst() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return err
	}
	return s.trim()
}

func (s *segments) find() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		var number int
		if _, err := fmt.Sscanf(f.Name(), "%08d.jsonl", &number); err != nil || s.path(number) != filepath.Join(s.dir, f.Name()) {
			continue // not a segment
		}
		info, err := f.Info()
		if err != nil {
			return err
		}
		s.sizes = append(s.sizes, segment{number, info.Size()})
	}
	slices.SortFunc(s.sizes, func(a, b segment) int { return a.number - b.number })
	return nil
}

// openLast opens the last segment and cuts off a partial line.
func (s *segments) openLast() error {
	at := &s.sizes[len(s.sizes)-1]
	f, err := os.OpenFile(s.path(at.number), os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	whole, err := wholeLines(f)
	if err == nil && whole < at.size {
		err = f.Truncate(whole)
	}
	if err != nil {
		f.Close()
		return err
	}
	at.size, s.last = whole, f
	return nil
}

// wholeLines is the offset after the last complete line of a file that is read from its start.
func wholeLines(f io.Reader) (offset int64, err error) {
	for in := bufio.NewReader(f); ; {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return offset, nil
		}
		if err != nil {
			return 0, err
		}
		offset += int64(len(line))
	}
}

// create creates a new last segment.
func (s *segments) create() error {
	number := 1
	if n := len(s.sizes); n > 0 {
		number = s.sizes[n-1].number + 1
	}
	f, err := os.OpenFile(s.path(number), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	s.last, s.sizes = f, append(s.sizes, segment{number: number})
	return nil
}

// append appends complete lines, and returns how many bytes of them are written: none, or as
// many complete lines as possible. It may return an error even if all lines are written.
func (s *segments) append(lines []byte) (written int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return 0, err
	}
	for written < len(lines) {
		at := &s.sizes[len(s.sizes)-1]
		if at.size >= s.maxSize/segmentCount {
			if err := s.rotate(); err != nil {
				return written, err
			}
			continue
		}
		part := linesWithin(lines[written:], s.maxSize/segmentCount-at.size)
		if n, err := s.last.Write(part); err != nil {
			if n > 0 {
				err = errors.Join(err, s.last.Truncate(at.size))
			}
			return written, err
		}
		at.size += int64(len(part))
		written += len(part)
	}
	return written, s.trim()
}

// linesWithin returns the lines that fit into room bytes.
func linesWithin(lines []byte, room int64) []byte {
	if room >= int64(len(lines)) {
		return lines
	}
	return lines[:int(room)+bytes.IndexByte(lines[room:], '\n')+1]
}

// rotate starts a new segment; if it cannot, the last one stays.
func (s *segments) rotate() error {
	full := s.last
	if err := s.create(); err != nil {
		return err
	}
	return errors.Join(full.Sync(), full.Close())
}

// trim removes the oldest segments until the total size is within the limit. If that fails,
// entries are still written and read.
func (s *segments) trim() error {
	total := int64(0)
	for _, at := range s.sizes {
		total += at.size
	}
	for len(s.sizes) > 1 && total > s.maxSize {
		if err := os.Remove(s.path(s.sizes[0].number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("it grows beyond its size, as its oldest part cannot be removed: %w", err)
		}
		total -= s.sizes[0].size
		s.sizes = s.sizes[1:]
	}
	return nil
}

func (s *segments) sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return s.closed
	}
	return errors.Join(s.last.Sync(), s.trim())
}

func (s *segments) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return nil
	}
	return errors.Join(s.last.Sync(), s.last.Close())
}

// list returns the existing segments, the oldest first.
func (s *segments) list() ([]segment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sizes), s.closed
}
