package forge

import (
	"net/http"
	"slices"
	"sync"
)

// The bounds of a cache.
const (
	mostCached      = 64
	mostCachedBytes = 4 << 20
)

// An answer is one that a forge gave an ETag.
type answer struct {
	url, etag string
	header    http.Header
	body      []byte
}

// A cache keeps the answers that were used last. A forge that is asked with an ETag says
// that nothing has changed instead of sending it again; GitHub does not count that against
// the rate limit.
type cache struct {
	mu      sync.Mutex
	answers []answer // the one used last is the last
}

// find returns what was answered for a URL; the zero answer if that is not known.
func (c *cache) find(url string) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.answers, func(a answer) bool { return a.url == url }); i >= 0 {
		return c.answers[i]
	}
	return answer{}
}

// put keeps an answer, and drops those used longest ago that have no room beside it.
func (c *cache) put(a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = append(slices.DeleteFunc(c.answers, func(other answer) bool { return other.url == a.url }), a)
	size := 0
	for i := len(c.answers) - 1; i >= 0; i-- {
		if size += len(c.answers[i].body); size > mostCachedBytes || len(c.answers)-i > mostCached {
			c.answers = slices.Delete(c.answers, 0, i+1)
			return
		}
	}
}
