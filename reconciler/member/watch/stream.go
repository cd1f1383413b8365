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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// An eventStream is a watch that has begun: events, one in each line.
type eventStream struct {
	lineReader
	body   io.Closer
	cancel context.CancelFunc
}

// Close ends the request.
func (e *eventStream) Close() {
	e.cancel()
	e.body.Close()
}

// A server is asked to end a watch after watchTimeout to twice that, at random so that the
// watches of all clusters do not end together. If a watch has not ended watchGrace later, the
// connection may be dead without either side having noticed, as behind a proxy, and the
// request is given up. The next watch resumes where this one was.
const (
	watchTimeout = 5 * time.Minute
	watchGrace   = 30 * time.Second
)

// openWatch begins a watch.
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
	return &eventStream{newLineReader(body), body, cancel}, nil
}

// decodeEvent reads one event of a watch. One that says that the watch is over
// is an error.
func (k *Kind) decodeEvent(line []byte) (watch.EventType, runtime.Object, error) {
	if k.Full {
		what, content, err := eventOf[map[string]any](line)
		o := &unstructured.Unstructured{Object: content}
		if err == nil && o.GetKind() == "" {
			err = errors.New("decode event: an object without a kind")
		}
		return what, o, versioned(o, err)
	}
	what, o, err := eventOf[metav1.PartialObjectMetadata](line)
	return what, &o, versioned(&o, err)
}

// eventOf decodes an event at one go: only an error, which is rare, is read
// again as what it is.
func eventOf[T any](line []byte) (watch.EventType, T, error) {
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
			return "", event.Object, &apierrors.StatusError{ErrStatus: failure.Object}
		}
	}
	if err != nil {
		err = fmt.Errorf("decode event: %w", err)
	}
	return event.Type, event.Object, err
}

// versioned is err, or an error if what was decoded is no object of a server:
// without a version nobody could go on from there.
func versioned(o metav1.Object, err error) error {
	if err == nil && o.GetResourceVersion() == "" {
		return errors.New("decode event: an object without a resourceVersion")
	}
	return err
}

// lineBuffer is the size of the buffer that a watch keeps.
const lineBuffer = 512

// errLongLine is returned for a line of more than largestObject bytes.
var errLongLine = fmt.Errorf("watch: an event has more than %d bytes", connection.LargestObject)

// A lineReader reads the lines of a stream. A line that does not fit into its buffer gets
// one of its own, which is not kept: a watch lasts long, and large events are rare.
type lineReader struct{ stream *bufio.Reader }

func newLineReader(stream io.Reader) lineReader {
	return lineReader{bufio.NewReaderSize(stream, lineBuffer)}
}

// next returns the next line that is not empty, which is valid until the next call. A
// last line without an end is left out: the error is io.EOF then.
func (l lineReader) next() ([]byte, error) {
	for {
		line, err := l.stream.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			line, err = l.longLine(line)
		}
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

// longLine reads the rest of a line that does not fit into the buffer.
func (l lineReader) longLine(line []byte) ([]byte, error) {
	line = bytes.Clone(line)
	for {
		more, err := l.stream.ReadSlice('\n')
		if line = append(line, more...); len(line) > connection.LargestObject {
			return nil, errLongLine
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
