package member

import (
	"net/http"
	"sync"
	"time"
)

// A brief transport is there only while it is needed: it keeps a lot of what
// it once had to do.
type brief struct {
	make func() *http.Transport

	mu    sync.Mutex
	now   *http.Transport // nil while nobody needs it
	close *time.Timer
}

// RoundTrip implements http.RoundTripper.
func (p *brief) RoundTrip(r *http.Request) (*http.Response, error) { return p.take().RoundTrip(r) }

func (p *brief) take() *http.Transport {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil {
		p.now = p.make()
		p.close = time.AfterFunc(keepShort.idle+time.Second, p.CloseIdleConnections)
	}
	p.close.Reset(keepShort.idle + time.Second)
	return p.now
}

// CloseIdleConnections lets go of the transport. What is under way on it comes to
// its end, and its connections close by themselves.
func (p *brief) CloseIdleConnections() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now != nil {
		p.close.Stop()
		p.now.CloseIdleConnections()
		p.now, p.close = nil, nil
	}
}
