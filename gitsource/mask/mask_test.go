package mask

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"html"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

const token = `tok<en"/+&%40=secret`

func request(t *testing.T, set func(*http.Request)) *http.Request {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "https://server.example/path", nil)
	if err != nil {
		t.Fatal(err)
	}
	set(req)
	return req
}

// The credentials of a request are masked in every encoding that a server may use to repeat
// them.
func TestCredentialsAreMasked(t *testing.T) {
	quoted, err := json.Marshal(token)
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string]*http.Request{
		"bearer":        request(t, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }),
		"basic":         request(t, func(r *http.Request) { r.SetBasicAuth("git", token) }),
		"token as name": request(t, func(r *http.Request) { r.SetBasicAuth(token, "x-oauth-basic") }),
		"in the URL":    request(t, func(r *http.Request) { r.URL.User = url.UserPassword("git", token) }),
		"to a proxy":    request(t, func(r *http.Request) { r.Header.Set("Proxy-Authorization", "Bearer "+token) }),
	}
	forms := map[string]string{
		"as it is": token, "JSON": string(quoted), "HTML": html.EscapeString(token), "query": url.QueryEscape(token), "path": url.PathEscape(token),
		"base64": base64.StdEncoding.EncodeToString([]byte(token)), "base64 for URLs": base64.RawURLEncoding.EncodeToString([]byte(token)),
		"basic": base64.StdEncoding.EncodeToString([]byte("git:" + token)),
	}
	for name, req := range requests {
		for form, text := range forms {
			if form == "basic" && name != "basic" && name != "in the URL" {
				continue
			}
			got := Of(req).Text("text/plain", []byte("denied: "+text+" is not known"), 200)
			if strings.Contains(got, text) || !strings.HasPrefix(got, "denied: ") || !strings.HasSuffix(got, " is not known") {
				t.Errorf("%s, %s: %s", name, form, got)
			}
		}
	}
}

// Everything that looks like a credential is masked, even if it is not that of the request.
// Other text is kept.
func TestCredentialsOfOthersAreMasked(t *testing.T) {
	for text, want := range map[string]string{
		"GET /api HTTP/1.1 Authorization: Bearer abc.def":         "GET /api HTTP/1.1 Authorization: ***",
		`{"authorization":"Basic Z2l0OnBhc3M=","code":1}`:         `{"authorization":"***","code":1}`,
		`{"message":"got \"Authorization\": \"Bearer abc\""}`:     `{"message":"got \"Authorization\": \"***\""}`,
		"Cookie: session=1234":                                    "Cookie: ***",
		"upstream sent Bearer abcdefgh1jklmnop":                   "upstream sent Bearer ***",
		"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl is it": "*** is it",
		"see https://git:pass@server.example/x":                   "see https://server.example/x",
		"the bearer of bad news, basic authentication":            "the bearer of bad news, basic authentication",
		`deployments.apps "web" is forbidden`:                     `deployments.apps "web" is forbidden`,
	} {
		if got := (Credentials{}).Mask(text); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// Only the title of a web page is shown.
func TestPagesAreRecognized(t *testing.T) {
	for name, test := range map[string]struct{ contentType, body, want string }{
		"by its type":   {"text/html; charset=utf-8", "<h1>Bad Gateway</h1>", "a web page"},
		"by its text":   {"text/plain", "\n<!DOCTYPE html><html><head><title>\n 502 &amp; more\x1b[2J</title></head>long", "a web page: 502 & more [2J"},
		"with a secret": {"", "<html><title>Authorization: Bearer abcdef</title>", "a web page: Authorization: ***"},
		"no page":       {"text/plain", "not found\r\n\x1b[31m<nil>", "not found [31m<nil>"},
		"long":          {"text/plain", strings.Repeat("é", 200), strings.Repeat("é", 50) + "…"},
	} {
		if got := (Credentials{}).Text(test.contentType, []byte(test.body), 101); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// A masked error still wraps the original one, and its text has no credentials.
func TestErrorsAreMasked(t *testing.T) {
	err := &fs.PathError{Op: "read", Path: token, Err: fs.ErrNotExist}
	got := New(token).Error(err)
	if strings.Contains(got.Error(), token) || !errors.Is(got, fs.ErrNotExist) {
		t.Errorf("got %v", got)
	}
	if other := fs.ErrExist; New(token).Error(other) != other || New(token).Error(nil) != nil {
		t.Error("an error without a secret is not what it was")
	}
}
