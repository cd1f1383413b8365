package lean

import (
	"context"
	"io"
	"math/rand/v2"
	"time"

	"golang.org/x/net/http2"
)

// TLS keeps a buffer as large as the largest record that ever came, for as long as
// the connection lasts. So a connection on which much came at once is replaced by
// another when all is quiet again, and nothing is under way on it but answers that
// somebody follows: these end as if the server had ended them.

const (
	// mostKept is the size of a buffer that is not worth another connection.
	mostKept = 4 << 10
	// renewals is how many times Config.Renew is the least time between two
	// renewals.
	renewals = 60
)

// grown notes that TLS has taken a large buffer, if it has: the connection is to be
// renewed, not at once, and not when all others are.
func (c *conn) grown() {
	wait := c.of.cfg.Renew
	if wait <= 0 || !c.line.hasGrown() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.renewAt.IsZero() {
		c.renewAt = time.Now().Add(wait + rand.N(wait))
		c.rest()
	}
}

// renews reports whether the connection is to be renewed now. If something is in
// the way of it, that is asked again later.
func (c *conn) renews() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.renewAt.IsZero() || now.Before(c.renewAt) || c.leaving || c.err != nil {
		return false
	}
	c.renewAt = now.Add(c.of.cfg.Renew)
	if now.Sub(c.told) < c.of.cfg.Renew/2 || !c.of.mayRenew(now) {
		return false
	}
	for _, s := range c.streams {
		if s.tell == nil || s.telling || s.data != nil {
			return false
		}
	}
	return len(c.streams) > 0 // one that is idle is closed
}

// mayRenew reports whether the last renewal is long enough ago, and notes this one
// if it is.
func (t *Transport) mayRenew(now time.Time) bool {
	last := t.renewed.Load()
	if last != 0 && now.Sub(time.Unix(0, last)) < renewals*t.cfg.Renew {
		return false
	}
	return t.renewed.CompareAndSwap(last, now.UnixNano())
}

// renew connects anew, and then has whoever follows something on the connection
// ask again.
func (c *conn) renew() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if c.of.open(ctx) != nil {
		return // it stays as it is
	}
	c.mu.Lock()
	c.leaving = true
	var followed []*stream
	for _, s := range c.streams {
		if s.tell != nil {
			followed = append(followed, s)
		}
	}
	for _, s := range followed {
		s.finish(io.EOF)
	}
	c.rest()
	c.mu.Unlock()
	for _, s := range followed {
		s.sayReset(http2.ErrCodeCancel)
	}
}
