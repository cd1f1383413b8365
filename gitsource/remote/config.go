package remote

import "time"

// A Config configures the access to a remote.
type Config struct {
	// Auth configures how to authenticate to the remote, and how to verify the remote.
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
	// ListBytes limits the part of FetchBytes that the list of references may take.
	ListBytes int64
	// ListTime limits the listing of references.
	ListTime time.Duration
}

// maxSecret is the maximum size of a credential file; a key has a few kilobytes.
const maxSecret = 64 << 10
