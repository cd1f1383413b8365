package connection

import (
	"net/http"
	"sync"
	"time"
)

// A bulkTransport has an http.Transport only while it is used and shortly afterwards. Even
// without connections, a transport needs some KiB for each of thousands of clusters.
type bulkTransport struct {
	newTransport func() *http.Transport

	mu      sync.Mutex
	current *http.Transport // nil while there is none
	expire  *time.Timer
}

// RoundTrip implements http.RoundTripper.
func (b *bulkTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return b.transport().RoundTrip(r)
}

func (b *bulkTransport) transport() *http.Transport {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current == nil {
		b.current = b.newTransport()
		b.expire = time.AfterFunc(bulkIdleTimeout, b.CloseIdleConnections)
	}
	b.expire.Reset(bulkIdleTimeout)
	return b.current
}

// CloseIdleConnections drops the transport. Requests in progress are completed, and their
// connections are closed afterwards.
func (b *bulkTransport) CloseIdleConnections() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current != nil {
		b.expire.Stop()
		b.current.CloseIdleConnections()
		b.current, b.expire = nil, nil
	}
}
