package lean_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"golang.org/x/net/http2"

	"github.com/gitfleet/gitfleet/reconciler/member/lean"
)

// A script is a connection to a server that says what was written down, once it
// was asked.
type script struct {
	net.Conn
	greeting, text io.Reader
	asked          chan struct{}
	once           sync.Once
}

func (s *script) Read(p []byte) (int, error) {
	if n, err := s.greeting.Read(p); err == nil {
		return n, nil
	}
	<-s.asked
	return s.text.Read(p)
}

func (s *script) Write(p []byte) (int, error) {
	if len(p) > 9 && http2.FrameType(p[3]) == http2.FrameHeaders {
		s.once.Do(func() { close(s.asked) })
	}
	return len(p), nil
}

func (s *script) Close() error {
	s.once.Do(func() { close(s.asked) })
	return nil
}

// Whatever a server says, whoever asked has an answer or an error, and an answer
// is as long as the server said.
func FuzzAnswers(f *testing.F) {
	says := func(do func(p *peer)) {
		var text bytes.Buffer
		p := newPeer(nil)
		p.Framer = http2.NewFramer(&text, nil)
		do(p)
		f.Add(text.Bytes())
	}
	says(func(p *peer) {
		p.say(1, false, ":status", "100")
		p.say(1, false, ":status", "200", "content-length", "5")
		p.WriteDataPadded(1, false, []byte("he"), []byte{0, 0})
		p.WriteData(1, true, []byte("llo"))
	})
	says(func(p *peer) {
		p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1}, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0})
		p.WritePing(false, [8]byte{})
		p.WriteWindowUpdate(1, 10)
		p.say(1, false, ":status", "200")
		p.say(1, true, "after", "all")
	})
	says(func(p *peer) {
		p.WriteGoAway(1, http2.ErrCodeNo, []byte("why"))
		p.WriteRSTStream(1, http2.ErrCodeRefusedStream)
	})
	says(func(p *peer) {
		p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1})
		p.WriteContinuation(1, true, []byte{0x88})
		p.WriteRawFrame(0xf0, 1, 9, []byte("?"))
	})
	settings := []byte{0, 0, 0, byte(http2.FrameSettings), 0, 0, 0, 0, 0}
	f.Fuzz(func(t *testing.T, text []byte) {
		transport := lean.New(lean.Config{Dial: func(context.Context) (net.Conn, error) {
			return &script{greeting: bytes.NewReader(settings), text: bytes.NewReader(text), asked: make(chan struct{})}, nil
		}})
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server.example/", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := transport.RoundTrip(request)
		if err != nil {
			return
		}
		defer answer.Body.Close()
		got, err := io.ReadAll(answer.Body)
		size := answer.ContentLength
		if err == nil && size >= 0 && size != int64(len(got)) && answer.StatusCode != http.StatusNoContent && answer.StatusCode != http.StatusNotModified {
			t.Errorf("%d bytes of %d", len(got), size)
		}
	})
}
