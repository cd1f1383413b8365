package lean_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/gitfleet/gitfleet/reconciler/member/lean"
)

// A peer is a server that says what a test has it say, frame by frame.
type peer struct {
	*http2.Framer
	net   net.Conn
	block bytes.Buffer
	enc   *hpack.Encoder
}

func newPeer(c net.Conn) *peer {
	p := &peer{Framer: http2.NewFramer(c, c), net: c}
	p.enc = hpack.NewEncoder(&p.block)
	return p
}

// greet reads what a client begins with and answers with settings.
func (p *peer) greet(settings ...http2.Setting) {
	io.ReadFull(p.net, make([]byte, len(http2.ClientPreface))) //nolint:errcheck // then nothing more comes
	p.WriteSettings(settings...)                               //nolint:errcheck // as above
}

// await returns the next frame of a kind; nil if the client has gone.
func (p *peer) await(kind http2.FrameType) http2.Frame {
	for {
		f, err := p.ReadFrame()
		if err != nil || f.Header().Type == kind {
			return f
		}
	}
}

// say sends headers, given as names and values.
func (p *peer) say(id uint32, ended bool, pairs ...string) {
	p.block.Reset()
	for i := 0; i < len(pairs); i += 2 {
		p.enc.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]}) //nolint:errcheck // to memory
	}
	p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p.block.Bytes(), EndHeaders: true, EndStream: ended}) //nolint:errcheck // seen by the client
}

// against returns a transport whose every connection leads to a peer that does as
// told, until it returns and the client has left.
func against(t *testing.T, cfg lean.Config, do func(p *peer, nth int32)) *lean.Transport {
	t.Helper()
	var dialed atomic.Int32
	cfg.Dial = func(context.Context) (net.Conn, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		here, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		there, err := l.Accept()
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { there.Close() })
		go func() {
			do(newPeer(there), dialed.Add(1))
			io.Copy(io.Discard, there) //nolint:errcheck // until the client leaves
		}()
		return here, nil
	}
	transport := lean.New(cfg)
	t.Cleanup(transport.Close)
	return transport
}

// ask returns the whole answer.
func ask(t *testing.T, transport http.RoundTripper, method string, body io.Reader) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://server.example/", body)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	return string(got), err
}

// What a server may say is understood, and what it may not is an error: never an
// answer that is cut short and looks whole.
func TestOddAnswers(t *testing.T) {
	const most = 1<<31 - 1
	tests := map[string]struct {
		method string
		say    func(p *peer, id uint32)
		err    string // none if the answer is "hello"
		broken bool
	}{
		"information first": {say: func(p *peer, id uint32) {
			p.say(id, false, ":status", "103", "link", "a")
			p.say(id, false, ":status", "200")
			p.WriteData(id, true, []byte("hello"))
		}},
		"trailers": {say: func(p *peer, id uint32) {
			p.say(id, false, ":status", "200", "content-length", "5")
			p.WriteData(id, false, []byte("hello"))
			p.say(id, true, "checked", "yes")
		}},
		"headers remembered though they were not to be": {say: func(p *peer, id uint32) {
			p.say(id, false, ":status", "103", "audit-id", "12345")
			p.say(id, false, ":status", "200", "audit-id", "12345")
			p.WriteData(id, true, []byte("hello"))
		}},
		"frames of other kinds": {say: func(p *peer, id uint32) {
			p.WriteRawFrame(0xf0, 7, 1<<30+1, []byte("grease"))
			p.WritePriority(1001, http2.PriorityParam{})
			p.say(id, false, ":status", "200")
			p.WriteData(id, true, []byte("hello"))
		}},
		"padding": {say: func(p *peer, id uint32) {
			p.say(id, false, ":status", "200")
			for range 1000 {
				p.WriteDataPadded(id, false, nil, make([]byte, 255))
			}
			for f := p.await(http2.FrameWindowUpdate); f != nil && f.Header().StreamID != id; {
				f = p.await(http2.FrameWindowUpdate)
			}
			p.WriteDataPadded(id, true, []byte("hello"), make([]byte, 9))
		}},
		"a window of a stream that is over": {say: func(p *peer, id uint32) {
			p.say(id, false, ":status", "200")
			p.WriteData(id, true, []byte("hello"))
			p.WriteWindowUpdate(id, most)
			p.WriteRSTStream(id, http2.ErrCodeNo)
		}},
		"leaving in two steps": {say: func(p *peer, id uint32) {
			p.WriteGoAway(most, http2.ErrCodeNo, nil)
			p.WriteGoAway(id, http2.ErrCodeNo, nil)
			p.say(id, false, ":status", "200")
			p.WriteData(id, true, []byte("hello"))
		}},
		"no body was asked for": {method: http.MethodHead, err: "none", say: func(p *peer, id uint32) {
			p.say(id, false, ":status", "200", "content-length", "7")
			p.WriteData(id, true, nil)
		}},
		"not modified": {err: "none", say: func(p *peer, id uint32) {
			p.say(id, true, ":status", "304", "content-length", "7")
		}},
		"less than was promised": {err: "unexpected EOF", say: func(p *peer, id uint32) {
			p.say(id, false, ":status", "200", "content-length", "7")
			p.WriteData(id, true, []byte("hello"))
		}},
		"less, and trailers": {err: "unexpected EOF", say: func(p *peer, id uint32) {
			p.say(id, false, ":status", "200", "content-length", "7")
			p.WriteData(id, false, []byte("hello"))
			p.say(id, true, "checked", "yes")
		}},
		"nothing of what was promised": {err: "unexpected EOF", say: func(p *peer, id uint32) {
			p.say(id, true, ":status", "200", "content-length", "7")
		}},
		"more than was promised": {err: "PROTOCOL_ERROR", broken: true, say: func(p *peer, id uint32) {
			p.say(id, false, ":status", "200", "content-length", "4")
			p.WriteData(id, true, []byte("hello"))
		}},
		"a body before its headers": {err: "PROTOCOL_ERROR", broken: true, say: func(p *peer, id uint32) {
			p.WriteData(id, true, []byte("hello"))
		}},
		"no status":               {err: "PROTOCOL_ERROR", broken: true, say: func(p *peer, id uint32) { p.say(id, true, "a", "b") }},
		"a connection taken over": {err: "PROTOCOL_ERROR", broken: true, say: func(p *peer, id uint32) { p.say(id, false, ":status", "101") }},
		"an answer nobody asked for": {err: "PROTOCOL_ERROR", broken: true, say: func(p *peer, id uint32) {
			p.say(id+2, true, ":status", "200")
		}},
		"a push": {err: "PROTOCOL_ERROR", broken: true, say: func(p *peer, id uint32) {
			p.WritePushPromise(http2.PushPromiseParam{StreamID: id, PromiseID: 2, EndHeaders: true})
		}},
		"a window that cannot be": {err: "FLOW_CONTROL_ERROR", broken: true, say: func(p *peer, id uint32) {
			p.WriteWindowUpdate(0, most)
		}},
		"a window of a stream that cannot be": {err: "FLOW_CONTROL_ERROR", broken: true, say: func(p *peer, id uint32) {
			p.WriteWindowUpdate(id, most-65535)
			p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 70000})
		}},
		"more than was allowed": {err: "FLOW_CONTROL_ERROR", broken: true, say: func(p *peer, id uint32) {
			p.say(id, false, ":status", "200")
			for range 5000 {
				p.WriteData(id, false, make([]byte, 16<<10))
			}
		}},
		"headers without end": {err: "PROTOCOL_ERROR", broken: true, say: func(p *peer, id uint32) {
			p.WriteHeaders(http2.HeadersFrameParam{StreamID: id})
			field := append([]byte{0, 1, 'a', 127, 129, 126}, bytes.Repeat([]byte("x"), 16256)...)
			for range 200 {
				p.WriteContinuation(id, false, field)
			}
		}},
		"a frame that is too large": {err: "frame too large", broken: true, say: func(p *peer, id uint32) {
			p.say(id, false, ":status", "200")
			p.WriteRawFrame(http2.FrameData, 0, id, make([]byte, 16<<10+1))
		}},
		"it wants another protocol": {err: "HTTP_1_1_REQUIRED", broken: true, say: func(p *peer, id uint32) {
			p.WriteRSTStream(id, http2.ErrCodeHTTP11Required)
		}},
		"it has had enough": {err: "ENHANCE_YOUR_CALM", say: func(p *peer, id uint32) {
			p.WriteRSTStream(id, http2.ErrCodeEnhanceYourCalm)
		}},
		"the end": {err: "unexpected EOF", say: func(p *peer, id uint32) {
			p.say(id, false, ":status", "200")
			p.net.(*net.TCPConn).CloseWrite()
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			transport := against(t, lean.Config{}, func(p *peer, _ int32) {
				p.greet()
				if f := p.await(http2.FrameHeaders); f != nil {
					test.say(p, f.Header().StreamID)
				}
			})
			if name == "more than was allowed" {
				request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server.example/", nil)
				answer, err := transport.RoundTrip(request)
				if err == nil { // and nobody reads until it is over
					for !transport.Broken() {
						time.Sleep(time.Millisecond)
					}
					_, err = io.ReadAll(answer.Body)
				}
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Error(err)
				}
				return
			}
			got, err := ask(t, transport, test.method, nil)
			switch {
			case test.err == "" && (err != nil || got != "hello"), test.err == "none" && (err != nil || got != ""):
				t.Errorf("%q, %v", got, err)
			case test.err != "" && test.err != "none" && (err == nil || !strings.Contains(err.Error(), test.err)):
				t.Errorf("%q, %v; want %s", got, err, test.err)
			}
			if transport.Broken() != test.broken {
				t.Errorf("broken: %v", transport.Broken())
			}
		})
	}
}

// The end of a connection is told by the value that others know.
func TestEndIsTold(t *testing.T) {
	transport := against(t, lean.Config{}, func(p *peer, _ int32) {
		p.greet()
		p.await(http2.FrameHeaders)
		p.net.(*net.TCPConn).CloseWrite()
	})
	if _, err := ask(t, transport, http.MethodGet, nil); err != io.ErrUnexpectedEOF {
		t.Errorf("%#v", err)
	}
}

// Who does not speak HTTP/2 is not taken for one who does.
func TestStrangers(t *testing.T) {
	tests := map[string]func(p *peer){
		"HTTP/1":      func(p *peer) { io.WriteString(p.net, "HTTP/1.1 400 Bad Request\r\n\r\n") },
		"no settings": func(p *peer) { p.WritePing(false, [8]byte{}) },
		"an answer":   func(p *peer) { p.WriteSettingsAck() },
	}
	for name, do := range tests {
		transport := against(t, lean.Config{}, func(p *peer, _ int32) { do(p) })
		if _, err := ask(t, transport, http.MethodGet, nil); err == nil || !transport.Broken() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the server says it has not looked at is sent again, whatever it is and
// however it says so; what it may have looked at is not.
func TestUnseenRequestsAreSentAgain(t *testing.T) {
	tests := map[string]struct {
		end   func(p *peer, id uint32)
		again bool
	}{
		"refused":     {func(p *peer, id uint32) { p.WriteRSTStream(id, http2.ErrCodeRefusedStream) }, true},
		"left before": {func(p *peer, id uint32) { p.WriteGoAway(id-1, http2.ErrCodeNo, nil) }, true},
		"left before, in a row": {func(p *peer, id uint32) {
			p.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)
			p.WriteGoAway(0, http2.ErrCodeNo, nil)
		}, true},
		"cancelled":  {func(p *peer, id uint32) { p.WriteRSTStream(id, http2.ErrCodeCancel) }, false},
		"left after": {func(p *peer, id uint32) { p.WriteGoAway(id, http2.ErrCodeNo, nil); p.net.(*net.TCPConn).CloseWrite() }, false},
		"gone":       {func(p *peer, id uint32) { p.net.(*net.TCPConn).CloseWrite() }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			transport := against(t, lean.Config{}, func(p *peer, _ int32) {
				p.greet()
				for {
					f := p.await(http2.FrameHeaders)
					if f == nil {
						return
					}
					id := f.Header().StreamID
					if data := p.await(http2.FrameData); data == nil || string(data.(*http2.DataFrame).Data()) != "body" {
						t.Error("the body is missing")
					}
					if n := asked.Add(1); n <= 3 {
						test.end(p, id)
						continue
					}
					p.say(id, false, ":status", "200")
					p.WriteData(id, true, []byte("hello"))
				}
			})
			got, err := ask(t, transport, http.MethodPost, strings.NewReader("body"))
			if (err == nil && got == "hello") != test.again || !test.again && asked.Load() != 1 {
				t.Errorf("%q, %v, asked %d times", got, err, asked.Load())
			}
		})
	}
}

// A body waits for windows that shrink below what is under way, and goes on when
// they grow.
func TestWindowsThatShrink(t *testing.T) {
	got := make(chan int, 1)
	transport := against(t, lean.Config{}, func(p *peer, _ int32) {
		p.greet(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
		id := p.await(http2.FrameHeaders).Header().StreamID
		n := len(p.await(http2.FrameData).(*http2.DataFrame).Data())
		p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10}) // 990 too many
		p.WriteWindowUpdate(id, 900)                                                // still 90 too many
		p.WritePing(false, [8]byte{1})
		for f, err := p.ReadFrame(); ; f, err = p.ReadFrame() {
			if err != nil {
				return
			}
			if f.Header().Type == http2.FrameData {
				n += 1 << 20 // it must not
			}
			if f.Header().Type == http2.FramePing {
				break
			}
		}
		p.WriteWindowUpdate(id, 4090)
		for n < 5000 {
			n += len(p.await(http2.FrameData).(*http2.DataFrame).Data())
		}
		got <- n
		p.say(id, true, ":status", "200")
	})
	if _, err := ask(t, transport, http.MethodPut, bytes.NewReader(make([]byte, 5000))); err != nil {
		t.Fatal(err)
	}
	if n := <-got; n != 5000 {
		t.Errorf("the server got %d bytes", n)
	}
}

// Whoever takes nothing any more is lost, though he goes on talking, and holds up
// nobody for ever.
func TestDeafServerIsLost(t *testing.T) {
	here, there := net.Pipe() // it has no buffer
	t.Cleanup(func() { there.Close() })
	var dialed atomic.Int32
	transport := lean.New(lean.Config{Silent: time.Hour, Patience: 50 * time.Millisecond, Dial: func(context.Context) (net.Conn, error) {
		if dialed.Add(1) > 1 {
			return nil, errors.New("dialled again")
		}
		return here, nil
	}})
	go func() {
		p := newPeer(there)
		io.ReadFull(there, make([]byte, len(http2.ClientPreface))) //nolint:errcheck // the client sees
		p.await(http2.FrameWindowUpdate)
		p.WriteSettings() //nolint:errcheck // as above
		f := p.await(http2.FrameHeaders)
		if f == nil {
			return
		}
		id := f.Header().StreamID
		p.say(id, false, ":status", "200")
		for p.WriteData(id, false, []byte("x")) == nil {
		}
	}()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://deaf.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t, transport, http.MethodGet, nil); err == nil {
		t.Error("it was asked all the same")
	}
	answer.Body.Close()
}

// All who wait for a server that is not there know it at once, and one who gives
// up does not spoil it for the others.
func TestDialIsShared(t *testing.T) {
	var dialed atomic.Int32
	let := make(chan bool)
	transport := lean.New(lean.Config{Dial: func(ctx context.Context) (net.Conn, error) {
		dialed.Add(1)
		select {
		case <-let:
			return nil, errors.New("nobody there")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	try := func(ctx context.Context) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://nobody.example/", nil)
		if err == nil {
			_, err = transport.RoundTrip(request)
		}
		ended <- err
	}
	go try(ctx)
	for dialed.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for range 5 {
		go try(t.Context())
	}
	time.Sleep(10 * time.Millisecond) // more would dial more
	close(let)
	for range 5 {
		if err := <-ended; err == nil || err.Error() != "nobody there" {
			t.Error(err)
		}
	}
	if n := dialed.Load(); n > 5 { // those who came after it failed dial again
		t.Errorf("dialled %d times", n)
	}
}
