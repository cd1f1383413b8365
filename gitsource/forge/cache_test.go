package forge

import (
	"fmt"
	"testing"
)

// However many answers are added, the cache keeps the most recent ones and stays within its
// limits.
func TestTheCacheIsBounded(t *testing.T) {
	var c cache
	for i := range 10 * maxCached {
		c.put(answer{url: fmt.Sprint(i), etag: "1"})
	}
	if last := fmt.Sprint(10*maxCached - 1); len(c.answers) != maxCached || c.find(last).etag == "" || c.find("0").etag != "" {
		t.Errorf("%d answers are kept", len(c.answers))
	}
	for i := range 20 {
		c.put(answer{url: "large", etag: fmt.Sprint(i), body: make([]byte, maxCachedBytes/4)})
		c.put(answer{url: fmt.Sprint("large", i), etag: "1", body: make([]byte, maxCachedBytes/4)})
	}
	size := 0
	for _, a := range c.answers {
		size += len(a.body)
	}
	if size > maxCachedBytes || c.find("large").etag != "19" {
		t.Errorf("%d bytes are kept, and %+v", size, c.find("large").etag)
	}
	c.put(answer{url: "too large", etag: "1", body: make([]byte, maxCachedBytes+1)})
	if c.find("too large").etag != "" {
		t.Error("an answer larger than the cache is kept")
	}
}

func TestGitHubAPI(t *testing.T) {
	for address, want := range map[string]string{
		"https://github.com":             "https://api.github.com/",
		"https://acme.ghe.com/":          "https://api.acme.ghe.com/",
		"https://git.example.com":        "https://git.example.com/api/v3/",
		"http://git.example.com:8080/x/": "http://git.example.com:8080/x/api/v3/",
	} {
		if got := githubAPI(address); got != want {
			t.Errorf("of %s: %s, want %s", address, got, want)
		}
	}
}
