// Package remote reads and writes remote repositories over HTTP, SSH and the file system.
//
// New returns the Remote at an address. A Session lists its references and fetches one pack of
// limited size; a PushSession changes one reference. Credentials are read from files or the
// environment for each session, and no error contains them. The git program is not used.
package remote

import "context"

// A Remote is a remote repository.
type Remote interface {
	// Session begins a session with the current credentials.
	Session(ctx context.Context) (Session, error)
	// Close closes idle connections.
	Close()
}

// New returns the remote at an address.
func New(cfg Config, where Location) (Remote, error) {
	switch where.Scheme {
	case "http", "https":
		return NewHTTP(cfg, where), nil
	case "file":
		return &localRemote{where.endpoint.Path}, nil
	case "ssh":
		return &sshRemote{cfg: cfg, where: where}, nil
	}
	return nil, FieldErrorf("url", "scheme %s is not supported", where.Scheme)
}
