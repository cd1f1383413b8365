package forge

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// maxAnswer is the maximum size of a response.
const maxAnswer = 8 << 20

// maxValues is the maximum number of JSON tokens of an answer. As Go values, empty objects are several
// hundred times larger than their text.
const maxValues = 300_000

// A StatusError is a response whose status is not a success.
type StatusError struct {
	Status int
	// Message is the forge's message, without credentials and without web pages.
	Message string
	// reason is what Message says in plain words, if that is JSON.
	reason string
	// RetryAfter is the delay that the forge asked for; zero if it did not ask for one.
	RetryAfter time.Duration
}

// Error implements error.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("the forge answered %d", e.Status)
	if why := cmp.Or(e.reason, e.Message); why != "" {
		text += ": " + why
	}
	hint := hints[e.Status]
	if e.RetryAfter > 0 {
		hint = "the next attempt is in " + e.RetryAfter.Round(time.Second).String()
		if e.Status/100 != 5 {
			hint = "the rate limit is exceeded; " + hint
		}
	}
	if hint != "" {
		text += " (" + hint + ")"
	}
	return text
}

const moved = "the repository has moved: set forge.url and forge.repository to where it is now"

// hints are the usual fixes, by status.
var hints = map[int]string{
	http.StatusMovedPermanently:  moved,
	http.StatusFound:             moved,
	http.StatusTemporaryRedirect: moved,
	http.StatusPermanentRedirect: moved,
	http.StatusUnauthorized:      "the token is wrong or was revoked",
	http.StatusForbidden:         "the token may not do this: check its scopes, and who may write to the repository",
	http.StatusNotFound:          "there is no such repository, or the token may not see it",
}

// Reason is the text of an error for people, without the address that was asked.
func Reason(err error) string {
	text := err.Error()
	for inner := err; ; {
		request, ok := errors.AsType[*url.Error](inner)
		if !ok {
			return text
		}
		inner = request.Err
		text = strings.Replace(text, request.Error(), inner.Error(), 1)
	}
}

// plainReason returns what the JSON of an answer says in plain words; empty if it does not.
func plainReason(body []byte) string {
	var answer struct {
		Message     any             `json:"message"`
		Error       any             `json:"error"`
		Description any             `json:"error_description"`
		Errors      json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	reasons := texts(answer.Message)
	if reasons == nil {
		reasons = append(texts(answer.Error), texts(answer.Description)...)
	}
	var details []struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(answer.Errors, &details) == nil {
		for _, d := range details {
			reasons = append(reasons, texts(d.Message)...)
		}
	}
	return strings.Join(reasons, "; ")
}

// texts are the texts of a value, of which a map has some for each field.
func texts(v any) []string {
	var out []string
	switch v := v.(type) {
	case string:
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, v)
		}
	case []any:
		for _, item := range v {
			out = append(out, texts(item)...)
		}
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(v)) {
			if all := texts(v[field]); all != nil {
				out = append(out, field+" "+strings.Join(all, ", "))
			}
		}
	}
	return out
}

// IsGeneral reports whether every request is likely to fail in the same way: the forge is down
// or overloaded, the repository has moved, or the token is not accepted. Other errors are about
// a single pull request or branch.
func IsGeneral(err error) bool {
	if answer, ok := errors.AsType[*StatusError](err); ok {
		return answer.Status/100 != 4 || answer.Status == http.StatusUnauthorized || answer.RetryAfter > 0 || answer.Status == http.StatusTooManyRequests
	}
	_, ok := errors.AsType[*url.Error](err)
	return ok && !errors.Is(err, errTooLarge)
}

// ErrNotReady is the error of a request that needs what a forge prepares after a push, which may
// take a while.
var ErrNotReady = errors.New("the forge has not prepared the changes yet")

// errTooLarge is the error of a response that exceeds the limit.
var errTooLarge = fmt.Errorf("the answer is larger than %d bytes, or has more than %d JSON values", maxAnswer, maxValues)

// wrapf adds what was being done to an error; nil stays nil.
func wrapf(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// statusOf returns the status of an error response; zero if the forge did not respond.
func statusOf(err error) int {
	if answer, ok := errors.AsType[*StatusError](err); ok {
		return answer.Status
	}
	return 0
}

// answered reports whether an error is a response with a status whose message contains a text.
func answered(err error, status int, text string) bool {
	answer, ok := errors.AsType[*StatusError](err)
	return ok && answer.Status == status && strings.Contains(answer.Message, text)
}
