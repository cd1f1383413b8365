package diff

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Secrets are values that must not be shown, in all forms in which a text may quote them.
type Secrets struct {
	long  map[string][]string // long values by their first characters, the longest first
	words map[string]bool     // short values
	// fields are the paths of values that are secret although their object is no Secret.
	fields [][]string
}

// short is the length below which a value is masked only as a whole word, since it may be part
// of a word by chance.
const short = 5

// SecretsOf collects the values of the Secrets among the objects, also those in the copy of the
// last applied object. Objects may be nil.
func SecretsOf(objects ...*unstructured.Unstructured) Secrets {
	quotes := map[string]bool{}
	s := Secrets{long: map[string][]string{}, words: map[string]bool{}}
	for _, o := range objects {
		if o != nil {
			collect(o.Object, quotes)
			s.fields = append(s.fields, api.SecretFields(o.Object)...)
		}
	}
	for _, o := range objects {
		if o != nil {
			for _, field := range s.fields {
				visitField(o.Object, field, func(v any) { quote(v, true, quotes) })
			}
		}
	}
	for _, q := range slices.SortedFunc(maps.Keys(quotes), longestFirst) {
		if len(q) < short {
			s.words[q] = true
		} else {
			s.long[q[:short]] = append(s.long[q[:short]], q)
		}
	}
	return s
}

func longestFirst(a, b string) int {
	return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
}

// none reports whether there are no values.
func (s Secrets) none() bool { return len(s.long)+len(s.words) == 0 }

// collect finds the Secrets in a value.
func collect(v any, quotes map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		secret := isSecret(v)
		for key, field := range v {
			if copied, ok := field.(string); ok && keepsCopy(key) {
				var object any
				if json.Unmarshal([]byte(copied), &object) == nil {
					collect(object, quotes)
				}
			}
			if secret && secretFields[key] {
				quote(field, key == "data", quotes)
			} else {
				collect(field, quotes)
			}
		}
	case []any:
		for _, item := range v {
			collect(item, quotes)
		}
	}
}

// visitField calls visit with the values at a path. An index stands for all items of its list.
func visitField(v any, path []string, visit func(any)) {
	if len(path) == 0 {
		visit(v)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if field, there := v[path[0]]; there {
			visitField(field, path[1:], visit)
		}
	case []any:
		for _, item := range v {
			visitField(item, path[1:], visit)
		}
	}
}

// quote adds all forms of a value in data or stringData of a Secret. It also adds invalid
// values, such as numbers, since errors are most likely to quote those.
func quote(v any, encoded bool, quotes map[string]bool) {
	mapLeaves(v, func(leaf any) any {
		if leaf != nil {
			written := Text(leaf)
			quoteText(written, quotes)
			if clear, err := base64.StdEncoding.DecodeString(written); encoded && err == nil {
				quoteText(string(clear), quotes)
			}
		}
		return nil
	})
}

// quoteText adds all forms of a value, and each of its lines that is long enough.
func quoteText(value string, quotes map[string]bool) {
	quoteWord(value, quotes)
	for _, line := range strings.Split(value, "\n") {
		if line = strings.TrimSpace(line); len(line) > short {
			quoteWord(line, quotes)
		}
	}
}

func quoteWord(value string, quotes map[string]bool) {
	if strings.TrimSpace(value) == "" {
		return
	}
	b := []byte(value)
	inJSON, _ := json.Marshal(value) // encoding a string cannot fail
	inGo := strconv.Quote(value)
	for _, way := range []string{
		value,
		strings.TrimSpace(value),
		inGo[1 : len(inGo)-1],
		string(inJSON[1 : len(inJSON)-1]),
		base64.StdEncoding.EncodeToString(b),
		base64.RawStdEncoding.EncodeToString(b),
		base64.URLEncoding.EncodeToString(b),
		base64.RawURLEncoding.EncodeToString(b),
	} {
		quotes[way] = true
	}
}

// Format prints the mask for every verb, since Secrets may be logged.
func (s Secrets) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Mask) }

// Scrub masks the values wherever a text quotes them.
func (s Secrets) Scrub(text string) string {
	if s.none() {
		return text
	}
	var out strings.Builder
	start := 0
	for i := 0; i < len(text); {
		n := s.match(text, i)
		if n == 0 {
			i++
			continue
		}
		out.WriteString(text[start:i])
		out.WriteString(Mask)
		i += n
		start = i
	}
	if start == 0 {
		return text
	}
	return out.String() + text[start:]
}

// match returns the length of the longest value at the beginning of text[i:].
func (s Secrets) match(text string, i int) int {
	rest := text[i:]
	if len(rest) >= short {
		for _, q := range s.long[rest[:short]] {
			if strings.HasPrefix(rest, q) {
				return len(q)
			}
		}
	}
	for n := min(short-1, len(rest)); n > 0; n-- {
		if s.words[rest[:n]] && isWholeWord(text, i, i+n) {
			return n
		}
	}
	return 0
}

// isWholeWord reports whether the text at from:to is not part of a longer word.
func isWholeWord(text string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, _ := utf8.DecodeRuneInString(text[to:])
	return !inWord(before) && !inWord(after)
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// Error returns err or, if it quotes one of the values, an error without them. The reason of an
// API server's error is kept.
func (s Secrets) Error(err error) error {
	if err == nil || s.none() {
		return err
	}
	clean := maskedError{text: s.Scrub(err.Error())}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		answer := status.Status()
		answer.Message = s.Scrub(answer.Message)
		if answer.Details != nil {
			answer.Details = answer.Details.DeepCopy()
			for i := range answer.Details.Causes {
				answer.Details.Causes[i].Message = s.Scrub(answer.Details.Causes[i].Message)
			}
		}
		clean.cause = &apierrors.StatusError{ErrStatus: answer}
		return clean
	}
	if clean.text == err.Error() {
		return err
	}
	return clean
}

// A maskedError is an error without secret values, also in the errors that it wraps.
type maskedError struct {
	text  string
	cause error // nil, or the error of an API server
}

func (e maskedError) Error() string { return e.text }
func (e maskedError) Unwrap() error { return e.cause }

var secretFields = map[string]bool{"data": true, "stringData": true}

func isSecret(o map[string]any) bool { return o["kind"] == "Secret" && o["apiVersion"] == "v1" }

// keepsCopy reports whether tools keep a copy of the applied object in this annotation.
func keepsCopy(key string) bool {
	return strings.Contains(key, "last-applied") || copies[key]
}

var copies = map[string]bool{
	"kapp.k14s.io/original":                       true,
	"kapp.k14s.io/original-diff":                  true,
	"kapp.k14s.io/original-diff-full":             true,
	"objectset.rio.cattle.io/applied":             true,
	"kopf.zalando.org/last-handled-configuration": true,
}
