package forge

import (
	"fmt"
	"sync"
)

// tokenUser is the user of a token. It is requested once for each token.
type tokenUser struct {
	token func() (string, error)

	mu    sync.Mutex
	known string
	user  int64
}

// id returns the ID of the user, and calls ask if the token has changed.
func (u *tokenUser) id(ask func() (int64, error)) (int64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	token, err := u.token()
	if err != nil {
		return 0, fmt.Errorf("read the token of the forge: %w", err)
	}
	if u.known == token {
		return u.user, nil
	}
	user, err := ask()
	if err != nil {
		return 0, fmt.Errorf("ask whose the token is: %w", err)
	}
	u.known, u.user = token, user
	return user, nil
}
