// Package mask makes what an HTTP server answered fit to be shown.
//
// A server, or a proxy before it, may say back what it was asked with, credentials
// included, and may answer with a web page. [Credentials.Mask] takes out what a request
// carried and what looks like a credential; [Credentials.Text] also shortens, and
// recognizes web pages.
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

// Masked replaces what must not be shown.
const Masked = "***"

// leastSecret is how long a user's name or password has to be to be looked for:
// shorter ones are part of ordinary words.
const leastSecret = 4

// Credentials are those of one request, in all forms in which a text may quote them.
type Credentials struct{ replacer *strings.Replacer }

// Of returns the credentials that a request carries.
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
		if password == "" || password == "x-oauth-basic" { // then the name is the token
			secrets = append(secrets, user)
		}
	}
	return secrets
}

// New returns credentials that are these secrets.
func New(secrets ...string) Credentials {
	var forms []string
	for _, s := range secrets {
		if len(s) < leastSecret {
			continue
		}
		quoted, _ := json.Marshal(s) // a string can always be encoded
		forms = append(forms, s, url.QueryEscape(s), url.PathEscape(s), html.EscapeString(s), strings.Trim(string(quoted), `"`))
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			forms = append(forms, e.EncodeToString([]byte(s)))
		}
	}
	if len(forms) == 0 {
		return Credentials{}
	}
	// The longest first, so that no part of one is left.
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, f := range slices.Compact(forms) {
		pairs = append(pairs, f, Masked)
	}
	return Credentials{strings.NewReplacer(pairs...)}
}

// patterns are credentials of anybody: a proxy may have added its own.
var patterns = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`(?i)\b((?:proxy-)?authorization|(?:set-)?cookie|x-api-key|private-token)(\\?["']?\s*[:=]\s*\\?["']?)(?:(?:bearer|basic|token|negotiate)\s+)?[^\s"'\\,<>{}]+`), "$1$2" + Masked},
	{regexp.MustCompile(`\b((?i:bearer|basic))(\s+)[A-Za-z0-9._~+/-]*[A-Z0-9][A-Za-z0-9._~+/-]{7,}=*`), "$1$2" + Masked},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?`), Masked},
	{regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s"'\\?#@<>]+@`), "$1"},
}

// Mask returns a text without credentials: neither these, nor what looks like one.
func (c Credentials) Mask(text string) string {
	if c.replacer != nil {
		text = c.replacer.Replace(text)
	}
	for _, p := range patterns {
		text = p.what.ReplaceAllString(text, p.by)
	}
	return text
}

// Error returns an error whose text has no credentials. It wraps err, and is err where
// there is nothing to mask.
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

// Text returns what a body says on one line of at most most bytes, without
// credentials. Of a web page it is the title.
func (c Credentials) Text(contentType string, body []byte, most int) string {
	if !IsPage(contentType, body) {
		// Shortened last, so that no part of a credential is left at the end.
		return cut(oneLine(c.Mask(string(body))), most)
	}
	if m := title.FindSubmatch(body); m != nil {
		if t := cut(oneLine(c.Mask(html.UnescapeString(string(m[1])))), most); t != "" {
			return "a web page: " + t
		}
	}
	return "a web page"
}

// oneLine replaces what would break a line or control a terminal.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return strings.Join(strings.Fields(text), " ")
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
