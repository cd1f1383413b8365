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

// signatures are the headers that have an HMAC-SHA256 of the body in hexadecimal digits, and
// the prefix before the digits.
var signatures = []struct{ header, prefix string }{
	{"X-Hub-Signature-256", "sha256="}, // GitHub, and also Gitea and Forgejo
	{"X-Gitea-Signature", ""},
	{"X-Forgejo-Signature", ""},
	{"X-Gogs-Signature", ""},
}

// gitlabToken is the header that has the secret itself, since GitLab does not sign requests.
const gitlabToken = "X-Gitlab-Token"

// authentic reports whether the sender knows the secret: the request has at least one
// signature, and all of its signatures are valid. The comparison takes constant time.
func authentic(h http.Header, body []byte, secret string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	want := mac.Sum(nil)
	found, valid := 0, 1
	for _, s := range signatures {
		for _, value := range h.Values(s.header) {
			found++
			valid &= equalHex(value, s.prefix, want)
		}
	}
	for _, value := range h.Values(gitlabToken) {
		found++
		a, b := sha256.Sum256([]byte(value)), sha256.Sum256([]byte(secret))
		valid &= subtle.ConstantTimeCompare(a[:], b[:])
	}
	return found > 0 && valid == 1
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

// isPing reports whether a forge only tests the webhook.
func isPing(h http.Header) bool { return h.Get("X-GitHub-Event") == "ping" }

// pushedRef returns the reference that was pushed. All supported forges send it in the field
// ref.
func pushedRef(body []byte) (ref string, ok bool) {
	var push struct {
		Ref string `json:"ref"`
	}
	if json.Unmarshal(body, &push) != nil || !strings.HasPrefix(push.Ref, "refs/") {
		return "", false
	}
	return push.Ref, true
}

// An issue is one that a request is about.
type issue struct {
	labels []string
	body   string
}

// aboutPullRequest reports whether a request is about a pull request or an issue: GitHub and Gitea
// send the field pull_request or issue, and GitLab the object_kind merge_request or issue, or the field merge_request with a
// comment. about is
// nil if it is about a pull request, or if the issue cannot be read.
func aboutPullRequest(body []byte) (about *issue, is bool) {
	var event struct {
		PullRequest  json.RawMessage `json:"pull_request"`
		MergeRequest json.RawMessage `json:"merge_request"`
		Issue        json.RawMessage `json:"issue"`
		Kind         string          `json:"object_kind"`
		Attributes   json.RawMessage `json:"object_attributes"`
	}
	switch {
	case json.Unmarshal(body, &event) != nil:
		return nil, false
	case isObject(event.PullRequest), event.Kind == "merge_request", event.Kind == "note" && isObject(event.MergeRequest):
		return nil, true
	case isObject(event.Issue):
		return readIssue(event.Issue), true
	case event.Kind == "issue":
		return readIssue(event.Attributes), true
	}
	return nil, false
}

func isObject(raw json.RawMessage) bool { return strings.HasPrefix(string(raw), "{") }

// readIssue reads what a forge sends of an issue; nil if that is a pull request, which has comments
// as issues have, or nothing that is known.
func readIssue(raw json.RawMessage) *issue {
	var sent struct {
		PullRequest json.RawMessage                `json:"pull_request"`
		Body        string                         `json:"body"`
		Description string                         `json:"description"` // of GitLab
		Labels      []struct{ Name, Title string } `json:"labels"`
	}
	if json.Unmarshal(raw, &sent) != nil || isObject(sent.PullRequest) {
		return nil
	}
	about := &issue{body: sent.Body + sent.Description}
	for _, l := range sent.Labels {
		about.labels = append(about.labels, l.Name+l.Title)
	}
	return about
}
