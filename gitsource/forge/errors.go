package forge

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A StatusError is an answer that is not a success.
type StatusError struct {
	Status int
	// Message is what the forge says, without credentials and web pages.
	Message string
	// RetryAfter is how long the forge asks to be left alone; zero if it does not.
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

// hints say what usually mends an answer.
var hints = map[int]string{
	http.StatusMovedPermanently:  moved,
	http.StatusFound:             moved,
	http.StatusTemporaryRedirect: moved,
	http.StatusPermanentRedirect: moved,
	http.StatusUnauthorized:      "the token is wrong or was revoked",
	http.StatusForbidden:         "the token may not do this: see its scopes, and who may write to the repository",
	http.StatusNotFound:          "there is no such repository, or the token may not see it",
}

// IsGeneral reports whether an error is likely to be met by every request: the forge is down
// or overloaded, the repository has moved, or the token is not accepted. Others are about
// one pull request or one branch.
func IsGeneral(err error) bool {
	if answer, ok := errors.AsType[*StatusError](err); ok {
		return answer.Status/100 != 4 || answer.Status == http.StatusUnauthorized || answer.RetryAfter > 0 || answer.Status == http.StatusTooManyRequests
	}
	_, ok := errors.AsType[*url.Error](err)
	return ok && !errors.Is(err, errTooLarge)
}

// errTooLarge is the error of an answer that is not read.
var errTooLarge = fmt.Errorf("the answer is larger than %d bytes", mostAnswer)

// statusOf is the status of an answer that is an error; zero if the forge did not answer.
func statusOf(err error) int {
	if answer, ok := errors.AsType[*StatusError](err); ok {
		return answer.Status
	}
	return 0
}

// answered reports whether an error is an answer with a status and a text in its message.
func answered(err error, status int, text string) bool {
	answer, ok := errors.AsType[*StatusError](err)
	return ok && answer.Status == status && strings.Contains(answer.Message, text)
}
