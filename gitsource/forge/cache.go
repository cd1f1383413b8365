package forge

import (
	"net/http"
	"slices"
	"sync"
)

// The limits of a cache.
const (
	maxCached      = 64
	maxCachedBytes = 4 << 20
)

// An answer is a response with an ETag.
type answer struct {
	url, etag string
	header    http.Header
	body      []byte
}

// A cache keeps the responses that were used last. A request with an ETag gets a short response
// if nothing has changed; GitHub does not count that against the rate limit.
type cache struct {
	mu      sync.Mutex
	answers []answer // the most recently used answer is the last
}

// find returns the cached answer of a URL; the zero answer if there is none.
func (c *cache) find(url string) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.answers, func(a answer) bool { return a.url == url }); i >= 0 {
		return c.answers[i]
	}
	return answer{}
}

// put adds an answer, and drops the least recently used ones if the cache is full.
func (c *cache) put(a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = append(slices.DeleteFunc(c.answers, func(other answer) bool { return other.url == a.url }), a)
	size := 0
	for i := len(c.answers) - 1; i >= 0; i-- {
		if size += len(c.answers[i].body); size > maxCachedBytes || len(c.answers)-i > maxCached {
			c.answers = slices.Delete(c.answers, 0, i+1)
			return
		}
	}
}
