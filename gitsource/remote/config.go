package remote

import "time"

// A Config configures the access to a remote.
type Config struct {
	// Auth configures authentication to the remote, and of the remote.
	Auth Auth
	// Getenv returns the environment variables that credentials name; nil refuses them.
	Getenv func(string) string
	// Limits limit what the remote can cause.
	Limits Limits
}

// Limits limit one session.
type Limits struct {
	// FetchBytes limits what is received.
	FetchBytes int64
	// ListBytes limits the listing of references within it.
	ListBytes int64
	// ListTime limits the listing of references.
	ListTime time.Duration
}

// maxSecret is the largest credential file that is read; a key has a few kilobytes.
const maxSecret = 64 << 10
