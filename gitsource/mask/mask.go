// Package mask removes credentials from the text of HTTP responses, so that it can be shown.
//
// A server, or a proxy in front of it, may repeat the request with its credentials, and may
// respond with a web page. [Credentials.Mask] replaces the credentials of a request and
// everything that looks like a credential. [Credentials.Text] also shortens the text and
// recognizes web pages. Values of Secrets on clusters are masked by package diff.
package mask

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Masked replaces a credential.
const Masked = "***"

// minSecret is the length of the shortest user name or password that is masked: shorter ones
// are part of ordinary words.
const minSecret = 4

// Credentials are the secrets of one request, in every encoding in which a text may contain
// them.
type Credentials struct{ replacer *strings.Replacer }

// Of returns the credentials that a request contains.
func Of(req *http.Request) Credentials {
	if req == nil {
		return Credentials{}
	}
	var secrets []string
	for _, name := range []string{"Authorization", "Proxy-Authorization", "Cookie"} {
		for _, value := range req.Header.Values(name) {
			secrets = append(secrets, OfHeader(value)...)
		}
	}
	if req.URL != nil && req.URL.User != nil {
		password, _ := req.URL.User.Password()
		secrets = append(secrets, password, req.URL.User.Username()+":"+password)
	}
	return New(secrets...)
}

// OfHeader returns the secrets in the value of an Authorization header.
func OfHeader(value string) []string {
	scheme, credential, found := strings.Cut(value, " ")
	if !found {
		return []string{value}
	}
	secrets := []string{value, credential}
	if plain, err := base64.StdEncoding.DecodeString(credential); err == nil && strings.EqualFold(scheme, "Basic") {
		user, password, _ := strings.Cut(string(plain), ":")
		secrets = append(secrets, string(plain), password)
		if password == "" || password == "x-oauth-basic" { // the user name is the token
			secrets = append(secrets, user)
		}
	}
	return secrets
}

// New returns Credentials with the given secrets.
func New(secrets ...string) Credentials {
	var forms []string
	for _, s := range secrets {
		if len(s) < minSecret {
			continue
		}
		quoted, _ := json.Marshal(s) // encoding a string cannot fail
		forms = append(forms, s, url.QueryEscape(s), url.PathEscape(s), html.EscapeString(s), strings.Trim(string(quoted), `"`))
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			forms = append(forms, e.EncodeToString([]byte(s)))
		}
	}
	if len(forms) == 0 {
		return Credentials{}
	}
	// The longest come first, so that no part of a longer secret remains.
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, f := range slices.Compact(forms) {
		pairs = append(pairs, f, Masked)
	}
	return Credentials{strings.NewReplacer(pairs...)}
}

// patterns match credentials that are not those of the request, such as one that a proxy has
// added.
var patterns = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`(?i)\b((?:proxy-)?authorization|(?:set-)?cookie|x-api-key|private-token)(\\?["']?\s*[:=]\s*\\?["']?)(?:(?:bearer|basic|token|negotiate)\s+)?[^\s"'\\,<>{}]+`), "$1$2" + Masked},
	{regexp.MustCompile(`\b((?i:bearer|basic))(\s+)[A-Za-z0-9._~+/-]*[A-Z0-9][A-Za-z0-9._~+/-]{7,}=*`), "$1$2" + Masked},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?`), Masked},
	{regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s"'\\?#@<>]+@`), "$1"},
}

// Mask replaces these credentials in a text, and everything that looks like a credential.
func (c Credentials) Mask(text string) string {
	if c.replacer != nil {
		text = c.replacer.Replace(text)
	}
	for _, p := range patterns {
		text = p.what.ReplaceAllString(text, p.by)
	}
	return text
}

// Error returns err if its text has no credentials. Otherwise it returns an error that wraps
// err and whose text is masked.
func (c Credentials) Error(err error) error {
	if err == nil {
		return nil
	}
	if text := c.Mask(err.Error()); text != err.Error() {
		return &maskedError{text, err}
	}
	return err
}

type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.err }

var (
	page  = regexp.MustCompile(`(?is)^\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b`)
	title = regexp.MustCompile(`(?is)<title[^>]*>\s*(.*?)\s*</title>`)
)

// IsPage reports whether a body is a web page.
func IsPage(contentType string, body []byte) bool {
	kind, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	kind = strings.TrimSpace(kind)
	return kind == "text/html" || kind == "application/xhtml+xml" || page.Match(body)
}

// Text returns the text of a body on one line of at most most bytes, without credentials. For a
// web page it returns the title.
func (c Credentials) Text(contentType string, body []byte, most int) string {
	if !IsPage(contentType, body) {
		// It is masked before it is cut, so that no part of a credential is left at the end.
		return Line(c.Mask(string(body)), most)
	}
	if m := title.FindSubmatch(body); m != nil {
		if t := Line(c.Mask(html.UnescapeString(string(m[1]))), most); t != "" {
			return "a web page: " + t
		}
	}
	return "a web page"
}

// Line returns a text on one line of at most most bytes, without control characters.
func Line(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
