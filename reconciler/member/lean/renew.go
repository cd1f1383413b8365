package lean

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"golang.org/x/net/http2"
)

// TLS keeps a buffer as large as the largest record that ever came, for as long as
// the connection lasts. So a connection on which much came at once is replaced by
// another when all is quiet again, and nothing is under way on it but answers that
// somebody follows: these end, and are asked for again.

const (
	// mostKept is the size of a buffer that is not worth another connection.
	mostKept = 4 << 10
	// renewals is how many times Config.Renew is the least time between two
	// renewals, retried that after one that came to nothing.
	renewals, retried = 60, 6
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
	if now.Sub(c.told) < c.of.cfg.Renew/2 || len(c.streams) == 0 { // one that is idle is closed
		return false
	}
	for _, s := range c.streams {
		if s.tell == nil || s.telling || s.data != nil {
			return false
		}
	}
	return c.of.mayRenew(now)
}

// mayRenew reports whether the last renewal is long enough ago, and notes this one
// if it is.
func (t *Transport) mayRenew(now time.Time) bool {
	from := t.renewFrom.Load()
	return now.UnixNano() >= from && t.renewFrom.CompareAndSwap(from, now.Add(renewals*t.cfg.Renew).UnixNano())
}

// ErrRenewed tells who follows an answer that it has ended because the connection is
// renewed. The server has not ended it, and nothing of what it said is lost.
var ErrRenewed = fmt.Errorf("http2: the connection is renewed: %w", io.EOF)

// renew connects anew, and then has whoever follows something on the connection
// ask again.
func (c *conn) renew() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if c.of.replace(ctx, cancel) != nil { // it stays as it is
		c.of.renewFrom.Store(time.Now().Add(retried * c.of.cfg.Renew).UnixNano())
		return
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
		s.finish(ErrRenewed)
	}
	c.rest()
	c.mu.Unlock()
	for _, s := range followed {
		s.sayReset(http2.ErrCodeCancel)
	}
}
