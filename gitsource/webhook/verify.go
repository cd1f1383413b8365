package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
)

// signatures are the headers that hold an HMAC-SHA256 of the body in
// hexadecimal digits, and what stands before the digits.
var signatures = []struct{ header, prefix string }{
	{"X-Hub-Signature-256", "sha256="}, // GitHub; Gitea and Forgejo too
	{"X-Gitea-Signature", ""},
	{"X-Forgejo-Signature", ""},
	{"X-Gogs-Signature", ""},
}

// gitlabToken holds the secret itself: GitLab signs nothing.
const gitlabToken = "X-Gitlab-Token"

// authentic tells whether the sender knows the secret. Every signature that is
// there must be right, and there must be one. The time it takes does not
// depend on the content.
func authentic(h http.Header, body []byte, secret string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	want := mac.Sum(nil)
	found, right := 0, 1
	for _, s := range signatures {
		for _, value := range h.Values(s.header) {
			found++
			right &= equalHex(value, s.prefix, want)
		}
	}
	for _, value := range h.Values(gitlabToken) {
		found++
		a, b := sha256.Sum256([]byte(value)), sha256.Sum256([]byte(secret))
		right &= subtle.ConstantTimeCompare(a[:], b[:])
	}
	return found > 0 && right == 1
}

func equalHex(value, prefix string, want []byte) int {
	digits, ok := strings.CutPrefix(value, prefix)
	if !ok || len(digits) != 2*sha256.Size {
		return 0
	}
	got, err := hex.DecodeString(digits)
	if err != nil {
		return 0
	}
	return subtle.ConstantTimeCompare(got, want)
}

// isPing tells whether a forge only tries whether somebody is there.
func isPing(h http.Header) bool { return h.Get("X-GitHub-Event") == "ping" }

// pushedRef answers the reference that was pushed, where the content says it
// in the way all of these forges do.
func pushedRef(body []byte) (ref string, ok bool) {
	var push struct {
		Ref string `json:"ref"`
	}
	if json.Unmarshal(body, &push) != nil || !strings.HasPrefix(push.Ref, "refs/") {
		return "", false
	}
	return push.Ref, true
}

// isPullRequest tells whether the content is about a pull request: GitHub and Gitea say
// which one, and GitLab what kind it is.
func isPullRequest(body []byte) bool {
	var event struct {
		PullRequest json.RawMessage `json:"pull_request"`
		Kind        string          `json:"object_kind"`
	}
	return json.Unmarshal(body, &event) == nil && (strings.HasPrefix(string(event.PullRequest), "{") || event.Kind == "merge_request")
}
