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
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gitfleet/gitfleet/reconciler/member/lean"
)

// openWatch begins a watch and returns its events, one in each line.
func (s *session) openWatch(ctx context.Context, k *kindWatch, version string) (io.ReadCloser, error) {
	accept := "application/json"
	if !k.full {
		accept = acceptMetadata
	}
	request := s.conn().rest.Get().AbsPath(k.res.collection()...).SetHeader("Accept", accept).
		Param("watch", "true").Param("labelSelector", selector).Param("allowWatchBookmarks", "true")
	if version != "" {
		request.Param("resourceVersion", version)
	}
	return request.Stream(ctx)
}

// decodeEvent reads one event of a watch. One that says that the watch is over
// is an error.
func (k *kindWatch) decodeEvent(line []byte) (watch.EventType, runtime.Object, error) {
	if k.full {
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

// lines puts lines together of what comes in pieces. Between two lines it holds
// nothing.
type lines struct {
	begun *bytes.Buffer // a line whose end has not come; nil if there is none
}

// add calls do with each line that a piece completes, without its end, until do
// has seen enough. A line is valid during the call only.
func (l *lines) add(piece []byte, do func(line []byte) error) error {
	for len(piece) > 0 {
		end := bytes.IndexByte(piece, '\n')
		if end < 0 {
			return l.begin(piece)
		}
		line := piece[:end]
		if piece = piece[end+1:]; l.begun != nil {
			l.begun.Write(line)
			line = l.begun.Bytes()
		}
		var err error
		if line = bytes.TrimSpace(line); len(line) > 0 {
			err = do(line)
		}
		if l.drop(); err != nil {
			return err
		}
	}
	return nil
}

func (l *lines) begin(piece []byte) error {
	if l.begun == nil {
		l.begun = lineBuffers.Get().(*bytes.Buffer)
	}
	if l.begun.Write(piece); l.begun.Len() > largestLine {
		l.drop()
		return fmt.Errorf("a line has more than %d bytes", largestLine)
	}
	return nil
}

// drop forgets a line that is not complete.
func (l *lines) drop() {
	if l.begun != nil && l.begun.Cap() <= keptLine {
		l.begun.Reset()
		lineBuffers.Put(l.begun)
	}
	l.begun = nil
}

// follow calls told with what comes, piece after piece, each valid during the
// call only, and at last with an error. It returns at once; nobody waits for what
// comes if the connection can do without.
func follow(r io.Reader, told func(piece []byte, err error)) {
	if b, ok := r.(*lean.Body); ok {
		b.Follow(told)
		return
	}
	go func() {
		little := make([]byte, littleRead)
		for {
			n, err := r.Read(little)
			if n > 0 {
				told(little[:n], nil)
			}
			if err != nil {
				told(nil, err)
				return
			}
		}
	}()
}
