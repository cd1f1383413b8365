// Package forge opens pull requests.
//
// A client is for one repository and one token. It asks for as little as possible and
// keeps nothing: what a pull request is now the forge says. Errors of a forge that
// answers are of the type [*StatusError]; none has a credential in it.
package forge

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// A State is what has become of a pull request.
type State string

// The states of a pull request.
const (
	Open   State = "open"
	Merged State = "merged"
	Closed State = "closed" // without having been merged
)

// A PullRequest is one of a branch of the repository itself.
type PullRequest struct {
	Number int64
	// URL is where people see it.
	URL    string
	Branch string
	Body   string
	State  State
	// Ended is when it was merged or closed; zero while it is open.
	Ended time.Time
}

// A Proposal is what a new pull request is opened with.
type Proposal struct {
	Base, Branch string
	Title, Body  string
}

// A Commit changes one file on a new branch.
type Commit struct {
	// Base is the branch it follows, Branch the one that is made.
	Base, Branch string
	// Path is the file, Before all that is expected there, and After the new text.
	Path          string
	Before, After []byte
	Message       string
}

// ErrStale is returned where the file is not as expected.
var ErrStale = errors.New("the file has changed on the branch since")

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
	if hint := hints[e.Status]; hint != "" {
		text += " (" + hint + ")"
	}
	return text
}

// hints say what usually mends an answer.
var hints = map[int]string{
	301: "the repository has moved: set forge.url and forge.repository to where it is now",
	302: "the repository has moved: set forge.url and forge.repository to where it is now",
	307: "the repository has moved: set forge.url and forge.repository to where it is now",
	308: "the repository has moved: set forge.url and forge.repository to where it is now",
	401: "the token is wrong or was revoked",
	403: "the token may not do this: see its scopes, and who may write to the repository",
	404: "there is no such repository, or the token may not see it",
}

// statusOf is the status of an answer that is an error; zero if the forge did not answer.
func statusOf(err error) int {
	if answer, ok := errors.AsType[*StatusError](err); ok {
		return answer.Status
	}
	return 0
}

// blobID is the name that Git gives to the content of a file.
func blobID(content []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}
