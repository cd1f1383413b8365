package forge

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A StatusError is a response whose status is not a success.
type StatusError struct {
	Status int
	// Message is the forge's message, without credentials and without web pages.
	Message string
	// RetryAfter is the delay that the forge asked for; zero if it did not ask for one.
	RetryAfter time.Duration
}

// Error implements error.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("the forge answered %d", e.Status)
	if e.Message != "" {
		text += ": " + e.Message
	}
	hint := hints[e.Status]
	if e.RetryAfter > 0 {
		hint = "the rate limit is used up; asked again in " + e.RetryAfter.Round(time.Second).String()
		if e.Status/100 == 5 {
			hint = "asked again in " + e.RetryAfter.Round(time.Second).String()
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
	http.StatusForbidden:         "the token may not do this: see its scopes, and who may write to the repository",
	http.StatusNotFound:          "there is no such repository, or the token may not see it",
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

// errTooLarge is the error of a response that exceeds the limit.
var errTooLarge = fmt.Errorf("the answer is larger than %d bytes", mostAnswer)

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
