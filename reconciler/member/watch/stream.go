package watch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// An eventStream is a watch that the server has started: events, one per line.
type eventStream struct {
	lineReader
	body   io.Closer
	cancel context.CancelFunc
}

// Close ends the request.
func (e *eventStream) Close() {
	e.cancel()
	e.release()
	e.body.Close()
}

// A server is asked to end a watch after a random time between watchTimeout and twice that, so
// that the watches of all clusters do not end together. If a watch has not ended watchGrace
// later, the connection may be dead without either side having noticed, for instance behind a
// proxy, and the request is aborted. The next watch resumes after the last event.
const (
	watchTimeout = 5 * time.Minute
	watchGrace   = 30 * time.Second
)

// openWatch starts a watch.
func (w *Set) openWatch(ctx context.Context, k *Kind, version string) (*eventStream, error) {
	accept := "application/json"
	if !k.Full {
		accept = connection.AcceptMetadata
	}
	timeout := (watchTimeout + rand.N(watchTimeout)).Truncate(time.Second)
	request := w.conn.REST().Get().AbsPath(k.res.Collection()...).SetHeader("Accept", accept).
		Param("watch", "true").Param("labelSelector", selector).Param("allowWatchBookmarks", "true").
		Param("timeoutSeconds", strconv.Itoa(int(timeout/time.Second)))
	if version != "" {
		request.Param("resourceVersion", version)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout+watchGrace)
	body, err := request.Stream(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	return &eventStream{newLineReader(body, w.conn.EventSlot(ctx, cancel)), body, cancel}, nil
}

// decodeEvent decodes one event of a watch. An event that ends the watch is an error.
func (k *Kind) decodeEvent(line []byte) (watch.EventType, metav1.Object, error) {
	if k.Full {
		what, content, err := eventOf[map[string]any](line)
		o := &unstructured.Unstructured{Object: *content}
		if err == nil && o.GetKind() == "" {
			err = errors.New("decode event: an object without a kind")
		}
		return what, o, versioned(o, err)
	}
	what, o, err := eventOf[partialObject](line)
	m := o.metadata()
	return what, m, versioned(m, err)
}

// A partialObject has the metadata of an object that is looked at. Most objects have more labels and annotations, and the texts would
// be dropped after each event.
type partialObject struct {
	Metadata struct {
		metav1.ObjectMeta
		CreationTimestamp ignored `json:"creationTimestamp"`
		Labels            struct {
			ManagedBy *string `json:"gitfleet.dev/managed-by"`
		} `json:"labels"`
		Annotations struct {
			Prune *string `json:"gitfleet.dev/prune"`
		} `json:"annotations"`
	} `json:"metadata"`
}

// ignored is a field that is not decoded.
type ignored struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

func (o *partialObject) metadata() *metav1.ObjectMeta {
	m := &o.Metadata.ObjectMeta
	if by := o.Metadata.Labels.ManagedBy; by != nil {
		m.Labels = map[string]string{api.ManagedByLabel: *by}
	}
	if prune := o.Metadata.Annotations.Prune; prune != nil {
		m.Annotations = map[string]string{api.PruneAnnotation: *prune}
	}
	return m
}

// eventOf decodes an event in one pass. Only error events, which are rare, are decoded a second
// time with their own type.
func eventOf[T any](line []byte) (watch.EventType, *T, error) {
	var event struct {
		Type   watch.EventType `json:"type"`
		Object T               `json:"object"`
	}
	err := utiljson.Unmarshal(line, &event)
	if err == nil && event.Type == watch.Error {
		var failure struct {
			Object metav1.Status `json:"object"`
		}
		if err = json.Unmarshal(line, &failure); err == nil {
			return "", &event.Object, &apierrors.StatusError{ErrStatus: failure.Object}
		}
	}
	if err != nil {
		err = fmt.Errorf("decode event: %w", err)
	}
	return event.Type, &event.Object, err
}

// versioned returns err, or an error if the decoded object has no version, from which the watch
// could not be resumed.
func versioned(o metav1.Object, err error) error {
	switch {
	case err != nil:
		return err
	case o.GetResourceVersion() == "":
		return errors.New("decode event: an object without a resourceVersion")
	case len(o.GetResourceVersion()) > connection.MaxPosition:
		return errLongVersion
	}
	return nil
}

// lineBuffer is the size of the read buffer of a watch.
const lineBuffer = 512

// errLongLine is returned for a line that exceeds the maximum size of an object.
var errLongLine = connection.Exceeded(connection.LargestObject>>20, "MiB in one event of a watch")

// errLongVersion is returned for an object whose resource version no request could repeat.
var errLongVersion = connection.Exceeded(connection.MaxPosition, "bytes for a resourceVersion")

// A lineReader reads the lines of a stream. A line that does not fit into the buffer gets a
// temporary one, since a watch lasts long and most of the time there is no event.
type lineReader struct {
	stream *bufio.Reader
	slot   eventSlot
	long   *[]byte // the buffer of the last line; nil if it has none
}

// longLines are the buffers of long lines. Those of the largest are not kept.
var longLines = sync.Pool{New: func() any { return new([]byte) }}

const keptLine = 32 << 10

// An eventSlot is a connection.EventSlot.
type eventSlot interface {
	Grow(bytes int) error
	Check(line []byte) error
	Release()
}

func newLineReader(stream io.Reader, slot eventSlot) lineReader {
	return lineReader{stream: bufio.NewReaderSize(stream, lineBuffer), slot: slot}
}

// release gives back what the last line has taken.
func (l *lineReader) release() {
	l.slot.Release()
	if l.long != nil && cap(*l.long) <= keptLine {
		longLines.Put(l.long)
	}
	l.long = nil
}

// next returns the next line that is not empty, which is valid until release or the next call. An
// incomplete last line is dropped, with the error io.EOF.
func (l *lineReader) next() ([]byte, error) {
	for {
		line, err := l.stream.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			line, err = l.longLine(line)
		}
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, l.slot.Check(line)
		}
	}
}

// longLine reads the rest of a line that does not fit into the buffer.
func (l *lineReader) longLine(line []byte) ([]byte, error) {
	if l.long == nil {
		l.long = longLines.Get().(*[]byte)
	}
	long := append((*l.long)[:0], line...)
	for {
		more, err := l.stream.ReadSlice('\n')
		long = append(long, more...)
		*l.long = long
		if len(long) > connection.LargestObject {
			return nil, errLongLine
		}
		if err := l.slot.Grow(len(long)); err != nil {
			return nil, err
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return long, err
		}
	}
}
