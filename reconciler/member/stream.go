package member

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// openWatch begins a watch and returns its events, one in each line.
func (s *session) openWatch(ctx context.Context, k *kindWatch, version string) (io.ReadCloser, error) {
	accept := "application/json"
	if !k.full {
		accept = acceptMetadata
	}
	request := s.conn.rest.Get().AbsPath(k.res.collection()...).SetHeader("Accept", accept).
		Param("watch", "true").Param("labelSelector", selector).Param("allowWatchBookmarks", "true")
	if version != "" {
		request.Param("resourceVersion", version)
	}
	return request.Stream(ctx)
}

// decodeEvent reads one event of a watch. One that says that the watch is over
// is an error.
func (k *kindWatch) decodeEvent(line []byte) (watch.EventType, runtime.Object, error) {
	var event struct {
		Type   watch.EventType `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return "", nil, fmt.Errorf("decode event: %w", err)
	}
	switch {
	case event.Type == watch.Error:
		status := metav1.Status{}
		if err := json.Unmarshal(event.Object, &status); err != nil {
			return "", nil, fmt.Errorf("decode event: %w", err)
		}
		return "", nil, &apierrors.StatusError{ErrStatus: status}
	case k.full:
		o := &unstructured.Unstructured{}
		return event.Type, o, versioned(o, o.UnmarshalJSON(event.Object))
	default:
		o := &metav1.PartialObjectMetadata{}
		return event.Type, o, versioned(o, json.Unmarshal(event.Object, o))
	}
}

// versioned is err, or an error if what was decoded is no object of a server:
// without a version nobody could go on from there.
func versioned(o metav1.Object, err error) error {
	if err == nil && o.GetResourceVersion() == "" {
		return errors.New("decode event: an object without a resourceVersion")
	}
	return err
}

// lineBuffers are shared by all watches: each needs one only while something is
// being told.
var lineBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const (
	// littleRead is all that a watch holds while nothing happens.
	littleRead = 512
	// largestLine bounds an event: an object has at most a few MiB.
	largestLine = 64 << 20
	// keptLine is the largest buffer that is used again.
	keptLine = 64 << 10
)

// eachLine calls do with each line, without its end, until there are no more. A
// line is valid during the call only.
func eachLine(r io.Reader, do func(line []byte) error) error {
	little := make([]byte, littleRead)
	for {
		n, err := r.Read(little)
		if n > 0 {
			if err := restOfLines(little[:n], r, do); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
	}
}

// restOfLines reads until a line ends where what was read so far does.
func restOfLines(begun []byte, r io.Reader, do func(line []byte) error) error {
	b := lineBuffers.Get().(*bytes.Buffer)
	defer func() {
		if b.Cap() <= keptLine {
			b.Reset()
			lineBuffers.Put(b)
		}
	}()
	b.Write(begun)
	for seen := 0; ; {
		for end := bytes.IndexByte(b.Bytes()[seen:], '\n'); end >= 0; end = bytes.IndexByte(b.Bytes(), '\n') {
			line := b.Next(seen + end + 1)
			if line = bytes.TrimSpace(line); len(line) > 0 {
				if err := do(line); err != nil {
					return err
				}
			}
			seen = 0
		}
		if seen = b.Len(); seen == 0 {
			return nil
		}
		if seen > largestLine {
			return fmt.Errorf("a line has more than %d bytes", largestLine)
		}
		b.Grow(littleRead)
		free := b.AvailableBuffer()
		n, err := r.Read(free[:cap(free)])
		b.Write(free[:n])
		if err != nil && n == 0 {
			return err
		}
	}
}
