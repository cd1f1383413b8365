package forge

import "fmt"

// New returns a client of a repository. It sends no request.
func New(cfg Config) (Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	var client Client
	var err error
	switch cfg.Type {
	case Gitea:
		client, err = newGitea(cfg)
	case GitHub:
		client, err = newGitHub(cfg)
	case GitLab:
		client, err = newGitLab(cfg)
	default:
		err = fmt.Errorf("type: %q is not supported", cfg.Type)
	}
	if err != nil {
		return nil, err
	}
	return recovering{client}, nil
}
